//! DescribeProducers (61), version 0: the idempotent and transactional producers that partitions
//! know (KIP-664).

use crate::base::error_code::ErrorCode;
use crate::base::ids::{Offset, PartitionIndex, ProducerId, Sequence};
use crate::base::time::TimestampMs;
use crate::wire::codec::message;

message! {
    /// Of which partitions.
    pub struct DescribeProducersRequest(api_key 61, versions 0..=0, flexible 0) {
        topics: Vec<TopicRequest> => 0..;
    }

    /// Partitions of one topic.
    pub struct TopicRequest {
        name: String => 0..;
        partition_indexes: Vec<PartitionIndex> => 0..;
    }

    /// The producers.
    pub struct DescribeProducersResponse(api_key 61, versions 0..=0, flexible 0) {
        throttle_time_ms: i32 => 0..;
        topics: Vec<TopicResponse> => 0..;
    }

    /// Partitions of one topic.
    pub struct TopicResponse {
        name: String => 0..;
        partitions: Vec<PartitionResponse> => 0..;
    }

    /// The producers of one partition.
    pub struct PartitionResponse {
        partition_index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0..;
        active_producers: Vec<ProducerState> => 0..;
    }

    /// One producer.
    pub struct ProducerState {
        producer_id: ProducerId => 0..;
        producer_epoch: i32 => 0..;
        last_sequence: Sequence => 0.., default Sequence::NONE;
        last_timestamp: TimestampMs => 0.., default TimestampMs::NONE;
        /// Of the coordinator that last ended a transaction of it; -1 when none has.
        coordinator_epoch: i32 => 0..;
        /// Where its open transaction began; -1 when there is none.
        current_txn_start_offset: Offset => 0.., default Offset(-1);
    }
}
