//! Why a partition does not do what it is asked.

use thiserror::Error;

use crate::base::error_code::ErrorCode;
use crate::log::{AppendError, LogError, ReadError};

/// One failure of one partition's part of a request.
#[derive(Debug, Error)]
pub enum PartitionError {
    /// This broker does not host the partition, or no longer.
    #[error("the partition is not hosted here")]
    Unknown,
    /// Another broker leads, or none.
    #[error("this broker does not lead the partition")]
    NotLeader,
    /// The client's leader epoch is older than the one in force.
    #[error("the leader epoch of the request is older than the current one")]
    FencedLeaderEpoch,
    /// The client's leader epoch is newer than the one known here.
    #[error("the leader epoch of the request is not known here yet")]
    UnknownLeaderEpoch,
    /// Fewer in-sync replicas than `min.insync.replicas`.
    #[error("fewer replicas are in sync than min.insync.replicas asks")]
    NotEnoughReplicas,
    /// The request's own timeout has passed first.
    #[error("the request's timeout has passed")]
    TimedOut,
    /// The offset asked for lies outside the log, or its epoch is not known.
    #[error("the offset is out of range")]
    OffsetOutOfRange,
    /// The topic's records go by compaction alone.
    #[error("cleanup.policy does not name delete")]
    NotDeletable,
    /// The answer lies above the high watermark of a leader that has just been elected.
    #[error("the high watermark has not reached the leader's first offset yet")]
    OffsetNotAvailable,
    /// The log refused the batch.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log does not serve.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl PartitionError {
    /// Kafka's code.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::Unknown => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            Self::NotLeader => ErrorCode::NOT_LEADER_OR_FOLLOWER,
            Self::FencedLeaderEpoch => ErrorCode::FENCED_LEADER_EPOCH,
            Self::UnknownLeaderEpoch => ErrorCode::UNKNOWN_LEADER_EPOCH,
            Self::NotEnoughReplicas => ErrorCode::NOT_ENOUGH_REPLICAS,
            Self::TimedOut => ErrorCode::REQUEST_TIMED_OUT,
            Self::OffsetOutOfRange => ErrorCode::OFFSET_OUT_OF_RANGE,
            Self::NotDeletable => ErrorCode::POLICY_VIOLATION,
            Self::OffsetNotAvailable => ErrorCode::OFFSET_NOT_AVAILABLE,
            Self::Append(error) => error.error_code(),
            Self::Read(error) => error.error_code(),
            Self::Log(error) => error.error_code(),
        }
    }
}
