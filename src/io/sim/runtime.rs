//! A process on a simulated disk: the real executor over the simulated driver.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::base::random::Random;
use crate::io::runtime::PanicPolicy;
use crate::io::runtime::Runtime;

use super::disk::SimDisk;
use super::driver::{CrashToken, SimDriver};

/// The simulated process died in the middle of its work. Decide how, by [`SimDisk::power_cut`] or
/// [`SimDisk::kill`], before the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crashed;

/// One process; the next one on the same disk starts when this one has ended.
pub struct SimRuntime {
    /// Absent only while dropping.
    runtime: Option<Runtime>,
    disk: SimDisk,
}

impl SimRuntime {
    /// A process on `disk`; how long its operations take follows from `seed`.
    #[must_use]
    pub fn new(disk: &SimDisk, seed: u64) -> Self {
        disk.state().random = Random::new(seed ^ 0x0072_756e_7469_6d65);
        let driver = Box::new(SimDriver::new(disk));
        Self {
            runtime: Some(Runtime::with_driver(PanicPolicy::Unwind, driver)),
            disk: disk.clone(),
        }
    }

    /// Runs `future` to its end, or until the process dies ([`SimDisk::crash_after`]). Tasks that
    /// it spawned run beside it; after a crash nothing more can run.
    ///
    /// # Panics
    /// When a task panics, and when every task waits while nothing is under way.
    pub fn block_on<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Crashed> {
        let Some(runtime) = self.runtime.as_mut().filter(|_| !self.disk.has_crashed()) else {
            return Err(Crashed);
        };
        let run = AssertUnwindSafe(|| runtime.block_on(future));
        match catch_unwind(run) {
            Ok(value) => Ok(value),
            Err(payload) if payload.is::<CrashToken>() => Err(Crashed),
            Err(payload) => resume_unwind(payload),
        }
    }
}

impl Drop for SimRuntime {
    fn drop(&mut self) {
        self.runtime = None;
        // The end of a process closes what it left open. What a dead one left is closed by the way
        // in which it died.
        let mut state = self.disk.state();
        if !state.crashed {
            state.tree.close_all();
        }
    }
}
