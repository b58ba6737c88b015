//! A bounded queue between tasks of one executor.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use super::wait_list::WaitList;
use crate::io::executor::LocalWaker;

#[derive(Debug)]
struct State<T> {
    items: RefCell<VecDeque<T>>,
    len_max: usize,
    closed: Cell<bool>,
    poppers: WaitList,
    pushers: WaitList,
}

/// First in, first out; clones share it.
#[derive(Debug)]
pub struct LocalQueue<T> {
    state: Rc<State<T>>,
}

impl<T> Clone for LocalQueue<T> {
    fn clone(&self) -> Self {
        Self {
            state: Rc::clone(&self.state),
        }
    }
}

/// Leaves its list when dropped, and lets the next one look.
struct Place<'a> {
    list: &'a WaitList,
    number: u64,
}

impl<'a> Place<'a> {
    fn new(list: &'a WaitList) -> Self {
        let number = list.join();
        Self { list, number }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.list.leave(self.number);
        self.list.stir_first();
    }
}

impl<T> LocalQueue<T> {
    /// An empty queue for at most `len_max` items.
    #[must_use]
    pub fn new(len_max: usize) -> Self {
        Self {
            state: Rc::new(State {
                items: RefCell::default(),
                len_max,
                closed: Cell::new(false),
                poppers: WaitList::new(),
                pushers: WaitList::new(),
            }),
        }
    }

    /// Items queued now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.items.borrow().len()
    }

    /// Whether nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: nothing more is taken in; what is queued can still be popped.
    pub fn close(&self) {
        self.state.closed.set(true);
        self.state.poppers.wake_all();
        self.state.pushers.wake_all();
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.closed.get()
    }

    /// Queues `item`; gives it back when the queue is full or closed.
    pub fn try_push(&self, item: T) -> Result<(), T> {
        if self.is_closed() || self.len() >= self.state.len_max {
            return Err(item);
        }
        self.state.items.borrow_mut().push_back(item);
        self.state.poppers.stir_first();
        Ok(())
    }

    /// Queues `item`, waiting in order for room; gives it back when the queue is closed.
    pub async fn push(&self, item: T) -> Result<(), T> {
        let mut item = item;
        if self.state.pushers.is_empty() {
            match self.try_push(item) {
                Ok(()) => return Ok(()),
                Err(back) => item = back,
            }
        }
        let place = Place::new(&self.state.pushers);
        poll_fn(|context| {
            let has_turn = self.state.pushers.first() == Some(place.number);
            if self.is_closed() || (has_turn && self.len() < self.state.len_max) {
                return Poll::Ready(());
            }
            self.state
                .pushers
                .wait(place.number, LocalWaker::of(context));
            Poll::Pending
        })
        .await;
        let pushed = self.try_push(item);
        drop(place);
        pushed
    }

    /// The oldest item, if there is one.
    #[must_use]
    pub fn try_pop(&self) -> Option<T> {
        let item = self.state.items.borrow_mut().pop_front();
        if item.is_some() {
            self.state.pushers.stir_first();
        }
        item
    }

    /// The oldest item, waiting for one in order; `None` when the queue is closed and empty.
    pub async fn pop(&self) -> Option<T> {
        if self.state.poppers.is_empty()
            && let Some(item) = self.try_pop()
        {
            return Some(item);
        }
        let place = Place::new(&self.state.poppers);
        poll_fn(|context| {
            // Closing took everyone off the list: whoever looks first is served.
            let has_turn = self.is_closed() || self.state.poppers.first() == Some(place.number);
            if has_turn && let Some(item) = self.try_pop() {
                return Poll::Ready(Some(item));
            }
            if self.is_closed() && self.is_empty() {
                return Poll::Ready(None);
            }
            self.state
                .poppers
                .wait(place.number, LocalWaker::of(context));
            Poll::Pending
        })
        .await
    }
}
