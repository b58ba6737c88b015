//! DescribeTopicPartitions (75), version 0: topics page by page, with eligible leaders (KIP-966).
//!
//! - The request names topics (none: all of them) and where the page starts; the response where
//!   the next one does, null at the end.
//! - Kafka's tools fail on null eligible leaders, although the schema allows null and defaults to
//!   it: an answer sets both arrays.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, PartitionIndex, Uuid};
use crate::wire::codec::message;

message! {
    /// Which topics, and from where on.
    pub struct DescribeTopicPartitionsRequest(api_key 75, versions 0..=0, flexible 0) {
        /// Empty for all of them.
        topics: Vec<TopicRequest> => 0..;
        /// Partitions in one page.
        response_partition_limit: i32 => 0.., default 2000;
        cursor: Option<Cursor> => 0.., nullable 0..;
    }

    /// A topic by name.
    pub struct TopicRequest {
        name: String => 0..;
    }

    /// The first partition of a page.
    pub struct Cursor {
        topic_name: String => 0..;
        partition_index: PartitionIndex => 0..;
    }

    /// One page.
    pub struct DescribeTopicPartitionsResponse(api_key 75, versions 0..=0, flexible 0) {
        throttle_time_ms: i32 => 0..;
        topics: Vec<DescribeTopicPartitionsResponseTopic> => 0..;
        /// Where the next page starts; null on the last.
        next_cursor: Option<Cursor> => 0.., nullable 0..;
    }

    /// One topic, or why it cannot be described.
    pub struct DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode => 0..;
        name: Option<String> => 0.., nullable 0.., default Some(String::new());
        topic_id: Uuid => 0..;
        is_internal: bool => 0..;
        partitions: Vec<DescribeTopicPartitionsResponsePartition> => 0..;
        /// A bit for each operation; `i32::MIN` when not known.
        topic_authorized_operations: i32 => 0.., default i32::MIN;
    }

    /// One partition: its leader and its replicas.
    pub struct DescribeTopicPartitionsResponsePartition {
        error_code: ErrorCode => 0..;
        partition_index: PartitionIndex => 0..;
        leader_id: BrokerId => 0..;
        leader_epoch: LeaderEpoch => 0.., default LeaderEpoch::NONE;
        replica_nodes: Vec<BrokerId> => 0..;
        isr_nodes: Vec<BrokerId> => 0..;
        /// Never null in an answer: see the head of this file.
        eligible_leader_replicas: Option<Vec<BrokerId>> => 0.., nullable 0..;
        /// Never null in an answer.
        last_known_elr: Option<Vec<BrokerId>> => 0.., nullable 0..;
        offline_replicas: Vec<BrokerId> => 0..;
    }
}
