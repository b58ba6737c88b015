use super::*;
use crate::base::config::BrokerTexts;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{LeaderEpoch, Offset};
use crate::base::random::Random;
use crate::cluster::decide::{
    CreateTopicsContext, NodeRegistration, create_topics, startup_records,
};
use crate::cluster::quotas::mutations::Permits;
use crate::wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};

const NODE: BrokerId = BrokerId(1);
const A: Uuid = Uuid([0x4a; 16]);
const B: Uuid = Uuid([0x4b; 16]);
const C: Uuid = Uuid([0x4c; 16]);

fn apply(image: &mut Image, records: &[MetadataRecord]) {
    for record in records {
        image.apply(record).expect("fits");
    }
    let end = image.end_offset().plus(records.len() as i64);
    image.advance_to(end, LeaderEpoch(1));
}

/// A start of the node with these directories.
fn start(image: &mut Image, online: &[Uuid], are_all_online: bool) {
    let local = LocalDirectories {
        online: online.to_vec(),
        are_all_online,
        ..LocalDirectories::default()
    };
    start_on(image, &local);
}

fn start_on(image: &mut Image, local: &LocalDirectories) {
    let node = NodeRegistration {
        node_id: NODE,
        incarnation_id: Uuid([1; 16]),
        end_points: Vec::new(),
        rack: None,
    };
    let records = startup_records(image, &node, local, image.end_offset());
    apply(image, &records);
}

fn create(image: &mut Image, name: &str, partitions: i32) {
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.to_owned(),
            num_partitions: partitions,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    };
    let texts = BrokerTexts::default();
    let context = CreateTopicsContext {
        broker_texts: &texts,
        num_partitions: 1,
        replication_factor: 1,
    };
    let mut random = Random::new(partitions as u64);
    let decision = create_topics(
        image,
        &request,
        context,
        (&mut random, &mut Permits::unlimited()),
    );
    assert_eq!(decision.response.topics[0].error_code, ErrorCode::NONE);
    apply(image, &decision.records);
}

/// The directory and the leader of each partition.
fn places(image: &Image, name: &str) -> Vec<(Uuid, i32)> {
    let topic = image.topics().by_name(name).expect("it is there");
    let of =
        |partition: &PartitionImage| (partition.directory(NODE).expect("told"), partition.leader.0);
    topic.partitions.values().map(of).collect()
}

fn id(image: &Image, name: &str, partition: i32) -> TopicPartition {
    TopicPartition {
        topic_id: image.topics().by_name(name).expect("it is there").id,
        partition: PartitionIndex(partition),
    }
}

#[test]
fn new_partitions_go_where_the_fewest_are_the_first_of_equals() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[B, A, C], true);
    assert_eq!(
        image.broker(NODE).expect("registered").directories,
        [B, A, C]
    );
    create(&mut image, "t", 4);
    assert_eq!(places(&image, "t"), [(B, 1), (A, 1), (C, 1), (B, 1)]);
    create(&mut image, "u", 2);
    assert_eq!(places(&image, "u"), [(A, 1), (C, 1)]);
    // A directory that is new is the emptiest.
    start(&mut image, &[B, A, C, Uuid([7; 16])], true);
    create(&mut image, "v", 3);
    let new = Uuid([7; 16]);
    assert_eq!(places(&image, "v"), [(new, 1), (new, 1), (B, 1)]);
}

#[test]
fn the_only_directory_takes_all() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[A], true);
    create(&mut image, "t", 2);
    assert_eq!(places(&image, "t"), [(A, 1), (A, 1)]);
}

#[test]
fn partitions_of_a_directory_that_fails_have_no_leader_until_it_is_back() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[A, B], true);
    create(&mut image, "t", 4);
    let records = directory_failed(&image, B);
    apply(&mut image, &records);
    assert_eq!(image.broker(NODE).expect("registered").directories, [A]);
    assert_eq!(places(&image, "t"), [(A, 1), (B, -1), (A, 1), (B, -1)]);
    let topic = image.topics().by_name("t").expect("it is there");
    let isr = |index| {
        &topic
            .partition(PartitionIndex(index))
            .expect("it is there")
            .isr
    };
    assert_eq!(
        (isr(0), isr(1)),
        (&vec![NODE], &vec![NODE]),
        "nobody else has its records"
    );
    // Told once; and the last directory is not told of, for then nobody is left to serve.
    assert_eq!(directory_failed(&image, B), []);
    assert_eq!(directory_failed(&image, A), []);
    create(&mut image, "u", 2);
    assert_eq!(places(&image, "u"), [(A, 1), (A, 1)]);
    // Without it again: nothing changes. With it: all as before.
    start(&mut image, &[A], false);
    assert_eq!(places(&image, "t"), [(A, 1), (B, -1), (A, 1), (B, -1)]);
    start(&mut image, &[A, B], true);
    assert_eq!(places(&image, "t"), [(A, 1), (B, 1), (A, 1), (B, 1)]);
}

#[test]
fn a_directory_that_is_no_longer_named_is_not_replaced() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[A, B], true);
    create(&mut image, "t", 2);
    // The settings name A alone, so that all that they name serve.
    start(&mut image, &[A], true);
    assert_eq!(places(&image, "t"), [(A, 1), (B, -1)]);
    let topic = id(&image, "t", 1);
    let lost = homes(&image, NODE, &LocalDirectories::default());
    assert!(!lost.contains_key(&topic));
}

#[test]
fn where_a_folder_is_counts_more_than_what_the_log_says() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[A, B], true);
    create(&mut image, "t", 2);
    let moved = LocalDirectories {
        online: vec![A, C],
        are_all_online: false,
        found: BTreeMap::from([(id(&image, "t", 1), C)]),
        ..LocalDirectories::default()
    };
    start_on(&mut image, &moved);
    assert_eq!(places(&image, "t"), [(A, 1), (C, 1)]);
}

/// A log that Apache Kafka wrote may name no directory yet.
#[test]
fn a_partition_without_a_directory_gets_one_only_with_all_at_hand() {
    for (undecided, are_all_online) in [
        (Uuid::ZERO, true),
        (DIRECTORY_UNASSIGNED, true),
        (DIRECTORY_UNASSIGNED, false),
        (DIRECTORY_LOST, true),
    ] {
        let mut image = Image::new("cluster", NODE);
        start(&mut image, &[A, B], true);
        create(&mut image, "t", 3);
        let change = MetadataRecord::PartitionChange(PartitionChangeRecord {
            partition_id: PartitionIndex(2),
            topic_id: image.topics().by_name("t").expect("it is there").id,
            directories: Some(vec![undecided]),
            ..PartitionChangeRecord::default()
        });
        apply(&mut image, &[change]);
        start(&mut image, &[A, B], are_all_online);
        let expected = match are_all_online && undecided != DIRECTORY_LOST {
            true => (A, 1),
            false => (undecided, -1),
        };
        assert_eq!(
            places(&image, "t")[2],
            expected,
            "{undecided} {are_all_online}"
        );
    }
}

#[test]
fn offsets_of_registrations_stay_their_epochs() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[A, B], true);
    let epoch = image.broker(NODE).expect("registered").epoch;
    let records = directory_failed(&image, B);
    assert_eq!(records.len(), 1, "no partition, no change");
    apply(&mut image, &records);
    assert_eq!(image.broker(NODE).expect("registered").epoch, epoch);
    assert!(image.end_offset() > Offset(epoch.0));
}
