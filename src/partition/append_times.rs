//! How long one append spent in each stage on the shard that owns its partition.

use std::time::Duration;

use crate::base::time::MonotonicNs;
use crate::metrics::{ShardMetrics, Stage, StageTimes, Visit};

/// When an append passed its stations on the owner's shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppendTimes {
    /// Its message's way to the partition.
    pub visit: Visit,
    /// It was in order in memory.
    pub appended_at: MonotonicNs,
    /// The write was issued that made it durable, and whether that was a flush.
    pub issue: (MonotonicNs, bool),
    /// It was answered.
    pub answered_at: MonotonicNs,
    /// How long the thread was at it; of several that are answered as one, at all of them.
    pub busy: Duration,
}

impl AppendTimes {
    /// How long each stage took.
    #[must_use]
    pub fn stages(&self) -> StageTimes {
        let mut times = StageTimes::default();
        self.visit.add_to(&mut times);
        let appended_at = self.appended_at.max(self.visit.started_at);
        times.add(Stage::Append, appended_at.since(self.visit.started_at));
        let (issued_at, is_flush) = self.issue;
        // Without a wait the write that made it durable was one of before.
        let issued_at = issued_at.max(appended_at).min(self.answered_at);
        times.add(Stage::Journal, issued_at.since(appended_at));
        let write = if is_flush {
            Stage::Flush
        } else {
            Stage::Journal
        };
        times.add(write, self.answered_at.since(issued_at));
        times
    }

    pub(super) fn record(&self, metrics: &ShardMetrics) {
        let times = self.stages();
        if self.visit.is_hop {
            metrics.record_stage(Stage::Hop, times.get(Stage::Hop));
        }
        metrics.record_stage(Stage::Queue, times.get(Stage::Queue));
        metrics.record_stage(Stage::Append, times.get(Stage::Append));
        // With acks=0, or when it was durable already, there was no wait.
        for stage in [Stage::Journal, Stage::Flush] {
            let time = times.get(stage);
            if !time.is_zero() {
                metrics.record_stage(stage, time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> MonotonicNs {
        MonotonicNs(us * 1_000)
    }

    fn times(issue: (MonotonicNs, bool)) -> AppendTimes {
        AppendTimes {
            visit: Visit {
                sent_at: at(10),
                taken_at: at(30),
                started_at: at(35),
                is_hop: true,
                busy: Duration::ZERO,
            },
            appended_at: at(40),
            issue,
            answered_at: at(1_000),
            busy: Duration::ZERO,
        }
    }

    #[test]
    fn the_stages_add_up_to_the_whole() {
        for issue in [
            (at(100), true),
            (at(100), false),
            (at(0), true),
            (at(2_000), true),
        ] {
            let stages = times(issue).stages();
            assert_eq!(stages.sum(), Duration::from_micros(990), "{issue:?}");
        }
        let stages = times((at(100), true)).stages();
        let us = |stage| stages.get(stage).as_micros();
        assert_eq!((us(Stage::Hop), us(Stage::Queue)), (20, 5));
        assert_eq!((us(Stage::Append), us(Stage::Journal)), (5, 60));
        assert_eq!(us(Stage::Flush), 900);
        let cached = times((at(100), false)).stages();
        assert_eq!(cached.get(Stage::Journal).as_micros(), 960);
    }
}
