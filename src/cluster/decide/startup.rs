//! What a node writes when it starts and stops: it registers under a new incarnation, is unfenced,
//! and is elected anew in every partition that it may lead, so that no client or replica of an
//! earlier life is mistaken for one of this. After an orderly stop a partition that it leads alone
//! is as it was left, to the last record: nothing is written for it. (Apache Kafka, which gives
//! leadership up when it stops, elects in every partition then too.)

use std::collections::BTreeMap;

use super::directories::{LocalDirectories, homes, without_leader};
use crate::base::ids::{BrokerEpoch, BrokerId, Offset, PartitionIndex, TopicPartition, Uuid};
use crate::cluster::image::{Image, METADATA_VERSION, PartitionImage, TopicImage};
use crate::cluster::records::{
    BrokerEndpoint, BrokerFeature, BrokerRegistrationChangeRecord, FeatureLevelRecord,
    MetadataRecord, PartitionChangeRecord, RegisterBrokerRecord,
};

/// Lowest and highest metadata version that this node reads: Kafka 3.3 (the first whose brokers
/// register with this record's kinds) to 4.4.
pub const METADATA_VERSIONS: (i16, i16) = (7, 33);

/// The metadata version of a new log: Kafka 4.0's, so that every later Kafka can take the
/// directory over.
pub const METADATA_VERSION_NEW: i16 = 25;

/// The first metadata version in which registrations name log directories (Kafka 3.7).
pub const METADATA_VERSION_DIRECTORIES: i16 = 17;

/// How this node registers.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRegistration {
    /// `node.id`.
    pub node_id: BrokerId,
    /// Drawn at this start.
    pub incarnation_id: Uuid,
    /// The endpoints of its advertised listeners.
    pub end_points: Vec<BrokerEndpoint>,
    /// `broker.rack`.
    pub rack: Option<String>,
}

/// The first records of a new cluster: its feature levels. Only what is served has a level.
#[must_use]
pub fn bootstrap_records() -> Vec<MetadataRecord> {
    vec![MetadataRecord::FeatureLevel(FeatureLevelRecord {
        name: METADATA_VERSION.to_owned(),
        feature_level: METADATA_VERSION_NEW,
    })]
}

/// The records of a start on the log directories `local`. `next_offset` is the one that the first
/// of them will get: the epoch of a registration is its record's offset.
#[must_use]
pub fn startup_records(
    image: &Image,
    node: &NodeRegistration,
    local: &LocalDirectories,
    next_offset: Offset,
) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    if !image.features().contains_key(METADATA_VERSION) {
        records.extend(bootstrap_records());
    }
    let level = (image.features().get(METADATA_VERSION).copied()).unwrap_or(METADATA_VERSION_NEW);
    let has_directories = level >= METADATA_VERSION_DIRECTORIES;
    let broker_epoch = BrokerEpoch(next_offset.plus(records.len() as i64).0);
    let feature = |name: &str, (min, max): (i16, i16)| BrokerFeature {
        name: name.to_owned(),
        min_supported_version: min,
        max_supported_version: max,
    };
    records.push(MetadataRecord::RegisterBroker(RegisterBrokerRecord {
        broker_id: node.node_id,
        incarnation_id: node.incarnation_id,
        broker_epoch,
        end_points: node.end_points.clone(),
        features: vec![
            feature("kraft.version", (0, 1)),
            feature(METADATA_VERSION, METADATA_VERSIONS),
        ],
        rack: node.rack.clone(),
        log_dirs: if has_directories {
            local.online.clone()
        } else {
            Vec::new()
        },
        ..RegisterBrokerRecord::default()
    }));
    records.push(MetadataRecord::BrokerRegistrationChange(
        BrokerRegistrationChangeRecord {
            broker_id: node.node_id,
            broker_epoch,
            fenced: -1,
            ..BrokerRegistrationChangeRecord::default()
        },
    ));
    let homes = has_directories.then(|| homes(image, node.node_id, local));
    let keeps_leaders = is_fenced_in_order(image, node.node_id);
    for topic in image.topics().iter() {
        let told = changes(topic, node.node_id, homes.as_ref());
        records.extend(told.filter_map(|(partition, change)| {
            let is_kept = keeps_leaders
                && local.is_closed((topic.id, change.partition_id))
                && is_settled(partition, &change);
            (!is_kept).then_some(MetadataRecord::PartitionChange(change))
        }));
    }
    records
}

