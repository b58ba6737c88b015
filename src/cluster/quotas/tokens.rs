//! A bucket of tokens, as Kafka's `TokenBucket` (KIP-599): it fills at the rate that is allowed, up
//! to what all windows allow together, and may be overdrawn once.

use std::time::Duration;

use super::Windows;
use super::rate::THROTTLE_MAX;
use crate::base::time::MonotonicNs;

/// What may still be used.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    tokens: f64,
    filled_at: MonotonicNs,
}

impl TokenBucket {
    /// One from which nothing was taken yet.
    #[must_use]
    pub fn full(bound: f64, now: MonotonicNs, windows: Windows) -> Self {
        Self {
            tokens: burst(bound, windows),
            filled_at: now,
        }
    }

    /// What there is; below zero for what was overdrawn.
    pub fn tokens(&mut self, bound: f64, now: MonotonicNs, windows: Windows) -> f64 {
        let come = bound * now.since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + come).min(burst(bound, windows));
        self.filled_at = self.filled_at.max(now);
        self.tokens
    }

    /// Takes so many, whether they are there or not.
    pub fn take(&mut self, count: f64) {
        self.tokens -= count;
    }

    /// How long until it is not overdrawn, in whole milliseconds.
    pub fn wait(&mut self, bound: f64, now: MonotonicNs, windows: Windows) -> Duration {
        let ms = (-self.tokens(bound, now, windows) / bound * 1_000.0).round();
        if ms >= THROTTLE_MAX.as_millis() as f64 {
            THROTTLE_MAX
        } else if ms >= 1.0 {
            Duration::from_millis(ms as u64)
        } else {
            Duration::ZERO
        }
    }
}

fn burst(bound: f64, windows: Windows) -> f64 {
    bound * windows.seconds(windows.count)
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
    fn a_bucket_is_overdrawn_and_fills_again() {
        let mut bucket = TokenBucket::full(2.0, at(0), WINDOWS);
        assert_eq!(bucket.tokens(2.0, at(0), WINDOWS), 22.0);
        bucket.take(22.0);
        assert_eq!(
            bucket.wait(2.0, at(0), WINDOWS),
            Duration::ZERO,
            "the limit"
        );
        bucket.take(1.0);
        assert_eq!(bucket.wait(2.0, at(0), WINDOWS), Duration::from_millis(500));
        assert_eq!(
            bucket.wait(2.0, at(400), WINDOWS),
            Duration::from_millis(100)
        );
        assert_eq!(bucket.wait(2.0, at(500), WINDOWS), Duration::ZERO);
        assert_eq!(bucket.tokens(2.0, at(1_000_000), WINDOWS), 22.0, "no more");
    }

    #[test]
    fn a_lower_limit_counts_at_once() {
        let mut bucket = TokenBucket::full(2.0, at(0), WINDOWS);
        assert_eq!(bucket.tokens(1.0, at(0), WINDOWS), 11.0);
    }
}
