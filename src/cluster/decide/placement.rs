//! Which brokers hold the partitions of a new topic: as the request assigns them, or dealt out
//! over the live brokers.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Refusal;
use super::create_topics::{CreateTopicsContext, Replicas};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, PartitionIndex};
use crate::base::random::Random;
use crate::cluster::image::Image;
use crate::wire::messages::create_topics::CreatableTopic;

/// The replicas that a request assigns by hand.
pub(super) fn assigned_replicas(
    image: &Image,
    topic: &CreatableTopic,
) -> Result<Replicas, Refusal> {
    let counts = [
        (i32::from(topic.replication_factor), "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ];
    for (count, what) in counts {
        if count != -1 {
            let message = format!(
                "A manual partition assignment was specified, but {what} was not set to -1."
            );
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        }
    }
    let invalid = |message: String| Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message);
    let mut replicas = Replicas::new();
    let mut replication_factor = None;
    for assignment in &topic.assignments {
        let index = assignment.partition_index;
        if replicas.contains_key(&index) {
            return Err(invalid(format!(
                "Found multiple manual partition assignments for partition {index}"
            )));
        }
        check_assignment(image, &assignment.broker_ids, replication_factor).map_err(invalid)?;
        replication_factor = Some(assignment.broker_ids.len());
        check_live(image, index, &assignment.broker_ids).map_err(invalid)?;
        replicas.insert(index, assignment.broker_ids.clone());
    }
    let is_consecutive = (0..).map(PartitionIndex).zip(replicas.keys());
    if !is_consecutive
        .into_iter()
        .all(|(expected, index)| expected == *index)
    {
        return Err(invalid(
            "partitions should be a consecutive 0-based integer sequence".to_owned(),
        ));
    }
    Ok(replicas)
}

/// Whether one of a partition's brokers can lead it.
pub(super) fn check_live(
    image: &Image,
    index: PartitionIndex,
    brokers: &[BrokerId],
) -> Result<(), String> {
    let is_live = |id: &BrokerId| image.broker(*id).is_some_and(|broker| !broker.fenced);
    if brokers.iter().any(is_live) {
        return Ok(());
    }
    Err(format!(
        "All brokers specified in the manual partition assignment for partition {index} are \
         fenced or in controlled shutdown."
    ))
}

/// Whether one partition's brokers exist, stand once, and are as many as the partitions' before.
pub(super) fn check_assignment(
    image: &Image,
    brokers: &[BrokerId],
    replication_factor: Option<usize>,
) -> Result<(), String> {
    if brokers.is_empty() {
        return Err("The manual partition assignment includes an empty replica list.".to_owned());
    }
    let mut sorted = brokers.to_vec();
    sorted.sort_unstable();
    let mut seen = BTreeSet::new();
    for broker in sorted {
        if image.broker(broker).is_none() {
            return Err(format!(
                "The manual partition assignment includes broker {broker}, but no such broker is \
                 registered."
            ));
        }
        if !seen.insert(broker) {
            return Err(format!(
                "The manual partition assignment includes the broker {broker} more than once."
            ));
        }
    }
    match replication_factor {
        Some(before) if before != brokers.len() => Err(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this is \
             not consistent with previous partitions, which have {before} replica(s).",
            brokers.len()
        )),
        _ => Ok(()),
    }
}

/// Replicas dealt out over the live brokers from a random one on.
pub(super) fn placed_replicas(
    image: &Image,
    topic: &CreatableTopic,
    context: CreateTopicsContext<'_>,
    random: &mut Random,
) -> Result<Replicas, Refusal> {
    let factor = match topic.replication_factor {
        -1 => context.replication_factor,
        factor if factor > 0 => factor,
        _ => {
            return Err(Refusal::new(
                ErrorCode::INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            ));
        }
    };
    let partitions = match topic.num_partitions {
        -1 => context.num_partitions,
        count if count > 0 => count,
        _ => {
            return Err(Refusal::new(
                ErrorCode::INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            ));
        }
    };
    dealt_out(image, factor, 0..partitions, random)
}

/// Replicas of the partitions of these numbers, dealt out over the live brokers.
pub(super) fn dealt_out(
    image: &Image,
    factor: i16,
    partitions: Range<i32>,
    random: &mut Random,
) -> Result<Replicas, Refusal> {
    let is_live = |id: &BrokerId| image.broker(*id).is_some_and(|broker| !broker.fenced);
    let live: Vec<BrokerId> = image.brokers().keys().copied().filter(is_live).collect();
    let replicas = usize::try_from(factor).unwrap_or_default();
    if replicas > live.len() {
        return Err(Refusal::new(
            ErrorCode::INVALID_REPLICATION_FACTOR,
            format!(
                "Unable to replicate the partition {factor} time(s): The target replication \
                 factor of {factor} cannot be reached because only {} broker(s) are registered \
                 or some brokers have all their log directories cordoned.",
                live.len()
            ),
        ));
    }
    let start = random.below(live.len() as u64) as usize;
    let of = |index: i32| {
        let from = start.wrapping_add(index.unsigned_abs() as usize);
        let place = |replica| live.get(from.wrapping_add(replica) % live.len()).copied();
        (
            PartitionIndex(index),
            (0..replicas).filter_map(place).collect(),
        )
    };
    Ok(partitions.map(of).collect())
}
