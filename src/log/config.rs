//! The plain values that pass through the facade: what a log is, how it is set, what goes in and
//! what comes out.

use std::time::Duration;

use bytes::Bytes;

use crate::base::ids::{LeaderEpoch, Offset, PartitionIndex, TopicId};
use crate::base::limits::MIB;
use crate::base::time::{MonotonicNs, TimestampMs, TimestampType};

/// Which partition a log holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogIdentity {
    /// The topic's name.
    pub topic: String,
    /// The topic's id.
    pub topic_id: TopicId,
    /// The partition.
    pub partition: PartitionIndex,
}

impl LogIdentity {
    /// The folder's name, `<topic>-<partition>`.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }
}

/// A log's settings as plain numbers; Kafka's names and defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `segment.bytes`.
    pub segment_bytes: u64,
    /// `segment.ms`.
    pub segment_ms: u64,
    /// `segment.jitter.ms`: at most this much is taken off `segment_ms`, at random.
    pub segment_jitter_ms: u64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u64,
    /// `max.message.bytes`: largest batch.
    pub max_message_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// `compression.type` by its id in a batch's attributes; `None`: `producer`.
    pub compression: Option<u8>,
    /// Level for that codec; `None`: its default.
    pub compression_level: Option<i32>,
    /// `cleanup.policy` names compaction, so that every record needs a key.
    pub compacted: bool,
    /// `cleanup.policy` names deletion: segments go by the two limits that follow.
    pub deletes: bool,
    /// `retention.ms`; `None`: no limit.
    pub retention_ms: Option<u64>,
    /// `retention.bytes`; `None`: no limit.
    pub retention_bytes: Option<u64>,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: u64,
    /// `min.cleanable.dirty.ratio`, in millionths.
    pub min_cleanable_millionths: u32,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: u64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: u64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: u64,
    /// `write.caching`.
    pub write_caching: bool,
    /// `flush.messages`; heeded under `write.caching` only.
    pub flush_messages: u64,
    /// `flush.ms`; heeded under `write.caching` only.
    pub flush_ms: u64,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: u64,
    /// `coreline.validate.compressed`.
    pub validate_compressed: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1024 * MIB as u64,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 * MIB as u64,
            index_interval_bytes: 4096,
            max_message_bytes: MIB + 12,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compression: None,
            compression_level: None,
            compacted: false,
            deletes: true,
            retention_ms: Some(7 * 24 * 3_600_000),
            retention_bytes: None,
            file_delete_delay_ms: 60_000,
            min_cleanable_millionths: 500_000,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX as u64,
            delete_retention_ms: 86_400_000,
            write_caching: false,
            flush_messages: u64::MAX,
            flush_ms: u64::MAX,
            producer_id_expiration_ms: 86_400_000,
            validate_compressed: true,
        }
    }
}

impl LogConfig {
    /// `min.cleanable.dirty.ratio`.
    #[must_use]
    pub fn min_cleanable_ratio(&self) -> f64 {
        f64::from(self.min_cleanable_millionths) / 1e6
    }

    /// After how long a segment is rolled: of a compacted log the records must also become
    /// cleanable in time (`LogConfig.maxSegmentMs`).
    #[must_use]
    pub fn segment_ms_max(&self) -> u64 {
        match self.compacted && self.max_compaction_lag_ms > 0 {
            true => self.segment_ms.min(self.max_compaction_lag_ms),
            false => self.segment_ms,
        }
    }
}

/// Who appends (`AppendOrigin`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendOrigin {
    /// A producer: everything is validated, duplicates are looked for.
    #[default]
    Client,
    /// A coordinator of this broker.
    Coordinator,
    /// A transaction marker: control batches are allowed.
    Marker,
    /// A follower's copy: offsets and epochs are the leader's and stay.
    Replica,
}

/// What a batch keeps alive in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferBytes {
    /// Its part of the buffer that it was received in; 0: the batch alone.
    pub part: usize,
    /// What was left unused of buffers before, which the same client's earlier batches keep alive.
    pub abandoned: usize,
}

/// What an append needs to know beside its batch.
#[derive(Clone, Copy, Debug)]
pub struct AppendContext {
    /// Who appends.
    pub origin: AppendOrigin,
    /// The leader epoch to stamp; an older one than the log's is refused.
    pub leader_epoch: LeaderEpoch,
    /// Until when the append may wait for room.
    pub deadline: MonotonicNs,
    /// What the batch keeps alive.
    pub buffer_bytes: BufferBytes,
}

impl AppendContext {
    /// A client's append that may wait for `timeout` from `now`.
    #[must_use]
    pub fn client(leader_epoch: LeaderEpoch, now: MonotonicNs, timeout: Duration) -> Self {
        Self {
            origin: AppendOrigin::Client,
            leader_epoch,
            deadline: now.after(timeout),
            buffer_bytes: BufferBytes::default(),
        }
    }
}

/// Where an append landed. It is in order and readable by replicas, not yet durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Offset of its last record; durable once `durable_end` is past it.
    pub last_offset: Offset,
    /// The broker's time under LogAppendTime, else `TimestampMs::NONE`; of a duplicate the
    /// original's largest timestamp.
    pub log_append_time: TimestampMs,
    /// First offset of the log.
    pub log_start_offset: Offset,
    /// An exact retry: the offsets are the original's. Wait for their durability all the same.
    pub duplicate: bool,
}

/// How much to read.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimit {
    /// Whole batches up to this sum.
    pub max_bytes: usize,
    /// Memory that they may keep alive: a batch keeps the buffer that it was received in.
    pub memory_max: usize,
    /// The first batch is given even above `max_bytes` (KIP-74) while it keeps no more memory than
    /// this alive.
    pub first_batch_max: usize,
    /// Only batches that end at or below this offset (HW, last stable offset, or log end).
    pub end: Offset,
}

/// Whole batches in offset order; the first may begin below the offset asked for.
#[derive(Clone, Debug, Default)]
pub struct ReadResult {
    /// The bytes, sharing memory with the tail cache or a read buffer.
    pub slices: Vec<Bytes>,
    /// Their sum.
    pub bytes: usize,
    /// Memory that they keep alive.
    pub memory: usize,
    /// Memory for the next batch where more than the limit allows was needed for it.
    pub needed: usize,
}

impl ReadResult {
    /// Nothing, for the first batch needs more than is allowed.
    #[must_use]
    pub fn too_large(needed: usize) -> Self {
        Self {
            needed,
            ..Self::default()
        }
    }
}

/// An answer to a search by timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampedOffset {
    /// The record's timestamp.
    pub timestamp: TimestampMs,
    /// Its offset.
    pub offset: Offset,
    /// The leader epoch of its batch.
    pub leader_epoch: LeaderEpoch,
}
