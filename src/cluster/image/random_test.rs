//! Random histories of a cluster, and what its image must come back from.

use bytes::Bytes;

use super::*;
use crate::base::ids::{BrokerEpoch, PartitionIndex, TopicId, Uuid};
use crate::base::random::Random;
use crate::cluster::records::*;

/// A history: each record fits those before it.
#[derive(Debug)]
pub(crate) struct History {
    random: Random,
    topics: Vec<(TopicId, String, i32)>,
    brokers: Vec<(BrokerId, BrokerEpoch)>,
    made: i64,
}

impl History {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            topics: Vec::new(),
            brokers: Vec::new(),
            made: 0,
        }
    }

    fn text(&mut self) -> String {
        "x".repeat(self.random.below(40) as usize)
    }

    fn ids(&mut self) -> Vec<BrokerId> {
        let count = self.random.below(4);
        (0..count)
            .map(|_| BrokerId(self.random.below(5) as i32))
            .collect()
    }

    fn maybe_ids(&mut self) -> Option<Vec<BrokerId>> {
        self.random.chance(1, 3).then(|| self.ids())
    }

    fn uuids(&mut self) -> Vec<Uuid> {
        let count = self.random.below(3);
        (0..count).map(|_| self.random.next_uuid()).collect()
    }

    /// The records of one change.
    pub(crate) fn change(&mut self) -> Vec<MetadataRecord> {
        self.made += 1;
        match self.random.below(13) {
            0 | 1 => self.new_topic(),
            2 => self.removed_topic().into_iter().collect(),
            3..=5 => self.partition_change().into_iter().collect(),
            6 | 7 => vec![self.config()],
            8 => vec![self.registration()],
            9 => self.registration_change().into_iter().collect(),
            10 => vec![self.level_or_ids()],
            11 => vec![self.quota()],
            _ => self.foreign_or_clear(),
        }
    }

    fn new_topic(&mut self) -> Vec<MetadataRecord> {
        let id = self.random.next_uuid();
        let name = format!("topic-{}", self.made);
        let count = self.random.below(5) as i32;
        self.topics.push((id, name.clone(), count));
        let mut records = vec![MetadataRecord::Topic(TopicRecord { name, topic_id: id })];
        for index in 0..count {
            let record = PartitionRecord {
                partition_id: PartitionIndex(index),
                topic_id: id,
                replicas: self.ids(),
                isr: self.ids(),
                removing_replicas: self.ids(),
                adding_replicas: self.ids(),
                leader: BrokerId(self.random.below(3) as i32 - 1),
                leader_recovery_state: self.random.below(2) as i8,
                leader_epoch: LeaderEpoch(self.random.below(9) as i32),
                partition_epoch: self.random.below(9) as i32,
                directories: self.uuids(),
                eligible_leader_replicas: self.maybe_ids(),
                last_known_elr: self.maybe_ids(),
            };
            records.push(MetadataRecord::Partition(record));
        }
        records
    }

    fn removed_topic(&mut self) -> Option<MetadataRecord> {
        let count = self.topics.len() as u64;
        let place = (count > 0).then(|| self.random.below(count))? as usize;
        let (topic_id, ..) = self.topics.swap_remove(place);
        Some(MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id }))
    }

    fn partition_change(&mut self) -> Option<MetadataRecord> {
        let count = self.topics.len() as u64;
        let place = (count > 0).then(|| self.random.below(count))? as usize;
        let (topic_id, _, partitions) = self.topics[place].clone();
        let index = (partitions > 0).then(|| self.random.below(partitions as u64))? as i32;
        let directories = self.random.chance(1, 4).then(|| self.uuids());
        Some(MetadataRecord::PartitionChange(PartitionChangeRecord {
            partition_id: PartitionIndex(index),
            topic_id,
            isr: self.maybe_ids(),
            leader: BrokerId(self.random.below(4) as i32 - 2),
            replicas: self.maybe_ids(),
            removing_replicas: self.maybe_ids(),
            adding_replicas: self.maybe_ids(),
            leader_recovery_state: self.random.below(3) as i8 - 1,
            eligible_leader_replicas: self.maybe_ids(),
            last_known_elr: self.maybe_ids(),
            directories,
        }))
    }

    fn config(&mut self) -> MetadataRecord {
        let known = self.topics.len() as u64;
        let resource_name = match self.random.below(known + 2) {
            place if place < known => self.topics[place as usize].1.clone(),
            other => format!("other-{}", other - known),
        };
        MetadataRecord::Config(ConfigRecord {
            resource_type: [2, 4, 16, 32][self.random.below(4) as usize],
            resource_name,
            name: format!("setting-{}", self.random.below(4)),
            value: self.random.chance(3, 4).then(|| self.text()),
        })
    }

    fn quota(&mut self) -> MetadataRecord {
        let name = |random: &mut Random| {
            random
                .chance(3, 4)
                .then(|| format!("name-{}", random.below(3)))
        };
        let kinds = ["user", "client-id"]
            .into_iter()
            .take(1 + self.random.below(2) as usize);
        let entity = kinds.map(|kind| QuotaEntityData {
            entity_type: kind.to_owned(),
            entity_name: name(&mut self.random),
        });
        MetadataRecord::ClientQuota(ClientQuotaRecord {
            entity: entity.collect(),
            key: format!("limit-{}", self.random.below(2)),
            value: crate::wire::primitives::Float64(self.random.below(1_000) as f64),
            remove: self.random.chance(1, 3),
        })
    }

    fn registration(&mut self) -> MetadataRecord {
        let id = BrokerId(self.random.below(3) as i32);
        let epoch = BrokerEpoch(self.made);
        self.brokers.retain(|(broker, _)| *broker != id);
        self.brokers.push((id, epoch));
        let end_point = |number: u64| BrokerEndpoint {
            name: format!("L{number}"),
            host: "h".into(),
            port: number as u16,
            security_protocol: number as i16 % 4,
        };
        let feature = |number: u64| BrokerFeature {
            name: format!("f{number}"),
            min_supported_version: 0,
            max_supported_version: number as i16,
        };
        MetadataRecord::RegisterBroker(RegisterBrokerRecord {
            broker_id: id,
            is_migrating_zk_broker: self.random.chance(1, 8),
            incarnation_id: self.random.next_uuid(),
            broker_epoch: epoch,
            end_points: (0..self.random.below(3)).map(end_point).collect(),
            features: (0..self.random.below(3)).map(feature).collect(),
            rack: self.random.chance(1, 2).then(|| self.text()),
            fenced: self.random.chance(1, 2),
            in_controlled_shutdown: self.random.chance(1, 4),
            log_dirs: self.uuids(),
            cordoned_log_dirs: self.random.chance(1, 3).then(|| self.uuids()),
        })
    }

    fn registration_change(&mut self) -> Option<MetadataRecord> {
        let count = self.brokers.len() as u64;
        let place = (count > 0).then(|| self.random.below(count))? as usize;
        let (broker_id, broker_epoch) = self.brokers[place];
        if self.random.chance(1, 4) {
            self.brokers.swap_remove(place);
            let record = UnregisterBrokerRecord {
                broker_id,
                broker_epoch,
            };
            return Some(MetadataRecord::UnregisterBroker(record));
        }
        let record = BrokerRegistrationChangeRecord {
            broker_id,
            broker_epoch,
            fenced: self.random.below(3) as i8 - 1,
            in_controlled_shutdown: self.random.below(2) as i8,
            log_dirs: self.uuids(),
            cordoned_log_dirs: self.random.chance(1, 3).then(|| self.uuids()),
        };
        Some(MetadataRecord::BrokerRegistrationChange(record))
    }

    fn level_or_ids(&mut self) -> MetadataRecord {
        let level = self.random.below(4) as i16;
        match self.random.below(3) {
            0 => MetadataRecord::ProducerIds(ProducerIdsRecord {
                broker_id: BrokerId(1),
                broker_epoch: BrokerEpoch(1),
                next_producer_id: ProducerId(self.made * 1_000),
            }),
            1 => MetadataRecord::FeatureLevel(FeatureLevelRecord {
                name: METADATA_VERSION.into(),
                feature_level: 25 + level,
            }),
            _ => MetadataRecord::FeatureLevel(FeatureLevelRecord {
                name: format!("feature-{}", self.random.below(2)),
                feature_level: level,
            }),
        }
    }

    fn foreign_or_clear(&mut self) -> Vec<MetadataRecord> {
        if self.random.chance(1, 4) {
            let names = self.topics.last().map(|topic| topic.1.clone());
            let topic_name = names.filter(|_| self.random.chance(1, 2));
            let topic_name = topic_name.unwrap_or_default();
            return vec![MetadataRecord::ClearElr(ClearElrRecord { topic_name })];
        }
        // An access control entry (kind 18) of no particular content.
        let mut framed = vec![1, 18, 0];
        framed.extend_from_slice(self.text().as_bytes());
        let record = MetadataRecord::decode(Bytes::from(framed));
        vec![record.expect("a foreign record")]
    }
}

#[test]
fn an_image_comes_back_from_its_records() {
    for seed in 0..200 {
        let mut history = History::new(seed);
        let mut image = Image::new("cluster", BrokerId(1));
        for _ in 0..120 {
            for record in history.change() {
                image.apply(&record).expect("it fits");
            }
        }
        let mut again = Image::new("cluster", BrokerId(1));
        for record in image.records() {
            // As it stands in a file.
            let bytes = record.encode().expect("it encodes");
            let read = MetadataRecord::decode(bytes).expect("it decodes");
            again.apply(&read).expect("it fits");
        }
        assert_eq!(again, image, "seed {seed}");
    }
}
