//! In which log directory a partition lives. New ones go where the fewest are, as Kafka's
//! `LogManager.nextLogDirs` has it; the log names the directory with the partition, so that it is
//! known before the folder is.

use std::collections::{BTreeMap, BTreeSet};

use super::Decision;
use super::startup::moved_directories;
use crate::base::ids::{BrokerId, PartitionIndex, TopicId, TopicPartition, Uuid};
use crate::cluster::image::{
    DIRECTORY_LOST, DIRECTORY_UNASSIGNED, Image, PartitionImage, TopicImage,
};
use crate::cluster::records::{
    BrokerRegistrationChangeRecord, MetadataRecord, PartitionChangeRecord,
};

/// What a start found in the node's log directories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalDirectories {
    /// The ids of those that serve, in the order of `log.dirs`.
    pub online: Vec<Uuid>,
    /// Whether each that the settings name is among them.
    pub are_all_online: bool,
    /// Where the folders of partitions are.
    pub found: BTreeMap<TopicPartition, Uuid>,
    /// Those in which the last stop closed all logs in order.
    pub closed: BTreeSet<Uuid>,
}

impl LocalDirectories {
    /// Whether the partition's log is as its last owner closed it.
    pub(super) fn is_closed(&self, (topic_id, partition): (TopicId, PartitionIndex)) -> bool {
        let id = TopicPartition {
            topic_id,
            partition,
        };
        let found = self.found.get(&id);
        found.is_some_and(|directory| self.closed.contains(directory))
    }
}

/// How many partitions each directory of one broker has.
#[derive(Clone, Debug, Default)]
struct Counts(Vec<(Uuid, usize)>);

impl Counts {
    fn new(directories: &[Uuid]) -> Self {
        Self(directories.iter().map(|id| (*id, 0)).collect())
    }

    fn add(&mut self, directory: Uuid) {
        if let Some((_, count)) = self.0.iter_mut().find(|(id, _)| *id == directory) {
            *count += 1;
        }
    }

    /// The one with the fewest, the first of equals; it counts one more from now on.
    fn take_fewest(&mut self) -> Option<Uuid> {
        let fewest = self.0.iter_mut().min_by_key(|(_, count)| *count);
        fewest.map(|(id, count)| {
            *count += 1;
            *id
        })
    }
}

/// Chooses the directories of new partitions' replicas.
#[derive(Debug, Default)]
pub(super) struct DirectoryChoice {
    /// Of this node, once a partition was to be placed in one of several.
    counts: Option<Counts>,
}

impl DirectoryChoice {
    /// The directory of a new replica on `broker`; `None` when its registration names none, and
    /// undecided on another broker with several, which decides itself (`defaultDir`).
    pub(super) fn choose(&mut self, image: &Image, broker: BrokerId) -> Option<Uuid> {
        let directories = &image.broker(broker)?.directories;
        match directories.as_slice() {
            [] => None,
            [only] => Some(*only),
            _ if broker != image.node_id() => Some(DIRECTORY_UNASSIGNED),
            _ => {
                let counts = self.counts.get_or_insert_with(|| count(image, directories));
                counts.take_fewest()
            }
        }
    }
}

fn count(image: &Image, directories: &[Uuid]) -> Counts {
    let mut counts = Counts::new(directories);
    let partitions = image
        .topics()
        .iter()
        .flat_map(|topic| topic.partitions.values());
    partitions
        .filter_map(|partition| partition.directory(image.node_id()))
        .for_each(|directory| counts.add(directory));
    counts
}

/// The directory of each replica of `node` at a start; those that are missing are in a directory
/// that does not serve. Where a folder is counts more than what the log says: an operator may have
/// moved it.
pub(super) fn homes(
    image: &Image,
    node: BrokerId,
    local: &LocalDirectories,
) -> BTreeMap<TopicPartition, Uuid> {
    let mut homes = BTreeMap::new();
    let mut counts = Counts::new(&local.online);
    let mut homeless = BTreeSet::new();
    for topic in image.topics().iter() {
        for (id, partition) in of_node(topic, node) {
            let assigned = partition.directory(node).unwrap_or(DIRECTORY_UNASSIGNED);
            let home = local.found.get(&id).copied();
            match home.or_else(|| local.online.contains(&assigned).then_some(assigned)) {
                Some(home) => {
                    counts.add(home);
                    homes.insert(id, home);
                }
                // With every directory at hand, one that none has was never made.
                None if is_undecided(assigned) && local.are_all_online => {
                    homeless.insert(id);
                }
                None => {}
            }
        }
    }
    for id in homeless {
        if let Some(home) = counts.take_fewest() {
            homes.insert(id, home);
        }
    }
    homes
}

