//! The executor: one thread, tasks in a slab, run queues by class, a timer wheel. It knows nothing
//! of rings or files: it hands operations to its [`Driver`] and wakes tasks by what comes back, so
//! that the same executor runs in production and in the simulation.
//!
//! One turn: take what other threads woke, fire timers, run tasks until none is runnable or
//! [`REAP_INTERVAL`] has passed, then let the driver start what was submitted, wait if nothing is
//! runnable, and hand out completions. Everything happens in an order that follows from the
//! driver's answers alone.
//!
//! Invariants:
//! - No user code (a poll, a drop of a future, of a completion or of a kept handle) runs while a
//!   table of the executor or the driver is borrowed.
//! - The driver waits only after the sleeping flag was set and the list of remote wakes was seen
//!   empty after that ([`remote`]).

mod current;
mod operation;
mod remote;
mod run_queue;
mod task;
mod timer;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(super) use current::get as current;
pub(super) use operation::{Keep, OpenHandle, OperationFuture};
pub(super) use task::LocalWaker;

use super::driver::{Completion, Driver, Handle, Operation, OperationId, Wait, panic_reason};
use super::runtime::{Leftovers, PanicPolicy};
use super::task::{Spent, TaskClass};
use crate::base::time::{MonotonicNs, TimestampMs};
use remote::Remote;
use run_queue::RunQueues;
use task::{ROOT, TaskKey, TaskSlab};
use timer::{TimerKey, TimerWheel};

/// While tasks run, completions are looked at at least this often.
pub const REAP_INTERVAL: Duration = Duration::from_micros(500);
/// And at least after so many polls, which bounds a turn where the clock stands still.
pub const POLLS_PER_TURN_MAX: usize = 1_024;

/// The state of one executor. Always behind an `Rc`; a runtime owns it.
pub(super) struct Core {
    tasks: RefCell<TaskSlab>,
    queues: RefCell<RunQueues>,
    timers: RefCell<TimerWheel>,
    operations: RefCell<OperationTable>,
    driver: RefCell<Box<dyn Driver>>,
    remote: Arc<Remote>,
    root_waker: Waker,
    /// The clock as last read: before and after every poll of a task.
    now: Cell<MonotonicNs>,
    /// The task that is being polled, its waker's identity, and since when.
    running: RefCell<Option<(TaskKey, Waker)>>,
    poll_started: Cell<MonotonicNs>,
    /// Since when the driver waits, and how long it has waited before.
    waits_since: Cell<Option<MonotonicNs>>,
    idle_ns: Cell<u64>,
    spent: Cell<Spent>,
    yielding: Cell<bool>,
    number: u32,
    panics: PanicPolicy,
    /// Reused for every turn.
    completed: RefCell<Vec<(OperationId, Completion)>>,
    fired: RefCell<Vec<LocalWaker>>,
}

use operation::OperationTable;

impl Core {
    pub(super) fn new(driver: Box<dyn Driver>, panics: PanicPolicy) -> Rc<Self> {
        static EXECUTORS: AtomicU32 = AtomicU32::new(1);
        let remote = Arc::new(Remote::new(driver.unparker()));
        let now = driver.now();
        Rc::new(Self {
            tasks: RefCell::new(TaskSlab::new()),
            queues: RefCell::default(),
            timers: RefCell::new(TimerWheel::new(now)),
            operations: RefCell::default(),
            root_waker: task::waker_of(ROOT, &remote),
            remote,
            driver: RefCell::new(driver),
            now: Cell::new(now),
            running: RefCell::new(None),
            poll_started: Cell::new(now),
            waits_since: Cell::new(None),
            idle_ns: Cell::new(0),
            spent: Cell::default(),
            yielding: Cell::new(false),
            number: EXECUTORS.fetch_add(1, Ordering::Relaxed),
            panics,
            completed: RefCell::default(),
            fired: RefCell::default(),
        })
    }

    fn remote(&self) -> &Arc<Remote> {
        &self.remote
    }

    fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn now(&self) -> MonotonicNs {
        self.now.get()
    }

    pub(super) fn clock(&self) -> MonotonicNs {
        self.driver.borrow().now()
    }

    pub(super) fn idle_time(&self) -> Duration {
        Duration::from_nanos(self.idle_ns.get())
    }

    pub(super) fn wall_clock(&self) -> TimestampMs {
        self.driver.borrow().wall_clock()
    }

    /// CPU time that the task running now has used in this turn of its own.
    pub(super) fn turn_used(&self) -> Duration {
        self.driver.borrow().now().since(self.poll_started.get())
    }

    /// Since when the task that runs now has its turn.
    pub(super) fn turn_began(&self) -> MonotonicNs {
        self.poll_started.get()
    }

    pub(super) fn spent(&self) -> Spent {
        self.spent.get()
    }

    fn note_operation(&self, bytes: usize) {
        let mut spent = self.spent.get();
        spent.operations += 1;
        spent.bytes += bytes as u64;
        self.spent.set(spent);
    }

    fn note_polled(&self, time: Duration) {
        let mut spent = self.spent.get();
        spent.polled += time;
        self.spent.set(spent);
    }

