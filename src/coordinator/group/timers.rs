//! Deadlines, each for one thing; a new one for the same thing replaces the old.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::ids::{GroupId, MemberId};
use crate::base::time::MonotonicNs;

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// A member's session, or the wait of one that was given an id.
    Session(GroupId, MemberId),
    /// The joins of a rebalance.
    Join(GroupId),
    /// The syncs of a generation.
    Sync(GroupId),
    /// The look for expired offsets.
    Expiry,
}

/// All deadlines of a coordinator.
#[derive(Debug, Default)]
pub struct Timers {
    deadlines: HashMap<Timer, MonotonicNs>,
    order: BTreeSet<(MonotonicNs, Timer)>,
}

impl Timers {
    /// Sets the deadline of `timer`.
    pub fn schedule(&mut self, timer: Timer, now: MonotonicNs, delay: Duration) {
        let deadline = now.after(delay);
        if let Some(old) = self.deadlines.insert(timer.clone(), deadline) {
            self.order.remove(&(old, timer.clone()));
        }
        self.order.insert((deadline, timer));
    }

    /// Forgets the deadline of `timer`, if there is one.
    pub fn cancel(&mut self, timer: &Timer) {
        if let Some(old) = self.deadlines.remove(timer) {
            self.order.remove(&(old, timer.clone()));
        }
    }

    /// The first deadline.
    #[must_use]
    pub fn next(&self) -> Option<MonotonicNs> {
        self.order.first().map(|(deadline, _)| *deadline)
    }

    /// Takes out what is due.
    pub fn pop_due(&mut self, now: MonotonicNs) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        let (_, timer) = self.order.pop_first()?;
        self.deadlines.remove(&timer);
        Some(timer)
    }

    /// How many deadlines there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_deadline_replaces_the_old() {
        let mut timers = Timers::default();
        let (join, sync) = (Timer::Join("g".into()), Timer::Sync("g".into()));
        let at = MonotonicNs;
        timers.schedule(join.clone(), at(0), Duration::from_nanos(10));
        timers.schedule(sync.clone(), at(0), Duration::from_nanos(20));
        timers.schedule(join.clone(), at(0), Duration::from_nanos(30));
        assert_eq!((timers.len(), timers.next()), (2, Some(at(20))));
        assert_eq!(timers.pop_due(at(19)), None);
        assert_eq!(timers.pop_due(at(40)), Some(sync));
        timers.cancel(&join);
        assert_eq!((timers.len(), timers.pop_due(at(40))), (0, None));
    }
}
