//! The end of a clean shutdown, and what the next start takes back from it.

use std::path::Path;

use super::RecoveryReport;
use super::checkpoints::Checkpoints;
use super::folders::list_folders;
use super::lost;
use crate::base::ids::{BrokerEpoch, ShardId};
use crate::io;
use crate::log::error::LogError;
use crate::log::format::clean_shutdown;
use crate::log::format::file_names::{CLEAN_SHUTDOWN, LOG_ID};
use crate::log::journal::{
    JOURNAL_FOLDER, RING_FILE_NAME, RING_FILE_PREFIX, ring_path, shard_folder,
};
use crate::log::shard_logs::ClosedLog;

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
    closed.iter().for_each(|log| checkpoints.set_closed(log));
    checkpoints.write(directory).await?;
    retire_journal(directory).await?;
    for folder in list_folders(directory).await? {
        let removed = io::directory::remove_file(&folder.path.join(LOG_ID)).await;
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            // An id that comes back after a power cut names an incarnation that is over.
            _ => {}
        }
    }
    let bytes = clean_shutdown::encode(broker_epoch);
    let path = directory.join(CLEAN_SHUTDOWN);
    io::directory::write_file_durably(&path, &bytes)
        .await
        .map_err(failed)
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

async fn list_or_nothing(path: &Path) -> std::io::Result<Vec<String>> {
    match io::directory::list(path).await {
        Ok(entries) => Ok(entries.into_iter().map(|entry| entry.name).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Moves ring files that hold damage or unreplayed bytes out of the way of the next ring, for
/// whoever repairs. Apache Kafka ignores the plain files.
pub(super) async fn set_aside(
    directory: &Path,
    report: &mut RecoveryReport,
) -> Result<(), LogError> {
    let failed = |error| LogError::io(format!("setting aside in {}", directory.display()), error);
    for folder in std::mem::take(&mut report.damaged_rings) {
        let shard = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let shard = shard.unwrap_or_default();
        for name in list_or_nothing(&folder).await.map_err(failed)? {
            let now = io::wall_clock().0;
            let target = directory.join(format!("{ASIDE_PREFIX}{now}-{shard}-{name}"));
            io::directory::rename(&folder.join(&name), &target)
                .await
                .map_err(failed)?;
            report
                .notices
                .push(format!("{} is set aside", target.display()));
        }
        io::directory::sync(directory).await.map_err(failed)?;
    }
    Ok(())
}

/// Ring files that hold damage are renamed so, in the log directory itself.
const ASIDE_PREFIX: &str = "coreline-damaged-";

/// Deals the emptied ring files out to the shards and removes what belongs to shards that are no
/// more. Whatever they hold is of an incarnation that is over.
pub(super) async fn take_back_ring_files(directory: &Path, shards: u16) -> Result<(), LogError> {
    let failed = |error| LogError::io(format!("preparing {}", directory.display()), error);
    let mut spare = Vec::new();
    let journal = directory.join(JOURNAL_FOLDER);
    for name in list_or_nothing(&journal).await.map_err(failed)? {
        let number = name
            .strip_prefix("shard-")
            .and_then(|digits| digits.parse::<u16>().ok());
        if number.is_some_and(|number| number >= shards) {
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
