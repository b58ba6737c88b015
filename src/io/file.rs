//! Files: positioned reads and writes with owned buffers, flushes, preallocation, advisory locks.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::buffer::AlignedBuffer;

/// How a file is opened. All opens are close-on-exec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Allow writes (reads are always allowed).
    pub write: bool,
    /// Create the file when absent.
    pub create: bool,
    /// Fail when the file exists (implies `create`).
    pub create_new: bool,
    /// Cut the file to nothing.
    pub truncate: bool,
    /// Direct I/O: positions, lengths and buffers are multiples of the block. Where the file
    /// system has no direct I/O the open falls back to buffered, as `File::is_direct` tells.
    pub direct: bool,
}

/// What a write's completion means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has taken the bytes: survives the process, not a power cut.
    Written,
    /// The bytes are on stable storage (RWF_DSYNC).
    Stable,
}

/// An open file of this shard. Dropping it closes the descriptor once no operation uses it.
#[derive(Clone, Debug)]
pub struct File {}

impl File {
    /// Opens `path`.
    pub async fn open(_path: &Path, _options: OpenOptions) -> io::Result<Self> {
        unimplemented!()
    }

    /// Whether direct I/O is in effect.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        unimplemented!()
    }

    /// Fills `buffer` (its whole length) from `position`. Answers the bytes read, fewer only at
    /// the end of the file.
    pub async fn read_at(
        &self,
        _position: u64,
        _buffer: AlignedBuffer,
    ) -> (io::Result<usize>, AlignedBuffer) {
        unimplemented!()
    }

    /// Writes the whole of `buffer` at `position`; short writes are continued by the driver.
    pub async fn write_at(
        &self,
        _position: u64,
        _buffer: AlignedBuffer,
        _durability: Durability,
    ) -> (io::Result<()>, AlignedBuffer) {
        unimplemented!()
    }

    /// fdatasync.
    pub async fn sync_data(&self) -> io::Result<()> {
        unimplemented!()
    }

    /// fsync.
    pub async fn sync_all(&self) -> io::Result<()> {
        unimplemented!()
    }

    /// Reserves blocks for `[position, position + len)` without changing the size (KEEP_SIZE).
    pub async fn preallocate(&self, _position: u64, _len: u64) -> io::Result<()> {
        unimplemented!()
    }

    /// Sets the file's size; frees what was preallocated past it.
    pub async fn truncate(&self, _len: u64) -> io::Result<()> {
        unimplemented!()
    }

    /// The file's size in bytes.
    pub async fn len(&self) -> io::Result<u64> {
        unimplemented!()
    }

    /// Takes the exclusive advisory lock (flock) of this very descriptor, trying until `limit` has
    /// passed; `WouldBlock` after that.
    pub async fn lock_exclusive(&self, _limit: Duration) -> io::Result<()> {
        unimplemented!()
    }
}
