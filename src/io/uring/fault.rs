//! Where tests put the kernel's bad days: an operation is made shorter, or answered with an error
//! in the kernel's place, just before it would enter the ring.

use std::fmt;

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
