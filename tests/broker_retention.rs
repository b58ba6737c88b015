//! Old records go: by retention while clients read and write.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::time::{Duration, Instant};

use broker::{Client, Harness, HarnessOptions, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::produce::ProduceResponse;

/// Within this several looks have been taken, on a loaded machine too.
const GONE_WITHIN: Duration = Duration::from_secs(20);

fn options() -> HarnessOptions {
    HarnessOptions {
        shards: 2,
        set: |config| {
            config.initial_task_delay_ms = 0;
            config.retention_check_ms = 50;
        },
        ..HarnessOptions::default()
    }
}

fn append(client: &mut Client, topic: &str, bytes: usize) {
    let response: ProduceResponse =
        client.ask(&requests::produce(topic, -1, [(0, batch(1, bytes))]), 9);
    assert_eq!(requests::errors_of(&response), [ErrorCode::NONE]);
}

/// The first offset (-2) or the end (-1).
fn offset(client: &mut Client, topic: &str, timestamp: i64) -> i64 {
    let response: ListOffsetsResponse = client.ask(&requests::list_offsets(topic, 0, timestamp), 7);
    response.topics[0].partitions[0].offset.0
}

fn fetched(client: &mut Client, topic: &str, from: i64) -> (ErrorCode, i64, usize) {
    let response: FetchResponse = client.ask(&requests::fetch(topic, &[(0, from)]), 12);
    let answer = requests::answers(&response)[0];
    (
        answer.error_code,
        answer.log_start_offset.0,
        requests::bytes_of(answer),
    )
}

#[test]
fn a_topic_keeps_what_its_limit_allows_and_its_start_survives_a_restart() {
    let options = options();
    let mut harness = Harness::start(options.clone());
    // The records of these batches carry a timestamp of long ago.
    let all = [
        ("segment.bytes", "1048576"),
        ("retention.ms", "-1"),
        ("retention.bytes", "3000000"),
    ];
    harness.create_topic_with("short", 1, &all);
    harness.create_topic_with("kept", 1, &all[..2]);
    let mut client = harness.connect();
    for _ in 0..20 {
        append(&mut client, "short", 500_000);
        append(&mut client, "kept", 500_000);
    }
    let begun = Instant::now();
    // Two batches a segment; of 20 the last 6 hold 3 MB: the segments from 14 on stay.
    while offset(&mut client, "short", -2) < 14 {
        assert!(begun.elapsed() < GONE_WITHIN, "nothing goes");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(offset(&mut client, "short", -2), 14);
    assert_eq!(offset(&mut client, "kept", -2), 0);
    let (code, start, bytes) = fetched(&mut client, "short", 13);
    assert_eq!(
        (code, start, bytes),
        (ErrorCode::OFFSET_OUT_OF_RANGE, -1, 0)
    );
    let (code, start, bytes) = fetched(&mut client, "short", 14);
    assert_eq!((code, start), (ErrorCode::NONE, 14));
    assert!(bytes > 500_000);
    harness.restart(&options);
    let mut client = harness.connect();
    assert_eq!(offset(&mut client, "short", -2), 14);
    assert_eq!(offset(&mut client, "short", -1), 20);
    append(&mut client, "short", 500_000);
    assert_eq!(offset(&mut client, "short", -1), 21);
}

#[test]
fn records_older_than_the_limit_go_the_active_segment_with_them() {
    let mut harness = Harness::start(options());
    harness.create_topic_with("old", 1, &[("retention.ms", "60000")]);
    let mut client = harness.connect();
    for _ in 0..3 {
        append(&mut client, "old", 1_000);
    }
    let begun = Instant::now();
    while offset(&mut client, "old", -2) < 3 {
        assert!(begun.elapsed() < GONE_WITHIN, "nothing goes");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(offset(&mut client, "old", -1), 3);
    append(&mut client, "old", 1_000);
    assert_eq!(offset(&mut client, "old", -1), 4);
}
