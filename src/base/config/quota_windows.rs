//! Over which time the use of quotas is measured.

use std::time::Duration;

/// Samples of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaWindows {
    /// `quota.window.num`: as many samples, the current one included.
    pub count: u32,
    /// `quota.window.size.seconds`: the length of one.
    pub length: Duration,
}

impl QuotaWindows {
    /// As the settings give them, which are at least 1.
    #[must_use]
    pub fn of(count: i64, seconds: i64) -> Self {
        Self {
            count: u32::try_from(count).unwrap_or(u32::MAX).max(1),
            length: Duration::from_secs(u64::try_from(seconds).unwrap_or(1).max(1)),
        }
    }

    /// Seconds of so many whole samples.
    #[must_use]
    pub fn seconds(self, count: u32) -> f64 {
        self.length.as_secs_f64() * f64::from(count)
    }
}
