use super::*;
use crate::base::ids::{BrokerEpoch, BrokerId, Uuid};
use crate::cluster::records::{PartitionRecord, RegisterBrokerRecord, TopicRecord};

/// Brokers 1 (live), 2 (fenced); topics a with 2 partitions on 1, b with 1 on both.
fn image() -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    let mut apply = |record: MetadataRecord| image.apply(&record).unwrap();
    for (id, fenced) in [(1, false), (2, true)] {
        apply(MetadataRecord::RegisterBroker(RegisterBrokerRecord {
            broker_id: BrokerId(id),
            broker_epoch: BrokerEpoch(3),
            fenced,
            log_dirs: vec![Uuid([9; 16])],
            ..RegisterBrokerRecord::default()
        }));
    }
    for (name, id, partitions, replicas) in [("a", 1, 2, vec![1]), ("b", 2, 1, vec![1, 2])] {
        let topic_id = Uuid([id; 16]);
        apply(MetadataRecord::Topic(TopicRecord {
            name: name.to_owned(),
            topic_id,
        }));
        for index in 0..partitions {
            apply(MetadataRecord::Partition(PartitionRecord {
                partition_id: PartitionIndex(index),
                topic_id,
                replicas: replicas.iter().copied().map(BrokerId).collect(),
                leader: BrokerId(1),
                ..PartitionRecord::default()
            }));
        }
    }
    image
}

fn topic(name: &str, count: i32, assignments: Option<&[&[i32]]>) -> CreatePartitionsTopic {
    let assignment = |brokers: &&[i32]| CreatePartitionsAssignment {
        broker_ids: brokers.iter().copied().map(BrokerId).collect(),
    };
    CreatePartitionsTopic {
        name: name.to_owned(),
        count,
        assignments: assignments.map(|all| all.iter().map(assignment).collect()),
    }
}

fn decide(
    image: &Image,
    topics: Vec<CreatePartitionsTopic>,
    validate_only: bool,
) -> Decision<CreatePartitionsResponse> {
    let request = CreatePartitionsRequest {
        topics,
        validate_only,
        ..CreatePartitionsRequest::default()
    };
    create_partitions(
        image,
        &request,
        (&mut Random::new(1), &mut Permits::unlimited()),
    )
}

fn codes(decision: &Decision<CreatePartitionsResponse>) -> Vec<(&str, ErrorCode)> {
    let results = decision.response.results.iter();
    results
        .map(|result| (result.name.as_str(), result.error_code))
        .collect()
}

#[test]
fn a_topic_grows_by_placed_or_assigned_partitions() {
    let mut image = image();
    let decision = decide(
        &image,
        vec![topic("a", 4, None), topic("b", 2, Some(&[&[1, 2]]))],
        false,
    );
    assert_eq!(
        codes(&decision),
        [("a", ErrorCode::NONE), ("b", ErrorCode::NONE)]
    );
    for record in &decision.records {
        image.apply(record).unwrap();
    }
    let a = image.topics().by_name("a").unwrap();
    assert_eq!(a.partitions.len(), 4);
    let last = &a.partitions[&PartitionIndex(3)];
    assert_eq!((last.leader, last.isr.len()), (BrokerId(1), 1));
    assert_eq!(last.directories, [Uuid([9; 16])]);
    let b = &image.topics().by_name("b").unwrap().partitions[&PartitionIndex(1)];
    assert_eq!(b.replicas, [BrokerId(1), BrokerId(2)]);
    assert_eq!(b.isr, [BrokerId(1)]);
}

#[test]
fn a_request_that_only_validates_leaves_no_record_and_the_same_answer() {
    let topics = || {
        vec![
            topic("a", 3, None),
            topic("a b", 3, None),
            topic("b", 1, None),
        ]
    };
    let (validated, done) = (
        decide(&image(), topics(), true),
        decide(&image(), topics(), false),
    );
    assert_eq!(validated.response, done.response);
    assert_eq!((validated.records.len(), done.records.len()), (0, 1));
}

#[test]
fn what_is_no_increase_or_no_place_is_refused() {
    let partitions = ErrorCode::INVALID_PARTITIONS;
    let assignment = ErrorCode::INVALID_REPLICA_ASSIGNMENT;
    let cases: [(CreatePartitionsTopic, ErrorCode); 15] = [
        (topic("a", 2, None), partitions),
        (topic("a", 1, None), partitions),
        (topic("a", 0, None), partitions),
        (topic("a", -1, None), partitions),
        (topic("a", i32::MIN, Some(&[])), partitions),
        (topic("a", 3, Some(&[])), assignment),
        (topic("a", 3, Some(&[&[1], &[1]])), assignment),
        (topic("a", 3, Some(&[&[]])), assignment),
        (topic("a", 3, Some(&[&[7]])), assignment),
        (topic("a", 3, Some(&[&[2]])), assignment),
        (topic("a", 3, Some(&[&[1, 1]])), assignment),
        (topic("a", 3, Some(&[&[1, 2]])), assignment),
        (topic("b", 2, Some(&[&[1]])), assignment),
        (topic("b", 2, None), ErrorCode::INVALID_REPLICATION_FACTOR),
        (topic("c", 2, None), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    ];
    let image = image();
    for (asked, code) in cases {
        let decision = decide(&image, vec![asked.clone()], false);
        assert_eq!(codes(&decision)[0].1, code, "{asked:?}");
        assert!(decision.records.is_empty());
    }
}

#[test]
fn a_name_that_stands_twice_is_refused_once_and_the_others_grow() {
    let topics = vec![
        topic("a", 3, None),
        topic("b", 9, None),
        topic("a", 4, None),
    ];
    let decision = decide(&image(), topics, false);
    assert_eq!(
        codes(&decision),
        [
            ("a", ErrorCode::INVALID_REQUEST),
            ("b", ErrorCode::INVALID_REPLICATION_FACTOR)
        ]
    );
    let many = vec![topic("a", 3, None); 100_000];
    assert_eq!(decide(&image(), many, false).response.results.len(), 1);
}

#[test]
fn as_many_partitions_as_the_limit_says_are_created_and_no_more() {
    let limit = PARTITIONS_PER_REQUEST_MAX as i32;
    let decision = decide(&image(), vec![topic("a", 2 + limit, None)], false);
    assert_eq!(codes(&decision), [("a", ErrorCode::NONE)]);
    assert_eq!(decision.records.len(), PARTITIONS_PER_REQUEST_MAX);
    for topics in [
        vec![topic("a", 3 + limit, None)],
        vec![topic("a", 2 + limit, None), topic("b", 2, None)],
        vec![topic("a", i32::MAX, None), topic("b", i32::MAX, Some(&[]))],
    ] {
        let decision = decide(&image(), topics, false);
        let results = codes(&decision);
        assert!(
            results
                .iter()
                .all(|one| one.1 == ErrorCode::POLICY_VIOLATION)
        );
        assert!(decision.records.is_empty());
    }
    let names = |count: usize| (0..count).map(|name| topic(&format!("t{name}"), 2, None));
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    for (count, code) in [
        (RECORDS_PER_OPERATION_MAX, unknown),
        (RECORDS_PER_OPERATION_MAX + 1, ErrorCode::POLICY_VIOLATION),
    ] {
        let decision = decide(&image(), names(count).collect(), false);
        assert_eq!(decision.response.results.len(), count);
        assert!(codes(&decision).iter().all(|one| one.1 == code));
    }
}
