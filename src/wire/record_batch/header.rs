//! The header of a batch, parsed by value.

use thiserror::Error;

use super::layout;
use crate::base::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::time::{TimestampMs, TimestampType};
use crate::metrics::touched;
use crate::wire::compression::Codec;

/// Why bytes are no batch, or not the batch they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BatchError {
    /// Fewer bytes than a header or than the batch's own length; `have` of `need` bytes are there.
    #[error("a record batch ends after {have} of {need} bytes")]
    Truncated {
        /// Bytes that are there.
        have: usize,
        /// Bytes that the batch needs.
        need: usize,
    },
    /// `batchLength` is smaller than a header's rest, or negative.
    #[error("a record batch claims a length of {0} bytes, below its header's")]
    Length(i32),
    /// Another format than v2.
    #[error("a record batch has magic {0}, only 2 is supported")]
    Magic(i8),
    /// The stored checksum is not that of the bytes.
    #[error("a record batch has checksum {computed:#010x} but claims {stored:#010x}")]
    Crc {
        /// What the header says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// Bits 0-2 of the attributes name no codec.
    #[error("a record batch names compression type {0}, which does not exist")]
    UnknownCodec(u8),
}

/// The `attributes` field of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Attributes(pub i16);

impl Attributes {
    pub(super) const CODEC_MASK: i16 = 0x07;
    pub(super) const LOG_APPEND_TIME: i16 = 0x08;
    pub(super) const TRANSACTIONAL: i16 = 0x10;
    pub(super) const CONTROL: i16 = 0x20;
    pub(super) const DELETE_HORIZON: i16 = 0x40;

    /// The codec of the records.
    ///
    /// # Errors
    /// [`BatchError::UnknownCodec`] for 5 to 7.
    pub fn codec(self) -> Result<Codec, BatchError> {
        let id = (self.0 & Self::CODEC_MASK) as u8;
        Codec::from_id(id).ok_or(BatchError::UnknownCodec(id))
    }

    /// Who set the timestamps.
    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME != 0 {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        }
    }

    /// Part of a transaction.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Holds control records, which consumers never see.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// `baseTimestamp` is the time after which compaction drops tombstones (KIP-534).
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }
}

/// The header of a batch. Nothing in it has been checked but magic and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: Offset,
    /// `batchLength`: the bytes after this field; see [`BatchHeader::total_bytes`].
    pub batch_length: i32,
    /// The leader epoch under which the batch was appended.
    pub leader_epoch: LeaderEpoch,
    /// CRC-32C of the bytes from the attributes on, as claimed.
    pub crc: u32,
    /// Codec, timestamp type, flags.
    pub attributes: Attributes,
    /// Offset of the last record, from the base offset; kept by compaction.
    pub last_offset_delta: i32,
    /// What the records' timestamp deltas count from, or the delete horizon.
    pub base_timestamp: TimestampMs,
    /// The largest timestamp in the batch, as claimed.
    pub max_timestamp: TimestampMs,
    /// The idempotent producer, or -1.
    pub producer_id: ProducerId,
    /// Its epoch, or -1.
    pub producer_epoch: ProducerEpoch,
    /// The first record's sequence, or -1.
    pub base_sequence: Sequence,
    /// Records in the batch, as claimed.
    pub record_count: i32,
}

