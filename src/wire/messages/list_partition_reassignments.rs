//! ListPartitionReassignments (46), version 0: partitions whose replicas change (KIP-455).

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, PartitionIndex};
use crate::wire::codec::message;

message! {
    /// Of which partitions.
    pub struct ListPartitionReassignmentsRequest(api_key 46, versions 0..=0, flexible 0) {
        timeout_ms: i32 => 0.., default 60000;
        /// Null for all of them.
        topics: Option<Vec<ListPartitionReassignmentsTopics>> => 0.., nullable 0..;
    }

    /// Partitions of one topic.
    pub struct ListPartitionReassignmentsTopics {
        name: String => 0..;
        partition_indexes: Vec<PartitionIndex> => 0..;
    }

    /// Those that change.
    pub struct ListPartitionReassignmentsResponse(api_key 46, versions 0..=0, flexible 0) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        topics: Vec<OngoingTopicReassignment> => 0..;
    }

    /// Partitions of one topic.
    pub struct OngoingTopicReassignment {
        name: String => 0..;
        partitions: Vec<OngoingPartitionReassignment> => 0..;
    }

    /// One partition: its replicas now, and which of them come and go.
    pub struct OngoingPartitionReassignment {
        partition_index: PartitionIndex => 0..;
        replicas: Vec<BrokerId> => 0..;
        adding_replicas: Vec<BrokerId> => 0..;
        removing_replicas: Vec<BrokerId> => 0..;
    }
}
