//! Records about topics, settings, features and producer ids.

use crate::base::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, PartitionIndex, ProducerId, TopicId, Uuid,
};

/// A topic comes to be (`TopicRecord.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicRecord {
    /// Its name.
    pub name: String,
    /// Its id.
    pub topic_id: TopicId,
}

/// A topic is removed (`RemoveTopicRecord.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemoveTopicRecord {
    /// Its id.
    pub topic_id: TopicId,
}

/// A partition comes to be (`PartitionRecord.json`).
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionRecord {
    /// Its number.
    pub partition_id: PartitionIndex,
    /// The topic's id.
    pub topic_id: TopicId,
    /// Replicas in order of preference.
    pub replicas: Vec<BrokerId>,
    /// In-sync replicas.
    pub isr: Vec<BrokerId>,
    /// Replicas on their way out.
    pub removing_replicas: Vec<BrokerId>,
    /// Replicas on their way in.
    pub adding_replicas: Vec<BrokerId>,
    /// The leader, or -1.
    pub leader: BrokerId,
    /// 1 while recovering from an unclean election.
    pub leader_recovery_state: i8,
    /// Epoch of the leader.
    pub leader_epoch: LeaderEpoch,
    /// Raised by each change.
    pub partition_epoch: i32,
    /// Log directory of each replica.
    pub directories: Vec<Uuid>,
    /// Eligible leader replicas (KIP-966).
    pub eligible_leader_replicas: Option<Vec<BrokerId>>,
    /// The last known of those.
    pub last_known_elr: Option<Vec<BrokerId>>,
}

impl Default for PartitionRecord {
    fn default() -> Self {
        Self {
            partition_id: PartitionIndex(-1),
            topic_id: Uuid::ZERO,
            replicas: Vec::new(),
            isr: Vec::new(),
            removing_replicas: Vec::new(),
            adding_replicas: Vec::new(),
            leader: BrokerId(-1),
            leader_recovery_state: 0,
            leader_epoch: LeaderEpoch(-1),
            partition_epoch: -1,
            directories: Vec::new(),
            eligible_leader_replicas: None,
            last_known_elr: None,
        }
    }
}

/// A partition changes (`PartitionChangeRecord.json`); `None` leaves a field as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionChangeRecord {
    /// Its number.
    pub partition_id: PartitionIndex,
    /// The topic's id.
    pub topic_id: TopicId,
    /// In-sync replicas.
    pub isr: Option<Vec<BrokerId>>,
    /// The leader; -1: none; -2: no election.
    pub leader: BrokerId,
    /// Replicas in order of preference.
    pub replicas: Option<Vec<BrokerId>>,
    /// Replicas on their way out.
    pub removing_replicas: Option<Vec<BrokerId>>,
    /// Replicas on their way in.
    pub adding_replicas: Option<Vec<BrokerId>>,
    /// -1: no change; 1 while recovering from an unclean election.
    pub leader_recovery_state: i8,
    /// Log directory of each replica.
    pub directories: Option<Vec<Uuid>>,
    /// Eligible leader replicas (KIP-966).
    pub eligible_leader_replicas: Option<Vec<BrokerId>>,
    /// The last known of those.
    pub last_known_elr: Option<Vec<BrokerId>>,
}

impl Default for PartitionChangeRecord {
    fn default() -> Self {
        Self {
            partition_id: PartitionIndex(-1),
            topic_id: Uuid::ZERO,
            isr: None,
            leader: BrokerId(-2),
            replicas: None,
            removing_replicas: None,
            adding_replicas: None,
            leader_recovery_state: -1,
            directories: None,
            eligible_leader_replicas: None,
            last_known_elr: None,
        }
    }
}

/// A setting is made or, with a null value, removed (`ConfigRecord.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigRecord {
    /// `ConfigResource.Type`.
    pub resource_type: i8,
    /// The resource.
    pub resource_name: String,
    /// The setting.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

/// A feature's finalized level (`FeatureLevelRecord.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureLevelRecord {
    /// The feature.
    pub name: String,
    /// Its level; 0: off.
    pub feature_level: i16,
}

/// A block of producer ids has been handed out (`ProducerIdsRecord.json`).
#[derive(Clone, Debug, PartialEq)]
pub struct ProducerIdsRecord {
    /// To which broker.
    pub broker_id: BrokerId,
    /// In which of its registrations.
    pub broker_epoch: BrokerEpoch,
    /// The first id of the next block.
    pub next_producer_id: ProducerId,
}

impl Default for ProducerIdsRecord {
    fn default() -> Self {
        Self {
            broker_id: BrokerId(0),
            broker_epoch: BrokerEpoch(-1),
            next_producer_id: ProducerId(0),
        }
    }
}
