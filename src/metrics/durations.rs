//! How long things take that are counted in seconds: counts by duration, in steps that people know.

use std::time::Duration;

/// Upper bounds of the steps, in milliseconds; what takes longer has a step of its own.
pub const DURATION_STEPS_MS: [u64; 9] =
    [10, 100, 500, 1_000, 3_000, 10_000, 30_000, 60_000, 300_000];
const STEPS: usize = DURATION_STEPS_MS.len() + 1;

/// Durations since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// How many fell into each of [`DURATION_STEPS_MS`], and past the last.
    pub counts: [u64; STEPS],
    /// All of them together.
    pub total: Duration,
}

impl DurationCounts {
    /// Counts one.
    pub fn record(&mut self, duration: Duration) {
        let is_below = |bound: &u64| Duration::from_millis(*bound) < duration;
        let step = DURATION_STEPS_MS.partition_point(is_below);
        if let Some(count) = self.counts.get_mut(step) {
            *count = count.wrapping_add(1);
        }
        self.total = self.total.saturating_add(duration);
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, more: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(more.counts) {
            *sum = sum.wrapping_add(count);
        }
        self.total = self.total.saturating_add(more.total);
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_step_that_it_does_not_exceed() {
        let mut told = DurationCounts::default();
        for ms in [0, 10, 11, 300_000, 300_001] {
            told.record(Duration::from_millis(ms));
        }
        assert_eq!(told.counts, [2, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(told.total, Duration::from_millis(600_022));
        let other = told;
        told.merge(&other);
        assert_eq!((told.count(), told.counts[0]), (10, 4));
        assert_eq!(told.total, Duration::from_millis(1_200_044));
    }
}
