//! The simulated disk: what outlives a process, and a power cut. Operations take effect when they
//! complete, in an order that the seed decides; a crash finds some of them under way.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use crate::base::limits::{BLOCK_BYTES, MIB};
use crate::base::random::Random;
use crate::base::time::TimestampMs;
use crate::io::driver::{Completion, Operation, OperationId};

use super::faults::{Fault, FaultEffect, Faults};
use super::trace::Trace;
use super::tree::Tree;

/// How a disk begins.
#[derive(Clone, Copy, Debug)]
pub struct SimDiskOptions {
    /// Size of the file system, bytes.
    pub total_bytes: u64,
    /// The wall clock when the simulation starts.
    pub wall_clock_start: TimestampMs,
    /// One operation in so many stalls for up to 20 ms; 0: none does.
    pub stall_one_in: u64,
}

impl Default for SimDiskOptions {
    fn default() -> Self {
        Self {
            total_bytes: 256 * MIB as u64,
            wall_clock_start: TimestampMs(1_800_000_000_000),
            stall_one_in: 500,
        }
    }
}

/// An operation that was submitted and has not taken effect yet.
pub(super) struct InFlight {
    /// Which process submitted it; what a dead process submitted may still land.
    pub process: u32,
    pub id: OperationId,
    pub operation: Operation,
    /// The tree's sequence when it was submitted: what a flush covers.
    pub begun: u64,
    pub effect: Option<FaultEffect>,
    /// Bytes of a write that have landed already.
    pub written: usize,
    /// Only so many bytes of a dead process's write still land.
    pub limit: usize,
}

/// When an operation is due, and its number in the order of submission.
pub(super) type Due = (u64, u64);

pub(super) struct State {
    pub options: SimDiskOptions,
    pub tree: Tree,
    pub random: Random,
    pub clock_ns: u64,
    pub faults: Faults,
    pub trace: Trace,
    pub in_flight: BTreeMap<Due, InFlight>,
    pub submitted: u64,
    pub process: u32,
    /// Operations that were submitted or took effect: the points at which a crash can happen.
    pub steps: u64,
    pub crash_at: Option<u64>,
    pub crashed: bool,
    pub completed: Vec<(OperationId, Completion)>,
}

/// A handle on a disk; clones are the same disk. Successive [`super::SimRuntime`]s share it.
#[derive(Clone)]
pub struct SimDisk {
    state: Rc<RefCell<State>>,
}

impl SimDisk {
    /// An empty disk. Everything that happens on it follows from `seed` and from what is asked.
    #[must_use]
    pub fn new(options: SimDiskOptions, seed: u64) -> Self {
        let state = State {
            options,
            tree: Tree::new(options.total_bytes),
            random: Random::new(seed),
            clock_ns: 1_000_000_000,
            faults: Faults::default(),
            trace: Trace::default(),
            in_flight: BTreeMap::new(),
            submitted: 0,
            process: 0,
            steps: 0,
            crash_at: None,
            crashed: false,
            completed: Vec::new(),
        };
        Self {
            state: Rc::new(RefCell::new(state)),
        }
    }

    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    fn look(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    /// The process on this disk dies after `steps` more steps (an operation submitted or taking
    /// effect is one). Follow with [`Self::power_cut`] or [`Self::kill`].
    pub fn crash_after(&self, steps: u64) {
        let mut state = self.state();
        state.crash_at = Some(state.steps + steps);
    }

    /// No crash any more.
    pub fn never_crash(&self) {
        self.state().crash_at = None;
    }

    /// Whether the process has died and nothing was done about it yet.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.look().crashed
    }

    /// The power fails: of what no flush vouches for a part that `seed` chooses is left, by
    /// sectors, sizes, allocations and names.
    pub fn power_cut(&self, seed: u64) {
        self.state().power_cut(seed);
    }

    /// The process dies by SIGKILL: what it had submitted may still land, wholly, in part or not
    /// at all, during the next 50 ms; until then the locks of those descriptors are held.
    pub fn kill(&self, seed: u64) {
        self.state().kill(seed);
    }

    /// Arms a fault.
    pub fn arm(&self, fault: Fault) {
        self.state().faults.arm(fault);
    }

    /// Takes back all faults that have not struck.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// How many operations were hit by a fault so far.
    #[must_use]
    pub fn fault_hits(&self) -> u64 {
        self.look().faults.hits
    }

    /// Another tenant takes room until only `bytes` are available (none with `None`).
    pub fn leave_available(&self, bytes: Option<u64>) {
        let tree = &mut self.state().tree;
        tree.foreign_bytes = 0;
        if let Some(bytes) = bytes {
            tree.foreign_bytes = tree.available_bytes().saturating_sub(bytes);
        }
    }

    /// Bytes that can still be allocated.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.look().tree.available_bytes()
    }

    /// Flips one bit of the byte at `position`, on storage and for readers.
    pub fn flip_bit(&self, path: &str, position: u64, bit: u32) -> io::Result<()> {
        let flip = |block: &mut [u8; BLOCK_BYTES], at: usize| block[at] ^= 1 << (bit % 8);
        self.state().tree.damage(path, position, &flip)
    }

    /// Zeroes the 4 KiB block that holds `position`, on storage and for readers.
    pub fn zero_block(&self, path: &str, position: u64) -> io::Result<()> {
        let zero = |block: &mut [u8; BLOCK_BYTES], _: usize| block.fill(0);
        self.state().tree.damage(path, position, &zero)
    }

    /// The whole of a file as a reader would see it now.
    pub fn contents(&self, path: &str) -> io::Result<Vec<u8>> {
        self.state().tree.contents(path)
    }

    /// The names in a directory, and whether each is a directory.
    pub fn list(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        self.look().tree.list(path)
    }

    /// Descriptors that the process has open.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.look().tree.open_count()
    }

    /// Steps so far: see [`Self::crash_after`].
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.look().steps
    }

    /// Lets simulated time pass while no process runs.
    pub fn pass_time(&self, time: Duration) {
        let mut state = self.state();
        state.clock_ns += u64::try_from(time.as_nanos()).unwrap_or(0);
        state.run_due();
        state.completed.clear();
    }

    /// Frees what the disk holds; nothing can use it afterwards.
    pub fn forget_everything(&self) {
        let mut state = self.state();
        state.in_flight.clear();
        state.tree = Tree::new(0);
    }

    /// A hash of every operation so far, its bytes, its time and its result.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.look().trace.hash()
    }

    /// Keeps the last lines of the trace from now on, for reading.
    pub fn keep_trace(&self) {
        self.state().trace.keep_lines();
    }

    /// The last lines of the trace; see [`Self::keep_trace`].
    #[must_use]
    pub fn trace_lines(&self) -> Vec<String> {
        self.look().trace.lines()
    }
}
