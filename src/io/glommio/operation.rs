//! Operations of the seam as futures over glommio. One runs within the task that waits for it;
//! when its future is dropped before the end, it goes on in a task of its own, since glommio would
//! cancel it and the seam promises that it is not.

use std::any::Any;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use nix::fcntl::{FallocateFlags, fallocate};

use super::file::OpenFile;
use super::handles::Resource;
use super::{Core, current, net};
use crate::io::driver::{Completion, DirectoryOperation, Handle, Operation, Work, run_catching};
use crate::io::{pool, reply, system};

/// What an operation keeps alive until its completion: the owner of the handle that it names.
pub(in crate::io) type Keep = Option<Rc<dyn Any>>;

/// Counts an operation for as long as it is under way.
struct InFlight {
    core: Rc<Core>,
    _keep: Keep,
}

impl InFlight {
    fn new(core: Rc<Core>, keep: Keep) -> Self {
        core.in_flight.set(core.in_flight.get() + 1);
        Self { core, _keep: keep }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.core.in_flight.set(self.core.in_flight.get() - 1);
    }
}

/// Waits for one operation. Dropping it abandons the operation and never cancels it.
pub(in crate::io) struct OperationFuture {
    core: Rc<Core>,
    /// Absent once the completion was taken.
    running: Option<Pin<Box<dyn Future<Output = Completion>>>>,
}

impl OperationFuture {
    pub(super) fn submit(core: Rc<Core>, operation: Operation, keep: Keep) -> Self {
        let in_flight = InFlight::new(Rc::clone(&core), keep);
        let running = Box::pin(async move {
            let completion = run(&in_flight.core, operation).await;
            drop(in_flight);
            completion
        });
        Self {
            core,
            running: Some(running),
        }
    }
}

impl Future for OperationFuture {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let Some(running) = self.running.as_mut() else {
            panic!("polled after its completion");
        };
        let polled = running.as_mut().poll(context);
        if polled.is_ready() {
            self.running = None;
        }
        polled
    }
}

impl Drop for OperationFuture {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        // Outside its executor it can only be given up; glommio keeps the buffers of what the
        // kernel still works on.
        if current::is(&self.core) {
            let core = Rc::clone(&self.core);
            let rest = async move { core.discard(running.await) };
            drop(::glommio::spawn_local(rest).detach());
        }
    }
}

async fn run(core: &Rc<Core>, operation: Operation) -> Completion {
    match operation {
        Operation::Open { path, options } => {
            Completion::Opened(OpenFile::open(core, path, options).await)
        }
        Operation::Read {
            file,
            position,
            mut buffer,
        } => {
            let read = file_of(core, file).read(position, &mut buffer).await;
            Completion::Read(read, buffer)
        }
        Operation::Write {
            file,
            position,
            buffer,
            durability,
        } => {
            let file = file_of(core, file);
            let written = file.write(position, &buffer, durability).await;
            Completion::Written(written, buffer)
        }
        Operation::Sync { file, metadata } => {
            Completion::Done(file_of(core, file).sync(metadata).await)
        }
        Operation::Preallocate {
            file,
            position,
            len,
        } => {
            let file = file_of(core, file);
            let range = i64::try_from(position).and_then(|start| Ok((start, i64::try_from(len)?)));
            Completion::Done(match range {
                Ok((start, len)) => {
                    file.on_pool(move |file| preallocate(&file, start, len))
                        .await
                }
                Err(_) => Err(io::Error::from_raw_os_error(libc::EFBIG)),
            })
        }
        Operation::Truncate { file, len } => {
            let cut = move |file: OwnedFd| system::truncate(file.as_fd(), len);
            Completion::Done(file_of(core, file).on_pool(cut).await)
        }
        Operation::SyncFilesystem { file } => {
            let flush = move |file: OwnedFd| system::sync_filesystem(file.as_fd());
            Completion::Done(file_of(core, file).on_pool(flush).await)
        }
        Operation::Length { file } => {
            Completion::Length(file_of(core, file).with_descriptor(system::length))
        }
        Operation::TryLock { file } => {
            Completion::Done(file_of(core, file).with_descriptor(system::try_lock))
        }
        Operation::Directory(operation) => run_directory(operation).await,
        Operation::Work(work) | Operation::IdleWork(work) => {
            Completion::Worked(run_work(work).await)
        }
        Operation::Accept { listener } => Completion::Accepted(net::accept(core, listener).await),
        Operation::Connect { address } => Completion::Connected(net::connect(core, address).await),
        Operation::Receive { socket, buffer } => {
            let (received, buffer) = net::receive(core, socket, buffer).await;
            Completion::Received(received, buffer)
        }
        Operation::Send { socket, slices } => {
            Completion::Done(net::send(core, socket, slices).await)
        }
    }
}

fn file_of(core: &Core, handle: Handle) -> Rc<OpenFile> {
    match core.handles.borrow().get(handle) {
        Resource::File(file) => Rc::clone(file),
        _ => panic!("handle {} is no file", handle.0),
    }
}

fn preallocate(file: &OwnedFd, position: i64, len: i64) -> io::Result<()> {
    Ok(fallocate(
        file,
        FallocateFlags::FALLOC_FL_KEEP_SIZE,
        position,
        len,
    )?)
}

/// Runs a job that does not panic on the pool of unpinned threads.
pub(super) async fn on_pool<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, answer) = reply::reply_slot();
    pool::run(Box::new(move || sender.send(job())));
    match answer.await {
        Some(value) => value,
        None => unreachable!("the pool runs every job"),
    }
}

async fn run_directory(operation: DirectoryOperation) -> Completion {
    on_pool(move || system::run_directory(operation)).await
}

async fn run_work(work: Work) -> io::Result<Box<dyn Any + Send>> {
    on_pool(move || run_catching(work)).await
}

/// An open file or socket; closed when the last owner and the last operation that names it are
/// gone.
pub(in crate::io) struct OpenHandle {
    core: Weak<Core>,
    handle: Handle,
}

impl OpenHandle {
    pub(in crate::io) fn new(core: &Rc<Core>, handle: Handle) -> Rc<Self> {
        Rc::new(Self {
            core: Rc::downgrade(core),
            handle,
        })
    }

    pub(in crate::io) fn handle(&self) -> Handle {
        self.handle
    }

    /// The runtime that it belongs to, unless that has ended.
    pub(in crate::io) fn core(&self) -> Option<Rc<Core>> {
        self.core.upgrade()
    }
}

impl Drop for OpenHandle {
    fn drop(&mut self) {
        // A runtime that has ended has closed everything.
        if let Some(core) = self.core.upgrade() {
            core.close(self.handle);
        }
    }
}

impl std::fmt::Debug for OpenHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.handle)
    }
}
