//! Logs that are damaged: what is lost is an error that clients and operators see, never an end of
//! the log, and never an offset out of range that makes a consumer go on elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use broker::{Client, Harness, HarnessOptions, batch};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex};
use coreline::base::time::TimestampMs;
use coreline::log::format::damage_mark::DamageMark;
use coreline::wire::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use coreline::wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use coreline::wire::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopic,
};
use coreline::wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};

const STORAGE: ErrorCode = ErrorCode::KAFKA_STORAGE_ERROR;
const NONE: ErrorCode = ErrorCode::NONE;

fn produce(client: &mut Client, partition: i32) -> ErrorCode {
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData {
            name: "t".to_owned(),
            partition_data: vec![PartitionProduceData {
                index: PartitionIndex(partition),
                records: Some(batch(1, 100)),
            }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    let response: ProduceResponse = client.ask(&request, 9);
    response.responses[0].partition_responses[0].error_code
}

/// Code and bytes.
fn fetch(client: &mut Client, partition: i32, offset: i64) -> (ErrorCode, usize) {
    let request = FetchRequest {
        max_bytes: 1 << 20,
        topics: vec![FetchTopic {
            topic: "t".to_owned(),
            partitions: vec![FetchPartition {
                partition: PartitionIndex(partition),
                fetch_offset: Offset(offset),
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    let response: FetchResponse = client.ask(&request, 11);
    let data = &response.responses[0].partitions[0];
    let bytes = data.records.as_ref().map_or(0, |records| records.len());
    (data.error_code, bytes)
}

/// Code and offset.
fn offset(client: &mut Client, partition: i32, timestamp: i64) -> (ErrorCode, i64) {
    let request = ListOffsetsRequest {
        replica_id: BrokerId(-1),
        topics: vec![ListOffsetsTopic {
            name: "t".to_owned(),
            partitions: vec![ListOffsetsPartition {
                partition_index: PartitionIndex(partition),
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

fn epoch_end(client: &mut Client, partition: i32) -> ErrorCode {
    let request = OffsetForLeaderEpochRequest {
        topics: vec![OffsetForLeaderTopic {
            topic: "t".to_owned(),
            partitions: vec![OffsetForLeaderPartition {
                partition: PartitionIndex(partition),
                leader_epoch: LeaderEpoch(0),
                ..OffsetForLeaderPartition::default()
            }],
        }],
        ..OffsetForLeaderEpochRequest::default()
    };
    let response: OffsetForLeaderEpochResponse = client.ask(&request, 4);
    response.topics[0].partitions[0].error_code
}

/// Five records in each of two partitions.
fn filled() -> (Harness, usize) {
    let mut harness = Harness::start(HarnessOptions::default());
    harness.create_topic("t", 2);
    let mut client = harness.connect();
    for partition in [0, 1] {
        for _ in 0..5 {
            assert_eq!(produce(&mut client, partition), NONE);
        }
    }
    let (code, bytes) = fetch(&mut client, 0, 0);
    assert_eq!(code, NONE);
    (harness, bytes / 5)
}

fn assert_whole(client: &mut Client, partition: i32) {
    assert_eq!(offset(client, partition, -1), (NONE, 5));
    assert_eq!(fetch(client, partition, 5), (NONE, 0));
    assert_eq!(produce(client, partition), NONE);
}

#[test]
fn at_and_past_a_damage_there_is_a_storage_error() {
    let (mut harness, batch_bytes) = filled();
    harness.restart_after(&HarnessOptions::default(), |folder| {
        let mark = DamageMark {
            file: "00000000000000000000.log".to_owned(),
            position: 2 * batch_bytes as u64,
            offset: Offset(2),
            durable_end: Offset(5),
            cause: "a test".to_owned(),
        };
        std::fs::write(folder.join("t-0").join("coreline.damage"), mark.encode()).unwrap();
    });
    let mut client = harness.connect();
    assert_eq!(fetch(&mut client, 0, 0), (NONE, 2 * batch_bytes));
    assert_eq!(fetch(&mut client, 0, 1), (NONE, batch_bytes));
    for past in [2, 3, 5, 6] {
        assert_eq!(fetch(&mut client, 0, past), (STORAGE, 0), "{past}");
    }
    assert_eq!(offset(&mut client, 0, -1), (STORAGE, -1), "latest");
    assert_eq!(
        offset(&mut client, 0, -3),
        (STORAGE, -1),
        "of the largest time"
    );
    assert_eq!(offset(&mut client, 0, 0), (STORAGE, -1), "of a time");
    assert_eq!(offset(&mut client, 0, -2), (NONE, 0), "earliest");
    assert_eq!(produce(&mut client, 0), STORAGE);
    assert_whole(&mut client, 1);
}

#[test]
fn a_log_that_does_not_open_is_offline_and_not_unknown() {
    let (mut harness, _) = filled();
    harness.restart_after(&HarnessOptions::default(), |folder| {
        // A mark that cannot be read: nothing is known of the log.
        std::fs::create_dir(folder.join("t-0").join("coreline.damage")).unwrap();
    });
    let mut client = harness.connect();
    assert_eq!(fetch(&mut client, 0, 0), (STORAGE, 0));
    assert_eq!(offset(&mut client, 0, -1).0, STORAGE);
    assert_eq!(epoch_end(&mut client, 0), STORAGE);
    assert_eq!(produce(&mut client, 0), STORAGE);
    assert_whole(&mut client, 1);
}