    /// The task that is being polled, if `waker` is its own.
    fn running(&self, waker: &Waker) -> Option<TaskKey> {
        let running = self.running.borrow();
        let (key, own) = running.as_ref()?;
        own.will_wake(waker).then_some(*key)
    }

    pub(super) fn listen(
        &self,
        address: SocketAddr,
        backlog: u32,
    ) -> io::Result<(Handle, SocketAddr)> {
        self.driver.borrow_mut().listen(address, backlog)
    }

    pub(super) fn shutdown_socket(&self, socket: Handle, how: Shutdown) -> io::Result<()> {
        self.driver.borrow_mut().shutdown_socket(socket, how)
    }

    pub(super) fn set_buffer_sizes(
        &self,
        socket: Handle,
        send: Option<usize>,
        receive: Option<usize>,
    ) -> io::Result<()> {
        self.driver
            .borrow_mut()
            .set_buffer_sizes(socket, send, receive)
    }

    pub(super) fn submit(self: &Rc<Self>, operation: Operation, keep: Keep) -> OperationFuture {
        OperationFuture::submit(Rc::clone(self), operation, keep)
    }

    pub(super) fn spawn(&self, class: TaskClass, future: impl Future<Output = ()> + 'static) {
        let key = self
            .tasks
            .borrow_mut()
            .insert(class, Box::pin(future), &self.remote);
        self.wake(key);
    }

    fn wake(&self, key: TaskKey) {
        let queued = self.tasks.borrow_mut().mark_queued(key);
        if let Some(class) = queued {
            self.queues.borrow_mut().push(class, key);
        }
    }

    /// The running task, which `_context` belongs to, wants its next turn only after completions
    /// were looked at.
    pub(super) fn yield_running(&self, _context: &Context<'_>) {
        self.yielding.set(true);
    }

    pub(super) fn set_timer(self: &Rc<Self>, deadline: MonotonicNs, waker: LocalWaker) -> Timer {
        Timer {
            key: self.timers.borrow_mut().insert(deadline, waker),
            core: Rc::clone(self),
        }
    }

    /// Closes what an unwanted completion opened, and drops it.
    fn discard(&self, completion: Completion) {
        if let Some(handle) = completion.handle() {
            self.driver.borrow_mut().close(handle);
        }
    }

    /// Runs `future` to its end on this thread.
    pub(super) fn block_on<T>(self: &Rc<Self>, future: impl Future<Output = T>) -> T {
        let _entered = current::Entered::new(self);
        let mut future = std::pin::pin!(future);
        self.wake(ROOT);
        loop {
            if let Some(value) = self.run_tasks(&mut Some(future.as_mut())) {
                return value;
            }
            self.drive(None);
        }
    }

    /// One turn without a root future, for whoever steps several executors on one thread. Waits at
    /// most as `wait` says; answers whether tasks are runnable.
    #[cfg(any(test, feature = "sim"))]
    pub(super) fn turn(self: &Rc<Self>, wait: Wait) -> bool {
        let _entered = current::Entered::new(self);
        self.run_tasks::<Pin<&mut std::future::Ready<()>>>(&mut None);
        self.drive(Some(wait));
        self.take_remote_wakes();
        !self.queues.borrow().is_empty()
    }

    /// Runs tasks until none is runnable or it is time to look at completions. Answers what the
    /// root future returned.
    fn run_tasks<F: Future + Unpin>(&self, root: &mut Option<F>) -> Option<F::Output> {
        self.read_clock();
        if let Some(since) = self.waits_since.take() {
            let waited = self.now.get().0.saturating_sub(since.0);
            self.idle_ns.set(self.idle_ns.get() + waited);
        }
        self.fire_timers();
        self.take_remote_wakes();
        self.queues.borrow_mut().resume_yielded();
        let started = self.now.get();
        for _ in 0..POLLS_PER_TURN_MAX {
            let next = self.queues.borrow_mut().pop();
            let Some(key) = next else { break };
            let before = self.now.get();
            self.poll_started.set(before);
            let (class, value) = if key == ROOT {
                (TaskClass::Produce, self.poll_root(root))
            } else {
                (self.poll_task(key), None)
            };
            if value.is_some() {
                return value;
            }
            self.read_clock();
            let now = self.now.get();
            self.note_polled(now.since(before));
            self.queues.borrow_mut().charge(class, now.since(before));
            if now.since(started) >= REAP_INTERVAL {
                break;
            }
        }
        None
    }

