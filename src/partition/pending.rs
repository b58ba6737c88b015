//! Appends that are in order but not yet durable enough to be answered.
//!
//! Appends end in rising order, so those that one flush satisfies are a prefix of the queue.

use std::collections::VecDeque;

use crate::base::ids::Offset;

/// Appends of one partition that wait for an end to pass theirs, each with what is to be answered.
#[derive(Debug)]
pub struct PendingAppends<T> {
    queue: VecDeque<(Offset, T)>,
}

impl<T> Default for PendingAppends<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
        }
    }
}

impl<T> PendingAppends<T> {
    /// Queues an append that is answered once the satisfying end is at least `end` (exclusive end
    /// of the append). A duplicate may wait for an earlier end than the last one queued; it takes
    /// the later, which keeps the queue in order and only delays its answer to its neighbour's.
    pub fn push(&mut self, end: Offset, answer: T) {
        let floor = self.queue.back().map_or(end, |last| last.0);
        self.queue.push_back((end.max(floor), answer));
    }

    /// The first append that `end` satisfies, taken out.
    pub fn pop_satisfied(&mut self, end: Offset) -> Option<T> {
        if self.queue.front().is_some_and(|first| first.0 <= end) {
            return self.queue.pop_front().map(|first| first.1);
        }
        None
    }

    /// The first append, whatever it waits for: the log has failed or the partition is gone.
    pub fn pop_any(&mut self) -> Option<T> {
        self.queue.pop_front().map(|first| first.1)
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_answers_exactly_what_lies_below_it() {
        let mut pending = PendingAppends::default();
        for end in [5, 7, 7, 9] {
            pending.push(Offset(end), end);
        }
        assert_eq!(pending.pop_satisfied(Offset(4)), None);
        assert_eq!(pending.pop_satisfied(Offset(7)), Some(5));
        assert_eq!(pending.pop_satisfied(Offset(7)), Some(7));
        assert_eq!(pending.pop_satisfied(Offset(7)), Some(7));
        assert_eq!(pending.pop_satisfied(Offset(8)), None);
        assert_eq!(pending.len(), 1);
        assert_eq!(pending.pop_any(), Some(9));
        assert!(pending.is_empty());
    }

    #[test]
    fn a_duplicate_of_an_earlier_batch_does_not_break_the_order() {
        let mut pending = PendingAppends::default();
        pending.push(Offset(9), "new");
        pending.push(Offset(3), "duplicate");
        assert_eq!(pending.pop_satisfied(Offset(8)), None);
        assert_eq!(pending.pop_satisfied(Offset(9)), Some("new"));
        assert_eq!(pending.pop_satisfied(Offset(9)), Some("duplicate"));
    }
}