/// The directories of `node`'s replicas that are not at hand, and how many each has.
#[must_use]
pub fn not_at_hand(
    image: &Image,
    node: BrokerId,
    local: &LocalDirectories,
) -> BTreeMap<Uuid, usize> {
    let mut counts = BTreeMap::new();
    for topic in image.topics().iter() {
        for (id, partition) in of_node(topic, node) {
            let assigned = partition.directory(node).filter(|id| !id.is_reserved());
            let is_here = |directory: &Uuid| {
                local.online.contains(directory) || local.found.contains_key(&id)
            };
            if let Some(directory) = assigned.filter(|directory| !is_here(directory)) {
                *counts.entry(directory).or_default() += 1;
            }
        }
    }
    counts
}

/// Whether the log has never said which directory it is.
fn is_undecided(directory: Uuid) -> bool {
    directory != DIRECTORY_LOST && directory.is_reserved()
}

fn of_node(
    topic: &TopicImage,
    node: BrokerId,
) -> impl Iterator<Item = (TopicPartition, &PartitionImage)> {
    let of = topic.partitions.iter();
    let of = of.filter(move |(_, partition)| partition.replicas.contains(&node));
    of.map(|(index, partition)| {
        let id = TopicPartition {
            topic_id: topic.id,
            partition: *index,
        };
        (id, partition)
    })
}

/// What is to be told of a partition whose directory on `node` does not serve: another that is in
/// sync may lead, `node` does not; the last in sync stays so, for nobody else has all records
/// (`ReplicationControlManager.generateLeaderAndIsrUpdates`).
pub(super) fn without_leader(
    id: TopicPartition,
    partition: &PartitionImage,
    node: BrokerId,
) -> Option<PartitionChangeRecord> {
    if partition.leader != node {
        return None;
    }
    let others: Vec<BrokerId> = (partition.isr.iter().copied())
        .filter(|other| *other != node)
        .collect();
    Some(PartitionChangeRecord {
        partition_id: id.partition,
        topic_id: id.topic_id,
        leader: BrokerId(-1),
        isr: (!others.is_empty()).then_some(others),
        ..PartitionChangeRecord::default()
    })
}

/// The records that tell of a directory of this node that has failed: the broker goes on without
/// it, and leads none of its partitions (`ReplicationControlManager.handleDirectoriesOffline`).
/// None when it was told before, or is the last one.
#[must_use]
pub fn directory_failed(image: &Image, directory: Uuid) -> Vec<MetadataRecord> {
    let node = image.node_id();
    let Some(registration) = image.broker(node) else {
        return Vec::new();
    };
    let left: Vec<Uuid> = (registration.directories.iter().copied())
        .filter(|id| *id != directory)
        .collect();
    if left.is_empty() || left.len() == registration.directories.len() {
        return Vec::new();
    }
    let mut records = vec![MetadataRecord::BrokerRegistrationChange(
        BrokerRegistrationChangeRecord {
            broker_id: node,
            broker_epoch: registration.epoch,
            log_dirs: left,
            ..BrokerRegistrationChangeRecord::default()
        },
    )];
    for topic in image.topics().iter() {
        let there = of_node(topic, node);
        let there = there.filter(|(_, partition)| partition.directory(node) == Some(directory));
        let changes = there.filter_map(|(id, partition)| without_leader(id, partition, node));
        records.extend(changes.map(MetadataRecord::PartitionChange));
    }
    records
}

/// A partition of this node is in that directory from now on
/// (`ReplicationControlManager.handleAssignReplicasToDirs`). False where there is no such
/// partition, or the broker has no such directory any more.
#[must_use]
pub fn assign_directory(image: &Image, id: TopicPartition, directory: Uuid) -> Decision<bool> {
    let node = image.node_id();
    let refused = Decision {
        records: Vec::new(),
        response: false,
    };
    let topic = image.topics().by_id(id.topic_id);
    let Some(partition) = topic.and_then(|topic| topic.partition(id.partition)) else {
        return refused;
    };
    let Some(place) = partition.replicas.iter().position(|one| *one == node) else {
        return refused;
    };
    let is_online = (image.broker(node)).is_some_and(|one| one.directories.contains(&directory));
    if !is_online {
        return refused;
    }
    let moved = moved_directories(partition, place, directory);
    let change = moved.map(|directories| {
        MetadataRecord::PartitionChange(PartitionChangeRecord {
            partition_id: id.partition,
            topic_id: id.topic_id,
            directories: Some(directories),
            ..PartitionChangeRecord::default()
        })
    });
    Decision {
        records: change.into_iter().collect(),
        response: true,
    }
}

#[cfg(test)]
#[path = "directories_test.rs"]
mod directories_test;
