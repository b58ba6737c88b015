//! OffsetDelete (47), version 0: a group forgets how far it has read (KIP-496). Never flexible.

use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;
use crate::wire::codec::message;

message! {
    /// The offsets to forget.
    pub struct OffsetDeleteRequest(api_key 47, versions 0..=0) {
        group_id: String => 0..;
        topics: Vec<OffsetDeleteRequestTopic> => 0..;
    }

    /// Partitions of one topic.
    pub struct OffsetDeleteRequestTopic {
        name: String => 0..;
        partitions: Vec<OffsetDeleteRequestPartition> => 0..;
    }

    /// One partition.
    pub struct OffsetDeleteRequestPartition {
        partition_index: PartitionIndex => 0..;
    }

    /// What became of each.
    pub struct OffsetDeleteResponse(api_key 47, versions 0..=0) {
        error_code: ErrorCode => 0..;
        throttle_time_ms: i32 => 0.., ignorable;
        topics: Vec<OffsetDeleteResponseTopic> => 0..;
    }

    /// Partitions of one topic.
    pub struct OffsetDeleteResponseTopic {
        name: String => 0..;
        partitions: Vec<OffsetDeleteResponsePartition> => 0..;
    }

    /// What became of one partition's offset.
    pub struct OffsetDeleteResponsePartition {
        partition_index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
    }
}
