//! The seam over glommio (`glommio-ng`): its executor runs the tasks, its reactor the timers,
//! sockets, reads, writes and flushes. Compiled in place of our executor by the feature `glommio`,
//! under the same names, so that nothing above the seam knows of it.
//!
//! What glommio 0.12.0 does not do, or does wrongly, and what stands against it here:
//!
//! | Trap | Answer |
//! |---|---|
//! | its queue runner parks with runnable tasks when the preempt timer fires first | [`pulse`] |
//! | a busy executor looks at no socket before its preempt timer | [`PREEMPT_TIMER`] |
//! | a dropped future cancels its operation | [`operation`]: it is handed to a task of its own |
//! | a panic in a task kills the executor | [`tasks`]: caught before glommio sees it |
//! | an accepted connection is `Copy` and never closes | bound to its owner at once ([`net`]) |
//! | a connection cannot be split | both directions poll it through a `RefCell` |
//! | a write that fails eats its buffer; reads and writes are short | our own is kept ([`file`]) |
//! | opening looks the path up again and panics when it is gone | opened by descriptor ([`file`]) |
//! | a timer polled twice is set twice | [`timer`] sets it anew |
//! | no syncfs, no fsync, no fallocate of a range, one blocking thread on our CPU | our own pool |
//! | a closed file is closed by a later turn of the ring | [`Core::end`] gives it that turn |
//!
//! A yield lets the other runnable tasks go first, but completions are only looked at when the
//! preempt timer says so.

mod current;
mod file;
mod handles;
mod net;
mod operation;
mod pulse;
mod tasks;
mod timer;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::glommio::{
    GlommioError, Latency, LocalExecutor, LocalExecutorBuilder, Placement, Shares, TaskQueueHandle,
};
use nix::time::{ClockId, clock_gettime};

pub(super) use current::get as current;
pub(super) use operation::{Keep, OpenHandle, OperationFuture};
pub(super) use timer::{LocalWaker, Timer};

use super::driver::{Completion, Handle, Operation, panic_reason};
use super::runtime::{Leftovers, PanicPolicy, RuntimeOptions};
use super::socket;
use super::task::Spent;
use crate::base::time::{MonotonicNs, TimestampMs};
use handles::{HandleTable, Resource};
use pulse::Pulse;
use tasks::TaskSlab;

/// While tasks run, completions are looked at at least this often.
const PREEMPT_TIMER: Duration = Duration::from_millis(1);
/// Registered memory of each of glommio's three rings. What does not fit comes from the heap;
/// where RLIMIT_MEMLOCK is lower, glommio silently registers none.
const IO_MEMORY_BYTES: usize = 4 << 20;
/// Shares of the classes, in the order of [`super::task::TaskClass`].
const CLASS_SHARES: [(&str, usize); 3] = [("produce", 1_000), ("fetch", 500), ("background", 100)];
/// How long the end waits for operations that are under way.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);
const SHUTDOWN_PAUSE: Duration = Duration::from_millis(1);

type Panic = Box<dyn Any + Send>;

/// The state of one executor. Always behind an `Rc`; a runtime owns it.
pub(super) struct Core {
    /// Dropped first: a file that is dropped without its reactor closes at once.
    executor: LocalExecutor,
    queues: [TaskQueueHandle; CLASS_SHARES.len()],
    tasks: RefCell<TaskSlab>,
    handles: RefCell<HandleTable>,
    timers: Cell<usize>,
    in_flight: Cell<usize>,
    pulse: Arc<Pulse>,
    poll_started: Cell<MonotonicNs>,
    root_waker: RefCell<Option<Waker>>,
    /// What a task panicked with, for the root to leave with.
    panicked: RefCell<Option<Panic>>,
    panics: PanicPolicy,
}

fn clock() -> MonotonicNs {
    // The clock exists on every Linux; a failure would be a bug of the kernel.
    let Ok(time) = clock_gettime(ClockId::CLOCK_MONOTONIC) else {
        unreachable!("CLOCK_MONOTONIC exists")
    };
    MonotonicNs(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// glommio's errors as the system's, their numbers kept.
fn system_error(error: GlommioError<()>) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => error.into(),
    }
}

impl Core {
    /// Makes the executor. Belongs to the calling thread from then on.
    pub(super) fn start(options: &RuntimeOptions) -> io::Result<Rc<Self>> {
        let executor = LocalExecutorBuilder::new(Placement::Unbound)
            .name(&options.name)
            .preempt_timer(PREEMPT_TIMER)
            .io_memory(IO_MEMORY_BYTES)
            .make()
            .map_err(system_error)?;
        // Only the very first poll is without a pulse: begin it with a fresh slice of time.
        std::thread::yield_now();
        let (pulse, queues) = executor.run(std::future::poll_fn(|context| {
            let pulse = Pulse::start(context.waker().clone());
            let queues = CLASS_SHARES.map(|(name, shares)| {
                let shares = Shares::Static(shares);
                ::glommio::executor().create_task_queue(shares, Latency::NotImportant, name)
            });
            Poll::Ready((pulse, queues))
        }));
        Ok(Rc::new(Self {
            executor,
            queues,
            tasks: RefCell::default(),
            handles: RefCell::default(),
            timers: Cell::new(0),
            in_flight: Cell::new(0),
            pulse,
            poll_started: Cell::new(clock()),
            root_waker: RefCell::new(None),
            panicked: RefCell::new(None),
            panics: options.panics,
        }))
    }

    /// Runs `future` on glommio's executor with this core as the current one.
    fn enter<T>(self: &Rc<Self>, future: impl Future<Output = T>) -> T {
        let _entered = current::Entered::new(self);
        self.executor.run(future)
    }