/// Whether the last that the log tells of `node` is its orderly stop.
fn is_fenced_in_order(image: &Image, node: BrokerId) -> bool {
    let registration = image.broker(node);
    registration.is_some_and(|broker| broker.fenced && broker.in_controlled_shutdown)
}

/// Whether an election would change nothing but the epochs.
fn is_settled(partition: &PartitionImage, election: &PartitionChangeRecord) -> bool {
    let epochs_alone = PartitionChangeRecord {
        partition_id: election.partition_id,
        topic_id: election.topic_id,
        leader: election.leader,
        ..PartitionChangeRecord::default()
    };
    partition.leader == election.leader && *election == epochs_alone
}

/// An election of `node` in each partition of `topic` that it may lead, and the end of its lead
/// where the partition's directory does not serve. `homes` are the directories of its partitions,
/// where the log's level knows of such.
fn changes<'a>(
    topic: &'a TopicImage,
    node: BrokerId,
    homes: Option<&'a BTreeMap<TopicPartition, Uuid>>,
) -> impl Iterator<Item = (&'a PartitionImage, PartitionChangeRecord)> {
    let told = move |(index, partition): (&PartitionIndex, &PartitionImage)| {
        let place = partition.replicas.iter().position(|id| *id == node)?;
        let id = TopicPartition {
            topic_id: topic.id,
            partition: *index,
        };
        let home = homes.map(|homes| homes.get(&id).copied());
        if home == Some(None) {
            return without_leader(id, partition, node);
        }
        let directories = home.flatten();
        let directories = directories.and_then(|home| moved_directories(partition, place, home));
        let change = PartitionChangeRecord {
            partition_id: *index,
            topic_id: topic.id,
            directories,
            ..PartitionChangeRecord::default()
        };
        if !may_lead(partition, node) {
            return change.directories.is_some().then_some(change);
        }
        let isr = (partition.isr != [node]).then(|| vec![node]);
        let cleared = |list: &Vec<BrokerId>| (!list.is_empty()).then(Vec::new);
        Some(PartitionChangeRecord {
            leader: node,
            isr,
            eligible_leader_replicas: cleared(&partition.eligible_leader_replicas),
            last_known_elr: cleared(&partition.last_known_elr),
            ..change
        })
    };
    let partitions = topic.partitions.iter();
    partitions.filter_map(move |one| told(one).map(|change| (one.1, change)))
}

/// Whether every acknowledged record is known to be on `node`: it is in sync, or was eligible when
/// the last in-sync replica left (KIP-966), or is the only replica there is.
fn may_lead(partition: &PartitionImage, node: BrokerId) -> bool {
    partition.isr.contains(&node)
        || partition.eligible_leader_replicas.contains(&node)
        || partition.replicas == [node]
}

/// The partition's directories with that of the replica at `place` replaced; `None` when it is the
/// one already.
pub(super) fn moved_directories(
    partition: &PartitionImage,
    place: usize,
    id: Uuid,
) -> Option<Vec<Uuid>> {
    let mut directories = partition.directories.clone();
    directories.resize(partition.replicas.len(), Uuid::ZERO);
    let slot = directories.get_mut(place)?;
    if *slot == id {
        return None;
    }
    *slot = id;
    Some(directories)
}

/// The records of an orderly stop: the broker is fenced at once, so that a controller which starts
/// on this log need not wait for its session to end.
#[must_use]
pub fn shutdown_records(image: &Image, node: BrokerId) -> Vec<MetadataRecord> {
    let Some(registration) = image.broker(node) else {
        return Vec::new();
    };
    let change = |in_controlled_shutdown, fenced| {
        MetadataRecord::BrokerRegistrationChange(BrokerRegistrationChangeRecord {
            broker_id: node,
            broker_epoch: registration.epoch,
            fenced,
            in_controlled_shutdown,
            ..BrokerRegistrationChangeRecord::default()
        })
    };
    vec![change(1, 0), change(0, 1)]
}

#[cfg(test)]
#[path = "startup_test.rs"]
mod startup_test;
