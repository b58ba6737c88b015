//! The end of a clean shutdown, and what the next start takes back from it.

use std::collections::BTreeMap;
use std::path::Path;

use super::checkpoints::{CheckpointFile, Checkpoints, write_checkpoint};
use super::folders::{Folder, list_folders};
use super::lost;
use crate::base::ids::{BrokerEpoch, ShardId};
use crate::io;
use crate::log::closed::write_closed;
use crate::log::error::LogError;
use crate::log::format::clean_shutdown;
use crate::log::format::closed_segments::ClosedSegments;
use crate::log::format::file_names::{CLEAN_SHUTDOWN, CLOSED_SEGMENTS, LOG_ID};
use crate::log::journal::{
    JOURNAL_FOLDER, RING_FILE_NAME, RING_FILE_PREFIX, ring_path, shard_folder,
};
use crate::log::limited::for_each_limited;
use crate::log::open::read_small;
use crate::log::shard_logs::ClosedLog;

/// Log ids removed at the same time.
const REMOVALS_AT_ONCE: usize = 16;

/// Ends a clean shutdown once every shard has closed: checkpoint files, then the journal folder,
/// only then the log ids, and `.kafka_cleanshutdown` last.
///
/// # Errors
/// What the file system answers; the next start then recovers.
pub async fn seal_directory(
    directory: &Path,
    closed: &[ClosedLog],
    broker_epoch: BrokerEpoch,
) -> Result<(), LogError> {
    let failed = |error| LogError::io(format!("sealing {}", directory.display()), error);
    let mut checkpoints = Checkpoints::read(directory).await?;
    checkpoints.keep_only(&list_folders(directory).await?);
    closed.iter().for_each(|log| checkpoints.set_closed(log));
    checkpoints.write(directory).await?;
    let cleaned = closed.iter().filter_map(|log| {
        let key = (log.topic.clone(), log.partition);
        log.cleaned.map(|cleaned| (key, cleaned))
    });
    let cleaned: BTreeMap<_, _> = cleaned.collect();
    if !cleaned.is_empty() {
        write_checkpoint(directory, CheckpointFile::Cleaned, &cleaned).await?;
    }
    write_closed(directory, &segments_of(closed, broker_epoch)).await?;
    retire_journal(directory).await?;
    let folders = list_folders(directory).await?;
    let with_id = folders.into_iter().filter(Folder::has_id).collect();
    for_each_limited(with_id, REMOVALS_AT_ONCE, |folder| async move {
        // An id that comes back after a power cut names an incarnation that is over.
        let path = folder.path.join(LOG_ID);
        let removed = io::directory::remove_file(&path).await;
        removed.map_err(|error| LogError::io(format!("removing {}", path.display()), error))
    })
    .await?;
    let bytes = clean_shutdown::encode(broker_epoch);
    let path = directory.join(CLEAN_SHUTDOWN);
    io::directory::write_file_durably(&path, &bytes)
        .await
        .map_err(failed)
}

fn segments_of(closed: &[ClosedLog], broker_epoch: BrokerEpoch) -> ClosedSegments {
    let key = |log: &ClosedLog| (log.topic.clone(), log.topic_id, log.partition);
    let logs = closed.iter().map(|log| (key(log), log.segments.clone()));
    ClosedSegments {
        broker_epoch,
        logs: logs.collect(),
    }
}

/// Removes the list of closed segments, durably, unless it is the one of the clean shutdown that
/// was found: after any other life it says nothing.
pub(super) async fn forget_closed(directory: &Path, was_clean: bool) -> Result<(), LogError> {
    let path = directory.join(CLOSED_SEGMENTS);
    let closed = read_small(&path).await?;
    let clean = read_small(&directory.join(CLEAN_SHUTDOWN)).await?;
    let closed = closed.and_then(|bytes| ClosedSegments::decode(&bytes).ok());
    let clean = clean.and_then(|bytes| clean_shutdown::decode(&bytes).ok().flatten());
    if was_clean && clean.is_some() && clean == closed.map(|closed| closed.broker_epoch) {
        return Ok(());
    }
    let failed = |error| LogError::io(format!("removing {}", path.display()), error);
    match io::directory::remove_file(&path).await {
        Ok(()) => io::directory::sync(directory).await.map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Moves the emptied ring files to the directory's root and removes the folder.
async fn retire_journal(directory: &Path) -> Result<(), LogError> {
    let journal = directory.join(JOURNAL_FOLDER);
    let failed = |error| LogError::io(format!("emptying {}", journal.display()), error);
    lost::note_retirement(directory).await?;
    let mut number = 0;
    for shard in list_or_nothing(&journal).await.map_err(failed)? {
        let folder = journal.join(&shard);
        if !shard.starts_with("shard-") {
            continue;
        }
        for name in list_or_nothing(&folder).await.map_err(failed)? {
            if !name.starts_with(RING_FILE_NAME) {
                continue;
            }
            let target = directory.join(format!("{RING_FILE_PREFIX}{number:04}"));
            io::directory::rename(&folder.join(name), &target)
                .await
                .map_err(failed)?;
            number += 1;
        }
    }
    io::directory::sync(directory).await.map_err(failed)?;
    match io::directory::remove_all(&journal).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    io::directory::sync(directory).await.map_err(failed)
}

pub(super) async fn list_or_nothing(path: &Path) -> std::io::Result<Vec<String>> {
    match io::directory::list(path).await {
        Ok(entries) => Ok(entries.into_iter().map(|entry| entry.name).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Deals the emptied ring files out to the shards and removes what belongs to shards that are no
/// more. Whatever they hold is of an incarnation that is over.
pub(super) async fn take_back_ring_files(directory: &Path, shards: u16) -> Result<(), LogError> {
    let failed = |error| LogError::io(format!("preparing {}", directory.display()), error);
    let mut spare = Vec::new();
    let journal = directory.join(JOURNAL_FOLDER);
    for name in list_or_nothing(&journal).await.map_err(failed)? {
        if super::shard_of(&name).is_some_and(|shard| shard.0 >= shards) {
            io::directory::remove_all(&journal.join(&name))
                .await
                .map_err(failed)?;
        }
    }
    for name in list_or_nothing(directory).await.map_err(failed)? {
        if name.starts_with(RING_FILE_PREFIX) {
            spare.push(name);
        }
    }
    for (place, name) in spare.iter().enumerate() {
        let shard = ShardId(u16::try_from(place % usize::from(shards.max(1))).unwrap_or(0));
        let folder = shard_folder(directory, shard);
        io::directory::create_all(&folder).await.map_err(failed)?;
        // Names from here on do not meet those that a crash may have left in the folder.
        let target = ring_path(directory, shard, SPARE_NUMBER + place);
        io::directory::rename(&directory.join(name), &target)
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// Ring files taken back are numbered from here.
const SPARE_NUMBER: usize = 1_000;
