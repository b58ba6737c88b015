//! OffsetFetch (9), versions 1 to 9: how far groups have read.
//!
//! - Version 2 may ask for all topics and has an error of its own (KIP-88), 3 the throttle time, 5
//!   leader epochs (KIP-320), 6 is flexible, 7 may refuse offsets that a transaction has yet to
//!   commit (KIP-447), 8 asks for several groups (KIP-709), 9 names the member (KIP-848).
//!
//! Not served: version 10, which names topics by id.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{LeaderEpoch, Offset, PartitionIndex};
use crate::wire::codec::message;

message! {
    /// The group below version 8, the groups from there on.
    pub struct OffsetFetchRequest(api_key 9, versions 1..=9, flexible 6) {
        group_id: String => 0..=7;
        /// Null for all that the group has.
        topics: Option<Vec<OffsetFetchRequestTopic>>
            => 0..=7, nullable 2..=7, default Some(Vec::new());
        groups: Vec<OffsetFetchRequestGroup> => 8..;
        /// Refuse offsets that an open transaction may replace.
        require_stable: bool => 7..;
    }

    /// Partitions of one topic, below version 8.
    pub struct OffsetFetchRequestTopic {
        name: String => 0..=7;
        partition_indexes: Vec<PartitionIndex> => 0..=7;
    }

    /// One group.
    pub struct OffsetFetchRequestGroup {
        group_id: String => 8..;
        member_id: Option<String> => 9.., nullable 9.., ignorable;
        /// -1 for a classic group's member.
        member_epoch: i32 => 9.., ignorable, default -1;
        /// Null for all that the group has.
        topics: Option<Vec<OffsetFetchRequestTopics>>
            => 8.., nullable 8.., default Some(Vec::new());
    }

    /// Partitions of one topic.
    pub struct OffsetFetchRequestTopics {
        name: String => 8..;
        partition_indexes: Vec<PartitionIndex> => 8..;
    }

    /// The offsets of the group below version 8, of the groups from there on.
    pub struct OffsetFetchResponse(api_key 9, versions 1..=9, flexible 6) {
        throttle_time_ms: i32 => 3.., ignorable;
        topics: Vec<OffsetFetchResponseTopic> => 0..=7;
        /// Version 1 has it in every partition instead.
        error_code: ErrorCode => 2..=7, ignorable;
        groups: Vec<OffsetFetchResponseGroup> => 8..;
    }

    /// Partitions of one topic, below version 8.
    pub struct OffsetFetchResponseTopic {
        name: String => 0..=7;
        partitions: Vec<OffsetFetchResponsePartition> => 0..=7;
    }

    /// The offset of one partition, below version 8; -1 when there is none.
    pub struct OffsetFetchResponsePartition {
        partition_index: PartitionIndex => 0..=7;
        committed_offset: Offset => 0..=7;
        committed_leader_epoch: LeaderEpoch => 5..=7, ignorable, default LeaderEpoch::NONE;
        metadata: Option<String> => 0..=7, nullable 0..=7, default Some(String::new());
        error_code: ErrorCode => 0..=7;
    }

    /// The offsets of one group.
    pub struct OffsetFetchResponseGroup {
        group_id: String => 8..;
        topics: Vec<OffsetFetchResponseTopics> => 8..;
        error_code: ErrorCode => 8..;
    }

    /// Partitions of one topic.
    pub struct OffsetFetchResponseTopics {
        name: String => 8..;
        partitions: Vec<OffsetFetchResponsePartitions> => 8..;
    }

    /// The offset of one partition; -1 when there is none.
    pub struct OffsetFetchResponsePartitions {
        partition_index: PartitionIndex => 8..;
        committed_offset: Offset => 8..;
        committed_leader_epoch: LeaderEpoch => 8.., ignorable, default LeaderEpoch::NONE;
        metadata: Option<String> => 8.., nullable 8.., default Some(String::new());
        error_code: ErrorCode => 8..;
    }
}
