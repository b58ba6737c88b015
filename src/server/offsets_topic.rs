//! The topic of groups and their offsets, made when it is first needed, as Kafka makes it
//! (`AutoTopicCreationManager`, `GroupCoordinatorService.groupMetadataTopicConfigs`).
//!
//! `offsets.topic.replication.factor` is 3 by default. Kafka refuses to make the topic on fewer
//! brokers; here it gets as many replicas as there are brokers.

use super::context::RequestContext;
use super::groups::OFFSETS_TOPIC;
use crate::base::error_code::ErrorCode;
use crate::cluster::quotas::mutations::Asker;
use crate::wire::header::RequestHeader;
use crate::wire::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};

/// Whether the topic stands.
#[must_use]
pub fn is_there(context: &RequestContext) -> bool {
    let image = context.node().image_ref();
    image.topics().by_name(OFFSETS_TOPIC).is_some()
}

/// Makes the topic for whoever sent a request. False when it cannot be made now.
pub async fn create(context: &RequestContext, header: &RequestHeader) -> bool {
    let request = request(context);
    let asker = Asker::of(header, i16::MAX);
    let told = match context.control().create_topics(request, asker).await {
        Ok(response) => response.topics.into_iter().next(),
        Err(fault) => {
            tracing::warn!("the topic {OFFSETS_TOPIC} cannot be made: {fault}");
            return false;
        }
    };
    let Some(topic) = told else { return false };
    let is_there = topic.error_code == ErrorCode::TOPIC_ALREADY_EXISTS;
    if !topic.error_code.is_none() && !is_there {
        let reason = topic.error_message.unwrap_or_default();
        tracing::warn!("the topic {OFFSETS_TOPIC} cannot be made: {reason}");
        return false;
    }
    true
}

fn request(context: &RequestContext) -> CreateTopicsRequest {
    let settings = context.fixed_config().groups;
    let brokers = context.node().image_ref().brokers().len();
    let brokers = i16::try_from(brokers).unwrap_or(i16::MAX).max(1);
    let config = |name: &str, value: String| CreatableTopicConfig {
        name: name.to_owned(),
        value: Some(value),
    };
    CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: OFFSETS_TOPIC.to_owned(),
            num_partitions: settings.topic_partitions,
            replication_factor: settings.topic_replication_factor.min(brokers),
            configs: vec![
                config("cleanup.policy", "compact".to_owned()),
                config("compression.type", "producer".to_owned()),
                config("segment.bytes", settings.topic_segment_bytes.to_string()),
            ],
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    }
}
