//! Where tests put the kernel's bad days: an operation is made shorter, or answered with an error
//! in the kernel's place, just before it would enter the ring.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::ids::ShardId;

/// Kinds of operations that faults may be injected into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A file read.
    Read,
    /// A file write.
    Write,
    /// A flush.
    Sync,
    /// A preallocation.
    Preallocate,
    /// An accept.
    Accept,
    /// A connect.
    Connect,
    /// A receive.
    Receive,
    /// A send.
    Send,
}

/// An operation, or what is left of it, on its way into the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPoint {
    /// What it is.
    pub kind: OperationKind,
    /// Bytes that it would transfer at most; 0 for those that transfer none.
    pub len: usize,
    /// Whether it is a write that ends only on stable storage.
    pub is_stable: bool,
    /// The descriptor of a file, whose path the system tells; -1 for what is none.
    pub file: i32,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Goes on unharmed.
    None,
    /// Transfers at most so many bytes (at least one). For direct I/O a multiple of the block.
    Shorten(usize),
    /// Never reaches the kernel; fails with this errno.
    Fail(i32),
    /// Enters the ring that much later; not asked about again.
    Delay(Duration),
}

/// Decides about each operation that enters the ring, retries and continuations included.
pub struct FaultHook(Box<dyn FnMut(FaultPoint) -> Fault + Send>);

impl FaultHook {
    /// A hook that asks `decide`.
    pub fn new(decide: impl FnMut(FaultPoint) -> Fault + Send + 'static) -> Self {
        Self(Box::new(decide))
    }

    pub(super) fn ask(&mut self, point: FaultPoint) -> Fault {
        (self.0)(point)
    }
}

impl fmt::Debug for FaultHook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FaultHook")
    }
}

type MakeHook = dyn Fn(ShardId) -> FaultHook + Send + Sync;

/// Makes a hook for each shard of a broker.
#[derive(Clone)]
pub struct ShardFaults(Arc<MakeHook>);

impl ShardFaults {
    /// Asks `make` as each shard starts. The hook runs on its shard's thread: one that sleeps makes
    /// the shard stand still.
    pub fn new(make: impl Fn(ShardId) -> FaultHook + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// The hook of one shard.
    #[must_use]
    pub fn of(&self, shard: ShardId) -> FaultHook {
        (self.0)(shard)
    }
}

impl fmt::Debug for ShardFaults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ShardFaults")
    }
}
