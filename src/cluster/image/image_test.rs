use super::*;
use crate::base::ids::{BrokerEpoch, PartitionIndex, Uuid};
use crate::base::random::Random;
use crate::cluster::records::*;

fn id(number: u128) -> Uuid {
    Uuid((number + 100).to_be_bytes())
}

fn topic(name: &str, number: u128) -> MetadataRecord {
    MetadataRecord::Topic(TopicRecord {
        name: name.into(),
        topic_id: id(number),
    })
}

fn partition(number: u128, index: i32) -> MetadataRecord {
    MetadataRecord::Partition(PartitionRecord {
        partition_id: PartitionIndex(index),
        topic_id: id(number),
        replicas: vec![BrokerId(1)],
        isr: vec![BrokerId(1)],
        leader: BrokerId(1),
        leader_epoch: LeaderEpoch(0),
        partition_epoch: 0,
        directories: vec![id(7)],
        ..PartitionRecord::default()
    })
}

fn config(name: &str, key: &str, value: Option<&str>) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord {
        resource_type: 2,
        resource_name: name.into(),
        name: key.into(),
        value: value.map(str::to_owned),
    })
}

fn replay(records: &[MetadataRecord]) -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    for record in records {
        image.apply(record).unwrap();
    }
    image
}

#[test]
fn a_topic_is_found_by_name_and_id_until_it_is_removed() {
    let mut image = replay(&[
        topic("a", 1),
        config("a", "retention.ms", Some("5")),
        partition(1, 0),
        partition(1, 1),
    ]);
    let published = image.clone();
    assert_eq!(image.topics().by_name("a").unwrap().partitions.len(), 2);
    assert_eq!(image.topics().by_id(id(1)).unwrap().name.as_ref(), "a");
    assert_eq!(image.topic_configs("a")["retention.ms"], "5");
    let removal = MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id: id(1) });
    image.apply(&removal).unwrap();
    assert!(image.topics().by_name("a").is_none() && image.topics().by_id(id(1)).is_none());
    assert!(image.topic_configs("a").is_empty());
    // The image that shards hold has not moved.
    assert_eq!(published.topics().len(), 1);
    // The name is free again, under another id.
    image.apply(&topic("a", 2)).unwrap();
    assert_eq!(image.topics().by_name("a").unwrap().id, id(2));
    assert!(image.topic_configs("a").is_empty());
}

#[test]
fn naming_a_leader_is_an_election_even_when_it_stays() {
    let mut image = replay(&[topic("a", 1), partition(1, 0)]);
    let change = |leader: i32, isr: Option<Vec<BrokerId>>| {
        MetadataRecord::PartitionChange(PartitionChangeRecord {
            partition_id: PartitionIndex(0),
            topic_id: id(1),
            leader: BrokerId(leader),
            isr,
            ..PartitionChangeRecord::default()
        })
    };
    let before = image.clone();
    image.apply(&change(1, None)).unwrap();
    let of = |image: &Image| {
        let topic = image.topics().by_name("a").unwrap();
        topic.partition(PartitionIndex(0)).unwrap().clone()
    };
    assert_eq!(
        (of(&image).leader_epoch.0, of(&image).partition_epoch),
        (1, 1)
    );
    image.apply(&change(-2, Some(vec![]))).unwrap();
    assert_eq!(
        (of(&image).leader_epoch.0, of(&image).partition_epoch),
        (1, 2)
    );
    assert!(of(&image).isr.is_empty());
    image.apply(&change(-1, None)).unwrap();
    assert_eq!(
        (of(&image).leader, of(&image).leader_epoch.0),
        (BrokerId(-1), 2)
    );
    assert_eq!(of(&before).leader_epoch.0, 0);
}

#[test]
fn records_that_do_not_fit_are_refused_by_name() {
    let mut image = replay(&[topic("a", 1)]);
    let refused = |image: &mut Image, record: MetadataRecord| image.apply(&record).unwrap_err();
    assert!(matches!(
        refused(&mut image, topic("a", 2)),
        ImageError::DuplicateTopic { .. }
    ));
    assert!(matches!(
        refused(&mut image, topic("b", 1)),
        ImageError::DuplicateTopic { .. }
    ));
    assert!(matches!(
        refused(&mut image, partition(9, 0)),
        ImageError::UnknownTopic { .. }
    ));
    let change = PartitionChangeRecord {
        partition_id: PartitionIndex(4),
        topic_id: id(1),
        ..PartitionChangeRecord::default()
    };
    assert!(matches!(
        refused(&mut image, MetadataRecord::PartitionChange(change)),
        ImageError::UnknownPartition { .. }
    ));
    let fence = FenceBrokerRecord {
        id: BrokerId(1),
        epoch: BrokerEpoch(3),
    };
    assert!(matches!(
        refused(&mut image, MetadataRecord::FenceBroker(fence)),
        ImageError::UnknownRegistration { .. }
    ));
}

