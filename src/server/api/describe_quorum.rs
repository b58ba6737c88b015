//! DescribeQuorum (55), versions 0 to 2 (KIP-595, KIP-836, KIP-853): one node keeps the metadata
//! log, votes and leads.
//!
//! As in Kafka (`KafkaRaftClient.handleDescribeQuorumRequest`) a request that names anything but
//! the one partition of the metadata log has each of its partitions answered with
//! UNKNOWN_TOPIC_OR_PARTITION. The endpoint is that of the settings, though no controller of
//! Kafka's listens on it.

use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;
use crate::cluster::controller::QuorumState;
use crate::cluster::decide::topic_names::CLUSTER_METADATA_TOPIC;
use crate::io;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_quorum::{
    DescribeQuorumRequest, DescribeQuorumResponse, DescribedPartition, DescribedTopic, Listener,
    Node, PartitionData, ReplicaState, TopicData,
};

/// Partitions of one request that are refused each by itself; there is one to ask for.
pub const PARTITIONS_MAX: usize = 1_000;
/// What Kafka says of every partition but one.
const NOT_HOSTED: &str = "This server does not host this topic-partition.";
/// First version that names directories and endpoints.
const NODES_FROM: i16 = 2;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: DescribeQuorumRequest,
) -> DescribeQuorumResponse {
    let partitions = request.topics.iter().map(|topic| topic.partitions.len());
    if request.topics.len().max(partitions.sum()) > PARTITIONS_MAX {
        return refused(ErrorCode::INVALID_REQUEST);
    }
    if !is_metadata_log(&request.topics) {
        return DescribeQuorumResponse {
            topics: request.topics.into_iter().map(unknown).collect(),
            ..DescribeQuorumResponse::default()
        };
    }
    match context.control().describe_quorum().await {
        Ok(quorum) => described(&quorum, header.api_version),
        Err(fault) => refused(fault.code()),
    }
}

fn refused(error_code: ErrorCode) -> DescribeQuorumResponse {
    DescribeQuorumResponse {
        error_code,
        ..DescribeQuorumResponse::default()
    }
}

fn is_metadata_log(topics: &[TopicData]) -> bool {
    match topics {
        [topic] if topic.topic_name == CLUSTER_METADATA_TOPIC => matches!(
            topic.partitions.as_slice(),
            [PartitionData { partition_index }] if *partition_index == PartitionIndex(0)
        ),
        _ => false,
    }
}

fn unknown(topic: TopicData) -> DescribedTopic {
    let partition = |asked: &PartitionData| DescribedPartition {
        partition_index: asked.partition_index,
        error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        error_message: Some(NOT_HOSTED.to_owned()),
        ..DescribedPartition::default()
    };
    DescribedTopic {
        partitions: topic.partitions.iter().map(partition).collect(),
        topic_name: topic.topic_name,
    }
}

fn described(quorum: &QuorumState, version: i16) -> DescribeQuorumResponse {
    let now = io::wall_clock();
    let mut voter = ReplicaState {
        replica_id: quorum.node_id,
        replica_directory_id: quorum.directory_id,
        log_end_offset: quorum.end_offset,
        last_fetch_timestamp: now,
        last_caught_up_timestamp: now,
    };
    let mut nodes = vec![Node {
        node_id: quorum.node_id,
        listeners: vec![Listener {
            name: quorum.endpoint.name.clone(),
            host: quorum.endpoint.host.clone(),
            port: quorum.endpoint.port,
        }],
    }];
    if version < NODES_FROM {
        voter.replica_directory_id = Default::default();
        nodes.clear();
    }
    DescribeQuorumResponse {
        topics: vec![DescribedTopic {
            topic_name: CLUSTER_METADATA_TOPIC.to_owned(),
            partitions: vec![DescribedPartition {
                leader_id: quorum.node_id,
                leader_epoch: quorum.leader_epoch,
                high_watermark: quorum.end_offset,
                current_voters: vec![voter],
                ..DescribedPartition::default()
            }],
        }],
        nodes,
        ..DescribeQuorumResponse::default()
    }
}
