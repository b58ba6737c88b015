use super::*;
use crate::base::ids::{BrokerEpoch, LeaderEpoch, PartitionIndex, Uuid};
use crate::cluster::records::{
    BrokerEndpoint, MetadataRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord,
};

pub(in crate::server::api) fn id(number: u8) -> Uuid {
    Uuid([number; 16])
}

/// Brokers 1 and (fenced) 2; topics `a` (1 partition), `b` (2; partition 1 led by broker 2).
pub(in crate::server::api) fn image() -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    let broker = |number: i32| {
        MetadataRecord::RegisterBroker(RegisterBrokerRecord {
            broker_id: BrokerId(number),
            broker_epoch: BrokerEpoch(1),
            end_points: vec![BrokerEndpoint {
                name: "PLAINTEXT".into(),
                host: "localhost".into(),
                port: 9_091 + number as u16,
                security_protocol: 0,
            }],
            rack: None,
            fenced: number == 2,
            ..RegisterBrokerRecord::default()
        })
    };
    let topic = |name: &str, number: u8| {
        MetadataRecord::Topic(TopicRecord {
            name: name.into(),
            topic_id: id(number),
        })
    };
    let partition = |number: u8, index: i32, leader: i32| {
        MetadataRecord::Partition(PartitionRecord {
            partition_id: PartitionIndex(index),
            topic_id: id(number),
            replicas: vec![BrokerId(leader)],
            isr: vec![BrokerId(leader)],
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(4),
            partition_epoch: 0,
            ..PartitionRecord::default()
        })
    };
    let records = [
        broker(1),
        broker(2),
        topic("b", 20),
        partition(20, 0, 1),
        partition(20, 1, 2),
        topic("a", 10),
        partition(10, 0, 1),
    ];
    for record in &records {
        image.apply(record).unwrap();
    }
    image
}

fn asking(topics: Option<&[(Option<&str>, Uuid)]>) -> MetadataRequest {
    let topic = |(name, topic_id): &(Option<&str>, Uuid)| MetadataRequestTopic {
        name: name.map(str::to_owned),
        topic_id: *topic_id,
    };
    MetadataRequest {
        topics: topics.map(|topics| topics.iter().map(topic).collect()),
        ..MetadataRequest::default()
    }
}

fn seen(response: &MetadataResponse) -> Vec<(Option<&str>, i16)> {
    (response.topics.iter())
        .map(|topic| (topic.name.as_deref(), topic.error_code.0))
        .collect()
}

const ZERO: Uuid = Uuid::ZERO;

#[test]
fn all_topics_are_an_empty_list_in_version_0_and_null_later() {
    let answer = |topics, version| {
        let response = respond(&image(), &asking(topics), version, "PLAINTEXT");
        response.topics.len()
    };
    assert_eq!(answer(Some(&[]), 0), 2);
    assert_eq!(answer(Some(&[]), 1), 0);
    assert_eq!(answer(None, 1), 2);
}

#[test]
fn names_are_answered_once_each_with_kafkas_codes() {
    let names = [
        (Some("b"), ZERO),
        (Some("nope"), ZERO),
        (Some("a b"), ZERO),
        (Some("b"), ZERO),
        (Some("__consumer_offsets"), ZERO),
    ];
    let response = respond(&image(), &asking(Some(&names)), 9, "PLAINTEXT");
    let expected = [
        (Some("__consumer_offsets"), 3),
        (Some("a b"), 17),
        (Some("b"), 0),
        (Some("nope"), 3),
    ];
    assert_eq!(seen(&response), expected);
    assert!(response.topics[0].is_internal);
    assert_eq!(response.brokers.len(), 1);
    assert_eq!(response.controller_id, BrokerId(1));
    assert_eq!(response.cluster_id.as_deref(), Some("cluster"));
    let partitions = &response.topics[2].partitions;
    assert_eq!(
        (partitions[0].error_code.0, partitions[0].leader_id.0),
        (0, 1)
    );
    assert_eq!(
        (partitions[1].error_code.0, partitions[1].leader_id.0),
        (5, -1)
    );
    assert_eq!(partitions[1].offline_replicas, [BrokerId(2)]);
    assert_eq!(partitions[0].leader_epoch.0, 4);
    let elsewhere = respond(&image(), &asking(Some(&names)), 9, "OTHER");
    assert!(elsewhere.brokers.is_empty());
    assert_eq!(
        elsewhere.topics[2].partitions[0].error_code,
        ErrorCode::LISTENER_NOT_FOUND
    );
}

#[test]
fn topics_are_found_by_id_from_version_12_on() {
    let by_id = asking(Some(&[(None, id(10)), (Some("b"), ZERO), (None, id(99))]));
    let response = respond(&image(), &by_id, 12, "PLAINTEXT");
    assert_eq!(seen(&response), [(Some("a"), 0), (None, 100)]);
    assert_eq!(response.topics[1].topic_id, id(99));
    let older = respond(&image(), &by_id, 11, "PLAINTEXT");
    assert!((older.topics.iter()).all(|topic| topic.error_code == ErrorCode::INVALID_REQUEST));
    assert!(older.brokers.is_empty() && older.cluster_id.is_none());
    let neither = respond(&image(), &asking(Some(&[(None, ZERO)])), 13, "PLAINTEXT");
    assert_eq!(neither.error_code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn operations_are_told_when_asked_for() {
    let mut request = asking(Some(&[(Some("a"), ZERO), (Some("nope"), ZERO)]));
    let plain = respond(&image(), &request, 8, "PLAINTEXT");
    assert_eq!(plain.cluster_authorized_operations, i32::MIN);
    assert_eq!(plain.topics[0].topic_authorized_operations, i32::MIN);
    request.include_cluster_authorized_operations = true;
    request.include_topic_authorized_operations = true;
    let told = respond(&image(), &request, 8, "PLAINTEXT");
    assert_eq!(told.cluster_authorized_operations, 8_096);
    assert!((told.topics.iter()).all(|topic| topic.topic_authorized_operations == 3_576));
}

#[test]
fn only_valid_names_that_are_missing_are_created() {
    let names = [
        (Some("a"), ZERO),
        (Some("new"), ZERO),
        (Some("new"), ZERO),
        (Some("bad name"), ZERO),
        (Some("__transaction_state"), ZERO),
    ];
    assert_eq!(missing_topics(&image(), &asking(Some(&names))), ["new"]);
    assert!(missing_topics(&image(), &asking(None)).is_empty());
    let by_id = asking(Some(&[(Some("new"), ZERO), (None, id(99))]));
    assert!(missing_topics(&image(), &by_id).is_empty());
}
