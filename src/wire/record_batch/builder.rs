//! Building batches: for tests, control records and recompression. Client batches are never built
//! here; they arrive built and stay as they came.

use bytes::BytesMut;

use super::header::Attributes;
use super::layout;
use super::stamp;
use crate::base::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::time::TimestampMs;
use crate::wire::compression::{Codec, CompressError, compress};
use crate::wire::varint::{write_varint, write_varlong};

/// A header of a record to be built: key and value.
pub type NewHeader<'a> = (&'a [u8], Option<&'a [u8]>);

/// A record to be built.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewRecord<'a> {
    /// Its timestamp.
    pub timestamp: TimestampMs,
    /// `None`: null.
    pub key: Option<&'a [u8]>,
    /// `None`: null.
    pub value: Option<&'a [u8]>,
    /// Its headers in order.
    pub headers: &'a [NewHeader<'a>],
}

/// Gathers records and makes one batch of them.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    codec: Codec,
    level: Option<i32>,
    attributes: i16,
    producer: (ProducerId, ProducerEpoch, Sequence),
    log_append_time: Option<TimestampMs>,
    base_timestamp: Option<TimestampMs>,
    max_timestamp: TimestampMs,
    last_offset_delta: i32,
    record_count: i32,
    records: Vec<u8>,
    body: Vec<u8>,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new(Offset(0))
    }
}

