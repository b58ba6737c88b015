//! ElectLeaders (43), versions 0 to 2: partitions choose their leaders again (KIP-183).
//!
//! - Version 1 adds unclean elections and an error of its own (KIP-460), 2 is flexible.

use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;
use crate::wire::codec::message;

message! {
    /// Which partitions.
    pub struct ElectLeadersRequest(api_key 43, versions 0..=2, flexible 2) {
        /// 0: the preferred replica; 1: any replica where none in sync is left.
        election_type: i8 => 1..;
        /// Null for all of them.
        topic_partitions: Option<Vec<TopicPartitions>>
            => 0.., nullable 0.., default Some(Vec::new());
        timeout_ms: i32 => 0.., default 60000;
    }

    /// Partitions of one topic.
    pub struct TopicPartitions {
        topic: String => 0..;
        partitions: Vec<PartitionIndex> => 0..;
    }

    /// What became of each.
    pub struct ElectLeadersResponse(api_key 43, versions 0..=2, flexible 2) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 1..;
        replica_election_results: Vec<ReplicaElectionResult> => 0..;
    }

    /// Partitions of one topic.
    pub struct ReplicaElectionResult {
        topic: String => 0..;
        partition_result: Vec<PartitionResult> => 0..;
    }

    /// What became of one partition.
    pub struct PartitionResult {
        partition_id: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
    }
}
