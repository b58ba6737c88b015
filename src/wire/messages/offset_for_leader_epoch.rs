//! OffsetForLeaderEpoch (23), versions 2 to 4: where an epoch of a partition's leaders ended.
//!
//! - Version 2 adds the current epoch (KIP-320), 3 the replica that asks, 4 is flexible.
//! - A consumer asks after a change of leader, to learn whether records it read were truncated.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex};
use crate::wire::codec::message;

message! {
    /// The epochs to look up.
    pub struct OffsetForLeaderEpochRequest(api_key 23, versions 2..=4, flexible 4) {
        /// The follower that asks; -1 for a consumer, -2 where version 2 cannot say.
        replica_id: BrokerId => 3.., ignorable, default BrokerId(-2);
        topics: Vec<OffsetForLeaderTopic> => 0..;
    }

    /// Partitions of one topic.
    pub struct OffsetForLeaderTopic {
        topic: String => 0..;
        partitions: Vec<OffsetForLeaderPartition> => 0..;
    }

    /// The epoch to look up in one partition.
    pub struct OffsetForLeaderPartition {
        partition: PartitionIndex => 0..;
        /// The leader epoch the client knows; -1 when it knows none.
        current_leader_epoch: LeaderEpoch => 0.., default LeaderEpoch::NONE;
        leader_epoch: LeaderEpoch => 0..;
    }

    /// The ends found.
    pub struct OffsetForLeaderEpochResponse(api_key 23, versions 2..=4, flexible 4) {
        throttle_time_ms: i32 => 0..;
        topics: Vec<OffsetForLeaderTopicResult> => 0..;
    }

    /// Partitions of one topic.
    pub struct OffsetForLeaderTopicResult {
        topic: String => 0..;
        partitions: Vec<EpochEndOffset> => 0..;
    }

    /// The largest epoch not above the one asked for, and its end (exclusive); -1 each when none.
    pub struct EpochEndOffset {
        error_code: ErrorCode => 0..;
        partition: PartitionIndex => 0..;
        leader_epoch: LeaderEpoch => 0.., default LeaderEpoch::NONE;
        end_offset: Offset => 0.., default Offset(-1);
    }
}
