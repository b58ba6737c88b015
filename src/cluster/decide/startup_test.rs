use super::*;
use crate::base::ids::{LeaderEpoch, PartitionIndex};
use crate::cluster::records::{PartitionRecord, TopicRecord};

fn node(incarnation: u8) -> NodeRegistration {
    NodeRegistration {
        node_id: BrokerId(1),
        incarnation_id: Uuid([incarnation; 16]),
        end_points: vec![BrokerEndpoint {
            name: "PLAINTEXT".into(),
            host: "localhost".into(),
            port: 9092,
            security_protocol: 0,
        }],
        rack: None,
    }
}

fn local() -> LocalDirectories {
    LocalDirectories {
        online: vec![Uuid([9; 16])],
        are_all_online: true,
        ..LocalDirectories::default()
    }
}

fn apply(image: &mut Image, records: &[MetadataRecord]) {
    for record in records {
        image.apply(record).expect("fits");
    }
    let end = image.end_offset().plus(records.len() as i64);
    image.advance_to(end, LeaderEpoch(1));
}

fn partition(index: i32, replicas: &[i32], isr: &[i32]) -> PartitionRecord {
    let ids = |ids: &[i32]| ids.iter().map(|id| BrokerId(*id)).collect::<Vec<_>>();
    PartitionRecord {
        partition_id: PartitionIndex(index),
        topic_id: Uuid([5; 16]),
        replicas: ids(replicas),
        isr: ids(isr),
        leader: BrokerId(isr.first().copied().unwrap_or(-1)),
        leader_epoch: LeaderEpoch(3),
        partition_epoch: 3,
        ..PartitionRecord::default()
    }
}

#[test]
fn the_first_start_sets_the_level_and_registers() {
    let mut image = Image::new("cluster", BrokerId(1));
    let records = startup_records(&image, &node(1), &local(), Offset(10));
    apply(&mut image, &records);
    assert_eq!(image.features()[METADATA_VERSION], METADATA_VERSION_NEW);
    let broker = image.broker(BrokerId(1)).unwrap();
    assert!(!broker.fenced);
    // The level's record has offset 10, the registration's 11.
    assert_eq!(broker.epoch, BrokerEpoch(11));
    assert_eq!(broker.directories, [Uuid([9; 16])]);
    assert_eq!(broker.listeners["PLAINTEXT"].port, 9092);
}

#[test]
fn every_start_elects_this_node_anew_where_it_may_lead() {
    let mut image = Image::new("cluster", BrokerId(1));
    let records = startup_records(&image, &node(1), &local(), Offset(0));
    apply(&mut image, &records);
    let topic = TopicRecord {
        name: "a".into(),
        topic_id: Uuid([5; 16]),
    };
    let mut left = partition(1, &[1], &[]);
    left.eligible_leader_replicas = Some(vec![BrokerId(1)]);
    left.last_known_elr = Some(vec![BrokerId(1)]);
    apply(
        &mut image,
        &[
            MetadataRecord::Topic(topic),
            MetadataRecord::Partition(partition(0, &[1], &[1])),
            MetadataRecord::Partition(left),
            MetadataRecord::Partition(partition(2, &[2, 1], &[2])),
            MetadataRecord::Partition(partition(3, &[2], &[2])),
            MetadataRecord::Partition(partition(4, &[1, 2], &[1, 2])),
        ],
    );
    let end = image.end_offset();
    let records = startup_records(&image, &node(2), &local(), end);
    apply(&mut image, &records);
    let topic = image.topics().by_name("a").unwrap().clone();
    let of = |index: i32| topic.partition(PartitionIndex(index)).unwrap();
    for index in [0, 1, 4] {
        assert_eq!(of(index).leader, BrokerId(1));
        assert_eq!(of(index).leader_epoch, LeaderEpoch(4), "partition {index}");
        assert_eq!(of(index).isr, [BrokerId(1)]);
        assert!(of(index).eligible_leader_replicas.is_empty());
    }
    assert_eq!(of(0).directories, [Uuid([9; 16])]);
    assert_eq!(of(4).directories, [Uuid([9; 16]), Uuid::ZERO]);
    // Not in sync, or not a replica at all: electing this node would lose records.
    for index in [2, 3] {
        assert_eq!(of(index).leader, BrokerId(2));
        assert_eq!(of(index).leader_epoch, LeaderEpoch(3));
    }
    let broker = image.broker(BrokerId(1)).unwrap();
    assert_eq!(broker.incarnation_id, Uuid([2; 16]));
    assert_eq!(broker.epoch.0, end.0);
}

#[test]
fn an_orderly_stop_fences_the_broker() {
    let mut image = Image::new("cluster", BrokerId(1));
    assert!(shutdown_records(&image, BrokerId(1)).is_empty());
    let records = startup_records(&image, &node(1), &local(), Offset(0));
    apply(&mut image, &records);
    let records = shutdown_records(&image, BrokerId(1));
    apply(&mut image, &records);
    let broker = image.broker(BrokerId(1)).unwrap();
    assert!(broker.fenced && broker.in_controlled_shutdown);
}

/// What a start writes for the partitions of a topic: the numbers of those that are elected in.
fn elected(image: &Image, closed: &[Uuid]) -> Vec<i32> {
    let topic_id = Uuid([5; 16]);
    let id = |partition| TopicPartition {
        topic_id,
        partition,
    };
    let found = (0..6).map(|index| (id(PartitionIndex(index)), Uuid([9; 16])));
    let local = LocalDirectories {
        // Of the last one the folder is gone.
        found: found.take(5).collect(),
        closed: closed.iter().copied().collect(),
        ..local()
    };
    let records = startup_records(image, &node(2), &local, image.end_offset());
    let changes = records.iter().filter_map(|record| match record {
        MetadataRecord::PartitionChange(change) => Some(change.partition_id.0),
        _ => None,
    });
    changes.collect()
}

#[test]
fn after_an_orderly_stop_what_this_node_leads_alone_stays_as_it_is() {
    let mut image = Image::new("cluster", BrokerId(1));
    let records = startup_records(&image, &node(1), &local(), Offset(0));
    apply(&mut image, &records);
    let topic = TopicRecord {
        name: "a".into(),
        topic_id: Uuid([5; 16]),
    };
    let settled = PartitionRecord {
        directories: vec![Uuid([9; 16])],
        ..partition(0, &[1], &[1])
    };
    let of = |index, change: fn(&mut PartitionRecord)| {
        let mut record = PartitionRecord {
            partition_id: PartitionIndex(index),
            ..settled.clone()
        };
        change(&mut record);
        MetadataRecord::Partition(record)
    };
    let records = [
        MetadataRecord::Topic(topic),
        of(0, |_| ()),
        // As Apache Kafka leaves a partition when it stops.
        of(1, |record| record.leader = BrokerId(-1)),
        of(2, |record| record.isr = Vec::new()),
        of(3, |record| record.directories = vec![Uuid([8; 16])]),
        of(4, |record| record.last_known_elr = Some(vec![BrokerId(1)])),
        of(5, |_| ()),
    ];
    apply(&mut image, &records);
    // The log does not tell of an orderly stop.
    assert_eq!(elected(&image, &[Uuid([9; 16])]), [0, 1, 2, 3, 4, 5]);
    let records = shutdown_records(&image, BrokerId(1));
    apply(&mut image, &records);
    assert_eq!(elected(&image, &[Uuid([9; 16])]), [1, 2, 3, 4, 5]);
    assert_eq!(elected(&image, &[Uuid([8; 16])]), [0, 1, 2, 3, 4, 5]);
}
