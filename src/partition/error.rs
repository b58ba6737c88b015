//! Why a partition does not do what it is asked.

use thiserror::Error;

/// Mapped to Kafka's codes once, in `server::api`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
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
}
