//! The shard's request budget as its connections share it: whoever finds none waits its turn.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

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
    /// Tasks that wait for memory.
    short: Cell<usize>,
    /// Those that wait for an answer's.
    answers_short: Cell<usize>,
    /// Who is told that somebody waits.
    relief: RefCell<Option<Waker>>,
}

/// Counts a waiting task for as long as it waits.
struct Shortage<'a> {
    inner: &'a Inner,
    is_of_answer: bool,
}

impl<'a> Shortage<'a> {
    fn begin(inner: &'a Inner, is_of_answer: bool) -> Self {
        inner.short.set(inner.short.get() + 1);
        let answers = inner.answers_short.get() + usize::from(is_of_answer);
        inner.answers_short.set(answers);
        if let Some(waker) = inner.relief.borrow_mut().take() {
            waker.wake();
        }
        Self {
            inner,
            is_of_answer,
        }
    }
}

impl Drop for Shortage<'_> {
    fn drop(&mut self) {
        let inner = self.inner;
        inner.short.set(inner.short.get() - 1);
        let answers = inner.answers_short.get() - usize::from(self.is_of_answer);
        inner.answers_short.set(answers);
    }
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
                short: Cell::new(0),
                answers_short: Cell::new(0),
                relief: RefCell::default(),
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

    /// Bytes of the common part.
    #[must_use]
    pub fn common_bytes_max(&self) -> usize {
        self.inner.budget.borrow().common_bytes_max()
    }

    /// Bytes of the common part in use.
    #[must_use]
    pub fn common_bytes_used(&self) -> usize {
        self.inner.budget.borrow().common_bytes_used()
    }

    /// Whether somebody waits for memory.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.inner.short.get() > 0
    }

    /// Whether somebody waits for an answer's memory.
    #[must_use]
    pub fn is_short_for_answers(&self) -> bool {
        self.inner.answers_short.get() > 0
    }

    /// Ready when somebody waits for memory. One task a shard may wait for this.
    pub fn poll_short(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_short() {
            return Poll::Ready(());
        }
        *self.inner.relief.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
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
        let inner = Rc::clone(&self.budget.inner);
        let _shortage = Shortage::begin(&inner, false);
        std::future::poll_fn(|context| {
            if self.try_take(bytes) {
                return Poll::Ready(());
            }
            let mut waiting = inner.waiting.borrow_mut();
            waiting.push_back(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Takes `bytes` more from the common part, now or not at all.
    pub fn try_take_common(&mut self, bytes: usize) -> bool {
        let mut budget = self.budget.inner.budget.borrow_mut();
        budget.take_common(&mut self.held, bytes)
    }

    /// Takes up to `bytes` for an answer, waiting for its share or the deadline; answers what it
    /// got.
    pub async fn take_for_answer(&mut self, bytes: usize, deadline: MonotonicNs) -> usize {
        let taken = self
            .wait_for_answer(deadline, |budget, held| budget.take_for_answer(held, bytes))
            .await;
        taken.unwrap_or(0)
    }

    /// Takes `bytes` for an answer of one batch, waiting for them or the deadline.
    pub async fn take_batch_answer(&mut self, bytes: usize, deadline: MonotonicNs) -> bool {
        let take = |budget: &mut Budget, held: &mut Held| {
            budget.take_batch_answer(held, bytes).then_some(())
        };
        self.wait_for_answer(deadline, take).await.is_some()
    }

    async fn wait_for_answer<T>(
        &mut self,
        deadline: MonotonicNs,
        take: impl Fn(&mut Budget, &mut Held) -> Option<T>,
    ) -> Option<T> {
        let inner = Rc::clone(&self.budget.inner);
        let taken = take(&mut inner.budget.borrow_mut(), &mut self.held);
        if taken.is_some() {
            return taken;
        }
        let _shortage = Shortage::begin(&inner, true);
        let mut timer = pin!(io::sleep_until(deadline));
        std::future::poll_fn(|context| {
            let taken = take(&mut inner.budget.borrow_mut(), &mut self.held);
            if taken.is_some() || timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(taken);
            }
            inner
                .waiting
                .borrow_mut()
                .push_back(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Holds `bytes` for an answer, no more and no less. False, and unchanged, when that is more
    /// than there is.
    pub fn settle(&mut self, bytes: usize) -> bool {
        let held = self.held.common_bytes();
        if held >= bytes {
            self.shrink(bytes);
            return true;
        }
        if self.held.is_overdrawn() {
            self.cover(bytes);
            return true;
        }
        let mut budget = self.budget.inner.budget.borrow_mut();
        budget.take_batch_answer(&mut self.held, bytes - held)
    }

    /// Holds `bytes` if there is as much, and then needs no right to overdraw any longer.
    pub fn cover(&mut self, bytes: usize) {
        let missing = bytes.saturating_sub(self.held.common_bytes());
        if self.try_take_common(missing) {
            self.shrink(bytes);
        }
    }

    /// Whether it has the right to take more than there is, which one answer has at a time.
    #[must_use]
    pub fn is_overdrawn(&self) -> bool {
        self.held.is_overdrawn()
    }

    /// Gives back what exceeds `bytes`, and the rights beyond the common part.
    pub fn shrink(&mut self, bytes: usize) {
        let excess = self.held.common_bytes().saturating_sub(bytes);
        drop(self.split_common(excess));
        self.give_back_rights();
    }

    /// Gives back the kept share and the right to overdraw.
    pub fn give_back_rights(&mut self) {
        drop(Self {
            budget: self.budget.clone(),
            held: self.held.split_rights(),
        });
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
