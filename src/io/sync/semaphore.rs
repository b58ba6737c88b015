//! Permits of one executor: bounds bytes or operations under way, first come first served.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use super::wait_list::WaitList;
use crate::io::executor::LocalWaker;

#[derive(Debug)]
struct State {
    free: Cell<usize>,
    waiting: WaitList,
}

impl State {
    fn give(&self, count: usize) {
        self.free.set(self.free.get().saturating_add(count));
        self.waiting.stir_first();
    }

    fn take(&self, count: usize) -> bool {
        let left = self.free.get().checked_sub(count);
        if let Some(left) = left {
            self.free.set(left);
        }
        left.is_some()
    }
}

/// A number of permits; clones share them.
#[derive(Clone, Debug)]
pub struct LocalSemaphore {
    state: Rc<State>,
}

/// Permits held; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    state: Rc<State>,
    count: usize,
}

/// A waiter that gives up leaves the list, and lets the next one look.
struct Place<'a> {
    state: &'a State,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.state.waiting.leave(self.number);
        self.state.waiting.stir_first();
    }
}

impl LocalSemaphore {
    /// A semaphore with `permits` to give.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self {
            state: Rc::new(State {
                free: Cell::new(permits),
                waiting: WaitList::new(),
            }),
        }
    }

    /// Permits free now.
    #[must_use]
    pub fn available(&self) -> usize {
        self.state.free.get()
    }

    /// Takes `count` permits, waiting in order until they are free: a large request is not
    /// overtaken by small ones. Waits for ever if there are never that many.
    pub async fn acquire(&self, count: usize) -> Permit {
        if let Some(permit) = self.try_acquire(count) {
            return permit;
        }
        let place = Place {
            state: &self.state,
            number: self.state.waiting.join(),
        };
        poll_fn(|context| {
            let waiting = &self.state.waiting;
            if waiting.first() == Some(place.number) && self.state.take(count) {
                return Poll::Ready(());
            }
            waiting.wait(place.number, LocalWaker::of(context));
            Poll::Pending
        })
        .await;
        drop(place);
        self.permit(count)
    }

    /// Takes `count` permits if they are free and nobody waits.
    #[must_use]
    pub fn try_acquire(&self, count: usize) -> Option<Permit> {
        let free = self.state.waiting.is_empty() && self.state.take(count);
        free.then(|| self.permit(count))
    }

    /// Adds permits for good.
    pub fn add(&self, count: usize) {
        self.state.give(count);
    }

    fn permit(&self, count: usize) -> Permit {
        Permit {
            state: Rc::clone(&self.state),
            count,
        }
    }
}

impl Permit {
    /// How many permits it holds.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Gives back all but `count` of them; asserts that it holds as many.
    pub fn shrink(&mut self, count: usize) {
        assert!(count <= self.count, "a permit cannot grow");
        self.state.give(self.count - count);
        self.count = count;
    }

    /// Keeps the permits taken for good.
    pub fn forget(mut self) {
        self.count = 0;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.count > 0 {
            self.state.give(self.count);
        }
    }
}
