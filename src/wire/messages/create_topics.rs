//! CreateTopics (19), versions 2 to 7: new topics with their partitions and settings.
//!
//! - Version 4 takes the broker's defaults for -1 partitions or replicas (KIP-464), 5 is flexible
//!   and answers with the settings (KIP-525), 6 allows THROTTLING_QUOTA_EXCEEDED (KIP-599), 7
//!   answers with the topic's id (KIP-516).

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, PartitionIndex, Uuid};
use crate::wire::codec::message;

message! {
    /// The topics to create.
    pub struct CreateTopicsRequest(api_key 19, versions 2..=7, flexible 5) {
        topics: Vec<CreatableTopic> => 0..;
        timeout_ms: i32 => 0.., default 60000;
        validate_only: bool => 0..;
    }

    /// One topic: by counts, or by assignments and counts of -1.
    pub struct CreatableTopic {
        name: String => 0..;
        /// -1 for the broker's default or with assignments.
        num_partitions: i32 => 0..;
        /// -1 for the broker's default or with assignments.
        replication_factor: i16 => 0..;
        assignments: Vec<CreatableReplicaAssignment> => 0..;
        configs: Vec<CreatableTopicConfig> => 0..;
    }

    /// The brokers that are to hold one partition; the first leads.
    pub struct CreatableReplicaAssignment {
        partition_index: PartitionIndex => 0..;
        broker_ids: Vec<BrokerId> => 0..;
    }

    /// One setting that differs from the broker's.
    pub struct CreatableTopicConfig {
        name: String => 0..;
        value: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// What became of each topic.
    pub struct CreateTopicsResponse(api_key 19, versions 2..=7, flexible 5) {
        throttle_time_ms: i32 => 0..;
        topics: Vec<CreatableTopicResult> => 0..;
    }

    /// The topic as created, or why not.
    pub struct CreatableTopicResult {
        name: String => 0..;
        topic_id: Uuid => 7.., ignorable;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        /// Set when the settings may not be shown to this client.
        topic_config_error_code: ErrorCode => 5.., tag 0, ignorable;
        num_partitions: i32 => 5.., ignorable, default -1;
        replication_factor: i16 => 5.., ignorable, default -1;
        configs: Option<Vec<CreatableTopicConfigs>>
            => 5.., nullable 5.., ignorable, default Some(Vec::new());
    }

    /// One setting of the new topic.
    pub struct CreatableTopicConfigs {
        name: String => 5..;
        value: Option<String> => 5.., nullable 5.., default Some(String::new());
        read_only: bool => 5..;
        config_source: i8 => 5.., ignorable, default -1;
        is_sensitive: bool => 5..;
    }
}
