//! The image as records: those that make it of an empty one, in the order of Kafka's snapshots
//! (`MetadataImage.write`).

use super::{Image, METADATA_VERSION, PartitionImage, TopicImage};
use crate::base::ids::{BrokerEpoch, BrokerId, PartitionIndex, TopicId};
use crate::cluster::records::{
    ConfigRecord, FeatureLevelRecord, MetadataRecord, PartitionRecord, ProducerIdsRecord,
    TopicRecord,
};

impl Image {
    /// The records, made one by one as they are asked for.
    pub fn records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        let brokers = self.brokers.values();
        let brokers = brokers.map(|broker| MetadataRecord::RegisterBroker(broker.to_record()));
        let foreign = self.foreign.iter().cloned().map(MetadataRecord::Foreign);
        self.level_records()
            .chain(brokers)
            .chain(self.topics.iter().flat_map(|topic| topic_records(topic)))
            .chain(self.config_records())
            .chain(self.quota_records())
            .chain(self.producer_ids_record())
            .chain(foreign)
    }

    /// The metadata version stands first: it says which records may follow.
    fn level_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        let is_version = |(name, _): &(&String, &i16)| name.as_str() == METADATA_VERSION;
        let version = self.features.iter().filter(is_version);
        let others = self.features.iter().filter(move |one| !is_version(one));
        version.chain(others).map(|(name, level)| {
            MetadataRecord::FeatureLevel(FeatureLevelRecord {
                name: name.clone(),
                feature_level: *level,
            })
        })
    }

    fn config_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        self.configs.iter().flat_map(|((kind, resource), configs)| {
            configs.iter().map(move |(name, value)| {
                MetadataRecord::Config(ConfigRecord {
                    resource_type: kind.0,
                    resource_name: resource.clone(),
                    name: name.clone(),
                    value: Some(value.clone()),
                })
            })
        })
    }

    /// Whose the last block was is of no use any more.
    fn producer_ids_record(&self) -> Option<MetadataRecord> {
        (self.next_producer_id.0 > 0).then(|| {
            MetadataRecord::ProducerIds(ProducerIdsRecord {
                broker_id: BrokerId(-1),
                broker_epoch: BrokerEpoch(-1),
                next_producer_id: self.next_producer_id,
            })
        })
    }
}

fn topic_records(topic: &TopicImage) -> impl Iterator<Item = MetadataRecord> + '_ {
    let head = MetadataRecord::Topic(TopicRecord {
        name: topic.name.to_string(),
        topic_id: topic.id,
    });
    let partition = |(index, partition): (&PartitionIndex, &PartitionImage)| {
        MetadataRecord::Partition(partition.to_record(topic.id, *index))
    };
    std::iter::once(head).chain(topic.partitions.iter().map(partition))
}

impl PartitionImage {
    /// The record that creates the partition as it is now (`PartitionRegistration.toRecord`).
    #[must_use]
    pub fn to_record(&self, topic_id: TopicId, partition_id: PartitionIndex) -> PartitionRecord {
        let if_any = |replicas: &Vec<BrokerId>| (!replicas.is_empty()).then(|| replicas.clone());
        PartitionRecord {
            partition_id,
            topic_id,
            replicas: self.replicas.clone(),
            isr: self.isr.clone(),
            removing_replicas: self.removing_replicas.clone(),
            adding_replicas: self.adding_replicas.clone(),
            leader: self.leader,
            leader_recovery_state: self.leader_recovery_state,
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            directories: self.directories.clone(),
            eligible_leader_replicas: if_any(&self.eligible_leader_replicas),
            last_known_elr: if_any(&self.last_known_elr),
        }
    }
}
