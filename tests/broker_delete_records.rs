//! Clients delete the first records of partitions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::time::{Duration, Instant};

use broker::process::Process;
use broker::{Client, Harness, HarnessOptions, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{Offset, PartitionIndex};
use coreline::wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
};
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::primitives::ARRAY_LEN_MAX;

/// What a fetch waits at most in these tests; see `requests::fetch`.
const LONG_POLL: Duration = Duration::from_secs(10);
const NO_START: i64 = -1;

fn options(shards: usize) -> HarnessOptions {
    HarnessOptions {
        shards,
        ..HarnessOptions::default()
    }
}

fn request(topics: &[(&str, &[(i32, i64)])]) -> DeleteRecordsRequest {
    let partition = |(index, offset): &(i32, i64)| DeleteRecordsPartition {
        partition_index: PartitionIndex(*index),
        offset: Offset(*offset),
    };
    let topic = |(name, partitions): &(&str, &[(i32, i64)])| DeleteRecordsTopic {
        name: (*name).to_owned(),
        partitions: partitions.iter().map(partition).collect(),
    };
    DeleteRecordsRequest {
        topics: topics.iter().map(topic).collect(),
        timeout_ms: 10_000,
    }
}

/// Each partition's code and start, in the order of the answer.
fn delete(client: &mut Client, topics: &[(&str, &[(i32, i64)])]) -> Vec<(ErrorCode, i64)> {
    let response: DeleteRecordsResponse = client.ask(&request(topics), 2);
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions
        .map(|one| (one.error_code, one.low_watermark.0))
        .collect()
}

fn append(client: &mut Client, topic: &str, index: i32, records: usize) {
    let request = requests::produce(topic, -1, [(index, batch(records, 100))]);
    let response: ProduceResponse = client.ask(&request, 9);
    assert_eq!(requests::errors_of(&response), [ErrorCode::NONE]);
}

fn start_of(client: &mut Client, topic: &str, index: i32) -> i64 {
    offset_of(client, (topic, index), -2)
}

fn offset_of(client: &mut Client, (topic, index): (&str, i32), timestamp: i64) -> i64 {
    let request = requests::list_offsets(topic, index, timestamp);
    let response: ListOffsetsResponse = client.ask(&request, 7);
    response.topics[0].partitions[0].offset.0
}

fn fetched(client: &mut Client, topic: &str, from: (i32, i64)) -> (ErrorCode, i64, usize) {
    let response: FetchResponse = client.ask(&requests::fetch(topic, &[from]), 12);
    let answer = requests::answers(&response)[0];
    (
        answer.error_code,
        answer.log_start_offset.0,
        requests::bytes_of(answer),
    )
}

#[test]
fn records_before_the_offset_are_gone_on_whatever_shard_and_after_a_restart() {
    let options = options(2);
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 6);
    let mut client = harness.connect();
    for index in 0..6 {
        append(&mut client, "t", index, 10);
        append(&mut client, "t", index, 10);
    }
    // At the start of a batch, within one, at the end, nothing at all, and by its name.
    let asked: &[(i32, i64)] = &[(0, 10), (1, 13), (2, 20), (3, 0), (4, -1)];
    let told = delete(&mut client, &[("t", asked)]);
    let starts = [10, 13, 20, 0, 20];
    assert_eq!(told, starts.map(|start| (ErrorCode::NONE, start)));
    let check = |client: &mut Client| {
        for (index, start) in (0..).zip([10, 13, 20, 0, 20, 0]) {
            assert_eq!(start_of(client, "t", index), start);
            // All records carry one time; at the end there is none.
            let of_time = offset_of(client, ("t", index), 1_700_000_000_000);
            assert_eq!(of_time, if start < 20 { start } else { -1 });
            if start > 0 {
                let below = fetched(client, "t", (index, start - 1));
                assert_eq!(below, (ErrorCode::OFFSET_OUT_OF_RANGE, -1, 0));
            }
            if start < 20 {
                let (code, told, bytes) = fetched(client, "t", (index, start));
                assert_eq!((code, told), (ErrorCode::NONE, start));
                assert!(bytes > 1_000);
            }
        }
    };
    check(&mut client);
    // Never back.
    let told = delete(&mut client, &[("t", &[(0, 3), (1, 13)])]);
    assert_eq!(told, [(ErrorCode::NONE, 10), (ErrorCode::NONE, 13)]);
    harness.restart(&options);
    let mut client = harness.connect();
    check(&mut client);
    append(&mut client, "t", 2, 1);
    let (code, start, bytes) = fetched(&mut client, "t", (2, 20));
    assert_eq!((code, start), (ErrorCode::NONE, 20));
    assert!(bytes > 100);
}

#[test]
fn times_find_what_is_left_of_a_batch_that_carries_the_time_of_its_append() {
    let mut harness = Harness::start(options(1));
    let by_append = ("message.timestamp.type", "LogAppendTime");
    harness.create_topic_with("t", 1, &[by_append]);
    let mut client = harness.connect();
    append(&mut client, "t", 0, 10);
    assert_eq!(offset_of(&mut client, ("t", 0), 1), 0);
    assert_eq!(
        delete(&mut client, &[("t", &[(0, 4)])]),
        [(ErrorCode::NONE, 4)]
    );
    assert_eq!(offset_of(&mut client, ("t", 0), 1), 4);
}

