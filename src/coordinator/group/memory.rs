//! What groups and offsets take of a shard's memory. Every coordinator of a shard charges the same
//! account; Kafka knows no such limit, only that of its heap.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::base::time::MonotonicNs;

/// A group without its name and its members, its tables included.
pub const GROUP_BYTES: usize = 1_024;
/// A member without its names and what it sent, its deadline included.
pub const MEMBER_BYTES: usize = 1_024;
/// A protocol of a member without its name and metadata, its place in the group's table included.
pub const PROTOCOL_BYTES: usize = 192;
/// One that was given an id and is to come back with it, without the id.
pub const PENDING_MEMBER_BYTES: usize = 512;
/// An offset without its metadata.
pub const OFFSET_BYTES: usize = 256;

/// How often it is told at most that something was refused.
const TOLD_AFTER: Duration = Duration::from_secs(10);

/// The account of one shard.
#[derive(Clone, Debug)]
pub struct GroupMemory {
    used: Rc<Cell<usize>>,
    refused: Rc<Cell<u64>>,
    told_at: Rc<Cell<Option<MonotonicNs>>>,
    bytes_max: usize,
}

impl GroupMemory {
    /// Nothing is charged yet. What the log holds is loaded whatever it takes; what clients add is
    /// refused past the limit.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            used: Rc::default(),
            refused: Rc::default(),
            told_at: Rc::default(),
            bytes_max,
        }
    }

    /// Bytes that may be charged by what clients add.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes that are charged.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// How much was refused since this last said so, at most every ten seconds.
    #[must_use]
    pub fn refused_untold(&self, now: MonotonicNs) -> Option<u64> {
        let is_quiet = |at: MonotonicNs| now.since(at) < TOLD_AFTER;
        if self.refused.get() == 0 || self.told_at.get().is_some_and(is_quiet) {
            return None;
        }
        self.told_at.set(Some(now));
        Some(self.refused.take())
    }
}

/// What one coordinator has charged; it is given back with it.
#[derive(Debug)]
pub struct Charge {
    memory: GroupMemory,
    own: usize,
}

impl Charge {
    pub fn new(memory: &GroupMemory) -> Self {
        Self {
            memory: memory.clone(),
            own: 0,
        }
    }

    /// Whether so much more fits; what does not is refused.
    pub fn has_room(&self, bytes: usize) -> bool {
        let fits = self.memory.used().saturating_add(bytes) <= self.memory.bytes_max;
        let refused = &self.memory.refused;
        refused.set(refused.get() + u64::from(!fits));
        fits
    }

    pub fn add(&mut self, bytes: usize) {
        self.own += bytes;
        self.memory.used.set(self.memory.used() + bytes);
    }

    pub fn give_back(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.own, "more is given back than was charged");
        let bytes = bytes.min(self.own);
        self.own -= bytes;
        self.memory
            .used
            .set(self.memory.used().saturating_sub(bytes));
    }

    /// What this coordinator has charged.
    #[cfg(test)]
    pub fn own(&self) -> usize {
        self.own
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.give_back(self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinators_share_an_account_and_leave_it_as_they_found_it() {
        let memory = GroupMemory::new(100);
        let (mut one, mut other) = (Charge::new(&memory), Charge::new(&memory));
        one.add(60);
        assert!(other.has_room(40) && !other.has_room(41));
        other.add(40);
        one.give_back(10);
        assert_eq!(memory.used(), 90);
        drop(one);
        assert_eq!((memory.used(), other.own()), (40, 40));
        drop(other);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn what_is_refused_is_told_every_ten_seconds_at_most() {
        let memory = GroupMemory::new(100);
        let charge = Charge::new(&memory);
        let at = |ms: u64| MonotonicNs(ms * 1_000_000);
        assert!(charge.has_room(100));
        assert_eq!(memory.refused_untold(at(1)), None);
        assert!(!charge.has_room(101) && !charge.has_room(102));
        assert_eq!(memory.refused_untold(at(2)), Some(2));
        assert!(!charge.has_room(103));
        assert_eq!(memory.refused_untold(at(10_001)), None);
        assert_eq!(memory.refused_untold(at(10_002)), Some(1));
        assert_eq!(memory.refused_untold(at(90_000)), None);
    }
}
