//! CreateTopics (`ControllerApis.createTopics`, `ReplicationControlManager.createTopics`): each
//! topic of a request is created or refused by itself, with Kafka's codes and messages; what is
//! created counts whole or not at all.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::directories::DirectoryChoice;
use super::placement::{assigned_replicas, placed_replicas};
use super::topic_names::{self, CLUSTER_METADATA_TOPIC};
use super::{Decision, RECORDS_PER_OPERATION_MAX, Refusal};
use crate::base::config::describe;
use crate::base::config::dynamic::Layers;
use crate::base::config::setting::ValueFault;
use crate::base::config::table::topic_setting;
use crate::base::config::{BrokerTexts, TopicOverrides, TopicSettings};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, PartitionIndex, Uuid};
use crate::base::limits::PARTITIONS_PER_REQUEST_MAX;
use crate::base::random::Random;
use crate::cluster::effective::DynamicConfigs;
use crate::cluster::image::{Image, ResourceType};
use crate::cluster::quotas::mutations::Permits;
use crate::cluster::records::{ConfigRecord, MetadataRecord, PartitionRecord, TopicRecord};
use crate::wire::messages::create_topics::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest,
    CreateTopicsResponse,
};

/// What a decision about new topics depends on besides the image and the request.
#[derive(Clone, Copy, Debug)]
pub struct CreateTopicsContext<'a> {
    /// Broker settings of its start; topics inherit them, and what was given at run time.
    pub broker_texts: &'a BrokerTexts,
    /// `num.partitions`, for -1.
    pub num_partitions: i32,
    /// `default.replication.factor`, for -1.
    pub replication_factor: i16,
}

/// Decides a CreateTopics request. Topic ids and placement are drawn from `random`; what is only
/// validated takes permits too, as in Kafka.
pub fn create_topics(
    image: &Image,
    request: &CreateTopicsRequest,
    context: CreateTopicsContext<'_>,
    (random, permits): (&mut Random, &mut Permits<'_>),
) -> Decision<CreateTopicsResponse> {
    let (topics, mut refused) = admit(&request.topics);
    let outcomes = decide_all(image, &topics, context, (random, permits));
    let mut records = Vec::new();
    let mut results = Vec::new();
    for (topic, outcome) in topics.iter().zip(outcomes) {
        match outcome {
            Ok(created) => {
                records.extend(created.records);
                results.push(created.result);
            }
            Err(fault) => results.push(refusal(&topic.name, fault)),
        }
    }
    results.append(&mut refused);
    if request.validate_only {
        records.clear();
    }
    let response = CreateTopicsResponse {
        throttle_time_ms: permits.throttle_time_ms(),
        topics: results,
    };
    Decision { records, response }
}

/// Splits off names that stand twice and the one that no client may create.
fn admit(topics: &[CreatableTopic]) -> (Vec<&CreatableTopic>, Vec<CreatableTopicResult>) {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for topic in topics {
        *count.entry(&topic.name).or_default() += 1;
    }
    let mut admitted = Vec::new();
    let mut refused = Vec::new();
    let mut told = HashSet::new();
    for topic in topics {
        let message = if count
            .get(topic.name.as_str())
            .is_some_and(|count| *count > 1)
        {
            "Duplicate topic name.".to_owned()
        } else if topic.name == CLUSTER_METADATA_TOPIC {
            format!("Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited.")
        } else {
            admitted.push(topic);
            continue;
        };
        if told.insert(&topic.name) {
            let fault = Refusal::new(ErrorCode::INVALID_REQUEST, message);
            refused.push(refusal(&topic.name, fault));
        }
    }
    (admitted, refused)
}

/// The result of a topic that is not created.
fn refusal(name: &str, fault: Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name: name.to_owned(),
        error_code: fault.code,
        error_message: Some(fault.message),
        ..CreatableTopicResult::default()
    }
}

struct CreatedTopic {
    records: Vec<MetadataRecord>,
    result: CreatableTopicResult,
}

