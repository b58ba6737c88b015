//! What stands behind the executor: a driver takes operations with their buffers and hands back
//! completions with the same buffers. The ring is one ([`super::uring`]), the simulation another.
//!
//! What a driver must do, and what the executor does in return:
//!
//! - **Every submitted operation completes exactly once**, out of [`Driver::turn`] (or of
//!   [`Driver::shutdown`]), under the id it was submitted with. An id is not used again before its
//!   completion was handed out. There is no cancellation: the executor remembers which ids nobody
//!   waits for any more and drops their completions (closing what they opened).
//! - **The driver owns the buffers** of an operation until its completion, and gives them back
//!   with it, after an error too.
//! - **Completions of one `turn` may come in any order**; the executor wakes tasks in the order
//!   given. A deterministic driver makes the whole executor deterministic: the executor reads no
//!   clock but [`Driver::now`] and [`Driver::wall_clock`], has no randomness and iterates over no
//!   hashed container.
//! - **Short reads and writes, interruptions and momentary shortages are the driver's matter**:
//!   a write completes when all of it is written or failed, a read is short only at the end of the
//!   file, a send completes when every slice has gone. A receive completes with what has come.
//! - **A handle stays open while an operation names it**: the executor calls [`Driver::close`] only
//!   when the last owner is gone and no operation in flight names the handle.
//! - **`submit`, `close` and the other plain methods do not block and do not complete anything by
//!   themselves**; they are called from within tasks. They never call back into the executor.
//!
//! Which completion answers which operation stands beside each [`Operation`].

use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::buffer::AlignedBuffer;
use super::directory::{DirectoryEntry, Metadata, Space};
use super::file::{Durability, OpenOptions};
use crate::base::time::{MonotonicNs, TimestampMs};

/// Names an operation in flight. Chosen by the executor: small numbers, used again after the
/// completion, so that a driver may keep its operations in a plain vector by this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u32);

/// Names an open file or socket of one driver. Chosen by the driver; may be used again after
/// [`Driver::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

/// Work for the pool of unpinned threads; its result travels back untyped.
pub type Work = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// What a driver is asked to do.
pub enum Operation {
    /// Opens a file as [`OpenOptions`] say. Answered by [`Completion::Opened`].
    Open {
        /// Where it lies.
        path: PathBuf,
        /// How it is opened; `direct` falls back to buffered where the file system has none.
        options: OpenOptions,
    },
    /// Fills `buffer`'s whole length from `position`, short only at the end of the file. Answered
    /// by [`Completion::Read`].
    Read {
        /// An open file.
        file: Handle,
        /// First byte, from the start of the file.
        position: u64,
        /// What is filled; its length is not changed.
        buffer: AlignedBuffer,
    },
    /// Writes the whole of `buffer` at `position`. Answered by [`Completion::Written`].
    Write {
        /// An open file.
        file: Handle,
        /// First byte, from the start of the file.
        position: u64,
        /// What is written.
        buffer: AlignedBuffer,
        /// `Stable`: as if opened with O_DSYNC (RWF_DSYNC), for every part of the write.
        durability: Durability,
    },
    /// fdatasync, or fsync with `metadata`. Answered by [`Completion::Done`].
    Sync {
        /// An open file.
        file: Handle,
        /// Also what is not needed to read the data back (fsync).
        metadata: bool,
    },
    /// Makes durable all that was written in the file system of an open regular file; fails once
    /// for each write-back there that failed since the file was opened. Answered by
    /// [`Completion::Done`].
    SyncFilesystem {
        /// An open regular file.
        file: Handle,
    },
    /// Reserves blocks for a range and keeps the size (fallocate with KEEP_SIZE). Answered by
    /// [`Completion::Done`]; ENOSPC (`StorageFull`) when there is no room.
    Preallocate {
        /// An open file.
        file: Handle,
        /// First byte of the range.
        position: u64,
        /// Bytes of the range.
        len: u64,
    },
    /// Sets the size; frees what lay or was preallocated past it. Answered by
    /// [`Completion::Done`].
    Truncate {
        /// An open file.
        file: Handle,
        /// The new size in bytes.
        len: u64,
    },
    /// Asks for the size. Answered by [`Completion::Length`].
    Length {
        /// An open file.
        file: Handle,
    },
    /// Tries once to take the exclusive flock of this descriptor. Answered by
    /// [`Completion::Done`]; `WouldBlock` when another descriptor has it. Given up by `close`.
    TryLock {
        /// An open file.
        file: Handle,
    },
    /// Names on disk. Answered as [`DirectoryOperation`] says.
    Directory(DirectoryOperation),
    /// The next connection. Answered by [`Completion::Accepted`]; an error once the listener was
    /// shut down.
    Accept {
        /// A listening socket.
        listener: Handle,
    },
    /// Connects. Answered by [`Completion::Connected`].
    Connect {
        /// Whereto.
        address: SocketAddr,
    },
    /// Receives at least one byte into the spare capacity (which is not empty) and lengthens the
    /// buffer; 0 at the end of the stream. Answered by [`Completion::Received`].
    Receive {
        /// A connected socket.
        socket: Handle,
        /// What is appended to.
        buffer: BytesMut,
    },
    /// Sends all slices in order. At most one send of a socket is in flight. Answered by
    /// [`Completion::Done`].
    Send {
        /// A connected socket.
        socket: Handle,
        /// What is sent; empty slices are allowed.
        slices: Vec<Bytes>,
    },
    /// Runs a closure on the pool of unpinned threads (a simulated driver runs it itself, by
    /// [`run_catching`], when it lets the operation complete). Answered by
    /// [`Completion::Worked`].
    Work(Work),
    /// As [`Operation::Work`], on threads that give way to all others of the process.
    IdleWork(Work),
}

