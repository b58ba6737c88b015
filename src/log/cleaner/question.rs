//! Which part of a log may be cleaned, and whether it is worth it (`LogCleanerManager`). Pure.

use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::log::config::LogConfig;

/// What the question looks at of one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFacts {
    pub(crate) base_offset: Offset,
    pub(crate) bytes: u64,
    /// Of its first batch and of all; looked up where a limit of time asks for them.
    pub(crate) first_timestamp: TimestampMs,
    pub(crate) largest_timestamp: TimestampMs,
    /// Not the active one, its files are finished.
    pub(crate) is_finished: bool,
}

/// What decides.
pub(crate) struct CleanQuestion<'a> {
    pub(crate) config: &'a LogConfig,
    /// All segments, oldest first, the active one last.
    pub(crate) segments: &'a [SegmentFacts],
    pub(crate) log_start: Offset,
    pub(crate) log_end: Offset,
    pub(crate) last_stable: Offset,
    pub(crate) recovery_point: Offset,
    /// Up to where it was cleaned before.
    pub(crate) cleaned: Option<Offset>,
    pub(crate) now: TimestampMs,
}

/// What may be cleaned of a log now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cleanable {
    /// Below it everything was cleaned before.
    pub first_dirty: Offset,
    /// What may be cleaned ends here, at a segment's beginning.
    pub end: Offset,
    /// Bytes of the segments below `first_dirty`.
    pub clean_bytes: u64,
    /// Bytes of the segments from there up to `end`.
    pub dirty_bytes: u64,
    /// How long ago `max.compaction.lag.ms` was passed by the oldest dirty record.
    pub overdue_ms: u64,
}

impl Cleanable {
    /// Dirty bytes as a part of all that would be gone through.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let all = self.clean_bytes + self.dirty_bytes;
        if all == 0 {
            return 0.0;
        }
        self.dirty_bytes as f64 / all as f64
    }

    /// Whether it is to be cleaned now.
    #[must_use]
    pub fn is_due(&self, config: &LogConfig) -> bool {
        let is_overdue = self.overdue_ms > 0 && self.dirty_bytes > 0;
        is_overdue || self.ratio() > config.min_cleanable_ratio()
    }
}

impl CleanQuestion<'_> {
    /// The answer.
    pub(crate) fn answer(&self) -> Cleanable {
        let first_dirty = match self.cleaned {
            Some(cleaned) if cleaned >= self.log_start && cleaned <= self.log_end => cleaned,
            // Deleted records, or a log that was cut: all of it is looked at again.
            _ => self.log_start,
        };
        let end = self.end(first_dirty).max(first_dirty);
        let bytes = |from: Offset, to: Offset| {
            let held = self.segments.iter().enumerate().filter(|(place, segment)| {
                let next = self.segments.get(place + 1);
                let reaches = next.is_none_or(|next| next.base_offset > from);
                segment.base_offset < to && reaches
            });
            held.map(|(_, segment)| segment.bytes).sum()
        };
        Cleanable {
            first_dirty,
            end,
            clean_bytes: bytes(Offset(i64::MIN), first_dirty),
            dirty_bytes: match end > first_dirty {
                true => bytes(first_dirty, end),
                false => 0,
            },
            overdue_ms: self.overdue(first_dirty),
        }
    }

    /// The dirty segments that are not active.
    fn dirty(&self, first_dirty: Offset) -> impl Iterator<Item = (&SegmentFacts, Offset)> {
        let pairs = self.segments.iter().zip(self.segments.iter().skip(1));
        pairs
            .map(|(segment, next)| (segment, next.base_offset))
            .filter(move |(_, next)| *next > first_dirty)
    }

    fn end(&self, first_dirty: Offset) -> Offset {
        let safe = self.last_stable.min(self.recovery_point);
        let young = self
            .now
            .0
            .saturating_sub(ms(self.config.min_compaction_lag_ms));
        let is_young = |segment: &SegmentFacts| {
            self.config.min_compaction_lag_ms > 0 && segment.largest_timestamp.0 > young
        };
        let mut end = first_dirty;
        for (segment, next) in self.dirty(first_dirty) {
            if !segment.is_finished || next > safe || is_young(segment) {
                break;
            }
            end = next;
        }
        end
    }

    fn overdue(&self, first_dirty: Offset) -> u64 {
        let until = self
            .now
            .0
            .saturating_sub(ms(self.config.max_compaction_lag_ms));
        let times = self.dirty(first_dirty);
        let times = times.map(|(segment, _)| segment.first_timestamp.0);
        let oldest = times.filter(|time| *time > 0).min().unwrap_or(i64::MAX);
        u64::try_from(until.saturating_sub(oldest)).unwrap_or(0)
    }
}

