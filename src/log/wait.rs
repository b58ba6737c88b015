//! Waiting for a condition of this shard: single-threaded, no allocation while nothing waits.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::task::{Poll, Waker};

use crate::base::time::MonotonicNs;
use crate::io;

/// Tasks that wait for the same state to change.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    wakers: RefCell<Vec<Waker>>,
}

impl Waiters {
    /// Lets every waiting task look at its condition again.
    pub(crate) fn wake_all(&self) {
        if self.wakers.borrow().is_empty() {
            return;
        }
        let wakers = std::mem::take(&mut *self.wakers.borrow_mut());
        for waker in wakers {
            waker.wake();
        }
    }

    /// Waits until `ready` answers; it is asked at once and after every [`Self::wake_all`].
    pub(crate) async fn wait_for<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        std::future::poll_fn(|context| {
            if let Some(answer) = ready() {
                return Poll::Ready(answer);
            }
            self.add(context.waker());
            Poll::Pending
        })
        .await
    }

    #[allow(dead_code)]
    /// As [`Self::wait_for`], but gives up with `None` once `deadline` has passed.
    pub(crate) async fn wait_until<T>(
        &self,
        deadline: MonotonicNs,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(answer) = ready() {
            return Some(answer);
        }
        let mut timer = pin!(io::sleep_until(deadline));
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
