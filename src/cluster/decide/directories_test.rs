use super::*;
use crate::base::config::BrokerTexts;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{LeaderEpoch, Offset};
use crate::base::random::Random;
use crate::cluster::decide::{
    CreateTopicsContext, NodeRegistration, PREFERRED_MAX, PreferredDirectories, create_topics,
    startup_records,
};
use crate::cluster::quotas::mutations::Permits;
use crate::cluster::records::{PartitionRecord, TopicRecord};
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
    let mut local = LocalDirectories {
        online: vec![A],
        are_all_online: true,
        ..LocalDirectories::default()
    };
    assert_eq!(not_at_hand(&image, NODE, &local), BTreeMap::from([(B, 1)]));
    // Whose folder is elsewhere is not missed.
    local.found.insert(topic, A);
    assert_eq!(not_at_hand(&image, NODE, &local), BTreeMap::new());
    local.online.clear();
    assert_eq!(not_at_hand(&image, NODE, &local), BTreeMap::from([(A, 1)]));
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

#[test]
fn a_partition_is_assigned_to_another_directory_without_an_election() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[A, B], true);
    create(&mut image, "t", 2);
    let moved = id(&image, "t", 0);
    let epochs = |image: &Image| {
        let topic = image.topics().by_name("t").expect("it is there");
        let partition = topic.partition(PartitionIndex(0)).expect("it is there");
        (partition.leader_epoch.0, partition.partition_epoch)
    };
    let before = epochs(&image);
    let decision = assign_directory(&image, moved, B);
    assert!(decision.response);
    apply(&mut image, &decision.records);
    assert_eq!(places(&image, "t"), [(B, 1), (B, 1)]);
    assert_eq!(epochs(&image), (before.0, before.1 + 1));
    let again = assign_directory(&image, moved, B);
    assert_eq!((again.records, again.response), (Vec::new(), true));
    // Neither a directory that does not serve nor a partition that is not there.
    let refused = assign_directory(&image, moved, C);
    assert_eq!((refused.records, refused.response), (Vec::new(), false));
    let nowhere = TopicPartition {
        partition: PartitionIndex(9),
        ..moved
    };
    assert!(!assign_directory(&image, nowhere, A).response);
}

#[test]
fn a_new_partition_goes_where_it_was_wanted_once() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[A, B], true);
    let mut preferred = PreferredDirectories::default();
    let of = |index: i32| ("t".to_owned(), PartitionIndex(index));
    preferred.prefer(of(0), A);
    preferred.prefer(of(0), B);
    preferred.prefer(of(1), C);
    create(&mut image, "t", 3);
    assert_eq!(places(&image, "t"), [(A, 1), (B, 1), (A, 1)]);
    let topic = image.topics().by_name("t").expect("it is there");
    let partitions = topic.partitions.iter();
    let mut records: Vec<MetadataRecord> = partitions
        .map(|(index, partition)| {
            MetadataRecord::Partition(PartitionRecord {
                partition_id: *index,
                topic_id: topic.id,
                replicas: partition.replicas.clone(),
                directories: partition.directories.clone(),
                ..PartitionRecord::default()
            })
        })
        .collect();
    preferred.heed(&image, &mut records);
    let told = records.iter().map(|record| match record {
        MetadataRecord::Partition(partition) => partition.directories[0],
        other => panic!("{other:?}"),
    });
    // The second was wanted where nothing serves.
    assert_eq!(told.collect::<Vec<_>>(), [B, B, A]);
}

#[test]
fn so_many_wishes_are_kept_and_not_one_more() {
    let mut image = Image::new("cluster", NODE);
    start(&mut image, &[A, B], true);
    let mut preferred = PreferredDirectories::default();
    let of = |index: usize| ("t".to_owned(), PartitionIndex(index as i32));
    for index in 0..=PREFERRED_MAX {
        preferred.prefer(of(index), B);
    }
    let record = |index: usize| {
        MetadataRecord::Partition(PartitionRecord {
            partition_id: PartitionIndex(index as i32),
            topic_id: Uuid([9; 16]),
            replicas: vec![NODE],
            directories: vec![A],
            ..PartitionRecord::default()
        })
    };
    let topic = MetadataRecord::Topic(TopicRecord {
        name: "t".to_owned(),
        topic_id: Uuid([9; 16]),
    });
    let mut records = vec![
        topic,
        record(0),
        record(PREFERRED_MAX - 1),
        record(PREFERRED_MAX),
    ];
    for expected in [[B, B, A], [A, A, A]] {
        preferred.heed(&image, &mut records);
        let told = records.iter_mut().filter_map(|record| match record {
            MetadataRecord::Partition(one) => Some(std::mem::replace(&mut one.directories[0], A)),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}
