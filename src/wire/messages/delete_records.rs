//! DeleteRecords (21), versions 0 to 2: moves the start of partitions (KIP-107).
//!
//! - Version 1 answers before it throttles, 2 is flexible.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{Offset, PartitionIndex};
use crate::wire::codec::message;

message! {
    /// The partitions whose first records go.
    pub struct DeleteRecordsRequest(api_key 21, versions 0..=2, flexible 2) {
        topics: Vec<DeleteRecordsTopic> => 0..;
        /// How long followers may take to hear of it.
        timeout_ms: i32 => 0..;
    }

    /// Partitions of one topic.
    pub struct DeleteRecordsTopic {
        name: String => 0..;
        partitions: Vec<DeleteRecordsPartition> => 0..;
    }

    /// Up to where the records of one partition go.
    pub struct DeleteRecordsPartition {
        partition_index: PartitionIndex => 0..;
        /// The first that stays; -1 for the high watermark.
        offset: Offset => 0..;
    }

    /// Where the partitions start now.
    pub struct DeleteRecordsResponse(api_key 21, versions 0..=2, flexible 2) {
        throttle_time_ms: i32 => 0..;
        topics: Vec<DeleteRecordsTopicResult> => 0..;
    }

    /// Partitions of one topic.
    pub struct DeleteRecordsTopicResult {
        name: String => 0..;
        partitions: Vec<DeleteRecordsPartitionResult> => 0..;
    }

    /// Where one partition starts, -1 with an error.
    pub struct DeleteRecordsPartitionResult {
        partition_index: PartitionIndex => 0..;
        low_watermark: Offset => 0..;
        error_code: ErrorCode => 0..;
    }
}
