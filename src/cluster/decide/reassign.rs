//! AlterPartitionReassignments and ListPartitionReassignments
//! (`ReplicationControlManager.alterPartitionReassignments`): each partition is given other
//! replicas or refused by itself, with Kafka's codes and messages.
//!
//! Replicas that only go are gone at once. Replicas that come stay on their way, for there is no
//! follower here that could catch up; taking the change back undoes it. Neither changes who leads.

use std::collections::HashSet;

use super::directories::DirectoryChoice;
use super::message_room::MessageRoom;
use super::placement::check_assignment;
use super::{Decision, RECORDS_PER_OPERATION_MAX, Refusal};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, PartitionIndex, Uuid};
use crate::cluster::image::{DIRECTORY_UNASSIGNED, Image, PartitionImage, TopicImage};
use crate::cluster::records::{MetadataRecord, PartitionChangeRecord};
use crate::wire::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use crate::wire::messages::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment, OngoingTopicReassignment,
};

/// Decides an AlterPartitionReassignments request.
#[must_use]
pub fn alter_reassignments(
    image: &Image,
    request: &AlterPartitionReassignmentsRequest,
) -> Decision<AlterPartitionReassignmentsResponse> {
    let mut room = MessageRoom::default();
    let mut records = Vec::new();
    let mut changed = HashSet::new();
    let may_resize = request.allow_replication_factor_change;
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let outcome = find(image, &topic.name, asked.partition_index)
                .and_then(|found| change(image, found, asked, may_resize));
            let refusal = match outcome {
                Ok(Some(record)) if changed.insert((record.topic_id, record.partition_id)) => {
                    records.push(MetadataRecord::PartitionChange(record));
                    None
                }
                // Named again: what was decided first was decided on what the log says now.
                Ok(_) => None,
                Err(refusal) => Some(refusal),
            };
            partitions.push(ReassignablePartitionResponse {
                partition_index: asked.partition_index,
                error_code: refusal.as_ref().map_or(ErrorCode::NONE, |one| one.code),
                error_message: refusal.and_then(|one| room.tell(one)),
            });
        }
        responses.push(ReassignableTopicResponse {
            name: topic.name.clone(),
            partitions,
        });
    }
    let is_too_large = records.len() > RECORDS_PER_OPERATION_MAX;
    let mut response = AlterPartitionReassignmentsResponse {
        allow_replication_factor_change: may_resize,
        error_message: None,
        responses,
        ..AlterPartitionReassignmentsResponse::default()
    };
    if is_too_large {
        records.clear();
        response.responses.clear();
        response.error_code = ErrorCode::POLICY_VIOLATION;
        let message = "Unable to perform excessively large batch operation.";
        response.error_message = Some(message.to_owned());
    }
    Decision { records, response }
}

type Found<'a> = (&'a TopicImage, &'a PartitionImage);

fn find<'a>(image: &'a Image, name: &str, index: PartitionIndex) -> Result<Found<'a>, Refusal> {
    let unknown = |message| Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message);
    let topic = image.topics().by_name(name);
    let topic = topic.ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
    let partition = topic.partition(index);
    let missing = || unknown(format!("Unable to find partition {name}:{index}."));
    Ok((topic, partition.ok_or_else(missing)?))
}

/// The record of one partition's change; `None` where there is nothing to change.
fn change(
    image: &Image,
    (topic, partition): Found<'_>,
    asked: &ReassignablePartition,
    may_resize: bool,
) -> Result<Option<PartitionChangeRecord>, Refusal> {
    let before = settled(partition);
    let (target, goes_on) = match &asked.replicas {
        Some(target) => {
            check_assignment(image, target, None)
                .map_err(|fault| Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, fault))?;
            if !may_resize && target.len() != before.len() {
                return Err(resized(before.len(), target.len()));
            }
            (target.clone(), true)
        }
        None if is_ongoing(partition) => (before, false),
        None => {
            // Kafka gives no message with it.
            return Err(Refusal::new(ErrorCode::NO_REASSIGNMENT_IN_PROGRESS, ""));
        }
    };
    let planned = if goes_on {
        plan(partition, &target)
    } else {
        Plan::done(target)
    };
    Ok(record(
        image,
        (topic, asked.partition_index, partition),
        planned,
    ))
}

fn resized(before: usize, after: usize) -> Refusal {
    let message = format!("The replication factor is changed from {before} to {after}");
    Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, message)
}

/// What the replicas come to be.
struct Plan {
    replicas: Vec<BrokerId>,
    adding: Vec<BrokerId>,
    removing: Vec<BrokerId>,
}

impl Plan {
    fn done(replicas: Vec<BrokerId>) -> Self {
        Self {
            replicas,
            adding: Vec::new(),
            removing: Vec::new(),
        }
    }
}

