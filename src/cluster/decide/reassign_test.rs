use super::*;
use crate::base::ids::BrokerEpoch;
use crate::cluster::records::{PartitionRecord, RegisterBrokerRecord, TopicRecord};
use crate::wire::messages::alter_partition_reassignments::ReassignableTopic;
use crate::wire::messages::list_partition_reassignments::ListPartitionReassignmentsTopics;

const TOPIC: Uuid = Uuid([1; 16]);
const HERE: Uuid = Uuid([9; 16]);

fn ids(brokers: &[i32]) -> Vec<BrokerId> {
    brokers.iter().copied().map(BrokerId).collect()
}

/// Brokers 1 (live, this one), 2 and 3 (fenced); topic t with partition 0 on `replicas`, led by 1.
fn image(replicas: &[i32], isr: &[i32]) -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    let mut apply = |record: MetadataRecord| image.apply(&record).unwrap();
    for id in [1, 2, 3] {
        apply(MetadataRecord::RegisterBroker(RegisterBrokerRecord {
            broker_id: BrokerId(id),
            broker_epoch: BrokerEpoch(3),
            fenced: id != 1,
            log_dirs: vec![HERE],
            ..RegisterBrokerRecord::default()
        }));
    }
    apply(MetadataRecord::Topic(TopicRecord {
        name: "t".to_owned(),
        topic_id: TOPIC,
    }));
    apply(MetadataRecord::Partition(PartitionRecord {
        partition_id: PartitionIndex(0),
        topic_id: TOPIC,
        directories: vec![HERE; replicas.len()],
        replicas: ids(replicas),
        isr: ids(isr),
        leader: BrokerId(1),
        ..PartitionRecord::default()
    }));
    image
}

/// Asks for partition 0 and applies what is decided.
fn alter(image: &mut Image, replicas: Option<&[i32]>) -> (ErrorCode, usize) {
    let decision = decide(image, true, &[(0, replicas)]);
    for record in &decision.records {
        image.apply(record).unwrap();
    }
    let code = decision.response.responses[0].partitions[0].error_code;
    (code, decision.records.len())
}

fn decide(
    image: &Image,
    may_resize: bool,
    asked: &[(i32, Option<&[i32]>)],
) -> Decision<AlterPartitionReassignmentsResponse> {
    let partition = |(index, replicas): &(i32, Option<&[i32]>)| ReassignablePartition {
        partition_index: PartitionIndex(*index),
        replicas: replicas.map(ids),
    };
    let request = AlterPartitionReassignmentsRequest {
        allow_replication_factor_change: may_resize,
        topics: vec![ReassignableTopic {
            name: "t".to_owned(),
            partitions: asked.iter().map(partition).collect(),
        }],
        ..AlterPartitionReassignmentsRequest::default()
    };
    alter_reassignments(image, &request)
}

fn partition(image: &Image) -> PartitionImage {
    let topic = image.topics().by_name("t").unwrap();
    topic.partition(PartitionIndex(0)).unwrap().clone()
}

fn listed(image: &Image) -> Vec<OngoingPartitionReassignment> {
    let all = list_reassignments(image, &ListPartitionReassignmentsRequest::default());
    let some = list_reassignments(
        image,
        &ListPartitionReassignmentsRequest {
            topics: Some(vec![ListPartitionReassignmentsTopics {
                name: "t".to_owned(),
                partition_indexes: vec![PartitionIndex(0), PartitionIndex(0), PartitionIndex(7)],
            }]),
            ..ListPartitionReassignmentsRequest::default()
        },
    );
    assert_eq!(all, some);
    let topics = all.topics.into_iter();
    topics.flat_map(|topic| topic.partitions).collect()
}

#[test]
fn the_same_replicas_change_nothing() {
    let mut image = image(&[1], &[1]);
    assert_eq!(alter(&mut image, Some(&[1])), (ErrorCode::NONE, 0));
    assert_eq!(
        alter(&mut image, None),
        (ErrorCode::NO_REASSIGNMENT_IN_PROGRESS, 0)
    );
    assert!(listed(&image).is_empty());
}

#[test]
fn replicas_that_only_go_are_gone_at_once() {
    let mut image = image(&[2, 1], &[1]);
    assert_eq!(alter(&mut image, Some(&[1])), (ErrorCode::NONE, 1));
    let after = partition(&image);
    assert_eq!((after.replicas, after.directories), (ids(&[1]), vec![HERE]));
    assert!(listed(&image).is_empty());
}

#[test]
fn replicas_that_come_stay_on_their_way_until_taken_back() {
    let mut image = image(&[1], &[1]);
    assert_eq!(alter(&mut image, Some(&[3, 2])), (ErrorCode::NONE, 1));
    let now = partition(&image);
    assert_eq!(now.replicas, ids(&[3, 2, 1]));
    assert_eq!(now.adding_replicas, ids(&[2, 3]));
    assert_eq!(now.removing_replicas, ids(&[1]));
    assert_eq!(now.directories.len(), 3);
    assert_eq!(now.leader, BrokerId(1));
    assert_eq!(listed(&image).len(), 1);
    // Another target replaces the one on its way.
    assert_eq!(alter(&mut image, Some(&[2])), (ErrorCode::NONE, 1));
    assert_eq!(partition(&image).replicas, ids(&[2, 1]));
    assert_eq!(alter(&mut image, None), (ErrorCode::NONE, 1));
    let after = partition(&image);
    assert_eq!((after.replicas, after.isr), (ids(&[1]), ids(&[1])));
    assert_eq!(after.directories, [HERE]);
    assert!(listed(&image).is_empty());
}

#[test]
fn what_cannot_be_is_refused_by_itself() {
    let image = image(&[1], &[1]);
    let asked: [(i32, Option<&[i32]>); 6] = [
        (0, Some(&[])),
        (0, Some(&[8])),
        (0, Some(&[1, 1])),
        (4, Some(&[1])),
        (0, Some(&[1, 2])),
        (0, Some(&[2])),
    ];
    let decision = decide(&image, false, &asked);
    let partitions = decision.response.responses[0].partitions.iter();
    let codes: Vec<ErrorCode> = partitions.map(|one| one.error_code).collect();
    let invalid = ErrorCode::INVALID_REPLICA_ASSIGNMENT;
    assert_eq!(
        codes,
        [
            invalid,
            invalid,
            invalid,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode::INVALID_REPLICATION_FACTOR,
            ErrorCode::NONE
        ]
    );
    assert_eq!(decision.records.len(), 1);
}