impl Operation {
    /// Bytes that it moves, as far as they are known before it has ended.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Read { buffer, .. } | Self::Write { buffer, .. } => buffer.len(),
            Self::Send { slices, .. } => slices.iter().map(Bytes::len).sum(),
            _ => 0,
        }
    }
}

/// The part of [`Operation`] that concerns names on disk.
#[derive(Clone, Debug)]
pub enum DirectoryOperation {
    /// Creates one directory. [`Completion::Done`].
    Create(PathBuf),
    /// Creates a directory and its missing parents. [`Completion::Done`].
    CreateAll(PathBuf),
    /// Lists names, sorted. [`Completion::Listed`].
    List(PathBuf),
    /// What a path names. [`Completion::Described`].
    Metadata(PathBuf),
    /// Says when a file's content last changed. [`Completion::Done`].
    SetModified {
        /// The file.
        path: PathBuf,
        /// When that was.
        modified: TimestampMs,
    },
    /// Renames, replacing a file at `to`. [`Completion::Done`].
    Rename {
        /// The name now.
        from: PathBuf,
        /// The name then.
        to: PathBuf,
    },
    /// Removes a file's name. [`Completion::Done`].
    RemoveFile(PathBuf),
    /// Removes a directory with all that is in it. [`Completion::Done`].
    RemoveAll(PathBuf),
    /// Makes the names in a directory durable (fsync of the directory). [`Completion::Done`].
    Sync(PathBuf),
    /// Room left. [`Completion::Room`].
    Space(PathBuf),
}

/// What [`Operation::Open`] opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Open until [`Driver::close`].
    pub handle: Handle,
    /// Whether direct I/O is in effect.
    pub direct: bool,
}