    fn poll_root<F: Future + Unpin>(&self, root: &mut Option<F>) -> Option<F::Output> {
        let root = root.as_mut()?;
        self.tasks.borrow_mut().start_root();
        let waker = self.root_waker.clone();
        let polled = self.poll(ROOT, &waker, |context| Pin::new(root).poll(context));
        self.requeue_if_yielding(ROOT);
        match polled {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn poll_task(&self, key: TaskKey) -> TaskClass {
        let started = self.tasks.borrow_mut().start(key);
        let Some(mut polled) = started else {
            // It ended after it was queued.
            return TaskClass::Produce;
        };
        let future = &mut polled.future;
        let outcome = self.poll(key, &polled.waker, |context| future.as_mut().poll(context));
        if outcome.is_pending() {
            self.tasks.borrow_mut().put_back(key, polled.future);
            self.requeue_if_yielding(key);
        } else {
            self.yielding.set(false);
            self.tasks.borrow_mut().remove(key);
            drop(polled.future);
        }
        polled.class
    }

    fn requeue_if_yielding(&self, key: TaskKey) {
        if !self.yielding.replace(false) {
            return;
        }
        let queued = self.tasks.borrow_mut().mark_queued(key);
        if let Some(class) = queued {
            self.queues.borrow_mut().push_yielded(class, key);
        }
    }

    /// Polls one future as the running task; a panic ends the process or leaves `block_on`.
    fn poll<T>(
        &self,
        key: TaskKey,
        waker: &Waker,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        *self.running.borrow_mut() = Some((key, waker.clone()));
        let mut context = Context::from_waker(waker);
        let outcome = catch_unwind(AssertUnwindSafe(|| poll(&mut context)));
        let ran = self.running.borrow_mut().take();
        drop(ran);
        match outcome {
            Ok(polled) => polled,
            Err(payload) => {
                if self.panics == PanicPolicy::EndProcess {
                    let reason = panic_reason(payload.as_ref());
                    tracing::error!("a task panicked, the process ends at once: {reason}");
                    std::process::abort();
                }
                self.tasks.borrow_mut().remove(key);
                resume_unwind(payload)
            }
        }
    }

    fn read_clock(&self) {
        self.now.set(self.driver.borrow().now());
    }

    fn fire_timers(&self) {
        let mut fired = self.fired.take();
        self.timers.borrow_mut().fire(self.now.get(), &mut fired);
        for waker in fired.drain(..) {
            waker.wake();
        }
        self.fired.replace(fired);
    }

    fn take_remote_wakes(&self) {
        self.remote.take_wakes(|key| self.wake(key));
    }

    /// Lets the driver work; waits when nothing is runnable.
    fn drive(&self, limit: Option<Wait>) {
        let wait = self.choose_wait(limit);
        let sleeps = wait != Wait::Poll;
        let wait = if sleeps && !self.remote.start_sleeping() {
            Wait::Poll
        } else {
            wait
        };
        if wait != Wait::Poll {
            self.waits_since.set(Some(self.now.get()));
        }
        let mut completed = self.completed.take();
        self.driver.borrow_mut().turn(wait, &mut completed);
        if sleeps {
            self.remote.stop_sleeping();
        }
        self.deliver(&mut completed);
        self.completed.replace(completed);
    }

    fn choose_wait(&self, limit: Option<Wait>) -> Wait {
        if !self.queues.borrow().is_empty() || limit == Some(Wait::Poll) {
            return Wait::Poll;
        }
        let next = self.timers.borrow().next_deadline();
        match (next, limit) {
            (Some(next), Some(Wait::Until(limit))) => Wait::Until(next.min(limit)),
            (Some(next), _) => Wait::Until(next),
            (None, limit) => limit.unwrap_or(Wait::Forever),
        }
    }

    fn deliver(&self, completed: &mut Vec<(OperationId, Completion)>) {
        for (id, completion) in completed.drain(..) {
            if let Completion::Received(Ok(count), _) = &completion {
                let mut spent = self.spent.get();
                spent.bytes += *count as u64;
                self.spent.set(spent);
            }
            let delivered = self.operations.borrow_mut().deliver(id, completion);
            if let Some(waker) = delivered.waker {
                waker.wake();
            }
            if let Some(unwanted) = delivered.unwanted {
                self.discard(unwanted);
            }
            drop(delivered.keep);
        }
    }

    /// Drops all tasks, ends the driver, counts what is left.
    pub(super) fn end(self: &Rc<Self>) -> Leftovers {
        let _entered = current::Entered::new(self);
        let tasks = self.tasks.borrow().live();
        loop {
            // The borrow must not last while the future drops.
            let futures = self.tasks.borrow_mut().take_all();
            if futures.is_empty() {
                break;
            }
            drop(futures);
        }
        let mut completed = self.completed.take();
        self.driver.borrow_mut().shutdown(&mut completed);
        self.deliver(&mut completed);
        let timers = self.timers.borrow().len();
        let operations = self.operations.borrow().in_flight();
        let handles = self.driver.borrow().open_handles();
        Leftovers {
            tasks,
            timers,
            operations,
            handles,
        }
    }
}

/// A timer that is set; dropping it removes it.
pub(super) struct Timer {
    core: Rc<Core>,
    key: TimerKey,
}

impl Timer {
    /// Replaces the waker; nothing happens when the timer has fired.
    pub(super) fn set_waker(&self, waker: LocalWaker) {
        self.core.timers.borrow_mut().set_waker(self.key, waker);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.core.timers.borrow_mut().remove(self.key);
    }
}

#[cfg(test)]
#[path = "executor_test.rs"]
mod executor_test;
