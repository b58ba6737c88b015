//! What a crash, or Apache Kafka, left of cleanings in a folder at rest
//! (`LogLoader.removeTempFilesAndCollectSwapFiles`). A crash in here repeats it.

use std::collections::BTreeSet;
use std::path::Path;

use super::writer::{SEGMENT_KINDS, path_in};
use crate::base::ids::Offset;
use crate::io::{self, File, OpenOptions};
use crate::log::error::LogError;
use crate::log::format::file_names::{FileState, LogFileKind, LogFileName, TEMPORARY_SUFFIX};
use crate::log::journal::Result;
use crate::log::scan::{ScanEnd, Scanner};

/// Whether a folder's names tell of a cleaning that did not come to its end.
pub(crate) fn has_leftovers(names: &[String]) -> bool {
    let of_cleaning = |name: &String| {
        let whole = name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(name);
        let parsed = LogFileName::parse(whole);
        parsed.is_some_and(|name| matches!(name.state, FileState::Cleaned | FileState::Swap))
    };
    names.iter().any(of_cleaning)
}

/// Brings new segments that were whole to their places, and removes what was not.
pub(crate) async fn settle_swaps(folder: &Path) -> Result<()> {
    let failed = |error| LogError::io(format!("listing {}", folder.display()), error);
    let entries = io::directory::list(folder).await.map_err(failed)?;
    let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    let is_temporary = |name: &&String| {
        let whole = name.strip_suffix(TEMPORARY_SUFFIX);
        let parsed = whole.and_then(LogFileName::parse);
        parsed.is_some_and(|parsed| parsed.state == FileState::Cleaned)
    };
    for name in names.iter().filter(is_temporary) {
        remove(&folder.join(name)).await?;
    }
    let parsed: Vec<LogFileName> = names
        .iter()
        .filter_map(|name| LogFileName::parse(name))
        .collect();
    let in_state = |state| parsed.iter().filter(move |name| name.state == state);
    let unfinished: BTreeSet<Offset> = in_state(FileState::Cleaned)
        .map(|name| name.offset)
        .collect();
    let is_whole =
        |name: &&LogFileName| name.kind == LogFileKind::Log && !unfinished.contains(&name.offset);
    let whole: BTreeSet<Offset> = in_state(FileState::Swap)
        .filter(is_whole)
        .map(|name| name.offset)
        .collect();
    for name in &parsed {
        let is_left = match name.state {
            FileState::Cleaned => true,
            FileState::Swap => !whole.contains(&name.offset),
            FileState::Live | FileState::Deleted => false,
        };
        if is_left {
            remove(&folder.join(name.to_string())).await?;
        }
    }
    for base in &whole {
        go_forward(folder, *base, &parsed).await?;
    }
    Ok(())
}

/// Ends the replacement by the whole segment at `base`.
async fn go_forward(folder: &Path, base: Offset, names: &[LogFileName]) -> Result<()> {
    let swap = path_in(folder, base, LogFileKind::Log, FileState::Swap);
    let end = match end_of(&swap, base).await? {
        Ok(end) => end,
        Err(what) => {
            let is_there =
                |name: &&LogFileName| **name == LogFileName::live(base, LogFileKind::Log);
            if names.iter().find(is_there).is_some() {
                // The old ones are all there still, and the new one is not what was written.
                tracing::error!(
                    "{}: {what}: the segments that it was made of stay",
                    swap.display()
                );
                for kind in SEGMENT_KINDS.into_iter().rev() {
                    remove(&path_in(folder, base, kind, FileState::Swap)).await?;
                }
                return sync(folder).await;
            }
            // Reads will name the place.
            base
        }
    };
    for name in names {
        let is_old = name.offset > base && name.offset < end;
        let is_of_segment = SEGMENT_KINDS.contains(&name.kind);
        if name.state == FileState::Live && is_old && is_of_segment {
            remove(&folder.join(name.to_string())).await?;
        }
    }
    sync(folder).await?;
    for kind in SEGMENT_KINDS {
        let live = path_in(folder, base, kind, FileState::Live);
        let swap = path_in(folder, base, kind, FileState::Swap);
        match io::directory::rename(&swap, &live).await {
            // An index of the old segment must not stay beside the new one.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => remove(&live).await?,
            renamed => renamed
                .map_err(|error| LogError::io(format!("renaming {}", swap.display()), error))?,
        }
        if kind == LogFileKind::IndexSums {
            // The batches get their name last.
            sync(folder).await?;
        }
    }
    sync(folder).await
}

/// The offset after its last batch, or what is wrong with it.
async fn end_of(path: &Path, base: Offset) -> Result<std::result::Result<Offset, String>> {
    let failed = |error| LogError::io(format!("reading {}", path.display()), error);
    let file = File::open(path, OpenOptions::default())
        .await
        .map_err(failed)?;
    let size = file.len().await.map_err(failed)?;
    let mut scanner = Scanner::whole(&file, 0, size);
    let mut end = base;
    loop {
        match scanner.next().await {
            Ok(batch) => end = batch.header.next_offset(),
            Err(ScanEnd::Complete) => return Ok(Ok(end)),
            Err(ScanEnd::Invalid(what)) => return Ok(Err(what)),
            Err(ScanEnd::Failed(error)) => return Err(failed(error)),
        }
    }
}

async fn remove(path: &Path) -> Result<()> {
    match io::directory::remove_file(path).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LogError::io(format!("removing {}", path.display()), error))
        }
        _ => Ok(()),
    }
}

async fn sync(folder: &Path) -> Result<()> {
    let synced = io::directory::sync(folder).await;
    synced.map_err(|error| LogError::io(format!("syncing {}", folder.display()), error))
}
