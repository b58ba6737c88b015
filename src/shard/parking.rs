//! The waiting side of a parked fetch: which of its partitions have moved, and one deadline.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::task::{Poll, Waker};

use crate::base::time::MonotonicNs;
use crate::io;

/// Tells a fetch which of its partitions to read again.
#[derive(Debug, Default)]
pub struct FetchSignal {
    changed: RefCell<Vec<u32>>,
    waker: RefCell<Option<Waker>>,
    cancelled: Cell<bool>,
}

/// Why a parked fetch goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum Woken {
    /// These places have moved, each named once, in order.
    Changed(Vec<u32>),
    /// The deadline has passed.
    DeadlinePassed,
    /// The connection is gone.
    Cancelled,
}

impl FetchSignal {
    /// The partition at `place` has moved.
    pub fn wake(&self, place: u32) {
        self.changed.borrow_mut().push(place);
        self.wake_task();
    }

    /// Nobody waits for the fetch any more.
    pub fn cancel(&self) {
        self.cancelled.set(true);
        self.wake_task();
    }

    fn wake_task(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    fn take_changed(&self) -> Option<Vec<u32>> {
        let mut changed = std::mem::take(&mut *self.changed.borrow_mut());
        changed.sort_unstable();
        changed.dedup();
        (!changed.is_empty()).then_some(changed)
    }

    /// Waits for a move, the deadline or the end of the connection.
    pub async fn wait(&self, deadline: MonotonicNs) -> Woken {
        let mut timer = pin!(io::sleep_until(deadline));
        std::future::poll_fn(|context| {
            if self.cancelled.get() {
                return Poll::Ready(Woken::Cancelled);
            }
            if let Some(changed) = self.take_changed() {
                return Poll::Ready(Woken::Changed(changed));
            }
            if timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(Woken::DeadlinePassed);
            }
            *self.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
