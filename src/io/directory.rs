//! Names on disk: directories, renames, removals and their durability. What the ring cannot do goes
//! to a small pool of unpinned threads.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::buffer::AlignedBuffer;
use super::driver::{Completion, DirectoryOperation, Operation};
use super::executor;
use super::file::{Durability, File, OpenOptions};
use super::wrong_completion;
use crate::base::time::TimestampMs;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name alone. Names that are not UTF-8 are left out of listings.
    pub name: String,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Size in bytes.
    pub len: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// When its content last changed.
    pub modified: TimestampMs,
}

/// Room of the file system that holds a path, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size of the file system.
    pub total_bytes: u64,
    /// What this process may still use.
    pub available_bytes: u64,
}

async fn run(operation: DirectoryOperation) -> Completion {
    let operation = Operation::Directory(operation);
    executor::current().submit(operation, None).await
}

async fn run_plain(operation: DirectoryOperation) -> io::Result<()> {
    match run(operation).await {
        Completion::Done(result) => result,
        other => wrong_completion(&other),
    }
}

/// Creates one directory.
pub async fn create(path: &Path) -> io::Result<()> {
    run_plain(DirectoryOperation::Create(path.to_owned())).await
}

/// Creates a directory and its missing parents.
pub async fn create_all(path: &Path) -> io::Result<()> {
    run_plain(DirectoryOperation::CreateAll(path.to_owned())).await
}

/// The names in a directory, sorted.
pub async fn list(path: &Path) -> io::Result<Vec<DirectoryEntry>> {
    match run(DirectoryOperation::List(path.to_owned())).await {
        Completion::Listed(result) => result,
        other => wrong_completion(&other),
    }
}

/// What `path` names; `NotFound` when nothing.
pub async fn metadata(path: &Path) -> io::Result<Metadata> {
    match run(DirectoryOperation::Metadata(path.to_owned())).await {
        Completion::Described(result) => result,
        other => wrong_completion(&other),
    }
}

/// Says when the content of a file last changed. Durable with the file.
pub async fn set_modified(path: &Path, modified: TimestampMs) -> io::Result<()> {
    let path = path.to_owned();
    run_plain(DirectoryOperation::SetModified { path, modified }).await
}

/// Renames a file or directory; replaces a file at `to`.
pub async fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (from.to_owned(), to.to_owned());
    run_plain(DirectoryOperation::Rename { from, to }).await
}

/// Removes a file.
pub async fn remove_file(path: &Path) -> io::Result<()> {
    run_plain(DirectoryOperation::RemoveFile(path.to_owned())).await
}

/// Removes a directory with all that is in it.
pub async fn remove_all(path: &Path) -> io::Result<()> {
    run_plain(DirectoryOperation::RemoveAll(path.to_owned())).await
}

/// Makes a directory's names durable.
pub async fn sync(path: &Path) -> io::Result<()> {
    run_plain(DirectoryOperation::Sync(path.to_owned())).await
}

/// Room left where `path` lies.
pub async fn space(path: &Path) -> io::Result<Space> {
    match run(DirectoryOperation::Space(path.to_owned())).await {
        Completion::Room(result) => result,
        other => wrong_completion(&other),
    }
}

/// The whole of a small file; `InvalidData` when it is longer than `bytes_max`.
pub async fn read_file(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let file = File::open(path, OpenOptions::default()).await?;
    let len = usize::try_from(file.len().await?).unwrap_or(usize::MAX);
    if len > bytes_max {
        let message = format!(
            "{} holds {len} bytes, more than the {bytes_max} allowed",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    if len == 0 {
        return Ok(Vec::new());
    }
    let (read, buffer) = file.read_at(0, AlignedBuffer::zeroed(len)).await;
    let read = read?;
    Ok(buffer.iter().take(read).copied().collect())
}

/// Replaces a small file atomically and durably: written beside it with the suffix `.tmp`, synced,
/// renamed, directory synced.
pub async fn write_file_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, temporary) = write_beside(path, bytes).await?;
    file.sync_all().await?;
    drop(file);
    rename(&temporary, path).await?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync(parent).await,
        _ => sync(Path::new(".")).await,
    }
}

/// Writes the bytes that `path` is to hold into a file beside it; nothing is durable yet. The file
/// is a new one: a write of a killed process may still land in what it left, after the process is
/// gone.
pub(super) async fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<(File, PathBuf)> {
    let mut temporary = OsString::from(path);
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let options = OpenOptions {
        write: true,
        create_new: true,
        ..OpenOptions::default()
    };
    let file = match File::open(&temporary, options).await {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_file(&temporary).await?;
            File::open(&temporary, options).await?
        }
        opened => opened?,
    };
    if !bytes.is_empty() {
        let mut buffer = AlignedBuffer::with_capacity(bytes.len());
        buffer.extend_from_slice(bytes);
        let (written, _) = file.write_at(0, buffer, Durability::Written).await;
        written?;
    }
    Ok((file, temporary))
}