#[test]
fn what_cannot_be_deleted_is_refused_and_the_rest_is_deleted() {
    let mut harness = Harness::start(options(2));
    harness.create_topic("t", 2);
    harness.create_topic_with("keyed", 1, &[("cleanup.policy", "compact")]);
    harness.create_topic_with("both", 1, &[("cleanup.policy", "compact,delete")]);
    harness.create_topic("__consumer_offsets", 1);
    let mut client = harness.connect();
    append(&mut client, "t", 0, 5);
    append(&mut client, "keyed", 0, 5);
    append(&mut client, "both", 0, 5);
    let told = delete(
        &mut client,
        &[
            ("t", &[(0, 6), (1, 0), (2, 0), (-1, 0)]),
            ("none", &[(0, 0)]),
            ("keyed", &[(0, 1)]),
            ("both", &[(0, 5)]),
            ("__consumer_offsets", &[(0, 0), (9, 0)]),
            ("nothing", &[]),
        ],
    );
    let unknown = (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, NO_START);
    assert_eq!(
        told,
        [
            (ErrorCode::OFFSET_OUT_OF_RANGE, NO_START),
            (ErrorCode::NONE, 0),
            unknown,
            unknown,
            unknown,
            (ErrorCode::POLICY_VIOLATION, NO_START),
            (ErrorCode::NONE, 5),
            (ErrorCode::INVALID_TOPIC_EXCEPTION, NO_START),
            unknown,
        ]
    );
    for offset in [-2, i64::MIN, i64::MAX] {
        let told = delete(&mut client, &[("t", &[(0, offset)])]);
        assert_eq!(told, [(ErrorCode::OFFSET_OUT_OF_RANGE, NO_START)]);
    }
    assert_eq!(start_of(&mut client, "t", 0), 0);
    assert_eq!(delete(&mut client, &[("t", &[(0, 5)])])[0].1, 5);
}

#[test]
fn a_fetch_that_waits_below_the_new_start_is_told_so_and_one_at_the_end_waits_on() {
    let mut harness = Harness::start(options(2));
    harness.create_topic("t", 2);
    let mut client = harness.connect();
    append(&mut client, "t", 0, 3);
    append(&mut client, "t", 1, 3);
    let mut below = requests::fetch("t", &[(0, 0)]);
    below.min_bytes = 1 << 20;
    let mut waiting = harness.connect();
    let begun = Instant::now();
    waiting.send(&below, 12);
    let mut at_end = harness.connect();
    at_end.send(&requests::fetch("t", &[(1, 3)]), 12);
    std::thread::sleep(Duration::from_millis(300));
    let told = delete(&mut client, &[("t", &[(0, 2), (1, -1)])]);
    assert_eq!(told, [(ErrorCode::NONE, 2), (ErrorCode::NONE, 3)]);
    let (_, response) = waiting.receive::<FetchResponse>(12);
    let code = requests::answers(&response)[0].error_code;
    assert_eq!(code, ErrorCode::OFFSET_OUT_OF_RANGE);
    append(&mut client, "t", 1, 1);
    let (_, response) = at_end.receive::<FetchResponse>(12);
    let answer = requests::answers(&response)[0];
    assert_eq!(
        (answer.error_code, answer.log_start_offset),
        (ErrorCode::NONE, Offset(3))
    );
    assert!(requests::bytes_of(answer) > 100);
    assert!(begun.elapsed() < LONG_POLL, "it waited to its end");
}

/// As many mentions as an array holds, of one partition and of as many that do not exist.
#[test]
fn huge_requests_are_answered_and_cost_no_deletion_each() {
    let mut harness = Harness::start(options(2));
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    append(&mut client, "t", 0, 5);
    let mentions = ARRAY_LEN_MAX - 1;
    let mut same = vec![(0, -1); mentions];
    same.push((0, 2));
    let begun = Instant::now();
    assert_eq!(delete(&mut client, &[("t", &same)]), [(ErrorCode::NONE, 2)]);
    let unknown: Vec<(i32, i64)> = (1..=mentions as i32).map(|index| (index, 0)).collect();
    let told = delete(&mut client, &[("t", &unknown)]);
    assert_eq!(told.len(), mentions);
    let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert!(told.iter().all(|one| *one == (code, NO_START)));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(start_of(&mut client, "t", 0), 2);
    same.push((0, 3));
    client.send(&request(&[("t", &same)]), 2);
    assert!(client.is_closed_within(Duration::from_secs(10)));
    assert_eq!(start_of(&mut harness.connect(), "t", 0), 2);
}

#[test]
fn an_answered_start_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let partitions = 40;
    let mut starts = vec![0; partitions as usize];
    for life in 0..4 {
        let process = Process::start(folder.path());
        let mut client = Client::connect(process.address);
        if life == 0 {
            client.create_topic_with("t", partitions, &[]);
        }
        for (index, start) in (0..).zip(&starts) {
            assert_eq!(start_of(&mut client, "t", index), *start, "life {life}");
            append(&mut client, "t", index, 7);
        }
        let asked: Vec<(i32, i64)> = (0..partitions)
            .map(|index| {
                (
                    index,
                    if index % 3 == life {
                        -1
                    } else {
                        5 * i64::from(life + 1)
                    },
                )
            })
            .collect();
        let told = delete(&mut client, &[("t", &asked)]);
        assert!(told.iter().all(|(code, _)| *code == ErrorCode::NONE));
        starts = told.into_iter().map(|(_, start)| start).collect();
        process.kill();
    }
}
