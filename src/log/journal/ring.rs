//! The ring's files on disk: made of zeros and synced before use, then only overwritten.
//!
//! ```text
//! <log directory>/coreline-journal/current            names the incarnation in force
//! <log directory>/coreline-journal/shard-0000/ring-0000 …
//! <log directory>/coreline-ring-0000 …               emptied, between a clean stop and a start
//! ```
//!
//! Apache Kafka refuses to start beside the folder and ignores the plain files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Result;
use super::ring_list::{self, RING_FILE_NAME};
use super::sizes::RING_FILES_MIN;
use super::writer::JournalOptions;
use crate::base::ids::ShardId;
use crate::base::limits::MIB;
use crate::io::{self, AlignedBuffer, Durability, File, OpenOptions};
use crate::log::error::LogError;

/// The journals' folder below the log directory.
pub(crate) const JOURNAL_FOLDER: &str = "coreline-journal";
/// Emptied ring files in the log directory itself start so.
pub(crate) const RING_FILE_PREFIX: &str = "coreline-ring-";
/// How long a descriptor's lock is waited for: a dead process's writes end before that.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(10);
const ZEROING_BYTES: usize = MIB;

/// An open, locked file of the ring.
pub(super) type RingFile = File;

/// A shard's folder.
pub(crate) fn shard_folder(directory: &Path, shard: ShardId) -> PathBuf {
    directory
        .join(JOURNAL_FOLDER)
        .join(format!("shard-{:04}", shard.0))
}

/// The path of one ring file.
pub(crate) fn ring_path(directory: &Path, shard: ShardId, number: usize) -> PathBuf {
    shard_folder(directory, shard).join(format!("ring-{number:04}"))
}

/// Opens the ring files that are there and fit, removes others, creates what is missing.
pub(super) async fn open_ring(options: &JournalOptions) -> Result<Vec<RingFile>> {
    let folder = shard_folder(&options.directory, options.identity.shard);
    let failed = |error| LogError::io(format!("preparing {}", folder.display()), error);
    io::directory::create_all(&folder).await.map_err(failed)?;
    let mut names: Vec<String> = Vec::new();
    for entry in io::directory::list(&folder).await.map_err(failed)? {
        let path = folder.join(&entry.name);
        let len = io::directory::metadata(&path).await.map_err(failed)?.len;
        let fits = len == options.sizes.file_bytes && names.len() < options.sizes.files_max;
        if fits && entry.name.starts_with(RING_FILE_NAME) {
            names.push(entry.name);
        } else if !entry.is_directory {
            io::directory::remove_file(&path).await.map_err(failed)?;
        }
    }
    let mut files = Vec::new();
    for name in names {
        files.push(open_file(&folder.join(name), false).await.map_err(failed)?);
    }
    while files.len() < RING_FILES_MIN {
        files.push(create_file(options).await?);
    }
    io::directory::sync(&folder).await.map_err(failed)?;
    ring_list::store(options, &folder).await?;
    let parent = options.directory.join(JOURNAL_FOLDER);
    io::directory::sync(&parent).await.map_err(failed)?;
    io::directory::sync(&options.directory)
        .await
        .map_err(failed)?;
    Ok(files)
}

async fn open_file(path: &Path, create_new: bool) -> std::io::Result<RingFile> {
    let options = OpenOptions {
        write: true,
        direct: true,
        create_new,
        ..OpenOptions::default()
    };
    let file = File::open(path, options).await?;
    file.lock_exclusive(LOCK_WAIT).await?;
    Ok(file)
}

/// A new file for a ring that is in use, durable with its name and listed.
pub(super) async fn add_file(options: &JournalOptions) -> Result<RingFile> {
    let file = create_file(options).await?;
    let folder = shard_folder(&options.directory, options.identity.shard);
    ring_list::store(options, &folder).await?;
    Ok(file)
}

/// A new file of zeros under the first free number, durable with its name.
async fn create_file(options: &JournalOptions) -> Result<RingFile> {
    let (directory, shard) = (&options.directory, options.identity.shard);
    let folder = shard_folder(directory, shard);
    let failed = |error| LogError::io(format!("creating a file in {}", folder.display()), error);
    let taken = io::directory::list(&folder).await.map_err(failed)?;
    let mut number = 0;
    while taken
        .iter()
        .any(|entry| entry.name == format!("ring-{number:04}"))
    {
        number += 1;
    }
    let path = ring_path(directory, shard, number);
    match fill(&path, options.sizes.file_bytes).await {
        Ok(file) => {
            io::directory::sync(&folder).await.map_err(failed)?;
            Ok(file)
        }
        Err(error) => {
            // A short file would be taken for a ring file of another size at the next start.
            let _ = io::directory::remove_file(&path).await;
            Err(failed(error))
        }
    }
}

async fn fill(path: &Path, bytes: u64) -> std::io::Result<RingFile> {
    let file = open_file(path, true).await?;
    let mut position = 0;
    let mut buffer = AlignedBuffer::zeroed(ZEROING_BYTES);
    while position < bytes {
        let length = (bytes - position).min(ZEROING_BYTES as u64);
        buffer.resize_within_capacity(usize::try_from(length).unwrap_or(ZEROING_BYTES));
        let (result, returned) = file.write_at(position, buffer, Durability::Written).await;
        result?;
        buffer = returned;
        position += length;
    }
    file.sync_all().await?;
    Ok(file)
}
