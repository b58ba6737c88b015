//! Topics and their partitions.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crate::base::ids::{BrokerId, LeaderEpoch, PartitionIndex, TopicId, TopicPartition, Uuid};
use crate::cluster::records::{PartitionChangeRecord, PartitionRecord};

/// A change record leaves the leader, and with it the leader epoch, as it is
/// (`LeaderConstants.NO_LEADER_CHANGE`).
pub const NO_LEADER_CHANGE: BrokerId = BrokerId(-2);

/// One partition (`org.apache.kafka.metadata.PartitionRegistration`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionImage {
    /// Replicas in order of preference.
    pub replicas: Vec<BrokerId>,
    /// The log directory of each replica, in the same order; empty when the log has never told.
    pub directories: Vec<Uuid>,
    /// In-sync replicas.
    pub isr: Vec<BrokerId>,
    /// Replicas on their way out.
    pub removing_replicas: Vec<BrokerId>,
    /// Replicas on their way in.
    pub adding_replicas: Vec<BrokerId>,
    /// Replicas outside the ISR that may still lead (KIP-966).
    pub eligible_leader_replicas: Vec<BrokerId>,
    /// The last known of those.
    pub last_known_elr: Vec<BrokerId>,
    /// The leader; -1 while there is none.
    pub leader: BrokerId,
    /// 1 while the leader recovers from an unclean election, else 0.
    pub leader_recovery_state: i8,
    /// Raised by each election.
    pub leader_epoch: LeaderEpoch,
    /// Raised by each change.
    pub partition_epoch: i32,
}

impl PartitionImage {
    /// The partition that a record tells of.
    #[must_use]
    pub fn from_record(record: &PartitionRecord) -> Self {
        Self {
            replicas: record.replicas.clone(),
            directories: record.directories.clone(),
            isr: record.isr.clone(),
            removing_replicas: record.removing_replicas.clone(),
            adding_replicas: record.adding_replicas.clone(),
            eligible_leader_replicas: record.eligible_leader_replicas.clone().unwrap_or_default(),
            last_known_elr: record.last_known_elr.clone().unwrap_or_default(),
            leader: record.leader,
            leader_recovery_state: record.leader_recovery_state,
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
        }
    }

    /// The log directory of the replica on `broker`; `None` when it is no replica or the log has
    /// never told.
    #[must_use]
    pub fn directory(&self, broker: BrokerId) -> Option<Uuid> {
        let place = self.replicas.iter().position(|id| *id == broker)?;
        self.directories.get(place).copied()
    }

    /// Applies a change (`PartitionRegistration.merge`): naming a leader, even the same one, is an
    /// election and raises the leader epoch; every change raises the partition epoch.
    pub fn merge(&mut self, record: &PartitionChangeRecord) {
        let replace = |field: &mut Vec<BrokerId>, change: &Option<Vec<BrokerId>>| {
            if let Some(change) = change {
                field.clone_from(change);
            }
        };
        replace(&mut self.replicas, &record.replicas);
        replace(&mut self.isr, &record.isr);
        replace(&mut self.removing_replicas, &record.removing_replicas);
        replace(&mut self.adding_replicas, &record.adding_replicas);
        replace(
            &mut self.eligible_leader_replicas,
            &record.eligible_leader_replicas,
        );
        replace(&mut self.last_known_elr, &record.last_known_elr);
        if let Some(directories) = &record.directories {
            self.directories.clone_from(directories);
        }
        if record.leader != NO_LEADER_CHANGE {
            self.leader = record.leader;
            self.leader_epoch = LeaderEpoch(self.leader_epoch.0.saturating_add(1));
        }
        if record.leader_recovery_state >= 0 {
            self.leader_recovery_state = record.leader_recovery_state;
        }
        self.partition_epoch = self.partition_epoch.saturating_add(1);
    }
}

/// One topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicImage {
    /// Its name.
    pub name: Arc<str>,
    /// Identity of this creation of the name (KIP-516).
    pub id: TopicId,
    /// Its partitions by number, from 0 without a hole.
    pub partitions: BTreeMap<PartitionIndex, PartitionImage>,
}

impl TopicImage {
    /// One partition.
    #[must_use]
    pub fn partition(&self, index: PartitionIndex) -> Option<&PartitionImage> {
        self.partitions.get(&index)
    }
}

/// All topics, by name and by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topics {
    by_name: BTreeMap<Arc<str>, TopicId>,
    by_id: HashMap<TopicId, Arc<TopicImage>>,
}

impl Topics {
    /// The topic of this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.by_name.get(name).and_then(|id| self.by_id.get(id))
    }

    /// The topic of this id.
    #[must_use]
    pub fn by_id(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.by_id.get(&id)
    }

    /// One partition, by topic id.
    #[must_use]
    pub fn partition(&self, of: TopicPartition) -> Option<&PartitionImage> {
        self.by_id.get(&of.topic_id)?.partition(of.partition)
    }

    /// Every topic, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.by_name.values().filter_map(|id| self.by_id.get(id))
    }

    /// The topics whose names are `from` or sort after it, sorted by name.
    pub fn iter_from(&self, from: &str) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.by_name
            .range::<str, _>((Bound::Included(from), Bound::Unbounded))
            .filter_map(|(_, id)| self.by_id.get(id))
    }

    /// How many topics there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a topic without partitions; false when its name or its id is taken.
    pub(super) fn insert(&mut self, name: &str, id: TopicId) -> bool {
        if self.by_name.contains_key(name) || self.by_id.contains_key(&id) {
            return false;
        }
        let name: Arc<str> = Arc::from(name);
        let topic = TopicImage {
            name: Arc::clone(&name),
            id,
            partitions: BTreeMap::new(),
        };
        self.by_name.insert(name, id);
        self.by_id.insert(id, Arc::new(topic));
        true
    }

    /// Removes a topic and answers what it was.
    pub(super) fn remove(&mut self, id: TopicId) -> Option<Arc<TopicImage>> {
        let topic = self.by_id.remove(&id)?;
        self.by_name.remove(&topic.name);
        Some(topic)
    }

    /// A topic to be changed; copied first when a published image still holds it.
    pub(super) fn get_mut(&mut self, id: TopicId) -> Option<&mut TopicImage> {
        self.by_id.get_mut(&id).map(Arc::make_mut)
    }
}
