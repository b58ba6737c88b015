//! The one way from another thread into a shard: a bounded queue with a wake-up that costs nothing
//! while the shard is awake.

/// The sending end; cheap to clone, may live on any thread.
#[derive(Debug)]
pub struct InboxSender<T> {
    marker: std::marker::PhantomData<T>,
}

impl<T> Clone for InboxSender<T> {
    fn clone(&self) -> Self {
        Self {
            marker: std::marker::PhantomData,
        }
    }
}

impl<T: Send + 'static> InboxSender<T> {
    /// Queues `message`; gives it back when the inbox is full or closed.
    pub fn try_send(&self, _message: T) -> Result<(), T> {
        unimplemented!()
    }

    /// Queues messages in order, with one wake-up; leaves in `messages` what did not fit.
    pub fn try_send_batch(&self, _messages: &mut Vec<T>) {
        unimplemented!()
    }
}

/// The receiving end; lives on the executor whose task awaits it.
#[derive(Debug)]
pub struct Inbox<T> {
    marker: std::marker::PhantomData<T>,
}

/// An inbox that holds at most `len_max` messages. May be created on any thread; the receiving end
/// is then moved to its executor.
#[must_use]
pub fn inbox<T: Send + 'static>(_len_max: usize) -> (InboxSender<T>, Inbox<T>) {
    unimplemented!()
}

impl<T: Send + 'static> Inbox<T> {
    /// Moves all queued messages to the end of `messages`, waiting for at least one. False when
    /// every sender is gone and nothing is left.
    pub async fn receive_batch(&mut self, _messages: &mut Vec<T>) -> bool {
        unimplemented!()
    }

    /// Messages queued now.
    #[must_use]
    pub fn depth(&self) -> usize {
        unimplemented!()
    }
}
