//! A one-shot answer across executors: whoever serves a message holds the sender, the task that
//! asked awaits the receiver.

use std::cell::UnsafeCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use super::atomic_waker::AtomicWaker;

/// The sender still has it.
const OPEN: u8 = 0;
/// The value is there and belongs to the receiver.
const SENT: u8 = 1;
/// The sender is gone without a value, or the receiver took it.
const EMPTY: u8 = 2;

// Legal transitions: OPEN → SENT → EMPTY, OPEN → EMPTY.

struct Shared<T> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
    waker: AtomicWaker,
}

// SAFETY: the value is written by the sender while OPEN and read by the receiver once SENT.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

/// The answering end; may go to any thread. Dropping it without an answer answers `None`.
pub struct ReplySender<T> {
    shared: Arc<Shared<T>>,
}

/// The asking end: a future of `Some(answer)`, or `None` when the sender was dropped.
pub struct ReplyReceiver<T> {
    shared: Arc<Shared<T>>,
}

/// A slot for one answer.
#[must_use]
pub fn reply_slot<T: Send>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let shared = Arc::new(Shared {
        state: AtomicU8::new(OPEN),
        value: UnsafeCell::new(None),
        waker: AtomicWaker::new(),
    });
    let sender = ReplySender {
        shared: Arc::clone(&shared),
    };
    (sender, ReplyReceiver { shared })
}

impl<T: Send> ReplySender<T> {
    /// Answers. Nothing happens when nobody waits any more.
    pub fn send(self, value: T) {
        // SAFETY: OPEN, and this is the only sender, which is consumed here.
        unsafe { *self.shared.value.get() = Some(value) };
        self.shared.state.store(SENT, Ordering::Release);
        // Dropping the sender wakes the receiver.
    }
}

impl<T> ReplySender<T> {
    /// Whether nobody waits for the answer any more.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl<T> Drop for ReplySender<T> {
    fn drop(&mut self) {
        let state = &self.shared.state;
        let _ = state.compare_exchange(OPEN, EMPTY, Ordering::Release, Ordering::Relaxed);
        self.shared.waker.wake();
    }
}

impl<T> ReplyReceiver<T> {
    fn take(&self) -> Poll<Option<T>> {
        match self.shared.state.load(Ordering::Acquire) {
            OPEN => Poll::Pending,
            SENT => {
                self.shared.state.store(EMPTY, Ordering::Relaxed);
                // SAFETY: SENT was seen, so the sender is done with the value; only we take it.
                Poll::Ready(unsafe { (*self.shared.value.get()).take() })
            }
            _ => Poll::Ready(None),
        }
    }
}

impl<T> Future for ReplyReceiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if let Poll::Ready(value) = self.take() {
            return Poll::Ready(value);
        }
        self.shared.waker.register(context.waker());
        self.take()
    }
}

impl<T> std::fmt::Debug for ReplySender<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ReplySender")
    }
}

impl<T> std::fmt::Debug for ReplyReceiver<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ReplyReceiver")
    }
}
