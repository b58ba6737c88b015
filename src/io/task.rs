//! Tasks and time of the executor that runs on this thread.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::driver::{Completion, Operation, panic_reason};
use super::executor::{self, LocalWaker, Timer};
use crate::base::time::{MonotonicNs, TimestampMs};

/// Bytes that a task may handle in one turn before it yields, so that one connection does not
/// starve the others.
pub const TURN_BYTES_MAX: usize = 64 * 1024;
/// CPU time that a task may use in one turn before it yields.
pub const TURN_TIME_MAX: Duration = Duration::from_micros(50);

/// Which run queue a task belongs to; produce runs before fetch before background, by shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskClass {
    /// Appends, the journal, the inbox, connections.
    Produce,
    /// Reads of clients and replicas.
    Fetch,
    /// Write-back, retention, timers of no hurry.
    Background,
}

#[derive(Debug)]
struct JoinState<T> {
    result: Option<T>,
    waker: Option<LocalWaker>,
}

/// A spawned task's result; dropping it leaves the task running.
#[derive(Debug)]
pub struct JoinHandle<T> {
    state: Rc<RefCell<JoinState<T>>>,
}

impl<T> JoinHandle<T> {
    /// Whether the task has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        // The task holds the other reference for as long as its future lives.
        Rc::strong_count(&self.state) == 1
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.state.borrow_mut();
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(LocalWaker::of(context));
                Poll::Pending
            }
        }
    }
}

/// Starts a task on this thread's executor. A panic in it ends the process
/// ([`super::PanicPolicy`]): use [`spawn_guarded`] for what owns no shared state.
pub fn spawn<T: 'static>(
    class: TaskClass,
    future: impl Future<Output = T> + 'static,
) -> JoinHandle<T> {
    let state = Rc::new(RefCell::new(JoinState {
        result: None,
        waker: None,
    }));
    let handle = JoinHandle {
        state: Rc::clone(&state),
    };
    executor::current().spawn(class, async move {
        let result = future.await;
        let waker = {
            let mut state = state.borrow_mut();
            state.result = Some(result);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    });
    handle
}

/// As [`spawn`], for a task of whose end nobody hears: it costs one allocation less.
pub fn spawn_detached(class: TaskClass, future: impl Future<Output = ()> + 'static) {
    executor::current().spawn(class, future);
}

/// A guarded task panicked and ended; the caller logs it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task panicked: {reason}")]
pub struct TaskPanic {
    /// What the panic said.
    pub reason: String,
}

/// Starts a task whose panic ends that task alone: a connection's, which owns nothing that others
/// see. Whatever owns or changes log, journal, partition, inbox or metadata state must not run in
/// one: after a panic there only recovery may go on.
pub fn spawn_guarded<T: 'static>(
    class: TaskClass,
    future: impl Future<Output = T> + 'static,
) -> JoinHandle<Result<T, TaskPanic>> {
    spawn(
        class,
        Guarded {
            future: Some(Box::pin(future)),
        },
    )
}

struct Guarded<F> {
    /// Absent once it panicked: its state is dropped at once and never polled again.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Guarded<F> {
    type Output = Result<F::Output, TaskPanic>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = self.future.as_mut() else {
            unreachable!("polled after it ended")
        };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(payload) => {
                self.future = None;
                let reason = panic_reason(payload.as_ref());
                Poll::Ready(Err(TaskPanic { reason }))
            }
        }
    }
}

/// The runtime's monotonic clock, as read before the running task's turn.
#[must_use]
pub fn now() -> MonotonicNs {
    executor::current().now()
}

/// The same clock, read now: for what a task measures within one turn.
#[must_use]
pub fn clock() -> MonotonicNs {
    executor::current().clock()
}

/// How long this executor has waited for events since it started.
#[must_use]
pub fn idle_time() -> Duration {
    executor::current().idle_time()
}

/// Since when the task that runs now has its turn: what it waited for lies before that.
#[must_use]
pub fn turn_began() -> MonotonicNs {
    executor::current().turn_began()
}

/// What this executor has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// How long tasks ran.
    pub polled: Duration,
    /// Operations that were begun.
    pub operations: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

