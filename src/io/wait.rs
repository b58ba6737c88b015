//! Waiting for a condition of this shard: single-threaded, no allocation while nothing waits and
//! none for a few that wait again and again.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Poll, Waker};

use super::task::sleep_until;
use crate::base::time::MonotonicNs;

/// Tasks that wait for the same state to change.
#[derive(Debug, Default)]
pub struct Waiters {
    wakers: RefCell<Vec<Waker>>,
    /// Memory of the wakers woken last, for those that come next.
    spare: RefCell<Vec<Waker>>,
}

/// Wakers for which memory is kept.
const SPARE_WAKERS_MAX: usize = 64;

impl Waiters {
    /// Lets every waiting task look at its condition again.
    pub fn wake_all(&self) {
        if self.wakers.borrow().is_empty() {
            return;
        }
        let mut wakers = self.wakers.replace(self.spare.take());
        for waker in wakers.drain(..) {
            waker.wake();
        }
        if wakers.capacity() <= SPARE_WAKERS_MAX {
            self.spare.replace(wakers);
        }
    }

    /// Waits until `ready` answers; it is asked at once and after every [`Self::wake_all`].
    pub async fn wait_for<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        std::future::poll_fn(|context| {
            if let Some(answer) = ready() {
                return Poll::Ready(answer);
            }
            self.add(context.waker());
            Poll::Pending
        })
        .await
    }

    /// As [`Self::wait_for`], but gives up with `None` once `deadline` has passed.
    pub async fn wait_until<T>(
        &self,
        deadline: MonotonicNs,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(answer) = ready() {
            return Some(answer);
        }
        let mut timer = pin!(sleep_until(deadline));
        std::future::poll_fn(|context| {
            if let Some(answer) = ready() {
                return Poll::Ready(Some(answer));
            }
            if timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            self.add(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Registers a task once, however often it is polled between two wake-ups.
    fn add(&self, waker: &Waker) {
        let mut wakers = self.wakers.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}

/// Turns in the order of asking: whoever holds a [`Turn`] is alone until it is dropped.
#[derive(Debug, Default)]
pub struct Turns {
    next: Cell<u64>,
    /// Who asked and neither has nor gave up; the front one has the turn.
    queue: RefCell<VecDeque<u64>>,
    waiters: Waiters,
}

/// The right to go on alone.
#[derive(Debug)]
pub struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    /// Waits for the turn.
    pub async fn take(&self) -> Turn<'_> {
        let turn = self.queue_up();
        self.waiters
            .wait_for(|| turn.is_first().then_some(()))
            .await;
        turn
    }

    /// Waits for the turn until `deadline`.
    pub async fn take_until(&self, deadline: MonotonicNs) -> Option<Turn<'_>> {
        let turn = self.queue_up();
        self.waiters
            .wait_until(deadline, || turn.is_first().then_some(()))
            .await?;
        Some(turn)
    }

    /// Whether nobody has or awaits a turn.
    pub fn is_idle(&self) -> bool {
        self.queue.borrow().is_empty()
    }

    fn queue_up(&self) -> Turn<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        self.queue.borrow_mut().push_back(number);
        Turn {
            turns: self,
            number,
        }
    }
}

impl Turn<'_> {
    fn is_first(&self) -> bool {
        self.turns.queue.borrow().front() == Some(&self.number)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let was_first = self.is_first();
        self.turns
            .queue
            .borrow_mut()
            .retain(|number| *number != self.number);
        if was_first {
            self.turns.waiters.wake_all();
        }
    }
}
