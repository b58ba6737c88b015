//! How fast all moves of the broker together may copy
//! (`replica.alter.log.dirs.io.max.bytes.per.second`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::time::MonotonicNs;

const NS_PER_SECOND: u128 = 1_000_000_000;
/// What is waited for at a rate of nothing, and at most for any step: the rate is looked at again
/// after each pause.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// One for all shards. Each step is paid for after it was made: whoever comes next waits until it
/// is.
#[derive(Debug, Default)]
pub struct MoveRate {
    /// Up to when all that was copied is paid for.
    paid_at_ns: AtomicU64,
    /// The rate at which that was reckoned.
    bytes_per_second: AtomicU64,
}

impl MoveRate {
    /// So many bytes were copied.
    pub fn charge(&self, bytes: usize, bytes_per_second: Option<u64>, now: MonotonicNs) {
        let Some(rate) = bytes_per_second else { return };
        self.heed(rate, now);
        let cost = (bytes as u128 * NS_PER_SECOND).checked_div(u128::from(rate));
        let most = WAIT_MAX.as_nanos();
        let cost = u64::try_from(cost.unwrap_or(most).min(most)).unwrap_or(u64::MAX);
        let add = |paid_at: u64| Some(paid_at.max(now.0).saturating_add(cost));
        let _ = (self.paid_at_ns).fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
    }

    /// How long the next step is to wait.
    #[must_use]
    pub fn wait(&self, bytes_per_second: Option<u64>, now: MonotonicNs) -> Duration {
        match bytes_per_second {
            None => Duration::ZERO,
            Some(0) => WAIT_MAX,
            Some(rate) => {
                self.heed(rate, now);
                let paid_at = self.paid_at_ns.load(Ordering::Acquire);
                Duration::from_nanos(paid_at.saturating_sub(now.0))
            }
        }
    }

    /// What was reckoned at another rate is forgiven.
    fn heed(&self, rate: u64, now: MonotonicNs) {
        if self.bytes_per_second.swap(rate, Ordering::AcqRel) != rate {
            self.paid_at_ns.store(now.0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn whoever_comes_next_waits_for_what_all_have_copied() {
        let rate = MoveRate::default();
        let at = |seconds: u64| MonotonicNs(seconds * SECOND);
        assert_eq!(rate.wait(Some(100), at(1)), Duration::ZERO);
        rate.charge(200, Some(100), at(1));
        rate.charge(100, Some(100), at(1));
        assert_eq!(rate.wait(Some(100), at(1)), Duration::from_secs(3));
        assert_eq!(rate.wait(Some(100), at(3)), Duration::from_secs(1));
        assert_eq!(rate.wait(Some(100), at(9)), Duration::ZERO);
        rate.charge(100, Some(100), at(9));
        assert_eq!(
            rate.wait(Some(100), at(9)),
            Duration::from_secs(1),
            "no credit"
        );
    }

    #[test]
    fn without_a_limit_nobody_waits_and_another_limit_counts_at_once() {
        let rate = MoveRate::default();
        let now = MonotonicNs(SECOND);
        rate.charge(usize::MAX, Some(1), now);
        assert_eq!(rate.wait(Some(1), now), WAIT_MAX);
        assert_eq!(rate.wait(None, now), Duration::ZERO);
        assert_eq!(rate.wait(Some(0), now), WAIT_MAX);
        assert_eq!(rate.wait(Some(1_000), now), Duration::ZERO);
    }
}
