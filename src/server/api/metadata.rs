//! Metadata (3), versions 0 to 13 (KIP-4, KIP-112, KIP-320, KIP-430, KIP-516, KIP-700).
//!
//! - All topics: an empty list in version 0, null from 1 on. From version 12 on a topic may be
//!   asked for by id; then names are passed over, as in Kafka.
//! - A missing topic is created when settings and request allow it. The answer waits until the
//!   topic can be used and names it in full, where Kafka answers UNKNOWN_TOPIC_OR_PARTITION and
//!   lets the client ask again. A name that cannot be created is told at once with its code.
//!   Topics of the cluster's own are not created here.
//! - The controller named is this node: it carries out what is sent there.

use std::collections::BTreeSet;

use super::brokers;
use super::operations::{CLUSTER_OPERATIONS, OPERATIONS_OMITTED, TOPIC_OPERATIONS};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, TopicId};
use crate::cluster::decide::topic_names;
use crate::cluster::image::{Image, TopicImage};
use crate::cluster::quotas::mutations::Asker;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use crate::wire::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
    MetadataResponsePartition, MetadataResponseTopic,
};

/// First version in which topics may be asked for by id.
const IDS_FROM: i16 = 12;
/// First version with an error of the whole response.
const ERROR_FROM: i16 = 13;

/// Answers a request, creating topics where that is wanted.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: MetadataRequest,
) -> MetadataResponse {
    let (mut refused, mut throttle_time_ms) = (Vec::new(), 0);
    if context.config().auto_create_topics && request.allow_auto_topic_creation {
        let missing = missing_topics(&context.image(), &request);
        if !missing.is_empty() {
            let asker = Asker::of(header, i16::MAX);
            (refused, throttle_time_ms) = create(context, missing, asker).await;
        }
    }
    let listener = &context.listener().name;
    let mut response = respond(&context.image(), &request, header.api_version, listener);
    response.throttle_time_ms = throttle_time_ms;
    for topic in &mut response.topics {
        let name = topic.name.as_deref();
        let refusal = refused
            .iter()
            .find(|(refused, _)| Some(refused.as_str()) == name);
        if let Some((_, code)) = refusal {
            topic.error_code = *code;
        }
    }
    response
}

/// Creates topics with the broker's defaults; answers those that could not be, with their codes,
/// and for how long the client is throttled.
async fn create(
    context: &RequestContext,
    names: Vec<String>,
    asker: Asker,
) -> (Vec<(String, ErrorCode)>, i32) {
    let topic = |name: &String| CreatableTopic {
        name: name.clone(),
        num_partitions: -1,
        replication_factor: -1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest {
        topics: names.iter().map(topic).collect(),
        ..CreateTopicsRequest::default()
    };
    match context.control().create_topics(request, asker).await {
        Ok(response) => {
            let refused = response.topics.into_iter().filter(|topic| {
                let is_there = topic.error_code == ErrorCode::TOPIC_ALREADY_EXISTS;
                !topic.error_code.is_none() && !is_there
            });
            let refused = refused.map(|topic| (topic.name, topic.error_code));
            (refused.collect(), response.throttle_time_ms)
        }
        Err(fault) => {
            let refused = names.into_iter().map(|name| (name, fault.code()));
            (refused.collect(), 0)
        }
    }
}

/// Names that are asked for, valid and not there.
fn missing_topics(image: &Image, request: &MetadataRequest) -> Vec<String> {
    if has_ids(request) {
        return Vec::new();
    }
    let names = request.topics.iter().flatten().filter_map(name_of);
    let is_missing = |name: &&str| {
        image.topics().by_name(name).is_none()
            && !topic_names::is_internal(name)
            && topic_names::check(name).is_ok()
    };
    let missing: BTreeSet<&str> = names.filter(is_missing).collect();
    missing.into_iter().map(str::to_owned).collect()
}

fn name_of(topic: &MetadataRequestTopic) -> Option<&str> {
    topic.name.as_deref()
}

fn has_ids(request: &MetadataRequest) -> bool {
    let mut topics = request.topics.iter().flatten();
    topics.any(|topic| topic.topic_id != TopicId::ZERO)
}

/// The response to `request` for clients of `listener`. Pure.
#[must_use]
pub fn respond(
    image: &Image,
    request: &MetadataRequest,
    version: i16,
    listener: &str,
) -> MetadataResponse {
    let by_id = has_ids(request);
    let is_nameless = |topic: &MetadataRequestTopic| topic.name.is_none();
    let has_nameless = request.topics.iter().flatten().any(is_nameless);
    let has_ids_too_early = by_id && version < IDS_FROM;
    if has_ids_too_early || (has_nameless && !by_id) {
        return refusal(request, version);
    }
    let asked = Asked {
        image,
        listener,
        operations: if request.include_topic_authorized_operations {
            TOPIC_OPERATIONS
        } else {
            OPERATIONS_OMITTED
        },
    };
    let topics = match &request.topics {
        _ if request.asks_for_all_topics(version) => {
            let topics = image.topics().iter();
            topics.map(|topic| asked.known(topic)).collect()
        }
        Some(topics) if by_id => asked.by_id(topics),
        Some(topics) => asked.by_name(topics),
        None => Vec::new(),
    };
    let with_cluster = request.include_cluster_authorized_operations;
    MetadataResponse {
        brokers: (brokers::brokers(image, listener, false))
            .map(|(broker, endpoint)| MetadataResponseBroker {
                node_id: broker.id,
                host: endpoint.host.clone(),
                port: i32::from(endpoint.port),
                rack: broker.rack.clone(),
            })
            .collect(),
        cluster_id: Some(image.cluster_id().to_owned()),
        controller_id: image.node_id(),
        topics,
        cluster_authorized_operations: if with_cluster {
            CLUSTER_OPERATIONS
        } else {
            OPERATIONS_OMITTED
        },
        ..MetadataResponse::default()
    }
}

/// The whole request is INVALID_REQUEST: an id before ids exist, or neither id nor name.
fn refusal(request: &MetadataRequest, version: i16) -> MetadataResponse {
    let code = ErrorCode::INVALID_REQUEST;
    let topic = |topic: &MetadataRequestTopic| MetadataResponseTopic {
        error_code: code,
        name: Some(topic.name.clone().unwrap_or_default()),
        topic_id: topic.topic_id,
        ..MetadataResponseTopic::default()
    };
    MetadataResponse {
        topics: request.topics.iter().flatten().map(topic).collect(),
        controller_id: BrokerId(-1),
        error_code: if version >= ERROR_FROM {
            code
        } else {
            ErrorCode::NONE
        },
        ..MetadataResponse::default()
    }
}

struct Asked<'a> {
    image: &'a Image,
    listener: &'a str,
    operations: i32,
}

