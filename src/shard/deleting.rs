//! Deletions of the first records of partitions that this shard owns.

use std::collections::VecDeque;
use std::rc::Rc;

use super::core::Shard;
use super::message::DeleteRecordsMessage;
use crate::io::{self, TaskClass};

/// Partitions of one request whose starts move at a time: they share the journal's flushes.
const DELETIONS_MAX: usize = 32;

impl Shard {
    pub(super) async fn handle_delete_records(self: Rc<Self>, message: DeleteRecordsMessage) {
        let mut answers = Vec::with_capacity(message.deletions.len());
        let mut moving = VecDeque::new();
        for (id, offset) in message.deletions {
            if moving.len() >= DELETIONS_MAX
                && let Some(first) = moving.pop_front()
            {
                answers.push(first.await);
            }
            let partition = self.partition(id).ok_or_else(|| self.absence(id));
            let deletion = async move { partition?.delete_records(offset).await };
            moving.push_back(io::spawn(TaskClass::Background, deletion));
        }
        for last in moving {
            answers.push(last.await);
        }
        message.reply.send(answers);
    }
}
