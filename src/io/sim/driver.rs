//! The driver of a simulated process: its clock is the disk's, and moves only when it waits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::time::{MonotonicNs, TimestampMs};
use crate::io::driver::{Completion, Driver, Handle, Operation, OperationId, Unpark, Wait};

use super::disk::SimDisk;
use super::tree::DescriptorId;

/// What one look at completions costs: time passes also for a task that only yields.
const TURN_NS: u64 = 1_000;

/// What a crash unwinds with, out of [`SimDriver::turn`] to [`super::SimRuntime::block_on`].
pub(super) struct CrashToken;

/// One process on a simulated disk.
pub(super) struct SimDriver {
    disk: SimDisk,
    process: u32,
    unparked: Arc<Unparked>,
}

struct Unparked(AtomicBool);

impl Unpark for Unparked {
    fn unpark(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl SimDriver {
    pub(super) fn new(disk: &SimDisk) -> Self {
        let process = disk.state().process;
        Self {
            disk: disk.clone(),
            process,
            unparked: Arc::new(Unparked(AtomicBool::new(false))),
        }
    }
}

impl Driver for SimDriver {
    fn now(&self) -> MonotonicNs {
        MonotonicNs(self.disk.state().clock_ns)
    }

    fn wall_clock(&self) -> TimestampMs {
        let state = self.disk.state();
        let passed = i64::try_from(state.clock_ns / 1_000_000).unwrap_or(i64::MAX);
        TimestampMs(state.options.wall_clock_start.0.saturating_add(passed))
    }

    fn submit(&mut self, id: OperationId, operation: Operation) {
        self.disk.state().submit(self.process, id, operation);
    }

    fn turn(&mut self, wait: Wait, completed: &mut Vec<(OperationId, Completion)>) {
        let mut state = self.disk.state();
        state.clock_ns += TURN_NS;
        loop {
            state.run_due();
            if state.crashed {
                drop(state);
                // No message and no hook: this is how a simulated process dies.
                std::panic::resume_unwind(Box::new(CrashToken));
            }
            completed.append(&mut state.completed);
            let woken = self.unparked.0.swap(false, Ordering::SeqCst);
            if woken || !completed.is_empty() || wait == Wait::Poll {
                return;
            }
            let next = state.next_due_ns();
            let until = match wait {
                Wait::Until(point) => Some(point.0),
                _ => None,
            };
            if until.is_some_and(|until| until <= state.clock_ns) {
                return;
            }
            let Some(next) = next.into_iter().chain(until).min() else {
                let lines = state.trace.lines().join("\n");
                drop(state);
                panic!("every task waits and nothing is under way; the trace:\n{lines}");
            };
            state.clock_ns = state.clock_ns.max(next);
        }
    }

    fn close(&mut self, handle: Handle) {
        let mut state = self.disk.state();
        if state.process == self.process && !state.crashed {
            state.tree.close(DescriptorId(handle.0));
        }
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.unparked.clone()
    }

    /// A process that ends in peace waits for what it submitted; a dead one leaves it behind.
    fn shutdown(&mut self, completed: &mut Vec<(OperationId, Completion)>) {
        let mut state = self.disk.state();
        while !state.crashed && state.process == self.process {
            let Some(next) = state.next_due_ns() else {
                break;
            };
            state.clock_ns = state.clock_ns.max(next);
            state.run_due();
        }
        if !state.crashed && state.process == self.process {
            completed.append(&mut state.completed);
        }
    }

    fn open_handles(&self) -> usize {
        self.disk.open_count()
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn listen(
        &mut self,
        _address: SocketAddr,
        _backlog: u32,
    ) -> std::io::Result<(Handle, SocketAddr)> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
