//! One value from one task to another of the same executor.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::io::executor::LocalWaker;

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    waker: Option<LocalWaker>,
    sender_gone: bool,
}

/// The sending end; dropping it without a value answers `None`.
#[derive(Debug)]
pub struct OneshotSender<T> {
    state: Rc<RefCell<State<T>>>,
}

/// A future of the value, or of `None` when the sender was dropped.
#[derive(Debug)]
pub struct OneshotReceiver<T> {
    state: Rc<RefCell<State<T>>>,
}

/// A slot for one value.
#[must_use]
pub fn oneshot<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let state = Rc::new(RefCell::new(State {
        value: None,
        waker: None,
        sender_gone: false,
    }));
    let sender = OneshotSender {
        state: Rc::clone(&state),
    };
    (sender, OneshotReceiver { state })
}

impl<T> OneshotSender<T> {
    /// Hands over the value; gives it back when nobody waits any more.
    pub fn send(self, value: T) -> Result<(), T> {
        if self.is_abandoned() {
            return Err(value);
        }
        self.state.borrow_mut().value = Some(value);
        Ok(())
    }

    /// Whether the receiver is gone.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        Rc::strong_count(&self.state) == 1
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.state.borrow_mut();
            state.sender_gone = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.state.borrow_mut();
        if state.sender_gone {
            return Poll::Ready(state.value.take());
        }
        state.waker = Some(LocalWaker::of(context));
        Poll::Pending
    }
}
