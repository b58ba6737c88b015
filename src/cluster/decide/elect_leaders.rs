//! ElectLeaders (`ReplicationControlManager.electLeaders`): each partition is elected or refused by
//! itself, with Kafka's codes and messages.
//!
//! The node leads what it may from its start on, so that only an unclean election can change
//! something here: of a partition that has no leader because its last in-sync replica is on a node
//! that is gone. Its log on this node then counts, whatever it lacks.

use std::collections::{BTreeMap, HashSet};

use super::message_room::MessageRoom;
use super::{Decision, RECORDS_PER_OPERATION_MAX, Refusal};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, PartitionIndex};
use crate::cluster::image::{Image, PartitionImage, TopicImage};
use crate::cluster::records::{MetadataRecord, PartitionChangeRecord};
use crate::wire::messages::elect_leaders::{
    ElectLeadersRequest, ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
};

/// How a leader may be chosen (`ElectionType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Election {
    /// The first replica.
    Preferred,
    /// Any replica.
    Unclean,
}

/// The partition has the leader that was asked for.
const NOT_NEEDED: &str = "Leader election not needed for topic partition.";
/// The preferred replica cannot lead.
const PREFERRED_NOT_AVAILABLE: &str = "The preferred leader was not available.";
/// No replica can lead.
const ELIGIBLE_NOT_AVAILABLE: &str = "Eligible topic partition leaders are not available.";

/// Decides an ElectLeaders request.
#[must_use]
pub fn elect_leaders(
    image: &Image,
    request: &ElectLeadersRequest,
) -> Decision<ElectLeadersResponse> {
    if request.topic_partitions.as_ref().is_some_and(Vec::is_empty) {
        // Before anything is looked at, as `QuorumController` does.
        return Decision {
            records: Vec::new(),
            response: ElectLeadersResponse::default(),
        };
    }
    let election = match request.election_type {
        0 => Election::Preferred,
        1 => Election::Unclean,
        other => {
            let message = format!("Unknown election type {other}");
            return refused(request, &Refusal::new(ErrorCode::INVALID_REQUEST, message));
        }
    };
    let mut records = Vec::new();
    let results = match &request.topic_partitions {
        None => all(image, election, &mut records),
        Some(topics) => {
            let mut room = MessageRoom::default();
            let mut results = Vec::new();
            for (name, partitions) in merged(topics) {
                let elected = partitions.into_iter().map(|index| {
                    let outcome = elect(image, (name, index), election, &mut records);
                    result(index, outcome, &mut room)
                });
                results.push(ReplicaElectionResult {
                    partition_result: elected.collect(),
                    topic: name.to_owned(),
                });
            }
            results
        }
    };
    if records.len() > RECORDS_PER_OPERATION_MAX {
        let message = "Unable to perform excessively large batch operation.";
        return refused(request, &Refusal::new(ErrorCode::POLICY_VIOLATION, message));
    }
    let response = ElectLeadersResponse {
        replica_election_results: results,
        ..ElectLeadersResponse::default()
    };
    Decision { records, response }
}

type Asked = crate::wire::messages::elect_leaders::TopicPartitions;

/// Every topic and every partition once, topics by name.
fn merged(topics: &[Asked]) -> BTreeMap<&str, Vec<PartitionIndex>> {
    let mut merged: BTreeMap<&str, (HashSet<PartitionIndex>, Vec<PartitionIndex>)> =
        BTreeMap::new();
    for topic in topics {
        let (seen, order) = merged.entry(topic.topic.as_str()).or_default();
        let new = topic.partitions.iter().filter(|index| seen.insert(**index));
        order.extend(new);
    }
    let once = merged.into_iter();
    once.map(|(name, (_, order))| (name, order)).collect()
}

