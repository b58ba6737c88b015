//! The waiting side of a parked fetch: which of its partitions have moved, and one deadline.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::task::{Poll, Waker};

use crate::base::time::MonotonicNs;
use crate::io;
use crate::metrics::{Stage, StageTimes};

/// Tells a fetch which of its partitions to read again.
#[derive(Debug, Default)]
pub struct FetchSignal {
    changed: RefCell<Vec<u32>>,
    waker: RefCell<Option<Waker>>,
    cancelled: Cell<bool>,
    /// When the first of those in `changed` had moved.
    woken_at: Cell<MonotonicNs>,
    waited: Cell<StageTimes>,
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
    pub fn wake(&self, place: u32, moved_at: MonotonicNs) {
        let mut changed = self.changed.borrow_mut();
        if changed.is_empty() {
            self.woken_at.set(moved_at);
        }
        changed.push(place);
        drop(changed);
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
        let parked_at = io::now();
        let woken = self.wait_untimed(deadline).await;
        let due_at = match &woken {
            Woken::Changed(_) => self.woken_at.get(),
            Woken::DeadlinePassed => deadline,
            Woken::Cancelled => io::now(),
        };
        // The client asked for the wait until then, and for nothing after.
        let due_at = due_at.max(parked_at).min(io::now());
        let mut waited = self.waited.get();
        waited.add(Stage::Park, due_at.since(parked_at));
        waited.add(Stage::Queue, io::now().since(due_at));
        self.waited.set(waited);
        woken
    }

    /// What was waited for since the last call.
    pub fn take_waited(&self) -> StageTimes {
        self.waited.take()
    }

    async fn wait_untimed(&self, deadline: MonotonicNs) -> Woken {
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
