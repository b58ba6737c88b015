//! Log directories that an operator has named for partitions that there are not yet
//! (`LogManager.preferredLogDirs`): `kafka-reassign-partitions` names them before a partition
//! arrives. As in Kafka they are kept in memory alone, and one is forgotten once it is heeded.

use std::collections::BTreeMap;

use crate::base::ids::{PartitionIndex, TopicId, Uuid};
use crate::cluster::image::Image;
use crate::cluster::records::{MetadataRecord, PartitionRecord};

/// Partitions whose directories are kept; Kafka keeps any number.
pub const PREFERRED_MAX: usize = 10_000;

/// Where partitions are to be made.
#[derive(Debug, Default)]
pub struct PreferredDirectories {
    by_partition: BTreeMap<(String, PartitionIndex), Uuid>,
}

impl PreferredDirectories {
    /// Keeps a directory for a partition; of several wishes the last counts. What does not fit is
    /// not kept.
    pub fn prefer(&mut self, partition: (String, PartitionIndex), directory: Uuid) {
        let is_known = self.by_partition.contains_key(&partition);
        if is_known || self.by_partition.len() < PREFERRED_MAX {
            self.by_partition.insert(partition, directory);
        }
    }

    /// Puts the new partitions among `records` where they are wanted, as far as those directories
    /// are this node's and serve.
    pub fn heed(&mut self, image: &Image, records: &mut [MetadataRecord]) {
        if self.by_partition.is_empty() {
            return;
        }
        let mut names: BTreeMap<TopicId, String> = BTreeMap::new();
        for record in records {
            match record {
                MetadataRecord::Topic(topic) => {
                    names.insert(topic.topic_id, topic.name.clone());
                }
                MetadataRecord::Partition(partition) => {
                    let known = image.topics().by_id(partition.topic_id);
                    let known = known.map(|topic| topic.name.to_string());
                    let name = names.get(&partition.topic_id).cloned().or(known);
                    if let Some(name) = name {
                        self.place(image, &name, partition);
                    }
                }
                _ => {}
            }
        }
    }

    fn place(&mut self, image: &Image, topic: &str, partition: &mut PartitionRecord) {
        let node = image.node_id();
        let key = (topic.to_owned(), partition.partition_id);
        let place = partition.replicas.iter().position(|id| *id == node);
        let Some(slot) = place.and_then(|place| partition.directories.get_mut(place)) else {
            return;
        };
        let Some(wanted) = self.by_partition.remove(&key) else {
            return;
        };
        let serves = |id: &Uuid| *id == wanted;
        if (image.broker(node)).is_some_and(|broker| broker.directories.iter().any(serves)) {
            *slot = wanted;
        }
    }
}