impl BatchHeader {
    /// Parses the header at the start of `bytes`, which may go on past the batch. Checks that a
    /// whole header is there, that the format is v2 and that the length can be one.
    ///
    /// # Errors
    /// [`BatchError::Truncated`], [`BatchError::Magic`] or [`BatchError::Length`], in this order.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let need = layout::HEADER_BYTES;
        // The magic byte stands at the same place in every format, and the old ones are shorter.
        match bytes.get(layout::MAGIC_AT) {
            Some(2) | None => {}
            Some(magic) => return Err(BatchError::Magic(magic.cast_signed())),
        }
        if bytes.len() < need {
            return Err(BatchError::Truncated {
                have: bytes.len(),
                need,
            });
        }
        let batch_length = i32::from_be_bytes(layout::field(bytes, layout::LENGTH));
        let length_min = (layout::BATCH_BYTES_MIN - layout::BATCH_OVERHEAD_BYTES) as i32;
        if batch_length < length_min {
            return Err(BatchError::Length(batch_length));
        }
        let long = |range| i64::from_be_bytes(layout::field(bytes, range));
        let int = |range| i32::from_be_bytes(layout::field(bytes, range));
        let short = |range| i16::from_be_bytes(layout::field(bytes, range));
        Ok(Self {
            base_offset: Offset(long(layout::BASE_OFFSET)),
            batch_length,
            leader_epoch: LeaderEpoch(int(layout::LEADER_EPOCH)),
            crc: u32::from_be_bytes(layout::field(bytes, layout::CRC)),
            attributes: Attributes(short(layout::ATTRIBUTES)),
            last_offset_delta: int(layout::LAST_OFFSET_DELTA),
            base_timestamp: TimestampMs(long(layout::BASE_TIMESTAMP)),
            max_timestamp: TimestampMs(long(layout::MAX_TIMESTAMP)),
            producer_id: ProducerId(long(layout::PRODUCER_ID)),
            producer_epoch: ProducerEpoch(short(layout::PRODUCER_EPOCH)),
            base_sequence: Sequence(int(layout::BASE_SEQUENCE)),
            record_count: int(layout::RECORD_COUNT),
        })
    }

    /// Bytes of the whole batch, as claimed. At least [`layout::HEADER_BYTES`].
    #[must_use]
    pub const fn total_bytes(&self) -> usize {
        // `parse` has refused negative lengths.
        self.batch_length.unsigned_abs() as usize + layout::BATCH_OVERHEAD_BYTES
    }

    /// Offset of the last record (inclusive).
    #[must_use]
    pub const fn last_offset(&self) -> Offset {
        self.base_offset.plus(self.last_offset_delta as i64)
    }

    /// The offset after the batch (exclusive end).
    #[must_use]
    pub const fn next_offset(&self) -> Offset {
        self.last_offset().plus(1)
    }

    /// Whether an idempotent producer wrote it.
    #[must_use]
    pub const fn has_producer_id(&self) -> bool {
        self.producer_id.0 > ProducerId::NONE.0
    }

    /// The last record's sequence, or -1 where there is none (`DefaultRecordBatch.lastSequence`).
    #[must_use]
    pub const fn last_sequence(&self) -> Sequence {
        if self.base_sequence.0 < 0 || self.last_offset_delta < 0 {
            Sequence::NONE
        } else {
            self.base_sequence.plus(self.last_offset_delta)
        }
    }

    /// When compaction may drop the batch's tombstones, where that was set.
    #[must_use]
    pub const fn delete_horizon(&self) -> Option<TimestampMs> {
        if self.attributes.has_delete_horizon() {
            Some(self.base_timestamp)
        } else {
            None
        }
    }
}

/// Checks the checksum of one whole batch, no byte more or less.
///
/// # Errors
/// [`BatchError::Truncated`] when `batch` is shorter than a header, [`BatchError::Crc`] when the
/// bytes are not what was written.
pub fn verify_crc(batch: &[u8]) -> Result<(), BatchError> {
    let need = layout::HEADER_BYTES;
    let Some(covered) = batch
        .get(layout::CRC_COVERS_FROM..)
        .filter(|_| batch.len() >= need)
    else {
        return Err(BatchError::Truncated {
            have: batch.len(),
            need,
        });
    };
    let stored = u32::from_be_bytes(layout::field(batch, layout::CRC));
    touched::note_checked(covered.len());
    let computed = crc32c::crc32c(covered);
    if stored == computed {
        Ok(())
    } else {
        Err(BatchError::Crc { stored, computed })
    }
}
