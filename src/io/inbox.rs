//! The one way from another thread into a shard: a bounded queue with a wake-up that costs nothing
//! while the shard is awake. No lock: senders push with one compare-and-swap, the shard takes all
//! that is there at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use super::atomic_waker::AtomicWaker;
use super::transfer::Transfer;

struct Shared<T> {
    messages: Transfer<T>,
    /// Messages that are queued or whose room is taken.
    len: AtomicUsize,
    len_max: usize,
    senders: AtomicUsize,
    closed: AtomicBool,
    waker: AtomicWaker,
}

impl<T> Shared<T> {
    /// Takes room for up to `wanted` messages; answers how many fit.
    fn reserve(&self, wanted: usize) -> usize {
        if self.closed.load(Ordering::Acquire) {
            return 0;
        }
        let mut len = self.len.load(Ordering::Relaxed);
        loop {
            let fit = wanted.min(self.len_max.saturating_sub(len));
            if fit == 0 {
                return 0;
            }
            let taken = self.len.compare_exchange_weak(
                len,
                len + fit,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return fit,
                Err(current) => len = current,
            }
        }
    }
}

/// The sending end; cheap to clone, may live on any thread.
pub struct InboxSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for InboxSender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Drop for InboxSender<T> {
    fn drop(&mut self) {
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.waker.wake();
        }
    }
}

impl<T: Send + 'static> InboxSender<T> {
    /// Queues `message`; gives it back when the inbox is full or closed.
    pub fn try_send(&self, message: T) -> Result<(), T> {
        if self.shared.reserve(1) == 0 {
            return Err(message);
        }
        self.shared.messages.push(message);
        self.shared.waker.wake();
        Ok(())
    }

    /// Queues messages in order, with one wake-up; leaves in `messages` what did not fit.
    pub fn try_send_batch(&self, messages: &mut Vec<T>) {
        let fit = self.shared.reserve(messages.len());
        if fit > 0 {
            self.shared.messages.push_all(messages.drain(..fit));
            self.shared.waker.wake();
        }
    }

    /// Messages queued now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.shared.len.load(Ordering::Relaxed)
    }

    /// Whether the receiving end is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }
}

/// The receiving end; lives on the executor whose task awaits it.
pub struct Inbox<T> {
    shared: Arc<Shared<T>>,
}

/// An inbox that holds at most `len_max` messages. May be created on any thread; the receiving end
/// is then moved to its executor.
#[must_use]
pub fn inbox<T: Send + 'static>(len_max: usize) -> (InboxSender<T>, Inbox<T>) {
    let shared = Arc::new(Shared {
        messages: Transfer::new(),
        len: AtomicUsize::new(0),
        len_max,
        senders: AtomicUsize::new(1),
        closed: AtomicBool::new(false),
        waker: AtomicWaker::new(),
    });
    let sender = InboxSender {
        shared: Arc::clone(&shared),
    };
    (sender, Inbox { shared })
}

impl<T: Send + 'static> Inbox<T> {
    /// Moves all queued messages to the end of `messages`, waiting for at least one. False when
    /// every sender is gone and nothing is left.
    pub async fn receive_batch(&mut self, messages: &mut Vec<T>) -> bool {
        std::future::poll_fn(|context| {
            if let Poll::Ready(more) = self.try_receive(messages) {
                return Poll::Ready(more);
            }
            self.shared.waker.register(context.waker());
            self.try_receive(messages)
        })
        .await
    }

    fn try_receive(&self, messages: &mut Vec<T>) -> Poll<bool> {
        // Read before the messages: a sender pushes before it goes.
        let senders = self.shared.senders.load(Ordering::Acquire);
        let count = self
            .shared
            .messages
            .take_all(|message| messages.push(message));
        if count > 0 {
            self.shared.len.fetch_sub(count, Ordering::Relaxed);
            return Poll::Ready(true);
        }
        if senders == 0 {
            return Poll::Ready(false);
        }
        Poll::Pending
    }

    /// Messages queued now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.shared.len.load(Ordering::Relaxed)
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        // What is queued already is freed with the last sender, or here if it came in time.
        self.shared.closed.store(true, Ordering::Release);
        self.shared.messages.take_all(drop);
    }
}

impl<T> std::fmt::Debug for InboxSender<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("InboxSender")
    }
}

impl<T> std::fmt::Debug for Inbox<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Inbox")
    }
}
