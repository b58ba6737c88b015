//! Fetch sessions (KIP-227): a consumer names its partitions once, then only what changes.
//!
//! A session is full at epoch 0, then counts 1, 2, … per request; -1 ends it.
//!
//! | request | session | becomes |
//! |---|---|---|
//! | id any, epoch -1 | the named one is dropped | no session |
//! | id any, epoch 0 | the named one is dropped | a new session, or none without room |
//! | id known, epoch as expected | updated | the next epoch |
//! | id known, other epoch | untouched | `INVALID_FETCH_SESSION_EPOCH` |
//! | id unknown | – | `FETCH_SESSION_ID_NOT_FOUND` |
//! | id known, ids for names or back | untouched | `FETCH_SESSION_TOPIC_ID_ERROR` |
//!
//! The order of a session's partitions is the order in which they were named; one that has
//! returned records moves to the end, so that every partition has its turn under `max_bytes`
//! (`IncrementalFetchContext.PartitionIterator`). Pure: time and ids come in as arguments.

mod cache;
mod session;

pub use cache::{
    FetchSessions, SESSION_EVICTION_MIN, SESSION_PARTITION_BYTES, SESSION_PARTITIONS_MAX,
};
pub use session::{FetchTarget, PartitionSummary, TopicKey};

use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;

/// `FetchMetadata.INVALID_SESSION_ID`: no session.
pub const NO_SESSION: i32 = 0;
/// `FetchMetadata.INITIAL_EPOCH`: a full request that asks for a session.
pub const INITIAL_EPOCH: i32 = 0;
/// `FetchMetadata.FINAL_EPOCH`: a full request without a session.
pub const FINAL_EPOCH: i32 = -1;

/// The session's part of a Fetch request.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// The session, 0 for none.
    pub session_id: i32,
    /// The request's epoch within it.
    pub session_epoch: i32,
    /// Whether topics are named by id (version 13 and later).
    pub uses_topic_ids: bool,
    /// Partitions added or changed, in the request's order.
    pub targets: Vec<FetchTarget>,
    /// Partitions to forget.
    pub forgotten: Vec<(TopicKey, PartitionIndex)>,
}

/// What a fetch works on, and what its response must settle.
#[derive(Debug)]
pub struct FetchPlan {
    /// All partitions to read, in the order of the response.
    pub targets: Vec<FetchTarget>,
    pub(super) kind: PlanKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PlanKind {
    /// No session; everything is answered.
    Sessionless,
    /// A session is made of this response.
    Full { uses_topic_ids: bool },
    /// Only what changed is answered.
    Incremental { session_id: i32, next_epoch: i32 },
}

/// How a response goes out.
#[derive(Debug, PartialEq, Eq)]
pub struct FetchVerdict {
    /// The response's own error; the partitions are left out when there is one.
    pub error: ErrorCode,
    /// The session to name, 0 for none.
    pub session_id: i32,
    /// For each target whether it stands in the response.
    pub included: Vec<bool>,
}

/// `FetchMetadata.nextEpoch`: wraps to 1, since 0 starts a session.
#[must_use]
pub fn next_epoch(epoch: i32) -> i32 {
    match epoch {
        negative if negative < 0 => FINAL_EPOCH,
        i32::MAX => 1,
        other => other + 1,
    }
}

#[cfg(test)]
mod session_test;
