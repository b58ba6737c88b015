//! DescribeQuorum (55), versions 0 to 2: who keeps the metadata log (KIP-595).
//!
//! - Version 1 adds times (KIP-836), 2 directories, endpoints and messages (KIP-853).

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex, Uuid};
use crate::base::time::TimestampMs;
use crate::wire::codec::message;

message! {
    /// Which partitions: that of the metadata log.
    pub struct DescribeQuorumRequest(api_key 55, versions 0..=2, flexible 0) {
        topics: Vec<TopicData> => 0..;
    }

    /// Partitions of one topic.
    pub struct TopicData {
        topic_name: String => 0..;
        partitions: Vec<PartitionData> => 0..;
    }

    /// One partition.
    pub struct PartitionData {
        partition_index: PartitionIndex => 0..;
    }

    /// The quorum.
    pub struct DescribeQuorumResponse(api_key 55, versions 0..=2, flexible 0) {
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 2.., nullable 2.., ignorable, default Some(String::new());
        topics: Vec<DescribedTopic> => 0..;
        nodes: Vec<Node> => 2..;
    }

    /// Partitions of one topic.
    pub struct DescribedTopic {
        topic_name: String => 0..;
        partitions: Vec<DescribedPartition> => 0..;
    }

    /// The quorum of one partition.
    pub struct DescribedPartition {
        partition_index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 2.., nullable 2.., ignorable, default Some(String::new());
        leader_id: BrokerId => 0..;
        leader_epoch: LeaderEpoch => 0..;
        high_watermark: Offset => 0..;
        current_voters: Vec<ReplicaState> => 0..;
        observers: Vec<ReplicaState> => 0..;
    }

    /// One who has the log.
    pub struct ReplicaState {
        replica_id: BrokerId => 0..;
        replica_directory_id: Uuid => 2..;
        log_end_offset: Offset => 0..;
        /// -1 when unknown.
        last_fetch_timestamp: TimestampMs => 1.., ignorable, default TimestampMs::NONE;
        last_caught_up_timestamp: TimestampMs => 1.., ignorable, default TimestampMs::NONE;
    }

    /// Where a voter is reached.
    pub struct Node {
        node_id: BrokerId => 2..;
        listeners: Vec<Listener> => 2..;
    }

    /// One endpoint.
    pub struct Listener {
        name: String => 2..;
        host: String => 2..;
        port: u16 => 2..;
    }
}
