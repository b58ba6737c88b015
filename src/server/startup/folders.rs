//! The data folders: made, locked, each one once.
//!
//! As in Kafka (`LogManager.createAndValidateLogDirs`, `lockLogDirs`) a folder that cannot be used
//! is left out as long as another serves; one in use by another process, named twice or within
//! another keeps the broker from starting, and so does the metadata log's.

use std::path::{Path, PathBuf};

use super::{DirectoryLock, StartupError};
use crate::base::config::{BrokerConfig, nested, nested_reason};
use crate::shard::OfflineDirectory;

/// The folders that were claimed.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    pub(super) locks: Vec<DirectoryLock>,
    pub(super) offline: Vec<OfflineDirectory>,
}

/// Makes and locks the folders that the settings name, and settles their paths in the settings.
pub(super) fn claim(config: &mut BrokerConfig) -> Result<Claimed, StartupError> {
    let mut claimed = Claimed::default();
    let metadata = take(config.metadata_log_dir(), &mut claimed.locks)?;
    let is_first = config.metadata_log_dir.is_none();
    let mut settled: Vec<PathBuf> = Vec::with_capacity(config.log_dirs.len());
    for (number, folder) in config.log_dirs.iter().enumerate() {
        let is_metadata =
            (is_first && number == 0) || folder.canonicalize().is_ok_and(|path| path == metadata);
        let taken = match is_metadata {
            true => Ok(metadata.clone()),
            false => take(folder, &mut claimed.locks),
        };
        let path = match taken {
            Ok(path) => path,
            Err(StartupError::Folder { path, source }) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                let reason = source.to_string();
                claimed.offline.push(OfflineDirectory {
                    path: path.clone(),
                    reason,
                });
                path
            }
            Err(refusal) => return Err(refusal),
        };
        if settled.contains(&path) {
            return Err(StartupError::FolderTwice { path });
        }
        settled.push(path);
    }
    let all: Vec<&Path> = settled
        .iter()
        .chain([&metadata])
        .map(PathBuf::as_path)
        .collect();
    if let Some((outer, inner)) = nested(&all) {
        let reason = nested_reason(outer, inner);
        return Err(StartupError::FolderWithin { reason });
    }
    if claimed.offline.len() == settled.len() {
        let folders: Vec<String> = claimed.offline.iter().map(OfflineDirectory::told).collect();
        return Err(StartupError::NoFolder {
            folders: folders.join("; "),
        });
    }
    config.log_dirs = settled;
    config.metadata_log_dir = Some(metadata);
    Ok(claimed)
}

/// Makes and locks one folder; answers its path without links.
fn take(folder: &Path, locks: &mut Vec<DirectoryLock>) -> Result<PathBuf, StartupError> {
    let failed = |source| StartupError::Folder {
        path: folder.to_owned(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let path = folder.canonicalize().map_err(failed)?;
    if locks.iter().any(|lock| lock.folder() == path) {
        return Err(StartupError::FolderTwice { path });
    }
    locks.push(DirectoryLock::take(&path)?);
    Ok(path)
}
