//! How each record changes the image. Pure: the same records give the same image on every node.

use std::sync::Arc;

use super::{BrokerRegistration, Image, PartitionImage, ResourceType, TopicImage};
use crate::base::ids::{BrokerEpoch, BrokerId, PartitionIndex, TopicId};
use crate::cluster::records::{
    BrokerRegistrationChangeRecord, ConfigRecord, MetadataRecord, PartitionChangeRecord,
    PartitionRecord,
};

/// A record that does not fit the state before it: the log is damaged or was written by a node
/// that knows more than this one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// A record speaks of a topic that does not exist.
    #[error("a {record} names topic id {topic_id}, which does not exist")]
    UnknownTopic {
        /// The kind of record.
        record: &'static str,
        /// The id.
        topic_id: TopicId,
    },
    /// A record speaks of a topic by a name that none has.
    #[error("a {record} names topic {name}, which does not exist")]
    UnknownTopicName {
        /// The kind of record.
        record: &'static str,
        /// The name.
        name: String,
    },
    /// A record changes a partition that does not exist.
    #[error("a PartitionChangeRecord names partition {partition} of {topic_id}, which has none")]
    UnknownPartition {
        /// The topic.
        topic_id: TopicId,
        /// The partition.
        partition: PartitionIndex,
    },
    /// A topic's name or id is taken.
    #[error("a TopicRecord creates {name} with id {topic_id}, but one of the two is taken")]
    DuplicateTopic {
        /// The name.
        name: String,
        /// The id.
        topic_id: TopicId,
    },
    /// A record speaks of a registration that is not the broker's current one.
    #[error("a {record} names epoch {epoch} of broker {broker}, which is not registered so")]
    UnknownRegistration {
        /// The kind of record.
        record: &'static str,
        /// The broker.
        broker: BrokerId,
        /// The epoch.
        epoch: BrokerEpoch,
    },
}

impl Image {
    /// Applies one record. Records of kinds that this node makes no use of are kept.
    pub fn apply(&mut self, record: &MetadataRecord) -> Result<(), ImageError> {
        match record {
            MetadataRecord::Topic(record) => self.add_topic(&record.name, record.topic_id),
            MetadataRecord::RemoveTopic(record) => self.remove_topic(record.topic_id),
            MetadataRecord::Partition(record) => self.add_partition(record),
            MetadataRecord::PartitionChange(record) => self.change_partition(record),
            MetadataRecord::Config(record) => {
                self.set_config(record);
                Ok(())
            }
            MetadataRecord::ClientQuota(record) => {
                self.set_quota(record);
                Ok(())
            }
            MetadataRecord::RegisterBroker(record) => {
                let registration = BrokerRegistration::from_record(record);
                self.brokers
                    .insert(record.broker_id, Arc::new(registration));
                Ok(())
            }
            MetadataRecord::UnregisterBroker(record) => {
                self.registration(
                    "UnregisterBrokerRecord",
                    record.broker_id,
                    record.broker_epoch,
                )?;
                self.brokers.remove(&record.broker_id);
                Ok(())
            }
            MetadataRecord::FenceBroker(record) => {
                self.registration("FenceBrokerRecord", record.id, record.epoch)?
                    .fenced = true;
                Ok(())
            }
            MetadataRecord::UnfenceBroker(record) => {
                self.registration("UnfenceBrokerRecord", record.id, record.epoch)?
                    .fenced = false;
                Ok(())
            }
            MetadataRecord::BrokerRegistrationChange(record) => self.change_broker(record),
            MetadataRecord::FeatureLevel(record) => {
                if record.feature_level == 0 {
                    self.features.remove(&record.name);
                } else {
                    self.features
                        .insert(record.name.clone(), record.feature_level);
                }
                Ok(())
            }
            MetadataRecord::ProducerIds(record) => {
                self.next_producer_id = record.next_producer_id;
                Ok(())
            }
            MetadataRecord::ClearElr(record) => self.clear_elr(&record.topic_name),
            MetadataRecord::Foreign(record) => {
                Arc::make_mut(&mut self.foreign).push(record.clone());
                Ok(())
            }
            MetadataRecord::NoOp(_)
            | MetadataRecord::BeginTransaction(_)
            | MetadataRecord::EndTransaction(_)
            | MetadataRecord::AbortTransaction(_) => Ok(()),
        }
    }

