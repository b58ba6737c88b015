//! A runtime: an executor with its driver, owned by the thread that started it.

use std::future::Future;
use std::io;
use std::rc::Rc;

use super::driver::{Driver, Wait};
use super::executor::{Core, Leftovers, PanicPolicy};
use super::uring::{RingOptions, UringDriver};

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
        let driver = UringDriver::new(options.ring)?;
        Ok(Self::with_driver(options.panics, Box::new(driver)))
    }

    /// A runtime over a driver of the caller's choice (the simulation).
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
