//! When the next cycle starts. One that has just ended sends its clients' next batches on their
//! way: started at once, the next cycle would take what little came meanwhile and the others would
//! wait for it, so that two half-full cycles would take turns. So a smaller cycle waits a little
//! for the rest, never longer than a part of what the disk takes anyway, and never when the last
//! one lies further back than that: a batch that comes alone is written at once.

use std::time::Duration;

use crate::base::time::MonotonicNs;

/// The part of the last write's time in which the next batches may come.
const GATHER_DIVISOR: u32 = 2;
/// And the longest that is waited for them.
const GATHER_MAX: Duration = Duration::from_micros(200);

/// What the last cycle held, and until when its clients' next batches are awaited.
#[derive(Debug, Default)]
pub(super) struct Pace {
    last_bytes: usize,
    gather_until: MonotonicNs,
}

impl Pace {
    /// A cycle that held `bytes` was written from `issued_at` to `ended_at`.
    pub(super) fn note(&mut self, bytes: usize, (issued_at, ended_at): (MonotonicNs, MonotonicNs)) {
        let wait = (ended_at.since(issued_at) / GATHER_DIVISOR).min(GATHER_MAX);
        self.last_bytes = bytes;
        self.gather_until = ended_at.after(wait);
    }

    /// Until when a cycle of the `queued_bytes` that are there should wait; `None` to start now.
    pub(super) fn waits_until(&self, queued_bytes: usize, now: MonotonicNs) -> Option<MonotonicNs> {
        (queued_bytes < self.last_bytes && now < self.gather_until).then_some(self.gather_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> MonotonicNs {
        MonotonicNs(micros * 1_000)
    }

    #[test]
    fn a_smaller_cycle_waits_for_the_clients_of_the_last_one_and_not_for_long() {
        let mut pace = Pace::default();
        assert_eq!(pace.waits_until(1, at(5)), None, "nothing came before");
        pace.note(100, (at(1_000), at(1_120)));
        assert_eq!(pace.waits_until(99, at(1_120)), Some(at(1_180)));
        assert_eq!(pace.waits_until(100, at(1_120)), None, "all are there");
        assert_eq!(pace.waits_until(99, at(1_180)), None, "the time is up");
        pace.note(100, (at(2_000), at(9_000)));
        assert_eq!(pace.waits_until(0, at(9_000)), Some(at(9_200)));
        assert_eq!(pace.waits_until(0, at(9_200)), None);
    }
}
