//! A partition whose files are damaged, as clients see it through a whole broker.

mod broker;

use broker::{Harness, HarnessOptions, batch};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{BrokerId, Offset, PartitionIndex};
use coreline::base::time::TimestampMs;
use coreline::wire::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use coreline::wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use coreline::wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};

fn produce(client: &mut broker::Client, index: i32) -> ErrorCode {
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData {
            name: "t".to_owned(),
            partition_data: vec![PartitionProduceData {
                index: PartitionIndex(index),
                records: Some(batch(1, 1_000)),
            }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    let response: ProduceResponse = client.ask(&request, 9);
    response.responses[0].partition_responses[0].error_code
}

fn fetch(client: &mut broker::Client, index: i32, offset: i64) -> (ErrorCode, usize) {
    let request = FetchRequest {
        max_wait_ms: 100,
        min_bytes: 1,
        max_bytes: 50 << 20,
        topics: vec![FetchTopic {
            topic: "t".to_owned(),
            partitions: vec![FetchPartition {
                partition: PartitionIndex(index),
                fetch_offset: Offset(offset),
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    let response: FetchResponse = client.ask(&request, 12);
    let data = &response.responses[0].partitions[0];
    let bytes = data.records.as_ref().map_or(0, |records| records.len());
    (data.error_code, bytes)
}

fn list(client: &mut broker::Client, index: i32, timestamp: i64) -> (ErrorCode, i64) {
    let request = ListOffsetsRequest {
        replica_id: BrokerId(-1),
        topics: vec![ListOffsetsTopic {
            name: "t".to_owned(),
            partitions: vec![ListOffsetsPartition {
                partition_index: PartitionIndex(index),
                timestamp: TimestampMs(timestamp),
                ..ListOffsetsPartition::default()
            }],
        }],
        ..ListOffsetsRequest::default()
    };
    let response: ListOffsetsResponse = client.ask(&request, 7);
    let data = &response.topics[0].partitions[0];
    (data.error_code, data.offset.0)
}

#[test]
fn a_damaged_partition_answers_storage_error_and_the_others_serve() {
    let options = HarnessOptions::default();
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 3);
    let mut client = harness.connect();
    for _ in 0..10 {
        for index in 0..3 {
            assert_eq!(produce(&mut client, index), ErrorCode::NONE);
        }
    }
    drop(client);
    harness.restart_after(&options, |folder: &std::path::Path| {
        let segment = |name: &str| folder.join(name).join("00000000000000000000.log");
        let cut = std::fs::OpenOptions::new().write(true).open(segment("t-0"));
        cut.unwrap().set_len(5_000).unwrap();
        std::fs::remove_file(segment("t-1")).unwrap();
    });
    let mut client = harness.connect();
    let storage = ErrorCode::KAFKA_STORAGE_ERROR;
    let (code, bytes) = fetch(&mut client, 0, 0);
    assert!(code == ErrorCode::NONE && bytes > 3_000, "{code:?} {bytes}");
    assert_eq!(list(&mut client, 0, -2), (ErrorCode::NONE, 0));
    for offset in [4, 5, 9, 10, 11] {
        assert_eq!(fetch(&mut client, 0, offset).0, storage, "{offset}");
    }
    assert_eq!(fetch(&mut client, 1, 0).0, storage);
    assert_eq!(list(&mut client, 1, -2).0, storage);
    for index in [0, 1] {
        assert_eq!(produce(&mut client, index), storage);
        assert_eq!(list(&mut client, index, -1).0, storage);
        assert_eq!(list(&mut client, index, -3).0, storage);
    }
    assert_eq!(produce(&mut client, 2), ErrorCode::NONE);
    assert_eq!(list(&mut client, 2, -1), (ErrorCode::NONE, 11));
    assert_eq!(fetch(&mut client, 2, 0).0, ErrorCode::NONE);
}
