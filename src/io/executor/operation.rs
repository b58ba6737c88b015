//! Operations in flight, seen from the tasks that wait for them. The driver owns the buffers; this
//! table knows who waits, and that nobody does any more.
//!
//! States of a slot: Vacant → Waiting (submitted) → Done (completed) → Vacant (taken), or Waiting
//! → Abandoned (future dropped) → Vacant (completed). A slot's number is never used again before
//! its completion.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::Core;
use super::task::LocalWaker;
use crate::io::driver::{Completion, Handle, Operation, OperationId};

/// What an operation keeps alive until its completion: the owner of the handle that it names.
pub(in crate::io) type Keep = Option<Rc<dyn Any>>;

enum Slot {
    Vacant,
    Waiting(Option<LocalWaker>, Keep),
    Done(Completion),
    Abandoned(Keep),
}

#[derive(Default)]
pub(super) struct OperationTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// What is left to do, outside the table's borrow, after a completion came in.
pub(super) struct Delivered {
    pub(super) waker: Option<LocalWaker>,
    /// A completion that nobody wants; dropping it frees its buffers.
    pub(super) unwanted: Option<Completion>,
    /// Dropped last: may close the handle.
    pub(super) keep: Keep,
}

impl OperationTable {
    pub(super) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn insert(&mut self, keep: Keep) -> OperationId {
        let slot = Slot::Waiting(None, keep);
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            return OperationId(index);
        }
        self.slots.push(slot);
        OperationId(self.slots.len() as u32 - 1)
    }

    pub(super) fn deliver(&mut self, id: OperationId, completion: Completion) -> Delivered {
        let slot = &mut self.slots[id.0 as usize];
        match std::mem::replace(slot, Slot::Vacant) {
            Slot::Waiting(waker, keep) => {
                *slot = Slot::Done(completion);
                Delivered {
                    waker,
                    unwanted: None,
                    keep,
                }
            }
            Slot::Abandoned(keep) => {
                self.free.push(id.0);
                Delivered {
                    waker: None,
                    unwanted: Some(completion),
                    keep,
                }
            }
            Slot::Vacant | Slot::Done(_) => {
                panic!("the driver completed operation {} twice", id.0)
            }
        }
    }

    fn poll(&mut self, id: OperationId, context: &Context<'_>) -> Poll<Completion> {
        let slot = &mut self.slots[id.0 as usize];
        match std::mem::replace(slot, Slot::Vacant) {
            Slot::Done(completion) => {
                self.free.push(id.0);
                Poll::Ready(completion)
            }
            Slot::Waiting(_, keep) => {
                *slot = Slot::Waiting(Some(LocalWaker::of(context)), keep);
                Poll::Pending
            }
            Slot::Vacant | Slot::Abandoned(_) => unreachable!("its future is still alive"),
        }
    }

    /// The future was dropped; answers a completion that had come already.
    fn abandon(&mut self, id: OperationId) -> Option<Completion> {
        let slot = &mut self.slots[id.0 as usize];
        match std::mem::replace(slot, Slot::Vacant) {
            Slot::Done(completion) => {
                self.free.push(id.0);
                Some(completion)
            }
            Slot::Waiting(_, keep) => {
                *slot = Slot::Abandoned(keep);
                None
            }
            Slot::Vacant | Slot::Abandoned(_) => unreachable!("its future was still alive"),
        }
    }
}

/// Waits for one operation. Dropping it abandons the operation and never cancels it.
pub(in crate::io) struct OperationFuture {
    core: Rc<Core>,
    /// Absent once the completion was taken.
    id: Option<OperationId>,
}

impl OperationFuture {
    pub(super) fn submit(core: Rc<Core>, operation: Operation, keep: Keep) -> Self {
        core.note_operation(operation.bytes());
        let id = core.operations.borrow_mut().insert(keep);
        core.driver.borrow_mut().submit(id, operation);
        Self { core, id: Some(id) }
    }
}

impl Future for OperationFuture {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let Some(id) = self.id else {
            panic!("polled after its completion");
        };
        let polled = self.core.operations.borrow_mut().poll(id, context);
        if polled.is_ready() {
            self.id = None;
        }
        polled
    }
}

impl Drop for OperationFuture {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let done = self.core.operations.borrow_mut().abandon(id);
        if let Some(completion) = done {
            self.core.discard(completion);
        }
    }
}

/// An open file or socket of a driver; closed when the last owner and the last operation that
/// names it are gone.
pub(in crate::io) struct OpenHandle {
    core: std::rc::Weak<Core>,
    handle: Handle,
}

impl OpenHandle {
    pub(in crate::io) fn new(core: &Rc<Core>, handle: Handle) -> Rc<Self> {
        Rc::new(Self {
            core: Rc::downgrade(core),
            handle,
        })
    }

    pub(in crate::io) fn handle(&self) -> Handle {
        self.handle
    }

    /// The runtime that it belongs to, unless that has ended.
    pub(in crate::io) fn core(&self) -> Option<Rc<Core>> {
        self.core.upgrade()
    }
}

impl Drop for OpenHandle {
    fn drop(&mut self) {
        // A runtime that has ended has closed everything.
        if let Some(core) = self.core.upgrade() {
            core.driver.borrow_mut().close(self.handle);
        }
    }
}

impl std::fmt::Debug for OpenHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.handle)
    }
}
