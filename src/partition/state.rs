//! What a partition tells of itself for metrics.

use super::replica::Partition;
use crate::base::ids::Offset;

/// What clients have done with one partition since its shard hosts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionCounts {
    /// Appends that were asked for.
    pub appends: u64,
    /// Those of them that were refused.
    pub appends_failed: u64,
    /// Records appended.
    pub records_in: u64,
    /// Bytes appended.
    pub bytes_in: u64,
    /// Bytes of appends that were refused.
    pub bytes_refused: u64,
    /// Reads that were asked for.
    pub reads: u64,
    /// Those of them that failed.
    pub reads_failed: u64,
    /// Bytes read.
    pub bytes_out: u64,
}

/// Ends, sizes and counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionState {
    /// First readable offset.
    pub log_start_offset: Offset,
    /// Exclusive end of what consumers see.
    pub high_watermark: Offset,
    /// Exclusive end of the log.
    pub log_end_offset: Offset,
    /// Bytes of its segments.
    pub size_bytes: u64,
    /// Whether this broker leads it.
    pub is_leader: bool,
    /// Whether its log directory is offline: then nobody leads it for long.
    pub is_offline: bool,
    /// Replicas that it should have.
    pub replicas: usize,
    /// Those of them that are in sync.
    pub in_sync: usize,
    /// `min.insync.replicas`.
    pub min_in_sync: usize,
    /// Whether records of it are damaged.
    pub is_damaged: bool,
    /// What clients have done.
    pub counts: PartitionCounts,
}

impl Partition {
    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> PartitionState {
        let leadership = self.leadership.borrow();
        PartitionState {
            log_start_offset: self.log().log_start_offset(),
            high_watermark: self.high_watermark(),
            log_end_offset: self.log().log_end_offset(),
            size_bytes: self.log().size_bytes(),
            is_leader: leadership.is_led_by(self.local),
            is_offline: self.log().check_online().is_err(),
            replicas: leadership.replicas.len(),
            in_sync: leadership.isr.len(),
            min_in_sync: self.min_insync_replicas.get(),
            is_damaged: self.log().damage().is_some(),
            counts: self.counts.get(),
        }
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut PartitionCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}