/// What this executor has done; nothing where the backend does not tell.
#[must_use]
pub fn spent() -> Spent {
    executor::current().spent()
}

/// How long the calling thread had a CPU since it began.
#[must_use]
pub fn thread_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

/// Runs `work`; answers what it came to and, if that is wanted, how long its thread was at it: what
/// it waited for does not count.
pub async fn busy_time<T>(is_wanted: bool, work: impl Future<Output = T>) -> (T, Duration) {
    if !is_wanted {
        return (work.await, Duration::ZERO);
    }
    let mut work = std::pin::pin!(work);
    let mut busy = Duration::ZERO;
    let outcome = std::future::poll_fn(|context| {
        let began = clock();
        let polled = work.as_mut().poll(context);
        busy += clock().since(began);
        polled
    })
    .await;
    (outcome, busy)
}

/// The runtime's wall clock.
#[must_use]
pub fn wall_clock() -> TimestampMs {
    executor::current().wall_clock()
}

struct Sleep {
    deadline: MonotonicNs,
    timer: Option<Timer>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let core = executor::current();
        if core.now() >= self.deadline {
            self.timer = None;
            return Poll::Ready(());
        }
        let waker = LocalWaker::of(context);
        match &self.timer {
            Some(timer) => timer.set_waker(waker),
            None => self.timer = Some(core.set_timer(self.deadline, waker)),
        }
        Poll::Pending
    }
}

/// Waits until the monotonic clock has reached `deadline`: never less, and at most some 16 µs more
/// when nothing else keeps the executor busy.
pub async fn sleep_until(deadline: MonotonicNs) {
    Sleep {
        deadline,
        timer: None,
    }
    .await;
}

/// Waits for `delay`.
pub async fn sleep(delay: Duration) {
    sleep_until(now().after(delay)).await;
}

/// Runs `future` until `deadline`; `None` when the time was up first. The future is dropped then,
/// which abandons its operation and does not cancel it.
pub async fn with_deadline<T>(deadline: MonotonicNs, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut sleep = std::pin::pin!(Sleep {
        deadline,
        timer: None,
    });
    std::future::poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}

struct Yield {
    yielded: bool,
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.yielded, true) {
            return Poll::Ready(());
        }
        executor::current().yield_running(context);
        Poll::Pending
    }
}

/// Lets other tasks and completions have their turn: this task runs on after all others that are
/// runnable, and after completions were looked at.
pub async fn yield_now() {
    Yield { yielded: false }.await;
}

/// Counts what a task does in one turn, so that it yields in time. One a loop; see
/// [`TURN_BYTES_MAX`] and [`TURN_TIME_MAX`].
#[derive(Debug, Default)]
pub struct TurnBudget {
    bytes: usize,
}

impl TurnBudget {
    /// Notes `bytes` handled; yields when the turn's bytes or time are used up. To be called
    /// between pieces of work that are small themselves.
    pub async fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= TURN_BYTES_MAX || executor::current().turn_used() >= TURN_TIME_MAX {
            self.bytes = 0;
            yield_now().await;
        }
    }

    /// The task has waited for something: a new turn has begun.
    pub fn restart(&mut self) {
        self.bytes = 0;
    }
}

/// Runs `work` on the pool of unpinned threads. A panic in it comes back as an error.
pub async fn run_on_pool<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    run_work(Operation::Work(boxed(work))).await
}

/// As [`run_on_pool`], on threads that give way to all others of the process: what may take its
/// time and must not take that of the shards.
pub async fn run_when_idle<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    run_work(Operation::IdleWork(boxed(work))).await
}

fn boxed<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> super::driver::Work {
    Box::new(move || Box::new(work()) as Box<dyn Any + Send>)
}

async fn run_work<T: Send + 'static>(operation: Operation) -> io::Result<T> {
    match executor::current().submit(operation, None).await {
        Completion::Worked(result) => match result?.downcast() {
            Ok(value) => Ok(*value),
            Err(_) => unreachable!("the closure above made it"),
        },
        other => super::wrong_completion(&other),
    }
}
