//! Journals and ring files that are gone. What they held cannot be told from nothing by the bytes
//! that are left, so two files say what there must be: each ring's list, and `coreline-retired`
//! in the log directory, which a clean shutdown leaves in place of the journal's folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::current;
use super::folders::Folder;
use crate::base::ids::{Offset, ShardId, Uuid};
use crate::io;
use crate::log::damage::{describe, mark_after, whole_prefix};
use crate::log::error::LogError;
use crate::log::journal::{ListedFile, list_path, load_ring_list, shard_folder};
use crate::log::log_id_file::LogIdFile;

/// What a journal that was emptied in order leaves: its `current`, moved here before the first of
/// its files is touched.
const RETIRED: &str = "coreline-retired";

fn retired_path(directory: &Path) -> PathBuf {
    directory.join(RETIRED)
}

/// Says that everything is in segments and the journal is about to go.
pub(super) async fn note_retirement(directory: &Path) -> Result<(), LogError> {
    let from = current::path(directory);
    let failed = |error| LogError::io(format!("retiring {}", from.display()), error);
    match io::directory::rename(&from, &retired_path(directory)).await {
        // Told already by a shutdown that was cut short.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        moved => moved.map_err(failed)?,
    }
    io::directory::sync(directory).await.map_err(failed)?;
    let journal = from.parent().unwrap_or(directory);
    io::directory::sync(journal).await.map_err(failed)
}

/// Whether the last journal was emptied in order.
pub(crate) async fn is_retired(directory: &Path) -> Result<bool, LogError> {
    let path = retired_path(directory);
    match io::directory::metadata(&path).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(LogError::io(format!("reading {}", path.display()), error)),
    }
}

/// A new journal is in force.
pub(super) async fn forget_retirement(directory: &Path) -> Result<(), LogError> {
    let path = retired_path(directory);
    let failed = |error| LogError::io(format!("removing {}", path.display()), error);
    match io::directory::remove_file(&path).await {
        Ok(()) => io::directory::sync(directory).await.map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Ring files that the lists name and no folder holds, or not in their length.
#[derive(Debug, Default)]
pub(super) struct Losses {
    shards: BTreeSet<ShardId>,
    /// One line a file.
    pub(super) notices: Vec<String>,
}

impl Losses {
    /// Compares the rings of all shards that logs name with their lists.
    pub(super) async fn find<'a>(
        directory: &Path,
        incarnation: Uuid,
        ids: impl Iterator<Item = &'a LogIdFile>,
    ) -> Result<Self, LogError> {
        let mut losses = Self::default();
        let shards: BTreeSet<ShardId> = ids.map(|id| id.shard).collect();
        for shard in shards {
            let folder = shard_folder(directory, shard);
            let wrong = match load_ring_list(&folder, incarnation).await? {
                None => vec![format!("{} is missing", list_path(&folder).display())],
                Some(files) => differences(&folder, files).await?,
            };
            for what in wrong {
                losses.shards.insert(shard);
                losses.notices.push(format!(
                    "{what}: journal damage; what it held of the logs of shard {shard} is lost"
                ));
            }
        }
        Ok(losses)
    }

    /// Why the logs of a shard may have lost what follows their known end, if they may.
    pub(super) fn of_shard(&self, shard: ShardId) -> Option<String> {
        let is_hit = self.shards.contains(&shard);
        is_hit.then(|| "a lost part of the journal may have held what followed here".to_owned())
    }
}

/// What is wrong with the files of a ring, by its list.
async fn differences(folder: &Path, files: Vec<ListedFile>) -> Result<Vec<String>, LogError> {
    let mut wrong = Vec::new();
    for file in files {
        let path = folder.join(&file.name);
        match io::directory::metadata(&path).await {
            Ok(found) if found.len == file.bytes => {}
            Ok(found) => wrong.push(format!(
                "{} ends at byte {} and had {}",
                path.display(),
                found.len,
                file.bytes
            )),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                wrong.push(format!("{} is missing", path.display()));
            }
            Err(error) => return Err(LogError::io(format!("reading {}", path.display()), error)),
        }
    }
    Ok(wrong)
}

/// A folder whose log has an id while no journal is there was not cleanly closed. Nothing is cut:
/// it serves the whole batches that its files hold, takes none, and answers with an error past
/// them.
pub(super) async fn mark_lost_journal(folder: &Folder) -> Result<String, LogError> {
    let prefix = whole_prefix(&folder.path, None).await?;
    let id_end = folder.log_id().map_or(Offset(0), |id| id.log_end);
    let cause = "the journal that held what followed here is missing";
    let mark = mark_after(&folder.path, prefix, id_end, cause).await?;
    Ok(describe(&folder.path, &mark))
}
