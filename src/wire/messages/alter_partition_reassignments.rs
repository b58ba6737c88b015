//! AlterPartitionReassignments (45), versions 0 to 1: partitions get other replicas (KIP-455).
//!
//! - Version 1 may forbid that their number changes (KIP-860).

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, PartitionIndex};
use crate::wire::codec::message;

message! {
    /// Which partitions, and where to.
    pub struct AlterPartitionReassignmentsRequest(api_key 45, versions 0..=1, flexible 0) {
        timeout_ms: i32 => 0.., default 60000;
        allow_replication_factor_change: bool => 1.., default true;
        topics: Vec<ReassignableTopic> => 0..;
    }

    /// Partitions of one topic.
    pub struct ReassignableTopic {
        name: String => 0..;
        partitions: Vec<ReassignablePartition> => 0..;
    }

    /// One partition.
    pub struct ReassignablePartition {
        partition_index: PartitionIndex => 0..;
        /// The new replicas; null takes back a change that goes on.
        replicas: Option<Vec<BrokerId>> => 0.., nullable 0..;
    }

    /// What became of each.
    pub struct AlterPartitionReassignmentsResponse(api_key 45, versions 0..=1, flexible 0) {
        throttle_time_ms: i32 => 0..;
        allow_replication_factor_change: bool => 1.., ignorable, default true;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        responses: Vec<ReassignableTopicResponse> => 0..;
    }

    /// Partitions of one topic.
    pub struct ReassignableTopicResponse {
        name: String => 0..;
        partitions: Vec<ReassignablePartitionResponse> => 0..;
    }

    /// What became of one partition.
    pub struct ReassignablePartitionResponse {
        partition_index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
    }
}
