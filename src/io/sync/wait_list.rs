//! Waiting tasks in order of arrival. A waiter that gives up leaves the list at once, so that a
//! signal which never comes does not gather the remains of all who ever waited for it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::io::executor::LocalWaker;

#[derive(Debug, Default)]
pub(super) struct WaitList {
    next: Cell<u64>,
    /// By arrival; no waker before the first poll.
    waiting: RefCell<BTreeMap<u64, Option<LocalWaker>>>,
}

impl WaitList {
    pub(super) const fn new() -> Self {
        Self {
            next: Cell::new(0),
            waiting: RefCell::new(BTreeMap::new()),
        }
    }

    /// Joins the end of the list.
    pub(super) fn join(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.waiting.borrow_mut().insert(number, None);
        number
    }

    /// Stores a waiter's waker; false when it was woken meanwhile.
    pub(super) fn wait(&self, number: u64, waker: LocalWaker) -> bool {
        match self.waiting.borrow_mut().get_mut(&number) {
            Some(place) => {
                *place = Some(waker);
                true
            }
            None => false,
        }
    }

    /// Leaves the list; false when it was woken already.
    pub(super) fn leave(&self, number: u64) -> bool {
        self.waiting.borrow_mut().remove(&number).is_some()
    }

    pub(super) fn is_waiting(&self, number: u64) -> bool {
        self.waiting.borrow().contains_key(&number)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// The longest waiting.
    pub(super) fn first(&self) -> Option<u64> {
        self.waiting.borrow().keys().next().copied()
    }

    /// Takes the longest waiting off the list and wakes it; false when nobody waits.
    pub(super) fn wake_first(&self) -> bool {
        let first = self.waiting.borrow_mut().pop_first();
        match first {
            Some((_, waker)) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                true
            }
            None => false,
        }
    }

    /// Takes all off the list and wakes them.
    pub(super) fn wake_all(&self) {
        let all = self.waiting.take();
        for waker in all.into_values().flatten() {
            waker.wake();
        }
    }

    /// Wakes the longest waiting and leaves it on the list, to look at its condition.
    pub(super) fn stir_first(&self) {
        let waker = self
            .waiting
            .borrow_mut()
            .first_entry()
            .and_then(|mut first| first.get_mut().take());
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
