//! Parked reads: who wants to hear when a partition's readable end passes an offset.
//!
//! A waiter is heard once: it leaves the table when it is woken. Waking costs what is woken, not
//! what is parked, since waiters lie in order of the offset that they wait for.

use std::collections::BTreeMap;

use crate::base::ids::{Offset, ShardId};

/// One parked fetch, known by the shard of its connection and a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParkedFetch {
    /// The shard whose connection waits.
    pub shard: ShardId,
    /// The fetch there.
    pub number: u64,
}

/// What a waiter is told on waking: the fetch, and the place of this partition within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter {
    /// The fetch that waits.
    pub fetch: ParkedFetch,
    /// Which of its partitions this one is.
    pub place: u32,
}

/// The waiters of one partition on one of its ends.
#[derive(Debug, Default)]
pub struct Waiters {
    by_offset: BTreeMap<(Offset, Waiter), ()>,
}

impl Waiters {
    /// Parks `waiter` until the end lies past `known_end`.
    pub fn park(&mut self, known_end: Offset, waiter: Waiter) {
        self.by_offset.insert((known_end, waiter), ());
    }

    /// Takes out all that wait for an end that `end` has passed, in order of their offsets.
    pub fn take_passed(&mut self, end: Offset, woken: &mut Vec<Waiter>) {
        while let Some(entry) = self.by_offset.first_entry() {
            if entry.key().0 >= end {
                break;
            }
            woken.push(entry.remove_entry().0.1);
        }
    }

    /// Takes out all, whatever they wait for: the role has changed or the partition is gone.
    pub fn take_all(&mut self, woken: &mut Vec<Waiter>) {
        woken.extend(
            std::mem::take(&mut self.by_offset)
                .into_keys()
                .map(|key| key.1),
        );
    }

    /// Forgets one waiter; nothing happens when it has been woken already.
    pub fn forget(&mut self, known_end: Offset, waiter: Waiter) {
        self.by_offset.remove(&(known_end, waiter));
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_offset.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_offset.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    fn waiter(number: u64, place: u32) -> Waiter {
        let fetch = ParkedFetch {
            shard: ShardId(0),
            number,
        };
        Waiter { fetch, place }
    }

    #[test]
    fn a_waiter_wakes_only_when_its_offset_is_passed() {
        let mut waiters = Waiters::default();
        waiters.park(Offset(10), waiter(1, 0));
        waiters.park(Offset(11), waiter(2, 0));
        let mut woken = Vec::new();
        waiters.take_passed(Offset(10), &mut woken);
        assert!(woken.is_empty());
        waiters.take_passed(Offset(11), &mut woken);
        assert_eq!(woken, [waiter(1, 0)]);
        assert_eq!(waiters.len(), 1);
        waiters.take_all(&mut woken);
        assert_eq!(woken, [waiter(1, 0), waiter(2, 0)]);
        assert!(waiters.is_empty());
    }

    /// Random parks, wakes and withdrawals against a plain list.
    #[test]
    fn waiters_behave_as_a_list_that_is_searched() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let (mut waiters, mut model) = (Waiters::default(), Vec::new());
            for number in 0..300 {
                match random.below(4) {
                    0 | 1 => {
                        let end = Offset(random.below(40) as i64);
                        waiters.park(end, waiter(number, 0));
                        model.push((end, waiter(number, 0)));
                    }
                    2 if !model.is_empty() => {
                        let (end, gone) =
                            model.swap_remove(random.below(model.len() as u64) as usize);
                        waiters.forget(end, gone);
                    }
                    _ => {
                        let end = Offset(random.below(40) as i64);
                        let mut woken = Vec::new();
                        waiters.take_passed(end, &mut woken);
                        let mut expected: Vec<_> = model
                            .iter()
                            .filter(|entry| entry.0 < end)
                            .copied()
                            .collect();
                        expected.sort_unstable();
                        let expected: Vec<_> = expected.into_iter().map(|entry| entry.1).collect();
                        assert_eq!(woken, expected, "seed {seed}");
                        model.retain(|entry| entry.0 >= end);
                    }
                }
                assert_eq!(waiters.len(), model.len());
            }
        }
    }
}
