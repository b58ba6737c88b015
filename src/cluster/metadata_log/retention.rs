//! Where the log may begin (`KafkaRaftLog.maybeClean`): always at a snapshot, and the newest
//! snapshot always stays. Pure.

use super::names::SnapshotId;
use crate::base::config::MetadataLogSettings;
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;

/// What is known of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// Which one.
    pub id: SnapshotId,
    /// Its size.
    pub bytes: u64,
    /// When the last record that it contains was appended, if its header says so.
    pub timestamp: Option<TimestampMs>,
}

/// The snapshot at which the log is to begin, when it is to begin later than now. Snapshots and
/// segments (base offset, bytes; the one that is written to stands last) are in order.
#[must_use]
pub fn new_start(
    snapshots: &[KeptSnapshot],
    segments: &[(Offset, u64)],
    settings: &MetadataLogSettings,
    now: TimestampMs,
) -> Option<SnapshotId> {
    let mut kept = snapshots;
    let mut start = None;
    while let [oldest, rest @ ..] = kept
        && let [next, ..] = rest
    {
        let from = start.map_or(Offset(0), |id: SnapshotId| id.end_offset);
        let bytes = kept.iter().map(|snapshot| snapshot.bytes).sum::<u64>();
        let bytes = bytes.saturating_add(log_bytes(segments, from));
        let is_large = u64::try_from(settings.retention_bytes).is_ok_and(|limit| bytes > limit);
        let is_old = settings.retention_ms >= 0
            && oldest
                .timestamp
                .is_some_and(|then| now.0.saturating_sub(then.0) > settings.retention_ms);
        if !is_large && !is_old {
            break;
        }
        (kept, start) = (rest, Some(next.id));
    }
    start
}

/// Bytes of the segments that hold anything from `start` on.
fn log_bytes(segments: &[(Offset, u64)], start: Offset) -> u64 {
    let nexts = segments.iter().skip(1).map(|(base, _)| Some(*base));
    let all = segments.iter().zip(nexts.chain([None]));
    all.filter(|(_, next)| next.is_none_or(|next| next > start))
        .map(|((_, bytes), _)| *bytes)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::LeaderEpoch;

    const SETTINGS: MetadataLogSettings = MetadataLogSettings {
        segment_bytes_max: 0,
        segment_ms_max: 0,
        bytes_between_snapshots_max: 0,
        snapshot_interval_ms_max: 0,
        retention_bytes: -1,
        retention_ms: -1,
    };

    fn snapshot(end: i64) -> KeptSnapshot {
        KeptSnapshot {
            id: SnapshotId {
                end_offset: Offset(end),
                epoch: LeaderEpoch(1),
            },
            bytes: 10,
            timestamp: Some(TimestampMs(end)),
        }
    }

    fn start(ends: &[i64], settings: MetadataLogSettings, now: i64) -> Option<i64> {
        let snapshots: Vec<KeptSnapshot> = ends.iter().copied().map(snapshot).collect();
        let segments = [0, 100, 200, 300].map(|base| (Offset(base), 1_000));
        let start = new_start(&snapshots, &segments, &settings, TimestampMs(now));
        start.map(|id| id.end_offset.0)
    }

    #[test]
    fn the_log_begins_where_what_is_left_has_the_size() {
        let ends = [0, 100, 200, 300];
        let sized = |retention_bytes| {
            let settings = MetadataLogSettings {
                retention_bytes,
                ..SETTINGS
            };
            start(&ends, settings, 0)
        };
        // All of it: four segments and four snapshots.
        assert_eq!(sized(4_040), None);
        assert_eq!(sized(4_039), Some(100));
        assert_eq!(sized(3_030), Some(100));
        assert_eq!(sized(3_029), Some(200));
        assert_eq!(sized(1_010), Some(300));
        // The newest snapshot and what follows stay, whatever their size.
        assert_eq!(sized(0), Some(300));
        assert_eq!(sized(-1), None);
    }

    #[test]
    fn the_log_begins_behind_snapshots_of_some_age() {
        let ends = [0, 100, 200, 300];
        let aged = |retention_ms, now| {
            let settings = MetadataLogSettings {
                retention_ms,
                ..SETTINGS
            };
            start(&ends, settings, now)
        };
        assert_eq!(aged(50, 50), None);
        assert_eq!(aged(50, 51), Some(100));
        assert_eq!(aged(50, 151), Some(200));
        assert_eq!(aged(50, 10_000), Some(300));
        assert_eq!(aged(0, 1), Some(100));
        assert_eq!(aged(-1, 10_000), None);
    }

    #[test]
    fn one_snapshot_alone_stays_and_a_segment_ends_behind_the_start() {
        let settings = MetadataLogSettings {
            retention_bytes: 0,
            retention_ms: 0,
            ..SETTINGS
        };
        assert_eq!(start(&[], settings, 10_000), None);
        assert_eq!(start(&[250], settings, 10_000), None);
        let settings = MetadataLogSettings {
            retention_bytes: 3_015,
            ..SETTINGS
        };
        // Segment 200 is still needed from 250 on.
        assert_eq!(start(&[150, 250, 300], settings, 0), Some(250));
    }
}
