//! What a group's coordinator answers, free of the versions of responses.

use std::collections::HashMap;

use bytes::Bytes;

use super::ids::{GroupId, InstanceId, MemberId};
use super::state::GroupState;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex};

/// The answer to an operation of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// To a join.
    Join(JoinResponse),
    /// To a sync.
    Sync(SyncResponse),
    /// To a heartbeat.
    Heartbeat(ErrorCode),
    /// To members that leave.
    Leave(LeaveResponse),
    /// To a commit: a code for each partition, or one for all of them.
    CommitOffsets(Result<Vec<TopicCodes>, ErrorCode>),
    /// To a fetch of offsets.
    FetchOffsets(FetchedOffsets),
    /// To a deletion of offsets: a code for each partition, or one for all of them.
    DeleteOffsets(Result<Vec<TopicCodes>, ErrorCode>),
    /// What is known of groups, in the order asked for.
    DescribeGroups(Vec<DescribedGroup>),
    /// The groups.
    ListGroups(Vec<ListedGroup>),
    /// A code for each group, in the order asked for.
    DeleteGroups(Vec<(GroupId, ErrorCode)>),
    /// Offsets for deleted topics are forgotten.
    ForgetTopics,
}

/// A member as the leader is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinMember {
    /// The member.
    pub member_id: MemberId,
    /// The static member's name.
    pub instance_id: Option<InstanceId>,
    /// Its metadata for the group's protocol.
    pub metadata: Bytes,
}

/// The answer to a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinResponse {
    /// How it went.
    pub error_code: ErrorCode,
    /// The generation, or -1.
    pub generation_id: GenerationId,
    /// The group's protocol type.
    pub protocol_type: Option<String>,
    /// The protocol that was chosen.
    pub protocol_name: Option<String>,
    /// The leader's id; empty without one.
    pub leader: String,
    /// Whether the leader is to leave the assignment as it is.
    pub skip_assignment: bool,
    /// The member's id.
    pub member_id: String,
    /// For the leader: all members.
    pub members: Vec<JoinMember>,
}

impl JoinResponse {
    /// A refusal, without a generation.
    #[must_use]
    pub fn refused(member_id: &str, error_code: ErrorCode) -> Self {
        Self {
            error_code,
            generation_id: GenerationId::NONE,
            protocol_type: None,
            protocol_name: None,
            leader: String::new(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: Vec::new(),
        }
    }
}

/// The answer to a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncResponse {
    /// How it went.
    pub error_code: ErrorCode,
    /// The group's protocol type.
    pub protocol_type: Option<String>,
    /// The protocol of the generation.
    pub protocol_name: Option<String>,
    /// What the member is to consume.
    pub assignment: Bytes,
}

impl SyncResponse {
    /// A refusal.
    #[must_use]
    pub fn refused(error_code: ErrorCode) -> Self {
        Self {
            error_code,
            protocol_type: None,
            protocol_name: None,
            assignment: Bytes::new(),
        }
    }
}

/// A member that was to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftMember {
    /// The id that was given.
    pub member_id: MemberId,
    /// The name that was given.
    pub instance_id: Option<InstanceId>,
    /// How it went.
    pub error_code: ErrorCode,
}

/// The answer to members that leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveResponse {
    /// How it went as a whole.
    pub error_code: ErrorCode,
    /// Each member in the order given.
    pub members: Vec<LeftMember>,
}

/// The codes of one topic's partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicCodes {
    /// The topic.
    pub name: String,
    /// Each partition with its code.
    pub partitions: Vec<(PartitionIndex, ErrorCode)>,
}

impl TopicCodes {
    /// Adds `more` to `codes`, partitions of one topic to those that it has already.
    pub fn merge(codes: &mut Vec<Self>, more: impl IntoIterator<Item = Self>) {
        let known = codes.iter().enumerate();
        let mut places: HashMap<String, usize> = known
            .map(|(place, one)| (one.name.clone(), place))
            .collect();
        for one in more {
            let place = places.get(&one.name);
            match place.and_then(|place| codes.get_mut(*place)) {
                Some(known) => known.partitions.extend(one.partitions),
                None => {
                    places.insert(one.name.clone(), codes.len());
                    codes.push(one);
                }
            }
        }
    }
}

/// A partition's committed offset, or -1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedOffset {
    /// The partition.
    pub partition: PartitionIndex,
    /// The offset, or -1.
    pub offset: Offset,
    /// The leader epoch, or -1.
    pub leader_epoch: LeaderEpoch,
    /// What the client added.
    pub metadata: String,
}

/// One topic's committed offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    /// The topic.
    pub name: String,
    /// Its partitions.
    pub partitions: Vec<FetchedOffset>,
}

/// A group's committed offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedOffsets {
    /// How it went.
    pub error_code: ErrorCode,
    /// The offsets.
    pub topics: Vec<FetchedTopic>,
}

impl FetchedOffsets {
    /// Bytes of metadata, names and places.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        let partitions: usize = partitions.map(FetchedOffset::bytes).sum();
        let topics = self.topics.iter().map(FetchedTopic::own_bytes);
        partitions + topics.sum::<usize>()
    }
}

impl FetchedTopic {
    /// Bytes of its name and place, without its partitions.
    #[must_use]
    pub fn own_bytes(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }
}

impl FetchedOffset {
    /// Bytes of metadata and of its place.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.metadata.len()
    }
}

/// A member as DescribeGroups tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    /// The member.
    pub member_id: MemberId,
    /// The static member's name.
    pub instance_id: Option<InstanceId>,
    /// The client's `client.id`.
    pub client_id: String,
    /// Its address.
    pub client_host: String,
    /// Its metadata for the group's protocol; only of a stable group.
    pub metadata: Bytes,
    /// What it consumes.
    pub assignment: Bytes,
}

/// A group as DescribeGroups tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedGroup {
    /// The group.
    pub group_id: GroupId,
    /// Its state; `Dead` when it is not known.
    pub state: GroupState,
    /// Its protocol type, or the empty text.
    pub protocol_type: String,
    /// Its protocol; only of a stable group.
    pub protocol: String,
    /// Its members.
    pub members: Vec<DescribedMember>,
}

/// A group as ListGroups tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    /// The group.
    pub group_id: GroupId,
    /// Its protocol type, or the empty text.
    pub protocol_type: String,
    /// Its state.
    pub state: GroupState,
}
