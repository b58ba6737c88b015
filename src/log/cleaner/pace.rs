//! How many logs are cleaned at a time in the whole process, and how fast all together. Shared by
//! the shards, without locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::base::time::MonotonicNs;
use crate::io;

/// Longest that a wait goes on without a look at the rate in force.
const LOOK: Duration = Duration::from_millis(250);

/// Shared by all shards.
#[derive(Debug, Default)]
pub struct CleanerPace {
    running: AtomicUsize,
}

/// The right to clean a log; given back when dropped.
#[derive(Debug)]
pub struct Running(Arc<CleanerPace>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CleanerPace {
    /// The right to clean, unless `threads` have it.
    #[must_use]
    pub fn begin(self: &Arc<Self>, threads: usize) -> Option<Running> {
        let more = |running: usize| (running < threads).then_some(running + 1);
        let begun = self
            .running
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        begun.is_ok().then(|| Running(Arc::clone(self)))
    }

    /// Waits until `bytes` may have been moved since `since`: all that clean share the rate, which
    /// may change meanwhile. False once `is_over`.
    pub(crate) async fn spend(
        &self,
        bytes: usize,
        since: MonotonicNs,
        rate: &dyn Fn() -> f64,
        is_over: &dyn Fn() -> bool,
    ) -> bool {
        loop {
            if is_over() {
                return false;
            }
            let sharing = self.running.load(Ordering::Relaxed).max(1);
            let took = time_for(bytes, sharing, rate());
            let left = took.saturating_sub(io::now().since(since));
            if left.is_zero() {
                return true;
            }
            io::sleep(left.min(LOOK)).await;
        }
    }
}

/// How long one of so many may take for its bytes. Pure.
fn time_for(bytes: usize, sharing: usize, bytes_per_second: f64) -> Duration {
    let seconds = bytes as f64 * sharing as f64 / bytes_per_second.max(1.0);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_clean_than_may() {
        let pace = Arc::new(CleanerPace::default());
        let first = pace.begin(2).unwrap();
        let second = pace.begin(2).unwrap();
        assert!(pace.begin(2).is_none());
        drop(first);
        assert!(pace.begin(2).is_some());
        assert!(pace.begin(1).is_none());
        assert!(pace.begin(0).is_none());
        drop(second);
    }

    #[test]
    fn bytes_take_the_time_that_the_rate_gives_them() {
        assert_eq!(time_for(500, 1, 1_000.0), Duration::from_millis(500));
        assert_eq!(time_for(500, 2, 1_000.0), Duration::from_secs(1));
        assert_eq!(time_for(500, 2, f64::MAX), Duration::ZERO);
        assert_eq!(time_for(500, 1, 0.0), Duration::from_secs(500));
    }
}
