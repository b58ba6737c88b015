//! A rate over samples, as Kafka's `Rate` of a `WindowedSum`: what lies in the samples that are
//! young enough, by the time since the first of them began, of which all but the last are counted
//! whole even before there are as many.

use std::collections::VecDeque;
use std::time::Duration;

use super::Windows;
use crate::base::time::MonotonicNs;

/// Longest time that a client is told to wait, as responses count it: `i32::MAX` milliseconds.
pub const THROTTLE_MAX: Duration = Duration::from_millis(i32::MAX as u64);
/// The shortest time that anything is divided by.
const ELAPSED_MIN: Duration = Duration::from_millis(1);

/// What was used lately.
#[derive(Clone, Debug, Default)]
pub struct WindowedRate {
    /// When each sample began and what is in it, oldest first.
    samples: VecDeque<(MonotonicNs, f64)>,
}

impl WindowedRate {
    /// Notes what was used.
    pub fn record(&mut self, value: f64, now: MonotonicNs, windows: Windows) {
        self.forget_old(now, windows);
        match self.samples.back_mut() {
            Some((began, sum)) if now.since(*began) < windows.length => *sum += value,
            _ => self.samples.push_back((now, value)),
        }
    }

    /// How long nothing may be used for the rate to be `bound` a second at most, in whole
    /// milliseconds; zero where it is not above that (`QuotaUtils.throttleTime`).
    pub fn wait(&mut self, bound: f64, now: MonotonicNs, windows: Windows) -> Duration {
        self.wait_after(0.0, bound, (now, windows))
    }

    /// The same, if `value` were used now.
    pub fn wait_after(
        &mut self,
        value: f64,
        bound: f64,
        (now, windows): (MonotonicNs, Windows),
    ) -> Duration {
        self.forget_old(now, windows);
        // rate = sum / elapsed, and (rate - bound) / bound * elapsed is to pass.
        let seconds = (self.sum() + value) / bound - self.elapsed(now, windows).as_secs_f64();
        let ms = (seconds * 1_000.0).round();
        if ms >= THROTTLE_MAX.as_millis() as f64 {
            THROTTLE_MAX
        } else if ms >= 1.0 {
            Duration::from_millis(ms as u64)
        } else {
            Duration::ZERO
        }
    }

    /// Whether nothing is left that was used lately.
    pub fn is_at_rest(&mut self, now: MonotonicNs, windows: Windows) -> bool {
        self.forget_old(now, windows);
        self.sum() <= 0.0
    }

    /// When the last sample began.
    #[must_use]
    pub fn last_used(&self) -> MonotonicNs {
        self.samples.back().map_or(MonotonicNs(0), |last| last.0)
    }

    fn sum(&self) -> f64 {
        self.samples.iter().map(|(_, sum)| sum).sum()
    }

    fn elapsed(&self, now: MonotonicNs, windows: Windows) -> Duration {
        let first = self.samples.front();
        let elapsed = first.map_or(Duration::ZERO, |(began, _)| now.since(*began));
        let whole = elapsed.as_nanos() / windows.length.as_nanos().max(1);
        let whole = u32::try_from(whole).unwrap_or(u32::MAX);
        let missing = (windows.count - 1).saturating_sub(whole);
        (elapsed + windows.length.saturating_mul(missing)).max(ELAPSED_MIN)
    }

    fn forget_old(&mut self, now: MonotonicNs, windows: Windows) {
        let age_max = windows.length.saturating_mul(windows.count);
        while let Some((began, _)) = self.samples.front()
            && now.since(*began) >= age_max
        {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows {
        count: 11,
        length: Duration::from_secs(1),
    };

    fn at(ms: u64) -> MonotonicNs {
        MonotonicNs(ms * 1_000_000)
    }

    #[test]
    fn what_comes_at_once_may_be_as_much_as_all_whole_windows_allow() {
        let mut rate = WindowedRate::default();
        rate.record(1_000.0, at(5), WINDOWS);
        assert_eq!(
            rate.wait(100.0, at(5), WINDOWS),
            Duration::ZERO,
            "the limit"
        );
        rate.record(1.0, at(5), WINDOWS);
        let wait = rate.wait(100.0, at(5), WINDOWS);
        assert_eq!(wait, Duration::from_millis(10), "one past it");
    }

    #[test]
    fn after_the_wait_the_rate_is_at_the_limit() {
        let mut rate = WindowedRate::default();
        for second in 0..30 {
            rate.record(170.0, at(second * 1_000), WINDOWS);
        }
        let wait = rate.wait(100.0, at(29_500), WINDOWS);
        // 11 samples of 170 by the 10.5 s since the first of them.
        assert_eq!(wait, Duration::from_millis(18_700 - 10_500));
    }

    #[test]
    fn old_samples_are_forgotten_and_what_is_only_asked_for_is_not_counted() {
        let mut rate = WindowedRate::default();
        rate.record(5_000.0, at(0), WINDOWS);
        assert!(!rate.is_at_rest(at(10_999), WINDOWS));
        assert!(rate.is_at_rest(at(11_000), WINDOWS));
        let asked = rate.wait_after(5_000.0, 100.0, (at(12_000), WINDOWS));
        assert_eq!(asked, Duration::from_secs(40));
        assert!(rate.samples.is_empty());
    }

    #[test]
    fn a_wait_is_never_longer_than_a_response_can_tell() {
        let mut rate = WindowedRate::default();
        rate.record(1e300, at(0), WINDOWS);
        assert_eq!(rate.wait(1e-9, at(0), WINDOWS), THROTTLE_MAX);
        rate.record(f64::NAN, at(0), WINDOWS);
        assert_eq!(rate.wait(1.0, at(0), WINDOWS), Duration::ZERO);
    }

    #[test]
    fn there_are_no_more_samples_than_windows() {
        let mut rate = WindowedRate::default();
        for ms in 0..100_000 {
            rate.record(1.0, at(ms), WINDOWS);
            assert!(rate.samples.len() <= 11);
        }
    }
}