/// One outcome a topic. A request whose partitions or records are too many is refused whole.
fn decide_all(
    image: &Image,
    topics: &[&CreatableTopic],
    context: CreateTopicsContext<'_>,
    (random, permits): (&mut Random, &mut Permits<'_>),
) -> Vec<Result<CreatedTopic, Refusal>> {
    let refuse_all = |message: &str| {
        let fault = Refusal::new(ErrorCode::POLICY_VIOLATION, message);
        topics.iter().map(|_| Err(fault.clone())).collect()
    };
    let partitions = topics
        .iter()
        .map(|topic| partition_count(topic, context.num_partitions))
        .sum::<usize>();
    if partitions > PARTITIONS_PER_REQUEST_MAX {
        return refuse_all("Excessively large number of partitions per request.");
    }
    let collisions = collision_names(image);
    let mut record_count = 0;
    let mut directories = DirectoryChoice::default();
    let mut outcomes = Vec::with_capacity(topics.len());
    for topic in topics {
        let outcome = check_name(image, &collisions, &topic.name).and_then(|()| {
            let checked = checked(image, topic, context, random)?;
            permits.take(checked.1.len())?;
            let drawn = (&mut directories, &mut *random);
            Ok(created(image, topic, checked, context, drawn))
        });
        record_count += outcome.as_ref().map_or(0, |created| created.records.len());
        outcomes.push(outcome);
    }
    if record_count > RECORDS_PER_OPERATION_MAX {
        return refuse_all("Unable to perform excessively large batch operation.");
    }
    outcomes
}

/// Partitions that a topic asks for; nonsense asks for none and is refused later.
fn partition_count(topic: &CreatableTopic, default: i32) -> usize {
    let count = match topic.num_partitions {
        _ if !topic.assignments.is_empty() => return topic.assignments.len(),
        -1 => default,
        count => count,
    };
    usize::try_from(count).unwrap_or_default()
}

/// Existing names by what they are to metrics.
fn collision_names(image: &Image) -> HashMap<String, String> {
    let name = |topic: &std::sync::Arc<crate::cluster::image::TopicImage>| {
        Some((
            topic_names::collision_key(&topic.name)?,
            topic.name.to_string(),
        ))
    };
    image.topics().iter().filter_map(name).collect()
}

fn check_name(
    image: &Image,
    collisions: &HashMap<String, String>,
    name: &str,
) -> Result<(), Refusal> {
    let invalid = ErrorCode::INVALID_TOPIC_EXCEPTION;
    topic_names::check(name).map_err(|message| Refusal::new(invalid, message))?;
    if image.topics().by_name(name).is_some() {
        return Err(Refusal::new(
            ErrorCode::TOPIC_ALREADY_EXISTS,
            format!("Topic '{name}' already exists."),
        ));
    }
    let existing = topic_names::collision_key(name).and_then(|key| collisions.get(&key));
    match existing {
        None => Ok(()),
        Some(existing) => Err(Refusal::new(
            invalid,
            format!("Topic '{name}' collides with existing topic: {existing}"),
        )),
    }
}

/// A topic's own settings, which are valid, and its replicas.
fn checked(
    image: &Image,
    topic: &CreatableTopic,
    context: CreateTopicsContext<'_>,
    random: &mut Random,
) -> Result<(TopicOverrides, Replicas), Refusal> {
    let dynamic = DynamicConfigs::of(image);
    let overrides = check_configs(topic, &dynamic.over(context.broker_texts).merged())?;
    let replicas = if topic.assignments.is_empty() {
        placed_replicas(image, topic, context, random)?
    } else {
        assigned_replicas(image, topic)?
    };
    Ok((overrides, replicas))
}

fn created(
    image: &Image,
    topic: &CreatableTopic,
    (overrides, replicas): (TopicOverrides, Replicas),
    context: CreateTopicsContext<'_>,
    (directories, random): (&mut DirectoryChoice, &mut Random),
) -> CreatedTopic {
    let topic_id = random.next_uuid();
    let mut records = vec![MetadataRecord::Topic(TopicRecord {
        name: topic.name.clone(),
        topic_id,
    })];
    records.extend(overrides.iter().map(|(name, value)| {
        MetadataRecord::Config(ConfigRecord {
            resource_type: ResourceType::TOPIC.0,
            resource_name: topic.name.clone(),
            name: name.clone(),
            value: Some(value.clone()),
        })
    }));
    let replication_factor = replicas.values().next().map_or(0, Vec::len);
    let num_partitions = replicas.len();
    for (partition_id, replicas) in replicas {
        let partition = (partition_id, replicas);
        records.push(new_partition(image, topic_id, partition, directories));
    }
    let result = CreatableTopicResult {
        name: topic.name.clone(),
        topic_id,
        error_message: None,
        num_partitions: num_partitions as i32,
        replication_factor: replication_factor as i16,
        configs: Some(described(
            &overrides,
            DynamicConfigs::of(image).over(context.broker_texts),
        )),
        ..CreatableTopicResult::default()
    };
    CreatedTopic { records, result }
}

/// The record of a partition whose first live replica leads.
pub(super) fn new_partition(
    image: &Image,
    topic_id: Uuid,
    (partition_id, replicas): (PartitionIndex, Vec<BrokerId>),
    directories: &mut DirectoryChoice,
) -> MetadataRecord {
    let is_live = |id: &BrokerId| image.broker(*id).is_some_and(|broker| !broker.fenced);
    let chosen = replicas.iter().map(|id| directories.choose(image, *id));
    let chosen: Option<Vec<Uuid>> = chosen.collect();
    let isr: Vec<BrokerId> = replicas.iter().copied().filter(is_live).collect();
    MetadataRecord::Partition(PartitionRecord {
        partition_id,
        topic_id,
        leader: isr.first().copied().unwrap_or(BrokerId(-1)),
        isr,
        replicas,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: 0,
        directories: chosen.unwrap_or_default(),
        ..PartitionRecord::default()
    })
}

/// The topic's own settings, valid by themselves and together.
fn check_configs(
    topic: &CreatableTopic,
    broker_texts: &BrokerTexts,
) -> Result<TopicOverrides, Refusal> {
    let invalid = |message: String| Refusal::new(ErrorCode::INVALID_CONFIG, message);
    let mut overrides = TopicOverrides::new();
    let mut nulls = Vec::new();
    for config in &topic.configs {
        match &config.value {
            Some(value) => {
                overrides.insert(config.name.clone(), value.clone());
            }
            None => nulls.push(config.name.as_str()),
        }
    }
    if !nulls.is_empty() {
        let names = nulls.join(",");
        return Err(invalid(format!(
            "Null value not supported for topic configs: {names}"
        )));
    }
    if let Some(name) = overrides.keys().find(|name| topic_setting(name).is_none()) {
        return Err(invalid(format!("Unknown topic config name: {name}")));
    }
    TopicSettings::derive(broker_texts, &overrides)
        .map_err(|fault: ValueFault| invalid(fault.to_string()))?;
    Ok(overrides)
}

/// All settings in force for a topic, as a CreateTopics response lists them.
fn described(overrides: &TopicOverrides, layers: Layers<'_>) -> Vec<CreatableTopicConfigs> {
    describe::topic(layers, overrides)
        .into_iter()
        .map(|described| CreatableTopicConfigs {
            is_sensitive: described.is_sensitive(),
            // The topic's own are told as they came.
            value: (overrides.get(&described.name).cloned()).or(described.value),
            name: described.name,
            read_only: described.read_only,
            config_source: described.source as i8,
        })
        .collect()
}

/// Replicas of each partition.
pub(super) type Replicas = BTreeMap<PartitionIndex, Vec<BrokerId>>;

#[cfg(test)]
#[path = "create_topics_test.rs"]
mod create_topics_test;
