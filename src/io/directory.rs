//! Names on disk: directories, renames, removals and their durability. What the ring cannot do goes
//! to a small pool of unpinned threads.

use std::io;
use std::path::Path;

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
}

/// Room of the file system that holds a path, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size of the file system.
    pub total_bytes: u64,
    /// What this process may still use.
    pub available_bytes: u64,
}

/// Creates one directory.
pub async fn create(_path: &Path) -> io::Result<()> {
    unimplemented!()
}

/// Creates a directory and its missing parents.
pub async fn create_all(_path: &Path) -> io::Result<()> {
    unimplemented!()
}

/// The names in a directory, sorted.
pub async fn list(_path: &Path) -> io::Result<Vec<DirectoryEntry>> {
    unimplemented!()
}

/// What `path` names; `NotFound` when nothing.
pub async fn metadata(_path: &Path) -> io::Result<Metadata> {
    unimplemented!()
}

/// Renames a file or directory; replaces a file at `to`.
pub async fn rename(_from: &Path, _to: &Path) -> io::Result<()> {
    unimplemented!()
}

/// Removes a file.
pub async fn remove_file(_path: &Path) -> io::Result<()> {
    unimplemented!()
}

/// Removes a directory with all that is in it.
pub async fn remove_all(_path: &Path) -> io::Result<()> {
    unimplemented!()
}

/// Makes a directory's names durable.
pub async fn sync(_path: &Path) -> io::Result<()> {
    unimplemented!()
}

/// Flushes the whole file system that holds `path` (syncfs).
pub async fn sync_filesystem(_path: &Path) -> io::Result<()> {
    unimplemented!()
}

/// Room left where `path` lies.
pub async fn space(_path: &Path) -> io::Result<Space> {
    unimplemented!()
}

/// The whole of a small file; `InvalidData` when it is longer than `bytes_max`.
pub async fn read_file(_path: &Path, _bytes_max: usize) -> io::Result<Vec<u8>> {
    unimplemented!()
}

/// Replaces a small file atomically and durably: written beside it with the suffix `.tmp`, synced,
/// renamed, directory synced.
pub async fn write_file_durably(_path: &Path, _bytes: &[u8]) -> io::Result<()> {
    unimplemented!()
}