    pub(super) fn now(&self) -> MonotonicNs {
        clock()
    }

    pub(super) fn clock(&self) -> MonotonicNs {
        clock()
    }

    /// Not known here.
    pub(super) fn idle_time(&self) -> Duration {
        Duration::ZERO
    }

    pub(super) fn wall_clock(&self) -> TimestampMs {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH);
        TimestampMs(since.map_or(0, |since| since.as_millis() as i64))
    }

    /// Time that the task running now has used in this turn of its own.
    pub(super) fn turn_used(&self) -> Duration {
        clock().since(self.poll_started.get())
    }

    /// Since when the task that runs now has its turn.
    pub(super) fn turn_began(&self) -> MonotonicNs {
        self.poll_started.get()
    }

    /// Not known here.
    pub(super) fn spent(&self) -> Spent {
        Spent::default()
    }

    pub(super) fn submit(self: &Rc<Self>, operation: Operation, keep: Keep) -> OperationFuture {
        OperationFuture::submit(Rc::clone(self), operation, keep)
    }

    /// The running task wants another turn after the others that are runnable.
    pub(super) fn yield_running(&self, context: &Context<'_>) {
        context.waker().wake_by_ref();
    }

    pub(super) fn set_timer(self: &Rc<Self>, deadline: MonotonicNs, waker: LocalWaker) -> Timer {
        Timer::new(Rc::clone(self), deadline, waker)
    }

    fn insert(&self, resource: Resource) -> Handle {
        if let Resource::Stream(_) = resource {
            self.pulse.connection_opened();
        }
        self.handles.borrow_mut().insert(resource)
    }

    fn close(&self, handle: Handle) {
        // The borrow must not last while a file or socket drops.
        let closed = self.handles.borrow_mut().remove(handle);
        if let Resource::Stream(_) = closed {
            self.pulse.connection_closed();
        }
        drop(closed);
    }

    /// Closes what an unwanted completion opened, and drops it.
    fn discard(&self, completion: Completion) {
        if let Some(handle) = completion.handle() {
            self.close(handle);
        }
    }

    pub(super) fn listen(
        &self,
        address: SocketAddr,
        backlog: u32,
    ) -> io::Result<(Handle, SocketAddr)> {
        let (listener, address): (OwnedFd, _) = socket::listen(address, backlog)?;
        let listener = Resource::listener(listener);
        Ok((self.insert(listener), address))
    }

    pub(super) fn shutdown_socket(&self, handle: Handle, how: Shutdown) -> io::Result<()> {
        let handles = self.handles.borrow();
        handles
            .get(handle)
            .with_socket(|fd| socket::shutdown(fd, how))
    }

    pub(super) fn set_buffer_sizes(
        &self,
        handle: Handle,
        send: Option<usize>,
        receive: Option<usize>,
    ) -> io::Result<()> {
        let handles = self.handles.borrow();
        handles
            .get(handle)
            .with_socket(|fd| socket::set_buffer_sizes(fd, send, receive))
    }

    /// Runs `future` to its end on this thread.
    pub(super) fn block_on<T>(self: &Rc<Self>, future: impl Future<Output = T>) -> T {
        let outcome = self.enter(async {
            let mut future = std::pin::pin!(future);
            std::future::poll_fn(|context| self.poll_root(future.as_mut(), context)).await
        });
        self.root_waker.replace(None);
        match outcome {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Polls the root future; a panic, its own or a task's, ends it as an error, so that glommio's
    /// executor stays whole.
    fn poll_root<T>(
        &self,
        future: Pin<&mut impl Future<Output = T>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<T, Panic>> {
        self.root_waker.replace(Some(context.waker().clone()));
        if let Some(panic) = self.panicked.take() {
            return Poll::Ready(Err(panic));
        }
        self.start_poll();
        match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => {
                self.obey_panic_policy(&panic);
                Poll::Ready(Err(panic))
            }
        }
    }

    fn start_poll(&self) {
        self.pulse.count_poll();
        self.poll_started.set(clock());
    }

    fn obey_panic_policy(&self, panic: &Panic) {
        if self.panics == PanicPolicy::EndProcess {
            let reason = panic_reason(panic.as_ref());
            tracing::error!("a task panicked, the process ends at once: {reason}");
            std::process::abort();
        }
    }

    fn task_panicked(&self, panic: Panic) {
        self.obey_panic_policy(&panic);
        self.panicked.replace(Some(panic));
        if let Some(waker) = self.root_waker.take() {
            waker.wake();
        }
    }

    /// Drops all tasks, waits for the operations under way, counts what is left.
    pub(super) fn end(self: &Rc<Self>) -> Leftovers {
        let tasks = self.tasks.borrow().live();
        self.enter(async {
            loop {
                // The borrow must not last while the future drops.
                let task = self.tasks.borrow_mut().take_any();
                match task {
                    Some(future) => drop(future),
                    None => break,
                }
            }
            self.handles.borrow().shut_down_sockets();
            self.drain_operations().await;
        });
        Leftovers {
            tasks,
            timers: self.timers.get(),
            operations: self.in_flight.get(),
            handles: self.handles.borrow().len(),
        }
    }

    async fn drain_operations(&self) {
        let deadline = clock().after(SHUTDOWN_LIMIT);
        loop {
            // At least once: closing a file takes a turn of the ring.
            ::glommio::timer::sleep(SHUTDOWN_PAUSE).await;
            if self.in_flight.get() == 0 {
                return;
            }
            if clock() >= deadline {
                let left = self.in_flight.get();
                tracing::error!("{left} operations did not end within {SHUTDOWN_LIMIT:?}");
                return;
            }
        }
    }
}
