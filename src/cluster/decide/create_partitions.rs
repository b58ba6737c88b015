//! CreatePartitions (`ControllerApis.createPartitions`,
//! `ReplicationControlManager.createPartitions`): each topic of a request grows or is refused by
//! itself, with Kafka's codes and messages; what grows counts whole or not at all.

use std::collections::{HashMap, HashSet};

use super::create_topics::{Replicas, new_partition};
use super::directories::DirectoryChoice;
use super::placement::{check_assignment, check_live, dealt_out};
use super::{Decision, RECORDS_PER_OPERATION_MAX, Refusal};
use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;
use crate::base::limits::PARTITIONS_PER_REQUEST_MAX;
use crate::base::random::Random;
use crate::cluster::image::{Image, TopicImage};
use crate::cluster::quotas::mutations::Permits;
use crate::cluster::records::MetadataRecord;
use crate::wire::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsResponse,
    CreatePartitionsTopic, CreatePartitionsTopicResult,
};

/// All records of a request fit one operation.
const _: () = assert!(PARTITIONS_PER_REQUEST_MAX <= RECORDS_PER_OPERATION_MAX);

/// Decides a CreatePartitions request. Placement is drawn from `random`.
pub fn create_partitions(
    image: &Image,
    request: &CreatePartitionsRequest,
    (random, permits): (&mut Random, &mut Permits<'_>),
) -> Decision<CreatePartitionsResponse> {
    let (topics, mut results) = admit(&request.topics);
    let mut records = Vec::new();
    match check_size(image, &topics) {
        Ok(()) => {
            let mut directories = DirectoryChoice::default();
            for topic in topics {
                let outcome = grow(image, topic, (&mut directories, random), permits);
                results.push(result(&topic.name, outcome.as_ref().err()));
                records.extend(outcome.unwrap_or_default());
            }
        }
        // Named twice or not, as a request that fails whole is answered.
        Err(refusal) => {
            let topics = request.topics.iter();
            results = topics
                .map(|topic| result(&topic.name, Some(&refusal)))
                .collect();
        }
    }
    if request.validate_only {
        records.clear();
    }
    let response = CreatePartitionsResponse {
        throttle_time_ms: permits.throttle_time_ms(),
        results,
    };
    Decision { records, response }
}

fn result(name: &str, refusal: Option<&Refusal>) -> CreatePartitionsTopicResult {
    let message = refusal.map(|refusal| refusal.message.clone());
    CreatePartitionsTopicResult {
        name: name.to_owned(),
        error_code: refusal.map_or(ErrorCode::NONE, |refusal| refusal.code),
        error_message: message.filter(|message| !message.is_empty()),
    }
}

/// Splits off names that stand twice.
fn admit(
    topics: &[CreatePartitionsTopic],
) -> (
    Vec<&CreatePartitionsTopic>,
    Vec<CreatePartitionsTopicResult>,
) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for topic in topics {
        *counts.entry(&topic.name).or_default() += 1;
    }
    let duplicate = Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name.");
    let (mut admitted, mut refused) = (Vec::new(), Vec::new());
    let mut told = HashSet::new();
    for topic in topics {
        if counts.get(topic.name.as_str()) == Some(&1) {
            admitted.push(topic);
        } else if told.insert(topic.name.as_str()) {
            refused.push(result(&topic.name, Some(&duplicate)));
        }
    }
    (admitted, refused)
}

/// Whether the request asks for no more than one operation may change.
fn check_size(image: &Image, topics: &[&CreatePartitionsTopic]) -> Result<(), Refusal> {
    let additional = topics.iter().map(|topic| {
        let known = image.topics().by_name(&topic.name);
        known.map_or(0, |known| additional(known, topic.count))
    });
    let policy = |message| Err(Refusal::new(ErrorCode::POLICY_VIOLATION, message));
    if additional.sum::<usize>() > PARTITIONS_PER_REQUEST_MAX {
        return policy("Excessively large number of additional partitions per request.");
    }
    if topics.len() > RECORDS_PER_OPERATION_MAX {
        return policy("Unable to perform excessively large batch operation.");
    }
    Ok(())
}

/// How many partitions a topic lacks of `count`; none where that is no increase.
fn additional(topic: &TopicImage, count: i32) -> usize {
    let count = usize::try_from(count).unwrap_or_default();
    count.saturating_sub(topic.partitions.len())
}

/// The records of one topic's new partitions.
fn grow(
    image: &Image,
    asked: &CreatePartitionsTopic,
    (directories, random): (&mut DirectoryChoice, &mut Random),
    permits: &mut Permits<'_>,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let Some(topic) = image.topics().by_name(&asked.name) else {
        return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ""));
    };
    let (count, current) = (asked.count, topic.partitions.len());
    let invalid = |message| Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, message));
    let additional = additional(topic, count);
    if usize::try_from(count) == Ok(current) {
        return invalid(format!("Topic already has {current} partition(s)."));
    }
    if additional == 0 {
        let name = &asked.name;
        return invalid(format!(
            "The topic {name} currently has {current} partition(s); {count} would not be an \
             increase."
        ));
    }
    let first = topic.partitions.values().next();
    let factor = first.map_or(1, |first| first.replicas.len());
    // Above 0, and counted by the count that came.
    let current = count.saturating_sub(i32::try_from(additional).unwrap_or(count));
    let replicas = match &asked.assignments {
        Some(assignments) if assignments.len() != additional => {
            return Err(Refusal::new(
                ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                format!(
                    "Attempted to add {additional} additional partition(s), but only {} \
                     assignment(s) were specified.",
                    assignments.len()
                ),
            ));
        }
        Some(assignments) => {
            permits.take(additional)?;
            assigned(image, assignments, (current, factor))?
        }
        None => {
            permits.take(additional)?;
            let factor = i16::try_from(factor).unwrap_or(i16::MAX);
            dealt_out(image, factor, current..count, random)?
        }
    };
    let records = replicas
        .into_iter()
        .map(|partition| new_partition(image, topic.id, partition, directories));
    Ok(records.collect())
}

/// The replicas that a request assigns by hand, from partition `first` on.
fn assigned(
    image: &Image,
    assignments: &[CreatePartitionsAssignment],
    (first, factor): (i32, usize),
) -> Result<Replicas, Refusal> {
    let mut replicas = Replicas::new();
    for (index, assignment) in (first..).map(PartitionIndex).zip(assignments) {
        let brokers = &assignment.broker_ids;
        check_assignment(image, brokers, Some(factor))
            .and_then(|()| check_live(image, index, brokers))
            .map_err(|message| Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message))?;
        replicas.insert(index, brokers.clone());
    }
    Ok(replicas)
}

#[cfg(test)]
#[path = "create_partitions_test.rs"]
mod create_partitions_test;
