//! A runtime: an executor with its driver, owned by the thread that started it.

use std::future::Future;
use std::io;
use std::rc::Rc;

#[cfg(any(test, feature = "sim"))]
use super::driver::{Driver, Wait};
use super::executor::Core;
use super::uring::RingOptions;

/// What becomes of the process when a task panics that is not guarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PanicPolicy {
    /// The process ends at once: no drain, no write-back, no clean-shutdown file. The task may
    /// have left a log, a partition or the journal half changed, and only recovery may touch that.
    #[default]
    EndProcess,
    /// The panic leaves `block_on` (tests).
    Unwind,
}

/// What was left when a runtime ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Tasks that had not ended; they were dropped.
    pub tasks: usize,
    /// Timers that were still set after the tasks were dropped: leaked, should be 0.
    pub timers: usize,
    /// Operations that never completed: their buffers were leaked, should be 0.
    pub operations: usize,
    /// Files and sockets still open after the tasks were dropped: held from outside, or leaked.
    pub handles: usize,
}

/// How a runtime is started.
#[derive(Debug, Default)]
pub struct RuntimeOptions {
    /// For log lines.
    pub name: String,
    /// The CPU that the calling thread is pinned to; `None` leaves it where it may run.
    pub cpu: Option<usize>,
    /// What a panic in a task does.
    pub panics: PanicPolicy,
    /// Sizes of the ring.
    pub ring: RingOptions,
}

impl RuntimeOptions {
    /// For tests: not pinned, and a panic leaves `block_on`.
    #[must_use]
    pub fn for_tests() -> Self {
        Self {
            name: "test".to_owned(),
            panics: PanicPolicy::Unwind,
            ..Self::default()
        }
    }
}

/// One executor on the thread that started it. Dropping it drops all tasks that are left and waits
/// for the operations in flight.
pub struct Runtime {
    /// Absent once it has ended.
    core: Option<Rc<Core>>,
}

/// Our executor over a ring, or glommio's (see the features in `Cargo.toml`).
#[cfg(not(all(feature = "glommio", not(any(test, feature = "sim")))))]
fn start_core(options: RuntimeOptions) -> io::Result<Rc<Core>> {
    let driver = super::uring::UringDriver::new(options.ring)?;
    Ok(Core::new(Box::new(driver), options.panics))
}

#[cfg(all(feature = "glommio", not(any(test, feature = "sim"))))]
fn start_core(options: RuntimeOptions) -> io::Result<Rc<Core>> {
    Core::start(&options)
}

impl Runtime {
    /// Starts a runtime over a ring of its own, on the calling thread. The error says what the
    /// kernel refused; [`super::startup`] explains it better.
    pub fn start(options: RuntimeOptions) -> io::Result<Self> {
        super::pool::remember_allowed_cpus();
        if let Some(cpu) = options.cpu
            && !core_affinity::set_for_current(core_affinity::CoreId { id: cpu })
        {
            return Err(io::Error::other(format!(
                "cannot place shard thread {} on CPU {cpu}",
                options.name
            )));
        }
        Ok(Self {
            core: Some(start_core(options)?),
        })
    }

    /// A runtime over a driver of the caller's choice (the simulation).
    #[cfg(any(test, feature = "sim"))]
    #[must_use]
    pub fn with_driver(panics: PanicPolicy, driver: Box<dyn Driver>) -> Self {
        Self {
            core: Some(Core::new(driver, panics)),
        }
    }

    fn core(&self) -> &Rc<Core> {
        match &self.core {
            Some(core) => core,
            None => unreachable!("ended only by a call that consumes it"),
        }
    }

    /// Runs `future` to its end; tasks spawned meanwhile run beside it, and stay for the next call
    /// when they have not ended.
    pub fn block_on<T>(&mut self, future: impl Future<Output = T>) -> T {
        self.core().block_on(future)
    }

    /// One turn of the executor, for whoever steps several runtimes on one thread: runs what is
    /// runnable, then the driver with at most this wait. Answers whether tasks are runnable.
    #[cfg(any(test, feature = "sim"))]
    pub fn turn(&mut self, wait: Wait) -> bool {
        self.core().turn(wait)
    }

    /// Drops all tasks, waits for the operations in flight, and counts what was left.
    pub fn end(mut self) -> Leftovers {
        match self.core.take() {
            Some(core) => core.end(),
            None => Leftovers::default(),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(core) = self.core.take() {
            core.end();
        }
    }
}
