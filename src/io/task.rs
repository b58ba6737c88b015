//! Tasks, time and local signals of the executor that runs on this thread.

use std::future::Future;
use std::io;
use std::time::Duration;

use crate::base::time::{MonotonicNs, TimestampMs};

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

/// A spawned task's result; dropping it leaves the task running.
#[derive(Debug)]
pub struct JoinHandle<T> {
    marker: std::marker::PhantomData<T>,
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<T> {
        unimplemented!()
    }
}

/// Starts a task on this thread's executor.
pub fn spawn<T: 'static>(
    _class: TaskClass,
    _future: impl Future<Output = T> + 'static,
) -> JoinHandle<T> {
    unimplemented!()
}

/// The runtime's monotonic clock (one reading per executor turn).
#[must_use]
pub fn now() -> MonotonicNs {
    unimplemented!()
}

/// The runtime's wall clock.
#[must_use]
pub fn wall_clock() -> TimestampMs {
    unimplemented!()
}

/// Waits until the monotonic clock has reached `deadline`.
pub async fn sleep_until(_deadline: MonotonicNs) {
    unimplemented!()
}

/// Waits for `delay`.
pub async fn sleep(delay: Duration) {
    sleep_until(now().after(delay)).await;
}

/// Lets other tasks and completions have their turn.
pub async fn yield_now() {
    unimplemented!()
}

/// Runs `work` on the pool of unpinned threads. A panic in it comes back as an error.
pub async fn run_on_pool<T: Send + 'static>(
    _work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    unimplemented!()
}