/// How an operation ended.
#[derive(Debug)]
pub enum Completion {
    /// Done or failed, nothing to give back.
    Done(io::Result<()>),
    /// A file is open.
    Opened(io::Result<Opened>),
    /// Bytes read, and the buffer, filled that far.
    Read(io::Result<usize>, AlignedBuffer),
    /// Everything was written or the write failed somewhere; and the buffer.
    Written(io::Result<()>, AlignedBuffer),
    /// A file's size in bytes.
    Length(io::Result<u64>),
    /// The names in a directory, sorted.
    Listed(io::Result<Vec<DirectoryEntry>>),
    /// What a path names.
    Described(io::Result<Metadata>),
    /// Room of a file system.
    Room(io::Result<Space>),
    /// A connection with its peer's address, TCP_NODELAY set.
    Accepted(io::Result<(Handle, SocketAddr)>),
    /// A connection, TCP_NODELAY set.
    Connected(io::Result<Handle>),
    /// Bytes received, and the buffer, lengthened by them.
    Received(io::Result<usize>, BytesMut),
    /// What the closure returned, or that it panicked.
    Worked(io::Result<Box<dyn Any + Send>>),
}

impl Completion {
    /// The handle that would leak if nobody took this completion.
    #[must_use]
    pub fn handle(&self) -> Option<Handle> {
        match self {
            Self::Opened(Ok(opened)) => Some(opened.handle),
            Self::Accepted(Ok((handle, _))) | Self::Connected(Ok(handle)) => Some(*handle),
            _ => None,
        }
    }
}

/// How long [`Driver::turn`] may wait when nothing has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: tasks are runnable. A simulated driver moves its clock a little (say 1 µs): a
    /// task that yields until a deadline would else never reach it.
    Poll,
    /// Until the clock has reached this point: the next timer. May return early. A simulated
    /// driver moves its clock to the earlier of this point and its next completion.
    Until(MonotonicNs),
    /// Until something completes or [`Unpark::unpark`] was called. In a simulation with nothing
    /// in flight this would last for ever: the driver panics with what it knows.
    Forever,
}

/// Ends the waiting of a [`Driver::turn`] from any thread.
pub trait Unpark: Send + Sync {
    /// Makes the turn that waits now, or else the next one that would wait, return at once.
    /// Called only when the executor said that it sleeps.
    fn unpark(&self);
}

/// See the head of this module.
pub trait Driver {
    /// The monotonic clock. Never goes back. Read often: about once per polled task.
    fn now(&self) -> MonotonicNs;

    /// The wall clock.
    fn wall_clock(&self) -> TimestampMs;

    /// Takes an operation. Completes it in a later `turn`, never here.
    fn submit(&mut self, id: OperationId, operation: Operation);

    /// Starts what was submitted, waits as told unless something has completed, and appends all
    /// completions that are there.
    fn turn(&mut self, wait: Wait, completed: &mut Vec<(OperationId, Completion)>);

    /// Closes a file or socket that no operation in flight names.
    fn close(&mut self, handle: Handle);

    /// What other threads use to end a waiting turn.
    fn unparker(&self) -> Arc<dyn Unpark>;

    /// Ends: makes everything in flight complete or fail soon and appends those completions. What
    /// cannot be awaited keeps its buffers for ever (they are leaked, not freed). Nothing is
    /// submitted afterwards.
    fn shutdown(&mut self, completed: &mut Vec<(OperationId, Completion)>);

    /// Files and sockets open now, for the count at shutdown.
    fn open_handles(&self) -> usize;

    /// Whether receives, sends, timers and files of the real world stand behind this driver.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Binds and listens with SO_REUSEPORT; answers the address in force.
    fn listen(&mut self, _address: SocketAddr, _backlog: u32) -> io::Result<(Handle, SocketAddr)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends directions of a socket; a receive or accept under way completes.
    fn shutdown_socket(&mut self, _socket: Handle, _how: std::net::Shutdown) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Bounds the kernel's send and receive buffers of a socket, in bytes.
    fn set_buffer_sizes(
        &mut self,
        _socket: Handle,
        _send: Option<usize>,
        _receive: Option<usize>,
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Runs pool work; a panic in it becomes an error that carries the panic's message.
pub fn run_catching(work: Work) -> io::Result<Box<dyn Any + Send>> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|payload| {
        let reason = panic_reason(payload.as_ref());
        io::Error::other(format!("work on the pool panicked: {reason}"))
    })
}

/// What a panic said, when it said it in words.
#[must_use]
pub fn panic_reason(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}