impl BatchBuilder {
    /// An empty batch: no codec, no producer id, no leader epoch.
    #[must_use]
    pub const fn new(base_offset: Offset) -> Self {
        Self {
            base_offset,
            leader_epoch: LeaderEpoch::NONE,
            codec: Codec::None,
            level: None,
            attributes: 0,
            producer: (ProducerId::NONE, ProducerEpoch::NONE, Sequence::NONE),
            log_append_time: None,
            base_timestamp: None,
            max_timestamp: TimestampMs::NONE,
            last_offset_delta: -1,
            record_count: 0,
            records: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Compresses the records; `level` `None` is the codec's default.
    #[must_use]
    pub const fn compressed(mut self, codec: Codec, level: Option<i32>) -> Self {
        self.codec = codec;
        self.level = level;
        self
    }

    /// Names the idempotent producer.
    #[must_use]
    pub const fn producer(mut self, id: ProducerId, epoch: ProducerEpoch, base: Sequence) -> Self {
        self.producer = (id, epoch, base);
        self
    }

    /// Makes the batch part of a transaction.
    #[must_use]
    pub const fn transactional(mut self) -> Self {
        self.attributes |= Attributes::TRANSACTIONAL;
        self
    }

    /// Makes it a control batch.
    #[must_use]
    pub const fn control(mut self) -> Self {
        self.attributes |= Attributes::CONTROL;
        self
    }

    /// Sets the leader epoch.
    #[must_use]
    pub const fn leader_epoch(mut self, leader_epoch: LeaderEpoch) -> Self {
        self.leader_epoch = leader_epoch;
        self
    }

    /// Marks the batch as appended at `timestamp`, whatever its records say.
    #[must_use]
    pub const fn log_append_time(mut self, timestamp: TimestampMs) -> Self {
        self.log_append_time = Some(timestamp);
        self
    }

    /// Sets what the timestamp deltas count from; the first record's timestamp where not called.
    #[must_use]
    pub const fn base_timestamp(mut self, timestamp: TimestampMs) -> Self {
        self.base_timestamp = Some(timestamp);
        self
    }

    /// Where the batch ends, from its base offset: compaction keeps that though records are gone.
    /// Records are then appended by [`Self::append_at`].
    #[must_use]
    pub const fn last_offset_delta(mut self, delta: i32) -> Self {
        self.last_offset_delta = delta;
        self
    }

    /// Sets the time after which compaction drops the batch's tombstones (KIP-534); the timestamp
    /// deltas count from it.
    #[must_use]
    pub const fn delete_horizon(mut self, horizon: TimestampMs) -> Self {
        self.attributes |= Attributes::DELETE_HORIZON;
        self.base_timestamp = Some(horizon);
        self
    }

    /// The largest timestamp is at least this one: of a batch whose records are gone.
    #[must_use]
    pub const fn max_timestamp(mut self, timestamp: TimestampMs) -> Self {
        self.max_timestamp = timestamp;
        self
    }

    /// Appends a record at the next offset.
    pub fn append(&mut self, record: NewRecord<'_>) -> &mut Self {
        self.append_at(self.last_offset_delta.saturating_add(1), record)
    }

    /// Appends a record at an offset delta of its own, as compaction leaves them. Deltas should
    /// grow; tests may break that.
    pub fn append_at(&mut self, offset_delta: i32, record: NewRecord<'_>) -> &mut Self {
        let base = *self.base_timestamp.get_or_insert(record.timestamp);
        self.body.clear();
        self.body.push(0);
        write_varlong(&mut self.body, record.timestamp.0.wrapping_sub(base.0));
        write_varint(&mut self.body, offset_delta);
        write_nullable(&mut self.body, record.key);
        write_nullable(&mut self.body, record.value);
        write_varint(&mut self.body, record.headers.len() as i32);
        for (key, value) in record.headers {
            write_nullable(&mut self.body, Some(key));
            write_nullable(&mut self.body, *value);
        }
        write_varint(&mut self.records, self.body.len() as i32);
        self.records.extend_from_slice(&self.body);
        self.record_count += 1;
        self.last_offset_delta = self.last_offset_delta.max(offset_delta);
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        self
    }

    /// Bytes of the records so far, uncompressed.
    #[must_use]
    pub const fn uncompressed_bytes(&self) -> usize {
        self.records.len()
    }

    /// Records so far.
    #[must_use]
    pub const fn record_count(&self) -> i32 {
        self.record_count
    }

    /// Makes the batch, checksum included.
    ///
    /// # Errors
    /// [`CompressError`] when the codec's library refuses.
    pub fn build(&self) -> Result<BytesMut, CompressError> {
        let mut batch = vec![0; layout::HEADER_BYTES];
        compress(self.codec, self.level, &self.records, &mut batch)?;
        let mut batch = BytesMut::from(&batch[..]);
        self.write_header(&mut batch);
        Ok(batch)
    }

    fn write_header(&self, batch: &mut [u8]) {
        let (producer_id, producer_epoch, base_sequence) = self.producer;
        let batch_length = (batch.len() - layout::BATCH_OVERHEAD_BYTES) as i32;
        let attributes = self.attributes | i16::from(self.codec.id());
        let base_timestamp = self.base_timestamp.unwrap_or(TimestampMs::NONE);
        let mut set = |range, value: &[u8]| layout::set_field(batch, range, value);
        set(layout::BASE_OFFSET, &self.base_offset.0.to_be_bytes());
        set(layout::LENGTH, &batch_length.to_be_bytes());
        set(layout::LEADER_EPOCH, &self.leader_epoch.0.to_be_bytes());
        set(layout::MAGIC_AT..layout::MAGIC_AT + 1, &[layout::MAGIC]);
        set(layout::ATTRIBUTES, &attributes.to_be_bytes());
        set(
            layout::LAST_OFFSET_DELTA,
            &self.last_offset_delta.to_be_bytes(),
        );
        set(layout::BASE_TIMESTAMP, &base_timestamp.0.to_be_bytes());
        set(layout::MAX_TIMESTAMP, &self.max_timestamp.0.to_be_bytes());
        set(layout::PRODUCER_ID, &producer_id.0.to_be_bytes());
        set(layout::PRODUCER_EPOCH, &producer_epoch.0.to_be_bytes());
        set(layout::BASE_SEQUENCE, &base_sequence.0.to_be_bytes());
        set(layout::RECORD_COUNT, &self.record_count.to_be_bytes());
        if let Some(timestamp) = self.log_append_time {
            stamp::set_log_append_time(batch, timestamp);
        }
        stamp::recompute_crc(batch);
    }
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => write_varint(out, -1),
        Some(bytes) => {
            write_varint(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
    }
}
