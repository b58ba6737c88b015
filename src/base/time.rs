//! Points in time. Clocks are read by the runtime alone and handed down as these values.

use std::time::Duration;

/// Milliseconds since the Unix epoch, as records carry them. -1: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    /// No timestamp (`RecordBatch.NO_TIMESTAMP`).
    pub const NONE: Self = Self(-1);
}

/// Whose clock stamps the records of a batch (`TimestampType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    #[default]
    CreateTime,
    /// The broker's, at the append.
    LogAppendTime,
}

/// Nanoseconds of the runtime's monotonic clock; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct MonotonicNs(pub u64);

impl MonotonicNs {
    /// Time since `earlier`; zero when that lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This point moved by `delay`; saturates.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ns))
    }
}