impl Asked<'_> {
    /// Each id once; the names of the request are passed over.
    fn by_id(&self, topics: &[MetadataRequestTopic]) -> Vec<MetadataResponseTopic> {
        let ids = topics.iter().map(|topic| topic.topic_id);
        let ids: BTreeSet<TopicId> = ids.filter(|id| *id != TopicId::ZERO).collect();
        let answer = |id: TopicId| match self.image.topics().by_id(id) {
            Some(topic) => self.known(topic),
            None => MetadataResponseTopic {
                error_code: ErrorCode::UNKNOWN_TOPIC_ID,
                name: None,
                topic_id: id,
                ..MetadataResponseTopic::default()
            },
        };
        ids.into_iter().map(answer).collect()
    }

    /// Each name once.
    fn by_name(&self, topics: &[MetadataRequestTopic]) -> Vec<MetadataResponseTopic> {
        let names: BTreeSet<&str> = topics.iter().filter_map(name_of).collect();
        let answer = |name: &str| match self.image.topics().by_name(name) {
            Some(topic) => self.known(topic),
            None => self.unknown(name),
        };
        names.into_iter().map(answer).collect()
    }

    fn unknown(&self, name: &str) -> MetadataResponseTopic {
        MetadataResponseTopic {
            error_code: match topic_names::check(name) {
                Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
            },
            name: Some(name.to_owned()),
            is_internal: topic_names::is_internal(name),
            topic_authorized_operations: self.operations,
            ..MetadataResponseTopic::default()
        }
    }

    fn known(&self, topic: &TopicImage) -> MetadataResponseTopic {
        let partitions = topic.partitions.iter();
        MetadataResponseTopic {
            error_code: ErrorCode::NONE,
            name: Some(topic.name.to_string()),
            topic_id: topic.id,
            is_internal: topic_names::is_internal(&topic.name),
            partitions: partitions
                .map(|(index, partition)| {
                    let (error_code, leader_id) =
                        brokers::leader(self.image, self.listener, partition);
                    MetadataResponsePartition {
                        error_code,
                        partition_index: *index,
                        leader_id,
                        leader_epoch: partition.leader_epoch,
                        replica_nodes: partition.replicas.clone(),
                        isr_nodes: partition.isr.clone(),
                        offline_replicas: brokers::offline_replicas(self.image, partition),
                    }
                })
                .collect(),
            topic_authorized_operations: self.operations,
        }
    }
}

#[cfg(test)]
#[path = "metadata_test.rs"]
pub(super) mod metadata_test;
