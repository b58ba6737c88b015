//! The shard's request budget as its connections share it: whoever finds none waits its turn.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::budget::{Budget, Held};
use crate::base::time::MonotonicNs;
use crate::io;

/// One shard's budget; clones share it.
#[derive(Clone, Debug)]
pub struct SharedBudget {
    inner: Rc<Inner>,
}

#[derive(Debug)]
struct Inner {
    budget: RefCell<Budget>,
    waiting: RefCell<VecDeque<Waker>>,
}

/// What is held; goes back to the budget when dropped.
#[derive(Debug)]
pub struct Credit {
    budget: SharedBudget,
    held: Held,
}

impl SharedBudget {
    /// Shares `budget`.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self {
            inner: Rc::new(Inner {
                budget: RefCell::new(budget),
                waiting: RefCell::default(),
            }),
        }
    }

    /// Nothing yet.
    #[must_use]
    pub fn credit(&self) -> Credit {
        Credit {
            budget: self.clone(),
            held: Held::default(),
        }
    }

    /// The largest frame that can always be finished.
    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        self.inner.budget.borrow().frame_bytes_max()
    }

    /// Bytes of the common part in use.
    #[must_use]
    pub fn common_bytes_used(&self) -> usize {
        self.inner.budget.borrow().common_bytes_used()
    }

    /// Whether somebody waits for memory.
    #[must_use]
    pub fn is_short(&self) -> bool {
        !self.inner.waiting.borrow().is_empty()
    }

    fn wake_waiting(&self) {
        if self.inner.waiting.borrow().is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut *self.inner.waiting.borrow_mut());
        for waker in waiting {
            waker.wake();
        }
    }
}

impl Credit {
    /// Takes `bytes` more, now or not at all.
    pub fn try_take(&mut self, bytes: usize) -> bool {
        self.budget
            .inner
            .budget
            .borrow_mut()
            .take(&mut self.held, bytes)
    }

    /// Takes `bytes` more, waiting for them.
    pub async fn take(&mut self, bytes: usize) {
        if self.try_take(bytes) {
            return;
        }
        std::future::poll_fn(|context| {
            if self.try_take(bytes) {
                return Poll::Ready(());
            }
            let mut waiting = self.budget.inner.waiting.borrow_mut();
            waiting.push_back(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Takes up to `bytes` from the common part, waiting until there are at least `least` or the
    /// deadline has passed; answers what it got.
    pub async fn take_some(&mut self, least: usize, bytes: usize, deadline: MonotonicNs) -> usize {
        let mut timer = pin!(io::sleep_until(deadline));
        std::future::poll_fn(|context| {
            let taken = {
                let mut budget = self.budget.inner.budget.borrow_mut();
                if budget.common_bytes_free() >= least {
                    Some(budget.take_up_to(&mut self.held, bytes))
                } else {
                    None
                }
            };
            if let Some(taken) = taken {
                return Poll::Ready(taken);
            }
            if timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(0);
            }
            let mut waiting = self.budget.inner.waiting.borrow_mut();
            waiting.push_back(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Gives back what exceeds `bytes`, or takes what is missing as far as there is some.
    pub fn settle(&mut self, bytes: usize) {
        let held = self.held.common_bytes();
        if held > bytes {
            drop(self.split_common(held - bytes));
        } else {
            let mut budget = self.budget.inner.budget.borrow_mut();
            budget.take_up_to(&mut self.held, bytes - held);
        }
    }

    fn split_common(&mut self, bytes: usize) -> Self {
        Self {
            budget: self.budget.clone(),
            held: self.held.split_common(bytes),
        }
    }

    /// Takes over what `other` holds.
    pub fn absorb(&mut self, mut other: Self) {
        self.held.merge(std::mem::take(&mut other.held));
    }

    /// Bytes held from the common part.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.held.common_bytes()
    }

    /// Whether this is the one frame that is finished from the kept share.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.held.is_kept()
    }

    /// Splits off what a finished frame of `bytes` holds.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        Self {
            budget: self.budget.clone(),
            held: self.held.split(bytes),
        }
    }
}

impl Drop for Credit {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        if held == Held::default() {
            return;
        }
        self.budget.inner.budget.borrow_mut().give_back(held);
        self.budget.wake_waiting();
    }
}