fn ms(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn facts(base: i64, bytes: u64, first: i64, largest: i64) -> SegmentFacts {
        SegmentFacts {
            base_offset: Offset(base),
            bytes,
            first_timestamp: TimestampMs(first),
            largest_timestamp: TimestampMs(largest),
            is_finished: true,
        }
    }

    const SEGMENTS: [SegmentFacts; 4] = [
        facts(0, 100, 1_000, 1_900),
        facts(10, 200, 2_000, 2_900),
        facts(30, 50, 3_000, 3_900),
        facts(35, 7, 4_000, 4_900),
    ];

    fn answer(config: &LogConfig, change: impl FnOnce(&mut CleanQuestion<'_>)) -> Cleanable {
        let mut question = CleanQuestion {
            config,
            segments: &SEGMENTS,
            log_start: Offset(0),
            log_end: Offset(40),
            last_stable: Offset(40),
            recovery_point: Offset(40),
            cleaned: None,
            now: TimestampMs(10_000),
        };
        change(&mut question);
        question.answer()
    }

    fn range(config: &LogConfig, change: impl FnOnce(&mut CleanQuestion<'_>)) -> (i64, i64) {
        let found = answer(config, change);
        (found.first_dirty.0, found.end.0)
    }

    #[test]
    fn everything_but_the_active_segment_is_dirty_at_first() {
        let config = LogConfig::default();
        let found = answer(&config, |_| ());
        assert_eq!((found.first_dirty, found.end), (Offset(0), Offset(35)));
        assert_eq!((found.clean_bytes, found.dirty_bytes), (0, 350));
        let found = answer(&config, |question| question.cleaned = Some(Offset(10)));
        assert_eq!((found.clean_bytes, found.dirty_bytes), (100, 250));
        // Within a segment it counts on both sides, as in Kafka.
        let found = answer(&config, |question| question.cleaned = Some(Offset(12)));
        assert_eq!((found.clean_bytes, found.dirty_bytes), (300, 250));
        let found = answer(&config, |question| question.cleaned = Some(Offset(35)));
        assert_eq!((found.clean_bytes, found.dirty_bytes), (350, 0));
        assert!(!found.is_due(&config));
    }

    #[test]
    fn nothing_at_or_past_a_limit_is_touched() {
        let config = LogConfig::default();
        for (limit, end) in [
            (40, 35),
            (35, 35),
            (34, 30),
            (30, 30),
            (29, 10),
            (10, 10),
            (9, 0),
        ] {
            let stable = |question: &mut CleanQuestion<'_>| question.last_stable = Offset(limit);
            assert_eq!(range(&config, stable), (0, end), "stable {limit}");
            let point = |question: &mut CleanQuestion<'_>| question.recovery_point = Offset(limit);
            assert_eq!(range(&config, point), (0, end), "recovery point {limit}");
        }
        const UNFINISHED: [SegmentFacts; 4] = {
            let mut segments = SEGMENTS;
            segments[1].is_finished = false;
            segments
        };
        let unfinished = |question: &mut CleanQuestion<'_>| question.segments = &UNFINISHED;
        assert_eq!(range(&config, unfinished), (0, 10));
    }

    #[test]
    fn what_is_younger_than_the_least_lag_stays() {
        let lag = |min_compaction_lag_ms| LogConfig {
            min_compaction_lag_ms,
            ..LogConfig::default()
        };
        assert_eq!(range(&lag(6_100), |_| ()), (0, 35));
        assert_eq!(range(&lag(6_101), |_| ()), (0, 30));
        assert_eq!(range(&lag(8_101), |_| ()), (0, 0));
        assert_eq!(range(&lag(u64::MAX), |_| ()), (0, 0));
    }

    #[test]
    fn the_largest_lag_makes_a_log_due_whatever_its_ratio() {
        let lag = |max_compaction_lag_ms| LogConfig {
            max_compaction_lag_ms,
            min_cleanable_millionths: 1_000_000,
            ..LogConfig::default()
        };
        let config = lag(9_000);
        assert!(!answer(&config, |_| ()).is_due(&config));
        let config = lag(8_999);
        let found = answer(&config, |_| ());
        assert_eq!(found.overdue_ms, 1);
        assert!(found.is_due(&config));
        let clean = |question: &mut CleanQuestion<'_>| question.cleaned = Some(Offset(35));
        assert!(!answer(&config, clean).is_due(&config), "nothing is dirty");
    }

    #[test]
    fn a_ratio_above_the_least_makes_a_log_due() {
        let config = LogConfig::default();
        let found = |clean_bytes, dirty_bytes| Cleanable {
            clean_bytes,
            dirty_bytes,
            ..Cleanable::default()
        };
        assert!(!found(100, 100).is_due(&config));
        assert!(found(100, 101).is_due(&config));
        assert!(!found(0, 0).is_due(&config));
    }

    #[test]
    fn a_mark_outside_the_log_is_forgotten() {
        let config = LogConfig::default();
        let at = |offset| {
            move |question: &mut CleanQuestion<'_>| {
                question.cleaned = Some(Offset(offset));
                question.log_start = Offset(5);
            }
        };
        assert_eq!(range(&config, at(4)), (5, 35));
        assert_eq!(range(&config, at(41)), (5, 35));
        assert_eq!(range(&config, at(5)), (5, 35));
        assert_eq!(range(&config, at(40)), (40, 40));
    }
}