#[test]
fn a_registration_counts_only_in_its_epoch() {
    let mut image = replay(&[MetadataRecord::RegisterBroker(RegisterBrokerRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(11),
        ..RegisterBrokerRecord::default()
    })]);
    assert!(image.broker(BrokerId(1)).unwrap().fenced);
    let mut change = BrokerRegistrationChangeRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(11),
        fenced: -1,
        ..BrokerRegistrationChangeRecord::default()
    };
    image
        .apply(&MetadataRecord::BrokerRegistrationChange(change.clone()))
        .unwrap();
    assert!(!image.broker(BrokerId(1)).unwrap().fenced);
    change.broker_epoch = BrokerEpoch(10);
    assert!(
        image
            .apply(&MetadataRecord::BrokerRegistrationChange(change))
            .is_err()
    );
}

#[test]
fn features_configs_and_producer_ids_follow_the_last_record() {
    let level = |level| {
        MetadataRecord::FeatureLevel(FeatureLevelRecord {
            name: "x.version".into(),
            feature_level: level,
        })
    };
    let ids = MetadataRecord::ProducerIds(ProducerIdsRecord {
        next_producer_id: ProducerId(2_000),
        ..ProducerIdsRecord::default()
    });
    let image = replay(&[
        level(1),
        level(2),
        config("a", "k", Some("1")),
        config("a", "k", Some("2")),
        config("b", "k", Some("1")),
        config("b", "k", None),
        ids,
    ]);
    assert_eq!(image.features()["x.version"], 2);
    assert_eq!(image.topic_configs("a")["k"], "2");
    assert!(image.topic_configs("b").is_empty());
    assert_eq!(image.next_producer_id(), ProducerId(2_000));
    let mut image = image;
    image.apply(&level(0)).unwrap();
    assert!(image.features().is_empty());
}

/// Random creations and removals against a plain map as the model.
#[test]
fn random_histories_match_a_plain_model() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut image = Image::new("cluster", BrokerId(1));
        let mut model: BTreeMap<String, (u128, Vec<i32>)> = BTreeMap::new();
        for step in 0..300u128 {
            let name = format!("t{}", random.below(12));
            let number = model.get(&name).map(|(number, _)| *number);
            match (number, random.below(5)) {
                (None, _) => {
                    image.apply(&topic(&name, step)).unwrap();
                    model.insert(name, (step, Vec::new()));
                }
                (Some(number), 0) => {
                    let topic_id = id(number);
                    image
                        .apply(&MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id }))
                        .unwrap();
                    model.remove(&name);
                }
                (Some(number), 1 | 2) => {
                    let epochs = &mut model.get_mut(&name).unwrap().1;
                    image
                        .apply(&partition(number, epochs.len() as i32))
                        .unwrap();
                    epochs.push(0);
                }
                (Some(number), _) => {
                    let epochs = &mut model.get_mut(&name).unwrap().1;
                    if epochs.is_empty() {
                        continue;
                    }
                    let index = random.below(epochs.len() as u64) as usize;
                    let change = PartitionChangeRecord {
                        partition_id: PartitionIndex(index as i32),
                        topic_id: id(number),
                        leader: BrokerId(1),
                        ..PartitionChangeRecord::default()
                    };
                    let _shared = image.clone();
                    image
                        .apply(&MetadataRecord::PartitionChange(change))
                        .unwrap();
                    epochs[index] += 1;
                }
            }
        }
        let seen: BTreeMap<String, (Uuid, Vec<i32>)> = (image.topics().iter())
            .map(|topic| {
                let epochs = topic.partitions.values().map(|part| part.leader_epoch.0);
                (topic.name.to_string(), (topic.id, epochs.collect()))
            })
            .collect();
        let expected = model.into_iter().map(|(name, (n, e))| (name, (id(n), e)));
        assert_eq!(seen, expected.collect(), "seed {seed}");
    }
}
