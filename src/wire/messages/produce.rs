//! Produce (0), versions 3 to 13: record batches to append, and where they landed.
//!
//! - Advertised from version 0 although 3 is the first served: librdkafka before 2.11.1 sends
//!   uncompressed batches otherwise (KAFKA-18659).
//! - Batches come out of the reader as parts of the received frame, to be stamped in place.
//! - Version 5 adds the log start offset, 7 allows zstd (KIP-110), 8 names the records at fault
//!   (KIP-467), 9 is flexible, 10 names the current leader (KIP-951), 11 allows
//!   TRANSACTION_ABORTABLE, 12 adds partitions to transactions implicitly (KIP-890), 13 names
//!   topics by id (KIP-516).

use bytes::BytesMut;

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex, Uuid};
use crate::base::time::TimestampMs;
use crate::wire::codec::message;

message! {
    /// Batches for any number of partitions.
    pub struct ProduceRequest(api_key 0, versions 3..=13, flexible 9) {
        transactional_id: Option<String> => 0.., nullable 0..;
        /// 0: no answer; 1: after the leader has it; -1: after every in-sync replica has it.
        acks: i16 => 0..;
        /// How long the broker may wait for the acknowledgements, in milliseconds.
        timeout_ms: i32 => 0..;
        topic_data: Vec<TopicProduceData> => 0..;
    }

    /// The batches for one topic: by name before version 13, then by id.
    pub struct TopicProduceData {
        name: String => 0..=12, ignorable;
        topic_id: Uuid => 13.., ignorable;
        partition_data: Vec<PartitionProduceData> => 0..;
    }

    /// The batch for one partition.
    pub struct PartitionProduceData {
        index: PartitionIndex => 0..;
        /// A part of the received frame; exactly one batch when the client behaves.
        records: Option<BytesMut> => 0.., nullable 0..;
    }

    /// What became of each batch.
    pub struct ProduceResponse(api_key 0, versions 3..=13, flexible 9) {
        responses: Vec<TopicProduceResponse> => 0..;
        throttle_time_ms: i32 => 0..;
        node_endpoints: Vec<NodeEndpoint> => 10.., tag 0;
    }

    /// What became of one topic's batches: named as in the request.
    pub struct TopicProduceResponse {
        name: String => 0..=12, ignorable;
        topic_id: Uuid => 13.., ignorable;
        partition_responses: Vec<PartitionProduceResponse> => 0..;
    }

    /// What became of one partition's batch.
    pub struct PartitionProduceResponse {
        index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
        /// Offset of the batch's first record; -1 on an error.
        base_offset: Offset => 0..;
        /// The broker's time of append; -1 where the topic keeps the producer's times.
        log_append_time_ms: TimestampMs => 0.., default TimestampMs::NONE;
        log_start_offset: Offset => 5.., ignorable, default Offset(-1);
        record_errors: Vec<BatchIndexAndErrorMessage> => 8.., ignorable;
        error_message: Option<String> => 8.., nullable 8.., ignorable;
        current_leader: LeaderIdAndEpoch => 10.., tag 0;
    }

    /// One record that made the broker refuse the batch.
    pub struct BatchIndexAndErrorMessage {
        /// The record's place in the batch, from 0.
        batch_index: i32 => 8..;
        batch_index_error_message: Option<String> => 8.., nullable 8..;
    }

    /// Who leads the partition now; -1 each when unknown.
    pub struct LeaderIdAndEpoch {
        leader_id: BrokerId => 10.., default BrokerId(-1);
        leader_epoch: LeaderEpoch => 10.., default LeaderEpoch::NONE;
    }

    /// Where a leader named in this response can be reached.
    pub struct NodeEndpoint {
        node_id: BrokerId => 10..;
        host: String => 10..;
        port: i32 => 10..;
        rack: Option<String> => 10.., nullable 10..;
    }
}
