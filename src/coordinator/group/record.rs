//! What the coordinator writes to `__consumer_offsets`, free of the versions of records.

use bytes::Bytes;

use super::ids::{GroupId, InstanceId, MemberId};
use crate::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex, TopicId};
use crate::base::time::TimestampMs;

/// One record. A value of `None` is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A group (`GroupMetadataKey` 2).
    Group {
        /// The group.
        group_id: GroupId,
        /// Its state.
        value: Option<GroupValue>,
    },
    /// A committed offset (`OffsetCommitKey` 1).
    Offset {
        /// The group.
        group_id: GroupId,
        /// The topic.
        topic: String,
        /// The partition.
        partition: PartitionIndex,
        /// The offset.
        value: Option<CommittedOffset>,
    },
}

/// A group as it is stored (`GroupMetadataValue` 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupValue {
    /// Empty for a group that never had a member.
    pub protocol_type: String,
    /// The generation.
    pub generation_id: GenerationId,
    /// The protocol that the generation uses.
    pub protocol: Option<String>,
    /// The leader.
    pub leader: Option<MemberId>,
    /// Since when the group is in its state, or -1.
    pub state_since: TimestampMs,
    /// The members.
    pub members: Vec<MemberValue>,
}

/// A member as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberValue {
    /// The member.
    pub member_id: MemberId,
    /// The static member's name.
    pub instance_id: Option<InstanceId>,
    /// The client's `client.id`.
    pub client_id: String,
    /// Its address.
    pub client_host: String,
    /// The rebalance timeout; -1 in old records, where the session timeout stands for it.
    pub rebalance_timeout_ms: i32,
    /// The session timeout.
    pub session_timeout_ms: i32,
    /// Its metadata for the group's protocol.
    pub subscription: Bytes,
    /// What it consumes.
    pub assignment: Bytes,
}

/// An offset that a group has committed for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to be consumed.
    pub offset: Offset,
    /// The leader epoch of the last record consumed, or -1.
    pub leader_epoch: LeaderEpoch,
    /// What the client added.
    pub metadata: String,
    /// When it was committed.
    pub committed_at: TimestampMs,
    /// When it expires, if the client said so; else -1.
    pub expires_at: TimestampMs,
    /// The topic that it is for: another may come to have its name. Zero where the record has no
    /// room for it, which is that of an offset with an end of its own, or of an older broker.
    pub topic_id: TopicId,
}
