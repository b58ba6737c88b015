//! OffsetCommit (8), versions 2 to 9: how far a group has read.
//!
//! - Version 3 adds the throttle time, 5 leaves the retention to the broker (KIP-211), 6 adds the
//!   leader epoch (KIP-320), 7 names static members (KIP-345), 8 is flexible, 9 is the first of the
//!   new consumer groups (KIP-848) and looks like 8.
//! - A commit with generation -1 and no member comes from a consumer that did not join.
//!
//! Not served: version 10, which names topics by id.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex};
use crate::wire::codec::message;

message! {
    /// The offsets to keep.
    pub struct OffsetCommitRequest(api_key 8, versions 2..=9, flexible 8) {
        group_id: String => 0..;
        generation_id_or_member_epoch: GenerationId
            => 1.., ignorable, default GenerationId::NONE;
        member_id: String => 1.., ignorable;
        group_instance_id: Option<String> => 7.., nullable 7..;
        /// How long to keep them, in milliseconds; -1 for as long as the broker does.
        retention_time_ms: i64 => 2..=4, ignorable, default -1;
        topics: Vec<OffsetCommitRequestTopic> => 0..;
    }

    /// Partitions of one topic.
    pub struct OffsetCommitRequestTopic {
        name: String => 0..;
        partitions: Vec<OffsetCommitRequestPartition> => 0..;
    }

    /// The offset of one partition.
    pub struct OffsetCommitRequestPartition {
        partition_index: PartitionIndex => 0..;
        /// The next one to read.
        committed_offset: Offset => 0..;
        /// Epoch of the last record read; -1 when unknown.
        committed_leader_epoch: LeaderEpoch => 6.., ignorable, default LeaderEpoch::NONE;
        /// The client's note.
        committed_metadata: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// What became of each.
    pub struct OffsetCommitResponse(api_key 8, versions 2..=9, flexible 8) {
        throttle_time_ms: i32 => 3.., ignorable;
        topics: Vec<OffsetCommitResponseTopic> => 0..;
    }

    /// Partitions of one topic.
    pub struct OffsetCommitResponseTopic {
        name: String => 0..;
        partitions: Vec<OffsetCommitResponsePartition> => 0..;
    }

    /// What became of one partition's offset.
    pub struct OffsetCommitResponsePartition {
        partition_index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
    }
}