    fn add_topic(&mut self, name: &str, topic_id: TopicId) -> Result<(), ImageError> {
        if self.topics.insert(name, topic_id) {
            return Ok(());
        }
        let name = name.to_owned();
        Err(ImageError::DuplicateTopic { name, topic_id })
    }

    fn remove_topic(&mut self, topic_id: TopicId) -> Result<(), ImageError> {
        let record = "RemoveTopicRecord";
        let Some(topic) = self.topics.remove(topic_id) else {
            return Err(ImageError::UnknownTopic { record, topic_id });
        };
        self.configs
            .remove(&(ResourceType::TOPIC, topic.name.to_string()));
        Ok(())
    }

    fn add_partition(&mut self, record: &PartitionRecord) -> Result<(), ImageError> {
        let Some(topic) = self.topics.get_mut(record.topic_id) else {
            return Err(ImageError::UnknownTopic {
                record: "PartitionRecord",
                topic_id: record.topic_id,
            });
        };
        topic
            .partitions
            .insert(record.partition_id, PartitionImage::from_record(record));
        Ok(())
    }

    fn change_partition(&mut self, record: &PartitionChangeRecord) -> Result<(), ImageError> {
        let topic_id = record.topic_id;
        let Some(topic) = self.topics.get_mut(topic_id) else {
            return Err(ImageError::UnknownTopic {
                record: "PartitionChangeRecord",
                topic_id,
            });
        };
        let Some(partition) = topic.partitions.get_mut(&record.partition_id) else {
            return Err(ImageError::UnknownPartition {
                topic_id,
                partition: record.partition_id,
            });
        };
        partition.merge(record);
        Ok(())
    }

    /// Forgets the replicas that may lead outside the ISR (`TopicDelta.replay`).
    fn clear_elr(&mut self, name: &str) -> Result<(), ImageError> {
        let ids: Vec<TopicId> = match self.topics.by_name(name) {
            _ if name.is_empty() => self.topics.iter().map(|topic| topic.id).collect(),
            Some(topic) => vec![topic.id],
            None => {
                return Err(ImageError::UnknownTopicName {
                    record: "ClearElrRecord",
                    name: name.to_owned(),
                });
            }
        };
        for id in ids {
            let has_some = |topic: &Arc<TopicImage>| topic.partitions.values().any(has_elr);
            if self.topics.by_id(id).is_some_and(has_some)
                && let Some(topic) = self.topics.get_mut(id)
            {
                for partition in topic.partitions.values_mut().filter(|one| has_elr(one)) {
                    partition.merge(&PartitionChangeRecord {
                        eligible_leader_replicas: Some(Vec::new()),
                        last_known_elr: Some(Vec::new()),
                        ..PartitionChangeRecord::default()
                    });
                }
            }
        }
        Ok(())
    }

    fn set_config(&mut self, record: &ConfigRecord) {
        let key = (
            ResourceType(record.resource_type),
            record.resource_name.clone(),
        );
        let configs = Arc::make_mut(self.configs.entry(key.clone()).or_default());
        match &record.value {
            Some(value) => {
                configs.insert(record.name.clone(), value.clone());
            }
            None => {
                configs.remove(&record.name);
            }
        }
        if configs.is_empty() {
            self.configs.remove(&key);
        }
    }

    fn change_broker(&mut self, record: &BrokerRegistrationChangeRecord) -> Result<(), ImageError> {
        let kind = "BrokerRegistrationChangeRecord";
        self.registration(kind, record.broker_id, record.broker_epoch)?
            .change(record);
        Ok(())
    }

    /// The current registration of `broker`, provided that it has this epoch.
    fn registration(
        &mut self,
        record: &'static str,
        broker: BrokerId,
        epoch: BrokerEpoch,
    ) -> Result<&mut BrokerRegistration, ImageError> {
        match self.brokers.get_mut(&broker) {
            Some(registration) if registration.epoch == epoch => Ok(Arc::make_mut(registration)),
            _ => Err(ImageError::UnknownRegistration {
                record,
                broker,
                epoch,
            }),
        }
    }
}

fn has_elr(partition: &PartitionImage) -> bool {
    !partition.eligible_leader_replicas.is_empty() || !partition.last_known_elr.is_empty()
}
