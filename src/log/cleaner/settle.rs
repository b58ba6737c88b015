//! What a crash, or Apache Kafka, left of cleanings in a folder at rest
//! (`LogLoader.removeTempFilesAndCollectSwapFiles`). A crash in here repeats it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

/// Where a new segment's batches are until it has got its name.
pub(crate) fn swap_path(folder: &Path, base: Offset) -> PathBuf {
    path_in(folder, base, LogFileKind::Log, FileState::Swap)
}

/// How a start ends the replacement by a new segment that was whole when the crash came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It takes the place of the segments up to this offset.
    Forward(Offset),
    /// It is not what was written, and the old ones are all there still.
    Back(String),
}

/// What cleanings have left in a folder.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// New segments that were whole, by their base offsets.
    pub(crate) whole: Vec<(Offset, Ending)>,
    /// Files that nothing came of.
    rest: Vec<String>,
    /// All of the folder's.
    names: Vec<LogFileName>,
}

impl Leftovers {
    /// Looks at a folder at rest, by its names.
    pub(crate) async fn find(folder: &Path, all: &[String]) -> Result<Self> {
        let is_temporary = |name: &&String| {
            let whole = name.strip_suffix(TEMPORARY_SUFFIX);
            let parsed = whole.and_then(LogFileName::parse);
            parsed.is_some_and(|parsed| parsed.state == FileState::Cleaned)
        };
        let mut found = Self {
            rest: all.iter().filter(is_temporary).cloned().collect(),
            ..Self::default()
        };
        let names = all.iter().filter_map(|name| LogFileName::parse(name));
        found.names = names.collect();
        let in_state = |state| found.names.iter().filter(move |name| name.state == state);
        let unfinished = in_state(FileState::Cleaned).map(|name| name.offset);
        let unfinished: BTreeSet<Offset> = unfinished.collect();
        let whole = in_state(FileState::Swap).filter(|name| name.kind == LogFileKind::Log);
        let whole: BTreeSet<Offset> = whole.map(|name| name.offset).collect();
        let left = found.names.iter().filter(|name| match name.state {
            FileState::Cleaned => true,
            FileState::Swap => unfinished.contains(&name.offset) || !whole.contains(&name.offset),
            FileState::Live | FileState::Deleted => false,
        });
        found.rest.extend(left.map(ToString::to_string));
        for base in whole.difference(&unfinished) {
            let ending = found.ending(folder, *base).await?;
            found.whole.push((*base, ending));
        }
        Ok(found)
    }

    async fn ending(&self, folder: &Path, base: Offset) -> Result<Ending> {
        let swap = swap_path(folder, base);
        let is_live = |base| {
            self.names
                .contains(&LogFileName::live(base, LogFileKind::Log))
        };
        // While the first of the old segments has its name all others have theirs, and what the new
        // one holds of them is told by where it ends: where the next one begins.
        let has_old = is_live(base);
        match end_of(&swap, base).await? {
            Ok(end) if has_old && (end == base || !is_live(end)) => {
                let end = end.0;
                let what = format!("it ends at offset {end}, where no other segment begins");
                Ok(Ending::Back(format!("{}: {what}", swap.display())))
            }
            Ok(end) => Ok(Ending::Forward(end)),
            Err(what) if has_old => Ok(Ending::Back(format!("{}: {what}", swap.display()))),
            // Reads will name the place.
            Err(_) => Ok(Ending::Forward(base)),
        }
    }

    /// Files of the segments that the one at `base` takes the place of, but its own.
    fn replaced(&self, base: Offset, end: Offset) -> impl Iterator<Item = &LogFileName> {
        self.names.iter().filter(move |name| {
            let is_old = name.offset > base && name.offset < end;
            let is_of_segment = SEGMENT_KINDS.contains(&name.kind);
            name.state == FileState::Live && is_old && is_of_segment
        })
    }
}

/// Brings new segments that were whole to their places, and removes what was not.
pub(crate) async fn settle_swaps(folder: &Path) -> Result<()> {
    let failed = |error| LogError::io(format!("listing {}", folder.display()), error);
    let entries = io::directory::list(folder).await.map_err(failed)?;
    let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    let found = Leftovers::find(folder, &names).await?;
    for name in &found.rest {
        remove(&folder.join(name)).await?;
    }
    for (base, ending) in &found.whole {
        match ending {
            Ending::Back(what) => {
                tracing::error!("{what}: the segments that it was made of stay");
                for kind in SEGMENT_KINDS.into_iter().rev() {
                    remove(&path_in(folder, *base, kind, FileState::Swap)).await?;
                }
            }
            Ending::Forward(end) => {
                for name in found.replaced(*base, *end) {
                    remove(&folder.join(name.to_string())).await?;
                }
                sync(folder).await?;
                rename_swap(folder, *base).await?;
            }
        }
    }
    sync(folder).await
}

/// Gives a new segment's files their names, the batches last.
async fn rename_swap(folder: &Path, base: Offset) -> Result<()> {
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
