//! Log lines that clients can cause: a few a second, the rest counted. Some tools reconnect a
//! thousand times a second.

use std::cell::Cell;
use std::time::Duration;

use crate::base::time::MonotonicNs;

/// Lines at once.
pub const LINES_BURST: u32 = 20;
/// One more line each such time.
pub const LINE_INTERVAL: Duration = Duration::from_millis(200);

/// Decides which lines are written. One a shard.
#[derive(Debug)]
pub struct LogLimit {
    left: Cell<u32>,
    refilled_at: Cell<MonotonicNs>,
    suppressed: Cell<u64>,
}

impl LogLimit {
    /// Full from `now` on.
    #[must_use]
    pub fn new(now: MonotonicNs) -> Self {
        Self {
            left: Cell::new(LINES_BURST),
            refilled_at: Cell::new(now),
            suppressed: Cell::new(0),
        }
    }

    /// Whether a line may be written now, and how many were left out before it.
    #[must_use]
    pub fn admit(&self, now: MonotonicNs) -> Option<u64> {
        let passed = now.since(self.refilled_at.get());
        let refill = passed.as_nanos() / LINE_INTERVAL.as_nanos();
        if refill > 0 {
            let refill = u32::try_from(refill).unwrap_or(LINES_BURST);
            self.left
                .set(self.left.get().saturating_add(refill).min(LINES_BURST));
            self.refilled_at.set(now);
        }
        if self.left.get() == 0 {
            self.suppressed.set(self.suppressed.get() + 1);
            return None;
        }
        self.left.set(self.left.get() - 1);
        Some(self.suppressed.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_writes_a_burst_and_then_five_lines_a_second() {
        let limit = LogLimit::new(MonotonicNs(0));
        let lines = |from_ms: u64, to_ms: u64| {
            let at = |ms: u64| MonotonicNs(ms * 1_000_000);
            (from_ms..to_ms)
                .filter_map(|ms| limit.admit(at(ms)))
                .count()
        };
        assert_eq!(lines(0, 100), LINES_BURST as usize);
        let later = lines(100, 10_100);
        assert!((48..=51).contains(&later), "{later}");
        let suppressed = limit.admit(MonotonicNs(20_000_000_000));
        assert!(suppressed.is_some_and(|count| count > 0));
    }
}
