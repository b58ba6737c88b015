//! "Something has changed": wakes one or all of those who wait.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::wait_list::WaitList;
use crate::io::executor::LocalWaker;

/// A signal without a value. Waiting begins with the call of [`Notify::notified`], not with the
/// first poll: take it, then look at the condition, then await it, and no signal is missed.
#[derive(Debug, Default)]
pub struct Notify {
    waiting: WaitList,
    /// A `notify_one` that found nobody waiting.
    kept: Cell<bool>,
}

impl Notify {
    /// A signal that nobody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            waiting: WaitList::new(),
            kept: Cell::new(false),
        }
    }

    /// Wakes all who wait now; leaves nothing for those who come later.
    pub fn notify_all(&self) {
        self.waiting.wake_all();
    }

    /// Wakes the one who has waited longest; when nobody waits, the next one to come does not
    /// wait. Several calls while nobody waits count as one.
    pub fn notify_one(&self) {
        if !self.waiting.wake_first() {
            self.kept.set(true);
        }
    }

    /// Waits for the next signal, from now on.
    pub fn notified(&self) -> Notified<'_> {
        if self.kept.replace(false) {
            return Notified {
                notify: self,
                number: None,
                holds_one: true,
            };
        }
        Notified {
            notify: self,
            number: Some(self.waiting.join()),
            holds_one: false,
        }
    }
}

/// See [`Notify::notified`].
#[derive(Debug)]
pub struct Notified<'a> {
    notify: &'a Notify,
    /// Its place in the list; absent when it need not wait.
    number: Option<u64>,
    /// It took a kept signal and has not told anyone yet.
    holds_one: bool,
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(number) = self.number {
            let waiting = &self.notify.waiting;
            if waiting.is_waiting(number) && waiting.wait(number, LocalWaker::of(context)) {
                return Poll::Pending;
            }
        }
        self.number = None;
        self.holds_one = false;
        Poll::Ready(())
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        // Woken but never polled: a `notify_one` must not be lost with it. After `notify_all`
        // this wakes one waiter too many, which is harmless.
        let woken_unseen = self
            .number
            .is_some_and(|number| !self.notify.waiting.leave(number));
        if woken_unseen || self.holds_one {
            self.notify.notify_one();
        }
    }
}
