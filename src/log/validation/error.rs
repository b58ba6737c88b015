//! Why a batch is refused, and Kafka's code for it.

use thiserror::Error;

use crate::base::error_code::ErrorCode;
use crate::base::time::TimestampMs;
use crate::wire::compression::{CompressError, DecompressError};
use crate::wire::record::RecordError;
use crate::wire::record_batch::BatchError;
use crate::wire::record_walk::WalkError;

/// Faulty records that an answer names one by one; Kafka names all, however many.
pub const RECORD_ERRORS_MAX: usize = 100;

/// What is wrong with one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFaultKind {
    /// No key, on a compacted topic.
    MissingKey,
    /// Its timestamp lies outside the limits.
    Timestamp {
        /// The timestamp.
        timestamp: TimestampMs,
        /// The oldest allowed.
        oldest: TimestampMs,
        /// The newest allowed.
        newest: TimestampMs,
    },
    /// The producer marked the batch as stamped by the broker.
    TimestampType,
}

/// A faulty record and its place in the batch, for `record_errors` of the Produce answer (KIP-467).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}", self.message())]
pub struct RecordFault {
    /// Place in the batch, from 0.
    pub batch_index: i32,
    /// What is wrong with it.
    pub kind: RecordFaultKind,
}

impl RecordFault {
    /// The text for the producer.
    #[must_use]
    pub fn message(&self) -> String {
        match self.kind {
            RecordFaultKind::MissingKey => {
                "a compacted topic takes no record without a key".to_owned()
            }
            RecordFaultKind::Timestamp {
                timestamp,
                oldest,
                newest,
            } => format!(
                "timestamp {} is out of range: it must lie between {} and {}",
                timestamp.0, oldest.0, newest.0
            ),
            RecordFaultKind::TimestampType => {
                "a producer must not set the timestamp type LogAppendTime".to_owned()
            }
        }
    }
}

/// Why a batch is refused.
#[derive(Debug, Error)]
pub enum ValidationError {
    /// The request carries null for the partition's records. Kafka never answers that.
    #[error("the request holds no records for the partition")]
    NullRecords,
    /// Not even one whole batch.
    #[error("the request holds no whole record batch for the partition")]
    NoBatch,
    /// More than one batch.
    #[error("the request holds more than one record batch for the partition")]
    SeveralBatches,
    /// The format is older than v2.
    #[error("only record batches of magic 2 are allowed, not {0}")]
    OldMagic(i8),
    /// zstd in a Produce request below version 7 (KIP-110).
    #[error("Produce requests below version 7 may not use zstd")]
    ZstdTooEarly,
    /// Not a batch, or its checksum is wrong.
    #[error(transparent)]
    Corrupt(BatchError),
    /// Larger than `max.message.bytes`.
    #[error("the batch has {bytes} bytes, more than max.message.bytes = {limit}")]
    TooLarge {
        /// The batch's size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Larger than a segment.
    #[error("the batch has {bytes} bytes, more than segment.bytes = {limit}")]
    LargerThanSegment {
        /// The batch's size.
        bytes: usize,
        /// The limit.
        limit: u64,
    },
    /// The attributes name a codec that does not exist.
    #[error("the batch names compression type {0}, which does not exist")]
    UnknownCodec(u8),
    /// The batch is part of a transaction, but the request names no transactional id.
    #[error("a transactional batch in a request without transactional id")]
    TransactionalIdMissing,
    /// The header contradicts itself or names what clients may not.
    #[error("{0}")]
    Header(&'static str),
    /// The records are not records, or not those that the header declares.
    #[error(transparent)]
    Records(RecordError),
    /// The records' offsets do not count up from 0.
    #[error("record {index} has offset delta {found}")]
    OffsetDelta {
        /// Place in the batch.
        index: i32,
        /// Its offset delta.
        found: i32,
    },
    /// The compressed bytes do not decompress.
    #[error(transparent)]
    Undecodable(DecompressError),
    /// They decompress to more than is allowed.
    #[error("the records decompress to more than {limit} bytes")]
    Bomb {
        /// The limit, in bytes.
        limit: u64,
    },
    /// Single records break a rule; the first [`RECORD_ERRORS_MAX`] of them.
    #[error("{} of the batch's records are refused: {}", .0.len(), first_message(.0))]
    RecordFaults(Vec<RecordFault>),
    /// The batch could not be compressed anew.
    #[error(transparent)]
    Recompression(#[from] CompressError),
}

fn first_message(faults: &[RecordFault]) -> String {
    faults.first().map(RecordFault::message).unwrap_or_default()
}

impl ValidationError {
    /// Kafka's code for it.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::NullRecords
            | Self::NoBatch
            | Self::SeveralBatches
            | Self::OldMagic(_)
            | Self::Header(_)
            | Self::Records(_)
            | Self::OffsetDelta { .. } => ErrorCode::INVALID_RECORD,
            Self::TransactionalIdMissing => ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            Self::ZstdTooEarly => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            Self::Corrupt(_) => ErrorCode::CORRUPT_MESSAGE,
            // A Java producer splits a batch that is too large and sends the halves.
            Self::TooLarge { .. } | Self::Bomb { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            Self::LargerThanSegment { .. } => ErrorCode::RECORD_LIST_TOO_LARGE,
            Self::RecordFaults(faults) => match faults.first().map(|fault| fault.kind) {
                Some(RecordFaultKind::MissingKey) | None => ErrorCode::INVALID_RECORD,
                Some(RecordFaultKind::Timestamp { .. } | RecordFaultKind::TimestampType) => {
                    ErrorCode::INVALID_TIMESTAMP
                }
            },
            // Kafka has no code for these: its decoders throw something that it does not map.
            Self::UnknownCodec(_) | Self::Undecodable(_) | Self::Recompression(_) => {
                ErrorCode::UNKNOWN_SERVER_ERROR
            }
        }
    }

    /// The records that broke a rule, for `record_errors` of the answer.
    #[must_use]
    pub fn record_faults(&self) -> &[RecordFault] {
        match self {
            Self::RecordFaults(faults) => faults,
            _ => &[],
        }
    }
}

impl From<WalkError> for ValidationError {
    fn from(error: WalkError) -> Self {
        match error {
            WalkError::Record(error) => Self::Records(error),
            WalkError::Decompress(error) => error.into(),
        }
    }
}

impl From<DecompressError> for ValidationError {
    fn from(error: DecompressError) -> Self {
        match error {
            DecompressError::TooLarge { limit } => Self::Bomb { limit },
            DecompressError::Corrupt { .. } => Self::Undecodable(error),
        }
    }
}
