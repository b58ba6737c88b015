//! CreatePartitions (37), versions 0 to 3: more partitions for topics that exist (KIP-195).
//!
//! - Version 1 answers before it throttles, 2 is flexible, 3 allows THROTTLING_QUOTA_EXCEEDED
//!   (KIP-599).

use crate::base::error_code::ErrorCode;
use crate::base::ids::BrokerId;
use crate::wire::codec::message;

message! {
    /// The topics that grow.
    pub struct CreatePartitionsRequest(api_key 37, versions 0..=3, flexible 2) {
        topics: Vec<CreatePartitionsTopic> => 0..;
        timeout_ms: i32 => 0..;
        validate_only: bool => 0..;
    }

    /// One topic and how many partitions it is to have.
    pub struct CreatePartitionsTopic {
        name: String => 0..;
        count: i32 => 0..;
        /// Of the new partitions in their order; null to have them placed.
        assignments: Option<Vec<CreatePartitionsAssignment>> => 0.., nullable 0..,
            default Some(Vec::new());
    }

    /// The brokers that are to hold one partition; the first leads.
    pub struct CreatePartitionsAssignment {
        broker_ids: Vec<BrokerId> => 0..;
    }

    /// What became of each topic.
    pub struct CreatePartitionsResponse(api_key 37, versions 0..=3, flexible 2) {
        throttle_time_ms: i32 => 0..;
        results: Vec<CreatePartitionsTopicResult> => 0..;
    }

    /// A topic that has grown, or why not.
    pub struct CreatePartitionsTopicResult {
        name: String => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0..;
    }
}