/// The replicas as they are where no change goes on: those on their way in do not count
/// (`PartitionReassignmentReplicas`).
fn settled(partition: &PartitionImage) -> Vec<BrokerId> {
    let is_old = |id: &&BrokerId| !partition.adding_replicas.contains(id);
    partition.replicas.iter().filter(is_old).copied().collect()
}

fn is_ongoing(partition: &PartitionImage) -> bool {
    !partition.adding_replicas.is_empty() || !partition.removing_replicas.is_empty()
}

/// Targets first, then those that go; done at once when all that come are in sync.
fn plan(partition: &PartitionImage, target: &[BrokerId]) -> Plan {
    let before = settled(partition);
    let beyond = |from: &[BrokerId], without: &[BrokerId]| -> Vec<BrokerId> {
        let left = from.iter().filter(|id| !without.contains(id));
        left.copied().collect()
    };
    let mut adding = beyond(target, &before);
    let mut removing = beyond(&before, target);
    adding.sort_unstable();
    removing.sort_unstable();
    let is_in_sync = |id: &BrokerId| partition.isr.contains(id);
    if adding.iter().all(is_in_sync) && target.iter().any(is_in_sync) {
        return Plan::done(target.to_vec());
    }
    let mut replicas = target.to_vec();
    replicas.extend(beyond(&before, target));
    Plan {
        replicas,
        adding,
        removing,
    }
}

fn record(
    image: &Image,
    (topic, index, partition): (&TopicImage, PartitionIndex, &PartitionImage),
    plan: Plan,
) -> Option<PartitionChangeRecord> {
    let moved = (partition.replicas != plan.replicas).then_some(plan.replicas);
    let isr = moved.as_ref().and_then(|replicas| {
        let stays = |id: &&BrokerId| replicas.contains(id);
        let kept: Vec<BrokerId> = partition.isr.iter().filter(stays).copied().collect();
        (kept != partition.isr).then_some(kept)
    });
    let directories = moved
        .as_ref()
        .and_then(|replicas| directories(image, partition, replicas));
    let unless = |now: &Vec<BrokerId>, then: Vec<BrokerId>| (*now != then).then_some(then);
    let change = PartitionChangeRecord {
        partition_id: index,
        topic_id: topic.id,
        replicas: moved,
        isr,
        directories,
        adding_replicas: unless(&partition.adding_replicas, plan.adding),
        removing_replicas: unless(&partition.removing_replicas, plan.removing),
        ..PartitionChangeRecord::default()
    };
    let is_change = change.replicas.is_some()
        || change.adding_replicas.is_some()
        || change.removing_replicas.is_some();
    is_change.then_some(change)
}

/// The directory of each replica, where the log tells of such.
fn directories(
    image: &Image,
    partition: &PartitionImage,
    replicas: &[BrokerId],
) -> Option<Vec<Uuid>> {
    if partition.directories.is_empty() {
        return None;
    }
    let mut choice = DirectoryChoice::default();
    let directory = |id: &BrokerId| {
        let known = partition.directory(*id);
        let known = known.or_else(|| choice.choose(image, *id));
        known.unwrap_or(DIRECTORY_UNASSIGNED)
    };
    Some(replicas.iter().map(directory).collect())
}

/// Answers ListPartitionReassignments: partitions whose replicas come or go.
#[must_use]
pub fn list_reassignments(
    image: &Image,
    request: &ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    let mut topics = Vec::new();
    match &request.topics {
        None => {
            for topic in image.topics().iter() {
                topics.extend(ongoing(topic, topic.partitions.keys().copied()));
            }
        }
        Some(asked) => {
            let mut told = HashSet::new();
            for asked in asked {
                let Some(topic) = image.topics().by_name(&asked.name) else {
                    continue;
                };
                let indexes = asked.partition_indexes.iter().copied();
                topics.extend(ongoing(
                    topic,
                    indexes.filter(|one| told.insert((topic.id, *one))),
                ));
            }
        }
    }
    ListPartitionReassignmentsResponse {
        error_message: None,
        topics,
        ..ListPartitionReassignmentsResponse::default()
    }
}

fn ongoing(
    topic: &TopicImage,
    indexes: impl Iterator<Item = PartitionIndex>,
) -> Option<OngoingTopicReassignment> {
    let one = |index: PartitionIndex| {
        let partition = topic.partition(index).filter(|one| is_ongoing(one))?;
        Some(OngoingPartitionReassignment {
            partition_index: index,
            replicas: partition.replicas.clone(),
            adding_replicas: partition.adding_replicas.clone(),
            removing_replicas: partition.removing_replicas.clone(),
        })
    };
    let partitions: Vec<_> = indexes.filter_map(one).collect();
    (!partitions.is_empty()).then(|| OngoingTopicReassignment {
        name: topic.name.to_string(),
        partitions,
    })
}

#[cfg(test)]
#[path = "reassign_test.rs"]
mod reassign_test;
