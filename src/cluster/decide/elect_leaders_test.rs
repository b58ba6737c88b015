use super::*;
use crate::base::ids::{BrokerEpoch, LeaderEpoch, Uuid};
use crate::cluster::records::{PartitionRecord, RegisterBrokerRecord, TopicRecord};

const LIVE: Uuid = Uuid([9; 16]);

/// Broker 1 lives; topic t: partition 0 led by 1 alone, 1 led by 1 though 2 is preferred, 2 left
/// without leader by 2, 3 likewise but lost here, 4 on 2 alone.
fn image() -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    let mut apply = |record: MetadataRecord| image.apply(&record).unwrap();
    apply(MetadataRecord::RegisterBroker(RegisterBrokerRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(3),
        fenced: false,
        log_dirs: vec![LIVE],
        ..RegisterBrokerRecord::default()
    }));
    let topic_id = Uuid([1; 16]);
    apply(MetadataRecord::Topic(TopicRecord {
        name: "t".to_owned(),
        topic_id,
    }));
    let lost = Uuid([7; 16]);
    let partitions = [
        (vec![1], vec![1], 1, LIVE),
        (vec![2, 1], vec![1], 1, LIVE),
        (vec![2, 1], vec![2], -1, LIVE),
        (vec![2, 1], vec![2], -1, lost),
        (vec![2], vec![2], -1, LIVE),
    ];
    for ((replicas, isr, leader, directory), index) in partitions.into_iter().zip(0..) {
        apply(MetadataRecord::Partition(PartitionRecord {
            partition_id: PartitionIndex(index),
            topic_id,
            directories: vec![directory; replicas.len()],
            replicas: replicas.into_iter().map(BrokerId).collect(),
            isr: isr.into_iter().map(BrokerId).collect(),
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(4),
            ..PartitionRecord::default()
        }));
    }
    image
}

fn request(election_type: i8, topics: Option<&[(&str, &[i32])]>) -> ElectLeadersRequest {
    let topic = |(name, partitions): &(&str, &[i32])| Asked {
        topic: (*name).to_owned(),
        partitions: partitions.iter().copied().map(PartitionIndex).collect(),
    };
    ElectLeadersRequest {
        election_type,
        topic_partitions: topics.map(|topics| topics.iter().map(topic).collect()),
        ..ElectLeadersRequest::default()
    }
}

fn codes(decision: &Decision<ElectLeadersResponse>) -> Vec<(i32, ErrorCode)> {
    let results = decision.response.replica_election_results.iter();
    results
        .flat_map(|topic| &topic.partition_result)
        .map(|one| (one.partition_id.0, one.error_code))
        .collect()
}

#[test]
fn a_preferred_replica_that_is_gone_cannot_be_elected() {
    let image = image();
    let asked = request(0, Some(&[("t", &[0, 1, 2, 1, 9]), ("u", &[0])]));
    let decision = elect_leaders(&image, &asked);
    let (unknown, gone) = (
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE,
    );
    let expected = [
        (0, ErrorCode::ELECTION_NOT_NEEDED),
        (1, gone),
        (2, gone),
        (9, unknown),
        (0, unknown),
    ];
    assert_eq!(codes(&decision), expected);
    assert!(decision.records.is_empty());
}

#[test]
fn an_unclean_election_makes_a_replica_here_the_leader() {
    let mut image = image();
    let decision = elect_leaders(&image, &request(1, None));
    let none_left = ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE;
    assert_eq!(
        codes(&decision),
        [(2, ErrorCode::NONE), (3, none_left), (4, none_left)]
    );
    assert_eq!(decision.records.len(), 1);
    image.apply(&decision.records[0]).unwrap();
    let topic = image.topics().by_name("t").unwrap();
    let partition = topic.partition(PartitionIndex(2)).unwrap();
    assert_eq!(
        (partition.leader, partition.leader_epoch, &partition.isr[..]),
        (BrokerId(1), LeaderEpoch(5), &[BrokerId(1)][..])
    );
    let again = elect_leaders(&image, &request(1, Some(&[("t", &[2])])));
    assert_eq!(codes(&again), [(2, ErrorCode::ELECTION_NOT_NEEDED)]);
}

#[test]
fn an_unknown_kind_of_election_is_refused_whole() {
    let decision = elect_leaders(&image(), &request(2, Some(&[("t", &[2])])));
    assert_eq!(decision.response.error_code, ErrorCode::INVALID_REQUEST);
    assert!(decision.records.is_empty());
}