/// A request that is refused whole, and so in every partition that it names
/// (`ElectLeadersRequest.getErrorResponse`).
fn refused(request: &ElectLeadersRequest, refusal: &Refusal) -> Decision<ElectLeadersResponse> {
    let mut room = MessageRoom::default();
    let topics = request.topic_partitions.iter().flatten();
    let results = topics.map(|topic| ReplicaElectionResult {
        topic: topic.topic.clone(),
        partition_result: (topic.partitions.iter())
            .map(|index| PartitionResult {
                partition_id: *index,
                error_code: refusal.code,
                error_message: room.tell(refusal.clone()),
            })
            .collect(),
    });
    Decision {
        records: Vec::new(),
        response: ElectLeadersResponse {
            error_code: refusal.code,
            replica_election_results: results.collect(),
            ..ElectLeadersResponse::default()
        },
    }
}

/// All partitions, without those that have the leader already.
fn all(
    image: &Image,
    election: Election,
    records: &mut Vec<MetadataRecord>,
) -> Vec<ReplicaElectionResult> {
    let mut room = MessageRoom::default();
    let mut results = Vec::new();
    for topic in image.topics().iter() {
        let mut partition_result = Vec::new();
        for (index, partition) in &topic.partitions {
            let outcome = elect_one(image, (topic, *index, partition), election, records);
            let is_needed =
                !matches!(&outcome, Err(refusal) if refusal.code == ErrorCode::ELECTION_NOT_NEEDED);
            if is_needed {
                partition_result.push(result(*index, outcome, &mut room));
            }
        }
        results.push(ReplicaElectionResult {
            topic: topic.name.to_string(),
            partition_result,
        });
    }
    results
}

fn result(
    index: PartitionIndex,
    outcome: Result<(), Refusal>,
    room: &mut MessageRoom,
) -> PartitionResult {
    let refusal = outcome.err();
    PartitionResult {
        partition_id: index,
        error_code: refusal.as_ref().map_or(ErrorCode::NONE, |one| one.code),
        error_message: refusal.and_then(|one| room.tell(one)),
    }
}

fn elect(
    image: &Image,
    (name, index): (&str, PartitionIndex),
    election: Election,
    records: &mut Vec<MetadataRecord>,
) -> Result<(), Refusal> {
    let unknown = |message| Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message);
    let topic = image.topics().by_name(name);
    let topic = topic.ok_or_else(|| unknown(format!("No such topic as {name}")))?;
    let partition = topic.partition(index);
    let partition =
        partition.ok_or_else(|| unknown(format!("No such partition as {name}-{index}")))?;
    elect_one(image, (topic, index, partition), election, records)
}

fn elect_one(
    image: &Image,
    (topic, index, partition): (&TopicImage, PartitionIndex, &PartitionImage),
    election: Election,
    records: &mut Vec<MetadataRecord>,
) -> Result<(), Refusal> {
    let is_led = match election {
        Election::Preferred => partition.replicas.first() == Some(&partition.leader),
        Election::Unclean => partition.leader != BrokerId(-1),
    };
    if is_led {
        return Err(Refusal::new(ErrorCode::ELECTION_NOT_NEEDED, NOT_NEEDED));
    }
    if election == Election::Preferred {
        let code = ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE;
        return Err(Refusal::new(code, PREFERRED_NOT_AVAILABLE));
    }
    if !can_lead(image, partition) {
        let code = ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE;
        return Err(Refusal::new(code, ELIGIBLE_NOT_AVAILABLE));
    }
    let forgotten = |list: &Vec<BrokerId>| (!list.is_empty()).then(Vec::new);
    records.push(MetadataRecord::PartitionChange(PartitionChangeRecord {
        partition_id: index,
        topic_id: topic.id,
        leader: image.node_id(),
        isr: Some(vec![image.node_id()]),
        eligible_leader_replicas: forgotten(&partition.eligible_leader_replicas),
        last_known_elr: forgotten(&partition.last_known_elr),
        ..PartitionChangeRecord::default()
    }));
    Ok(())
}

/// Whether this node has the partition in a directory that serves.
fn can_lead(image: &Image, partition: &PartitionImage) -> bool {
    let node = image.node_id();
    let broker = image.broker(node).filter(|broker| !broker.fenced);
    partition.replicas.contains(&node)
        && broker.is_some_and(|broker| broker.is_online(partition.directory(node)))
}

#[cfg(test)]
#[path = "elect_leaders_test.rs"]
mod elect_leaders_test;
