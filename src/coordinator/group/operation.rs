//! What a group's coordinator is asked, free of the versions of requests.

use bytes::Bytes;

use super::ids::{GroupId, InstanceId, MemberId};
use super::state::GroupState;
use crate::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex, TopicId, Uuid};

/// One request to the coordinator of the groups that it names.
#[derive(Clone, Debug)]
pub enum Operation {
    /// JoinGroup.
    Join(Box<Join>),
    /// SyncGroup.
    Sync(Box<Sync>),
    /// Heartbeat.
    Heartbeat(Heartbeat),
    /// LeaveGroup.
    Leave(Leave),
    /// OffsetCommit.
    CommitOffsets(OffsetCommit),
    /// OffsetFetch, one group of it.
    FetchOffsets(FetchOffsets),
    /// OffsetDelete.
    DeleteOffsets(DeleteOffsets),
    /// DescribeGroups.
    DescribeGroups(Vec<GroupId>),
    /// ListGroups.
    ListGroups(ListGroups),
    /// DeleteGroups.
    DeleteGroups(Vec<GroupId>),
    /// Topics are gone: so are all offsets for them. It has no answer but an empty one.
    ForgetTopics(Vec<NamedTopic>),
}

/// A topic as committed offsets name it: they may name no id, which is zero then.
pub type NamedTopic = (String, TopicId);

/// One way of assigning that a member supports, with what it tells the leader about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name, such as `range`.
    pub name: String,
    /// The member's metadata, opaque but for the topics of consumers.
    pub metadata: Bytes,
}

/// JoinGroup.
#[derive(Clone, Debug)]
pub struct Join {
    /// The group.
    pub group_id: GroupId,
    /// The member's id, or the empty one.
    pub member_id: MemberId,
    /// The static member's name.
    pub instance_id: Option<InstanceId>,
    /// `session.timeout.ms`.
    pub session_timeout_ms: i32,
    /// `max.poll.interval.ms`.
    pub rebalance_timeout_ms: i32,
    /// `consumer`, `connect` and the like.
    pub protocol_type: String,
    /// The member's protocols, the most wanted first.
    pub protocols: Vec<Protocol>,
    /// The client's `client.id`.
    pub client_id: String,
    /// Its address as Java prints one.
    pub client_host: String,
    /// Whether a member without an id is given one and sent away to come back with it (KIP-394,
    /// from version 4 on).
    pub requires_known_member_id: bool,
    /// Whether the client can be told that it need not assign (KIP-814, from version 9 on).
    pub supports_skipping_assignment: bool,
    /// The random part of the id of a new member.
    pub fresh_id: Uuid,
}

/// The assignment of one member.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The member.
    pub member_id: MemberId,
    /// What it is to consume, opaque.
    pub assignment: Bytes,
}

/// SyncGroup.
#[derive(Clone, Debug)]
pub struct Sync {
    /// The group.
    pub group_id: GroupId,
    /// The generation that the member knows.
    pub generation_id: GenerationId,
    /// The member.
    pub member_id: MemberId,
    /// The static member's name.
    pub instance_id: Option<InstanceId>,
    /// The protocol type that the member knows (from version 5 on).
    pub protocol_type: Option<String>,
    /// The protocol that the member knows (from version 5 on).
    pub protocol_name: Option<String>,
    /// From the leader: what each member is to consume.
    pub assignments: Vec<Assignment>,
}

/// Heartbeat.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The group.
    pub group_id: GroupId,
    /// The generation that the member knows.
    pub generation_id: GenerationId,
    /// The member.
    pub member_id: MemberId,
    /// The static member's name.
    pub instance_id: Option<InstanceId>,
}

/// A member that leaves.
#[derive(Clone, Debug)]
pub struct LeavingMember {
    /// The member, or the empty id for the static member of that name.
    pub member_id: MemberId,
    /// The static member's name.
    pub instance_id: Option<InstanceId>,
}

/// LeaveGroup.
#[derive(Clone, Debug)]
pub struct Leave {
    /// The group.
    pub group_id: GroupId,
    /// Who leaves.
    pub members: Vec<LeavingMember>,
}

/// One partition's commit.
#[derive(Clone, Debug)]
pub struct CommitPartition {
    /// The partition.
    pub partition: PartitionIndex,
    /// The next offset to be consumed.
    pub offset: Offset,
    /// The leader epoch of the last record consumed, or -1.
    pub leader_epoch: LeaderEpoch,
    /// What the client adds.
    pub metadata: Option<String>,
}

/// One topic's commits.
#[derive(Clone, Debug)]
pub struct CommitTopic {
    /// The topic, which exists.
    pub name: String,
    /// Its id.
    pub topic_id: TopicId,
    /// Its partitions, which exist.
    pub partitions: Vec<CommitPartition>,
}

/// OffsetCommit.
#[derive(Clone, Debug)]
pub struct OffsetCommit {
    /// The group.
    pub group_id: GroupId,
    /// The generation that the member knows, or -1 for a client that is no member.
    pub generation_id: GenerationId,
    /// The member, or the empty id.
    pub member_id: MemberId,
    /// The static member's name.
    pub instance_id: Option<InstanceId>,
    /// How long the offsets are kept, in milliseconds; -1 for as long as the broker says
    /// (versions 2 to 4).
    pub retention_ms: i64,
    /// Whether a group that is not known has its own code (from version 9 on).
    pub tells_unknown_group: bool,
    /// The commits.
    pub topics: Vec<CommitTopic>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPartitions {
    /// The topic.
    pub name: String,
    /// The partitions.
    pub partitions: Vec<PartitionIndex>,
}

/// OffsetFetch, one group of it.
#[derive(Clone, Debug)]
pub struct FetchOffsets {
    /// The group.
    pub group_id: GroupId,
    /// The partitions; `None` for all that have offsets.
    pub topics: Option<Vec<TopicPartitions>>,
    /// Whether what was committed before, but is not durable yet, is to be waited for.
    pub require_stable: bool,
    /// What the answer may come to, in bytes of metadata and places.
    pub bytes_max: usize,
}

/// OffsetDelete.
#[derive(Clone, Debug)]
pub struct DeleteOffsets {
    /// The group.
    pub group_id: GroupId,
    /// The partitions, which exist.
    pub topics: Vec<TopicPartitions>,
}

/// ListGroups.
#[derive(Clone, Copy, Debug)]
pub struct ListGroups {
    /// Whether groups in this state are wanted, in the order of [`GroupState`].
    pub(super) states: [bool; GroupState::OF_KNOWN.len()],
}
