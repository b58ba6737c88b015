//! ListOffsets (2), versions 1 to 11: the offset that belongs to a time or to a name.
//!
//! - A timestamp below 0 is a name: -1 the end (the last stable offset where committed records
//!   alone are asked for), -2 the start, -3 the record of the largest timestamp (version 7,
//!   KIP-734), -4 the local start (8, KIP-405), -5 the last tiered one (9, KIP-1005), -6 the first
//!   not yet tiered (11, KIP-1023).
//! - Version 2 adds isolation, 4 leader epochs (KIP-320), 6 is flexible, 10 a timeout (KIP-1075).

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex};
use crate::base::time::TimestampMs;
use crate::wire::codec::message;

message! {
    /// The times to look up.
    pub struct ListOffsetsRequest(api_key 2, versions 1..=11, flexible 6) {
        /// The follower that asks; -1 for a consumer.
        replica_id: BrokerId => 0..;
        /// 0: up to the high watermark; 1: up to the last stable offset.
        isolation_level: i8 => 2..;
        topics: Vec<ListOffsetsTopic> => 0..;
        /// How long an answer from remote storage may take, in milliseconds.
        timeout_ms: i32 => 10.., ignorable;
    }

    /// Partitions of one topic.
    pub struct ListOffsetsTopic {
        name: String => 0..;
        partitions: Vec<ListOffsetsPartition> => 0..;
    }

    /// What to look up in one partition.
    pub struct ListOffsetsPartition {
        partition_index: PartitionIndex => 0..;
        /// The leader epoch the client knows; -1 when it knows none.
        current_leader_epoch: LeaderEpoch => 4.., ignorable, default LeaderEpoch::NONE;
        /// A time, or one of the names above.
        timestamp: TimestampMs => 0..;
    }

    /// The offsets found.
    pub struct ListOffsetsResponse(api_key 2, versions 1..=11, flexible 6) {
        throttle_time_ms: i32 => 2.., ignorable;
        topics: Vec<ListOffsetsTopicResponse> => 0..;
    }

    /// Partitions of one topic.
    pub struct ListOffsetsTopicResponse {
        name: String => 0..;
        partitions: Vec<ListOffsetsPartitionResponse> => 0..;
    }

    /// What was found in one partition; offset and time are -1 when nothing was.
    pub struct ListOffsetsPartitionResponse {
        partition_index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
        timestamp: TimestampMs => 0.., default TimestampMs::NONE;
        offset: Offset => 0.., default Offset(-1);
        /// Epoch of the record found. To be left at -1 below version 4, which cannot carry it.
        leader_epoch: LeaderEpoch => 4.., default LeaderEpoch::NONE;
    }
}
