//! Files: positioned reads and writes with owned buffers, flushes, preallocation, advisory locks.

use std::io;
use std::path::Path;
use std::rc::{Rc, Weak};
use std::time::Duration;

use super::buffer::AlignedBuffer;
use super::driver::{Completion, Operation};
use super::executor::{self, OpenHandle};
use super::task::{now, sleep_until};
use super::wrong_completion;

/// Between two tries at a lock that someone else holds.
const LOCK_RETRY: Duration = Duration::from_millis(10);

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

/// An open file of this shard. Clones share the descriptor. Dropping the last one closes it once no
/// operation uses it.
#[derive(Clone, Debug)]
pub struct File {
    open: Rc<OpenHandle>,
    direct: bool,
}

/// Tells whether an open file is still in use, by a clone or an operation under way.
#[derive(Clone, Debug)]
pub struct FileUse(Weak<OpenHandle>);

impl FileUse {
    /// Nobody reads or writes by that descriptor any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl File {
    /// Who has this descriptor may be asked later.
    #[must_use]
    pub fn usage(&self) -> FileUse {
        FileUse(Rc::downgrade(&self.open))
    }

    /// Opens `path`.
    pub async fn open(path: &Path, options: OpenOptions) -> io::Result<Self> {
        let core = executor::current();
        let operation = Operation::Open {
            path: path.to_owned(),
            options,
        };
        match core.submit(operation, None).await {
            Completion::Opened(result) => result.map(|opened| Self {
                open: OpenHandle::new(&core, opened.handle),
                direct: opened.direct,
            }),
            other => wrong_completion(&other),
        }
    }

    async fn run(&self, operation: Operation) -> Completion {
        let keep = Some(Rc::clone(&self.open) as Rc<dyn std::any::Any>);
        executor::current().submit(operation, keep).await
    }

    async fn run_plain(&self, operation: Operation) -> io::Result<()> {
        match self.run(operation).await {
            Completion::Done(result) => result,
            other => wrong_completion(&other),
        }
    }

    /// Whether direct I/O is in effect.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Fills `buffer` (its whole length) from `position`. Answers the bytes read, fewer only at
    /// the end of the file.
    pub async fn read_at(
        &self,
        position: u64,
        buffer: AlignedBuffer,
    ) -> (io::Result<usize>, AlignedBuffer) {
        let file = self.open.handle();
        let operation = Operation::Read {
            file,
            position,
            buffer,
        };
        match self.run(operation).await {
            Completion::Read(result, buffer) => (result, buffer),
            other => wrong_completion(&other),
        }
    }

    /// Writes the whole of `buffer` at `position`; short writes are continued by the driver. The
    /// write may still happen when this future is dropped.
    pub async fn write_at(
        &self,
        position: u64,
        buffer: AlignedBuffer,
        durability: Durability,
    ) -> (io::Result<()>, AlignedBuffer) {
        let file = self.open.handle();
        let operation = Operation::Write {
            file,
            position,
            buffer,
            durability,
        };
        match self.run(operation).await {
            Completion::Written(result, buffer) => (result, buffer),
            other => wrong_completion(&other),
        }
    }

    /// fdatasync.
    pub async fn sync_data(&self) -> io::Result<()> {
        let file = self.open.handle();
        self.run_plain(Operation::Sync {
            file,
            metadata: false,
        })
        .await
    }

    /// fsync.
    pub async fn sync_all(&self) -> io::Result<()> {
        let file = self.open.handle();
        self.run_plain(Operation::Sync {
            file,
            metadata: true,
        })
        .await
    }

    /// Makes durable all that was written in this file's file system before the call. Fails also
    /// when a write-back failed there since this descriptor was opened or last asked, whoever else
    /// has been told.
    pub async fn sync_filesystem(&self) -> io::Result<()> {
        let file = self.open.handle();
        self.run_plain(Operation::SyncFilesystem { file }).await
    }

    /// Reserves blocks for `[position, position + len)` without changing the size (KEEP_SIZE).
    pub async fn preallocate(&self, position: u64, len: u64) -> io::Result<()> {
        let file = self.open.handle();
        self.run_plain(Operation::Preallocate {
            file,
            position,
            len,
        })
        .await
    }

    /// Sets the file's size; frees what was preallocated past it.
    pub async fn truncate(&self, len: u64) -> io::Result<()> {
        let file = self.open.handle();
        self.run_plain(Operation::Truncate { file, len }).await
    }

    /// The file's size in bytes.
    pub async fn len(&self) -> io::Result<u64> {
        let file = self.open.handle();
        match self.run(Operation::Length { file }).await {
            Completion::Length(result) => result,
            other => wrong_completion(&other),
        }
    }

    /// Takes the exclusive advisory lock (flock) of this very descriptor, trying until `limit` has
    /// passed; `WouldBlock` after that. Tried at least once.
    pub async fn lock_exclusive(&self, limit: Duration) -> io::Result<()> {
        let deadline = now().after(limit);
        loop {
            let file = self.open.handle();
            let tried = self.run_plain(Operation::TryLock { file }).await;
            match tried {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && now() < deadline => {
                    sleep_until(now().after(LOCK_RETRY).min(deadline)).await;
                }
                other => return other,
            }
        }
    }
}
/// Whether an error says that a device or its file system no longer serves, in contrast to one that
/// says something of a single file, of the room there is, or of the process.
#[must_use]
pub fn is_of_device(error: &std::io::Error) -> bool {
    use nix::errno::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(
        errno,
        Some(
            Errno::EIO
                | Errno::ENXIO
                | Errno::ENODEV
                | Errno::EROFS
                | Errno::EUCLEAN
                | Errno::EREMOTEIO
                | Errno::ESTALE
                | Errno::ENOMEDIUM
                | Errno::ESHUTDOWN
        )
    )
}
