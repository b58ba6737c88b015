//! Messages on their way out: gathered while tasks run, sent in one batch a shard and turn.
//!
//! Messages to the own shard take the same way and are handled by the same loop, but need no
//! queue between threads. What a full inbox does not take stays here, in order, and is tried
//! again.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

use super::message::ShardMessage;
use crate::base::ids::ShardId;
use crate::io::InboxSender;

/// The outgoing side of one shard.
#[derive(Debug)]
pub struct Outbox {
    own: ShardId,
    senders: Vec<InboxSender<ShardMessage>>,
    queued: RefCell<Vec<Vec<ShardMessage>>>,
    is_filled: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Outbox {
    /// An outbox of shard `own`; `senders` lead to all shards, in order of their ids.
    #[must_use]
    pub fn new(own: ShardId, senders: Vec<InboxSender<ShardMessage>>) -> Self {
        let mut queued = Vec::new();
        queued.resize_with(senders.len().max(1), Vec::new);
        Self {
            own,
            senders,
            queued: RefCell::new(queued),
            is_filled: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> usize {
        self.senders.len().max(1)
    }

    /// Queues a message. One to a shard that does not exist is dropped, with its reply slot.
    pub fn send(&self, to: ShardId, message: ShardMessage) {
        if let Some(queue) = self.queued.borrow_mut().get_mut(usize::from(to.0)) {
            queue.push(message);
        }
        self.is_filled.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Whether something is queued; else the task is woken when it is.
    pub fn poll_filled(&self, context: &Context<'_>) -> bool {
        if self.is_filled.get() {
            return true;
        }
        let mut waker = self.waker.borrow_mut();
        if !waker
            .as_ref()
            .is_some_and(|known| known.will_wake(context.waker()))
        {
            *waker = Some(context.waker().clone());
        }
        false
    }

    /// Moves messages to the own shard to the end of `local` and hands the others over. False
    /// when an inbox was full: try again soon.
    pub fn flush(&self, local: &mut Vec<ShardMessage>) -> bool {
        let mut queued = self.queued.borrow_mut();
        let mut all_sent = true;
        for (shard, messages) in queued.iter_mut().enumerate() {
            if messages.is_empty() {
                continue;
            }
            if shard == usize::from(self.own.0) {
                local.append(messages);
            } else if let Some(sender) = self.senders.get(shard) {
                sender.try_send_batch(messages);
                all_sent &= messages.is_empty();
            }
        }
        self.is_filled.set(!all_sent);
        all_sent
    }
}
