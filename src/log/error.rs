//! What can go wrong below the partition layer. The edge maps these to Kafka's codes once, through
//! `error_code`.

use std::io;

use crate::base::error_code::ErrorCode;
use crate::base::ids::Offset;

/// A failure of a log, a journal or the directory that holds them.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// An operation of the file system failed; it did not take the directory offline.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A write or flush has failed before: nothing is acknowledged until restart.
    #[error("the log directory is offline: {0}")]
    Offline(String),
    /// The log was closed or deleted.
    #[error("the log is closed")]
    Closed,
    /// A file holds what this program cannot have left there.
    #[error("{0}")]
    Damaged(String),
    /// A folder, a setting or the disk's size does not allow the request.
    #[error("{0}")]
    Refused(String),
}

impl LogError {
    /// An input or output error with what was being done.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            source,
        }
    }

    /// Whether the disk had no room.
    #[must_use]
    pub fn is_full_disk(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }

    /// Whether a file was not there.
    #[must_use]
    pub fn is_missing_file(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Kafka's code.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::Closed => ErrorCode::NOT_LEADER_OR_FOLLOWER,
            Self::Io { .. } | Self::Offline(_) | Self::Damaged(_) | Self::Refused(_) => {
                ErrorCode::KAFKA_STORAGE_ERROR
            }
        }
    }
}

/// Why an append was refused. In every case nothing of it is in the log.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The batch broke a rule of the protocol (`LogValidator`); the code and a text for the client.
    #[error("{message}")]
    Invalid {
        /// Kafka's code for the rule.
        code: ErrorCode,
        /// What a client may be told.
        message: String,
        /// The records at fault, where it is their fault (KIP-467).
        faults: Vec<super::validation::RecordFault>,
    },
    /// The batch is larger than `max.message.bytes`.
    #[error("a batch of {bytes} bytes is larger than max.message.bytes, {limit}")]
    TooLarge {
        /// Size of the batch.
        bytes: usize,
        /// The limit in force.
        limit: usize,
    },
    /// The sequence does not follow the producer's last one.
    #[error("out of order sequence number: {0}")]
    OutOfOrderSequence(String),
    /// The producer's epoch is older than one seen before.
    #[error("invalid producer epoch: {0}")]
    InvalidProducerEpoch(String),
    /// The batch's leader epoch is not the log's.
    #[error("the leader epoch has changed")]
    FencedLeaderEpoch,
    /// No room on the disk.
    #[error("no room on the disk: {0}")]
    StorageFull(String),
    /// The request's deadline passed while the append waited for room.
    #[error("the append waited for room until the request's deadline")]
    TimedOut,
    /// The log or its directory does not take appends.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl AppendError {
    /// Kafka's code.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::Invalid { code, .. } => *code,
            Self::TooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            Self::OutOfOrderSequence(_) => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
            Self::InvalidProducerEpoch(_) => ErrorCode::INVALID_PRODUCER_EPOCH,
            Self::FencedLeaderEpoch => ErrorCode::NOT_LEADER_OR_FOLLOWER,
            Self::StorageFull(_) => ErrorCode::KAFKA_STORAGE_ERROR,
            Self::TimedOut => ErrorCode::REQUEST_TIMED_OUT,
            Self::Log(error) => error.error_code(),
        }
    }
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The offset lies outside the log.
    #[error("offset {from} lies outside {start}..{end}")]
    OutOfRange {
        /// What was asked for.
        from: Offset,
        /// First offset of the log.
        start: Offset,
        /// End of the log.
        end: Offset,
    },
    /// The log or its directory does not serve.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl ReadError {
    /// Kafka's code.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::OutOfRange { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
            Self::Log(error) => error.error_code(),
        }
    }
}
