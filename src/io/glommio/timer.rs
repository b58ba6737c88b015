//! Wakers that stay on their thread, and timers.

use std::cell::RefCell;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use super::Core;
use crate::base::time::MonotonicNs;

/// A waker that cannot leave its thread, by type. glommio's own waker already knows the way.
#[derive(Debug)]
pub(in crate::io) struct LocalWaker {
    waker: Waker,
    not_send: PhantomData<Rc<()>>,
}

impl LocalWaker {
    pub(in crate::io) fn of(context: &Context<'_>) -> Self {
        Self {
            waker: context.waker().clone(),
            not_send: PhantomData,
        }
    }

    pub(in crate::io) fn wake(self) {
        self.waker.wake();
    }
}

/// A timer that is set; dropping it removes it.
pub(in crate::io) struct Timer {
    core: Rc<Core>,
    deadline: MonotonicNs,
    timer: RefCell<::glommio::timer::Timer>,
}

impl Timer {
    pub(super) fn new(core: Rc<Core>, deadline: MonotonicNs, waker: LocalWaker) -> Self {
        core.timers.set(core.timers.get() + 1);
        let left = deadline.since(core.now());
        let timer = RefCell::new(::glommio::timer::Timer::new(left));
        let timer = Self {
            core,
            deadline,
            timer,
        };
        timer.arm(waker);
        timer
    }

    /// Replaces the waker. Set anew also for the same waker: it may have fired a little early.
    pub(in crate::io) fn set_waker(&self, waker: LocalWaker) {
        let left = self.deadline.since(self.core.now());
        self.timer.borrow_mut().reset(left);
        self.arm(waker);
    }

    /// Polls glommio's timer, once: a second poll would set a second timer.
    fn arm(&self, waker: LocalWaker) {
        let mut timer = self.timer.borrow_mut();
        let polled = Pin::new(&mut *timer).poll(&mut Context::from_waker(&waker.waker));
        if polled.is_ready() {
            waker.wake();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.core.timers.set(self.core.timers.get() - 1);
    }
}
