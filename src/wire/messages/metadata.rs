//! Metadata (3), versions 0 to 13: brokers, topics, partitions and their leaders.
//!
//! - Which topics: in version 0 an empty array asks for all, from 1 on null does and an empty
//!   array asks for none ([`MetadataRequest::asks_for_all_topics`]).
//! - Version 4 says whether to create what is missing, 5 adds offline replicas, 7 leader epochs
//!   (KIP-320), 8 authorised operations (KIP-430; the cluster's left again in 11, KIP-700), 9 is
//!   flexible, 10 answers with topic ids, 12 takes them (KIP-516), 13 has an error of its own.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, PartitionIndex, Uuid};
use crate::wire::codec::message;

message! {
    /// The topics to describe.
    pub struct MetadataRequest(api_key 3, versions 0..=13, flexible 9) {
        /// Null for all topics from version 1 on.
        topics: Option<Vec<MetadataRequestTopic>>
            => 0.., nullable 1.., default Some(Vec::new());
        allow_auto_topic_creation: bool => 4.., default true;
        include_cluster_authorized_operations: bool => 8..=10;
        include_topic_authorized_operations: bool => 8..;
    }

    /// A topic by name, or from version 12 on by id.
    pub struct MetadataRequestTopic {
        topic_id: Uuid => 10.., ignorable;
        name: Option<String> => 0.., nullable 10.., default Some(String::new());
    }

    /// The cluster as this broker knows it.
    pub struct MetadataResponse(api_key 3, versions 0..=13, flexible 9) {
        throttle_time_ms: i32 => 3.., ignorable;
        brokers: Vec<MetadataResponseBroker> => 0..;
        cluster_id: Option<String> => 2.., nullable 2.., ignorable;
        /// A broker to send administrative requests to; must be alive.
        controller_id: BrokerId => 1.., ignorable, default BrokerId(-1);
        topics: Vec<MetadataResponseTopic> => 0..;
        /// A bit for each operation; `i32::MIN` when not asked for.
        cluster_authorized_operations: i32 => 8..=10, default i32::MIN;
        error_code: ErrorCode => 13.., ignorable;
    }

    /// Where a broker can be reached by this listener's clients.
    pub struct MetadataResponseBroker {
        node_id: BrokerId => 0..;
        host: String => 0..;
        port: i32 => 0..;
        rack: Option<String> => 1.., nullable 1.., ignorable;
    }

    /// One topic, or why it cannot be described.
    pub struct MetadataResponseTopic {
        error_code: ErrorCode => 0..;
        name: Option<String> => 0.., nullable 12.., default Some(String::new());
        topic_id: Uuid => 10.., ignorable;
        is_internal: bool => 1.., ignorable;
        partitions: Vec<MetadataResponsePartition> => 0..;
        /// A bit for each operation; `i32::MIN` when not asked for.
        topic_authorized_operations: i32 => 8.., default i32::MIN;
    }

    /// One partition: its leader and its replicas.
    pub struct MetadataResponsePartition {
        error_code: ErrorCode => 0..;
        partition_index: PartitionIndex => 0..;
        leader_id: BrokerId => 0..;
        leader_epoch: LeaderEpoch => 7.., ignorable, default LeaderEpoch::NONE;
        replica_nodes: Vec<BrokerId> => 0..;
        isr_nodes: Vec<BrokerId> => 0..;
        offline_replicas: Vec<BrokerId> => 5.., ignorable;
    }
}

impl MetadataRequest {
    /// Whether every topic is asked for, which version 0 writes as an empty array and later ones
    /// as null.
    #[must_use]
    pub fn asks_for_all_topics(&self, version: i16) -> bool {
        match &self.topics {
            None => true,
            Some(topics) => version == 0 && topics.is_empty(),
        }
    }
}
