//! What the ring does not do: names on disk, opening, sizes. Run on the pool, or at once where the
//! call cannot block.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use super::handles::HandleTable;
use super::in_flight::Prepared;
use crate::io::driver::{Completion, DirectoryOperation, Opened, Operation, Work, run_catching};
use crate::io::file::OpenOptions;
use crate::io::system;

/// Work for a pool thread.
pub(super) enum Blocking {
    Open(PathBuf, OpenOptions),
    Truncate(RawFd, u64),
    SyncFilesystem(RawFd),
    Directory(DirectoryOperation),
    Work(Work),
    IdleWork(Work),
}

/// What a pool thread hands back.
pub(super) enum Outcome {
    Opened(io::Result<(OwnedFd, bool)>),
    Completed(Completion),
}

pub(super) fn prepare(operation: Operation, handles: &HandleTable) -> Prepared {
    match operation {
        Operation::Open { path, options } => Prepared::Pool(Blocking::Open(path, options)),
        Operation::Truncate { file, len } => {
            Prepared::Pool(Blocking::Truncate(handles.raw(file), len))
        }
        Operation::SyncFilesystem { file } => {
            Prepared::Pool(Blocking::SyncFilesystem(handles.raw(file)))
        }
        Operation::Directory(operation) => Prepared::Pool(Blocking::Directory(operation)),
        Operation::Work(work) => Prepared::Pool(Blocking::Work(work)),
        Operation::IdleWork(work) => Prepared::Pool(Blocking::IdleWork(work)),
        Operation::Length { file } => {
            Prepared::Done(Completion::Length(system::length(handles.borrow(file))))
        }
        Operation::TryLock { file } => {
            Prepared::Done(Completion::Done(system::try_lock(handles.borrow(file))))
        }
        _ => unreachable!("goes through the ring"),
    }
}

impl Blocking {
    /// Whether everything else of the process goes before it.
    pub(super) const fn is_idle_work(&self) -> bool {
        matches!(self, Self::IdleWork(_))
    }

    pub(super) fn run(self) -> Outcome {
        let completion = match self {
            Self::Open(path, options) => return Outcome::Opened(system::open(&path, options)),
            Self::Truncate(descriptor, len) => {
                // SAFETY: the executor keeps the handle open until this operation has completed.
                let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
                Completion::Done(system::truncate(file, len))
            }
            Self::SyncFilesystem(descriptor) => {
                // SAFETY: the executor keeps the handle open until this operation has completed.
                let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
                Completion::Done(system::sync_filesystem(file))
            }
            Self::Work(work) | Self::IdleWork(work) => Completion::Worked(run_catching(work)),
            Self::Directory(operation) => system::run_directory(operation),
        };
        Outcome::Completed(completion)
    }
}

impl Outcome {
    pub(super) fn into_completion(self, handles: &mut HandleTable) -> Completion {
        match self {
            Self::Completed(completion) => completion,
            Self::Opened(result) => Completion::Opened(result.map(|(descriptor, direct)| Opened {
                handle: handles.insert(descriptor, direct),
                direct,
            })),
        }
    }
}
