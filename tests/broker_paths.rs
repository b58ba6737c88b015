//! Clients' paths through whole shards: order, parking, sessions, hops, bad input, memory.

mod broker;

use std::io::Write;
use std::time::{Duration, Instant};

use broker::requests::{self, answers, bytes_of, epoch_end, errors_of, fetch, list_offsets};
use broker::{Client, Harness, HarnessOptions, batch};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{LeaderEpoch, Offset, Uuid};
use coreline::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use coreline::wire::messages::fetch::{FetchRequest, FetchResponse};
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::offset_for_leader_epoch::OffsetForLeaderEpochResponse;
use coreline::wire::messages::produce::{ProduceRequest, ProduceResponse};

/// A batch of so many records of 100 bytes for each partition.
fn produce(topic: &str, acks: i16, partitions: &[(i32, usize)]) -> ProduceRequest {
    let batches = partitions
        .iter()
        .map(|(index, count)| (*index, batch(*count, 100)));
    requests::produce(topic, acks, batches)
}

fn two_shards() -> (Harness, Client) {
    let mut harness = Harness::start(HarnessOptions {
        shards: 2,
        ..HarnessOptions::default()
    });
    harness.create_topic("t", 4);
    let client = harness.connect();
    (harness, client)
}

#[test]
fn what_is_produced_is_fetched_on_every_shard_at_every_acks() {
    let (_harness, mut client) = two_shards();
    for acks in [-1, 1] {
        let request = produce("t", acks, &[(0, 3), (1, 2), (2, 1), (3, 5)]);
        let response: ProduceResponse = client.ask(&request, 9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE; 4]);
    }
    client.send(&produce("t", 0, &[(0, 1), (1, 1)]), 9);
    let all = [(0, 0), (1, 0), (2, 0), (3, 0)];
    // acks=0 has no answer of its own to wait for.
    let started = Instant::now();
    let (ends, response) = loop {
        let response: FetchResponse = client.ask(&fetch("t", &all), 12);
        let ends: Vec<_> = answers(&response)
            .iter()
            .map(|data| data.high_watermark.0)
            .collect();
        if ends == [7, 5, 2, 10] || started.elapsed() > Duration::from_secs(10) {
            break (ends, response);
        }
    };
    assert_eq!(ends, [7, 5, 2, 10]);
    assert!(answers(&response).iter().all(|data| bytes_of(data) > 0));
}

#[test]
fn answers_leave_in_the_order_of_requests() {
    let (_harness, mut client) = two_shards();
    // A parked fetch first; what comes after it waits in line although it is done sooner.
    let mut parked = fetch("t", &[(0, 0)]);
    parked.max_wait_ms = 300;
    parked.min_bytes = 1 << 20;
    let first = client.send(&parked, 12);
    let second = client.send(&produce("t", -1, &[(1, 1)]), 9);
    let mut unknown = client.encode(&ApiVersionsRequest::default(), 4);
    unknown[6..8].copy_from_slice(&99i16.to_be_bytes());
    client.stream.write_all(&unknown).unwrap();
    let (id, _): (_, FetchResponse) = client.receive(12);
    assert_eq!(id, first);
    let (id, response): (_, ProduceResponse) = client.receive(9);
    assert_eq!((id, errors_of(&response)), (second, vec![ErrorCode::NONE]));
    let (id, response): (_, ApiVersionsResponse) = client.receive(0);
    assert_eq!(
        (id, response.error_code),
        (second + 1, ErrorCode::UNSUPPORTED_VERSION)
    );
}

#[test]
fn pipelined_appends_keep_their_order() {
    let (_harness, mut client) = two_shards();
    let sent: Vec<_> = (0..200)
        .map(|_| client.send(&produce("t", -1, &[(0, 1)]), 9))
        .collect();
    for (offset, id) in sent.into_iter().enumerate() {
        let (received, response): (_, ProduceResponse) = client.receive(9);
        assert_eq!(received, id);
        let base = response.responses[0].partition_responses[0].base_offset;
        assert_eq!(base, Offset(offset as i64));
    }
}

#[test]
fn a_parked_fetch_wakes_when_its_partition_moves() {
    let (harness, mut client) = two_shards();
    for partition in 0..4 {
        client.send(
            &fetch(
                "t",
                &[(0, 0), (1, 0), (2, 0), (3, 0)].map(|(p, _)| (p, i64::from(p < partition))),
            ),
            12,
        );
        std::thread::sleep(Duration::from_millis(50));
        let mut producer = harness.connect();
        let started = Instant::now();
        let response: ProduceResponse = producer.ask(&produce("t", -1, &[(partition, 1)]), 9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE]);
        let (_, response): (_, FetchResponse) = client.receive(12);
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "woken, not timed out"
        );
        let with_bytes: Vec<_> = answers(&response)
            .into_iter()
            .filter(|data| bytes_of(data) > 0)
            .map(|data| data.partition_index.0)
            .collect();
        assert_eq!(with_bytes, [partition]);
    }
}

#[test]
fn a_fetch_waits_for_min_bytes_or_its_deadline() {
    let (harness, mut client) = two_shards();
    let mut request = fetch("t", &[(0, 0), (1, 0)]);
    request.min_bytes = 1_000;
    request.max_wait_ms = 400;
    let started = Instant::now();
    let response: FetchResponse = client.ask(&request, 12);
    assert!(started.elapsed() >= Duration::from_millis(390));
    assert!(answers(&response).iter().all(|data| bytes_of(data) == 0));
    request.max_wait_ms = 10_000;
    client.send(&request, 12);
    let mut producer = harness.connect();
    let started = Instant::now();
    // Neither partition reaches the sum alone.
    for _ in 0..4 {
        let _: ProduceResponse = producer.ask(&produce("t", -1, &[(0, 1), (1, 1)]), 9);
    }
    let (_, response): (_, FetchResponse) = client.receive(12);
    assert!(started.elapsed() < Duration::from_secs(5));
    let bytes: usize = answers(&response).into_iter().map(bytes_of).sum();
    assert!(bytes >= 1_000, "{bytes}");
}

#[test]
fn max_bytes_is_kept_but_for_the_first_batch() {
    let (_harness, mut client) = two_shards();
    for partition in 0..4 {
        let _: ProduceResponse = client.ask(&produce("t", -1, &[(partition, 100)]), 9);
    }
    let mut request = fetch("t", &[(0, 0), (1, 0), (2, 0), (3, 0)]);
    for max_bytes in [10, 0] {
        request.max_bytes = max_bytes;
        let response: FetchResponse = client.ask(&request, 12);
        let sizes: Vec<_> = answers(&response).into_iter().map(bytes_of).collect();
        assert!(sizes[0] > 10_000 && sizes[1..] == [0, 0, 0], "{sizes:?}");
    }
}

#[test]
fn a_session_is_kept_and_tells_only_changes() {
    let (_harness, mut client) = two_shards();
    let mut open = fetch("t", &[(0, 0), (1, 0)]);
    (open.max_wait_ms, open.session_epoch) = (0, 0);
    let response: FetchResponse = client.ask(&open, 12);
    let session_id = response.session_id;
    assert_ne!(session_id, 0);
    assert_eq!(answers(&response).len(), 2);
    let mut next = fetch("t", &[]);
    next.topics.clear();
    (next.session_id, next.session_epoch, next.max_wait_ms) = (session_id, 1, 0);
    let response: FetchResponse = client.ask(&next, 12);
    assert_eq!(answers(&response).len(), 0);
    let _: ProduceResponse = client.ask(&produce("t", -1, &[(1, 1)]), 9);
    next.session_epoch = 2;
    let response: FetchResponse = client.ask(&next, 12);
    let told: Vec<_> = answers(&response)
        .iter()
        .map(|data| data.partition_index.0)
        .collect();
    assert_eq!((told, response.session_id), (vec![1], session_id));
    next.session_epoch = 9;
    let response: FetchResponse = client.ask(&next, 12);
    assert_eq!(response.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
}

#[test]
fn unknown_names_ids_and_epochs_have_kafkas_codes() {
    let (mut harness, mut client) = two_shards();
    let topic_id = harness.create_topic("by-id", 1);
    let response: ProduceResponse = client.ask(&produce("no", -1, &[(0, 1)]), 9);
    assert_eq!(
        errors_of(&response),
        [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]
    );
    let response: ProduceResponse = client.ask(&produce("t", -1, &[(9, 1)]), 9);
    assert_eq!(
        errors_of(&response),
        [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]
    );
    let response: ProduceResponse = client.ask(&produce("t", 7, &[(0, 1)]), 9);
    assert_eq!(errors_of(&response), [ErrorCode::INVALID_REQUIRED_ACKS]);
    let mut by_id = produce("", -1, &[(0, 1)]);
    by_id.topic_data[0].topic_id = Uuid([5; 16]);
    let response: ProduceResponse = client.ask(&by_id, 13);
    assert_eq!(errors_of(&response), [ErrorCode::UNKNOWN_TOPIC_ID]);
    by_id.topic_data[0].topic_id = topic_id;
    let response: ProduceResponse = client.ask(&by_id, 13);
    assert_eq!(errors_of(&response), [ErrorCode::NONE]);
    let mut request = fetch("", &[(0, 0)]);
    request.topics[0].topic_id = Uuid([5; 16]);
    request.max_wait_ms = 0;
    let response: FetchResponse = client.ask(&request, 13);
    assert_eq!(
        answers(&response)[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_ID
    );
    request.topics[0].topic_id = topic_id;
    let code = |client: &mut Client, request: &FetchRequest| {
        let response: FetchResponse = client.ask(request, 18);
        answers(&response)[0].error_code
    };
    request.topics[0].partitions[0].fetch_offset = Offset(2);
    assert_eq!(code(&mut client, &request), ErrorCode::OFFSET_OUT_OF_RANGE);
    request.topics[0].partitions[0].fetch_offset = Offset(1);
    assert_eq!(code(&mut client, &request), ErrorCode::NONE);
    request.topics[0].partitions[0].current_leader_epoch = LeaderEpoch(1);
    assert_eq!(code(&mut client, &request), ErrorCode::UNKNOWN_LEADER_EPOCH);
    request.topics[0].partitions[0].current_leader_epoch = LeaderEpoch(0);
    request.replica_state.replica_id.0 = -2;
    assert_eq!(
        code(&mut client, &request),
        ErrorCode::NONE,
        "kafka-replica-verification"
    );
}

#[test]
fn a_diverging_epoch_is_named() {
    let (_harness, mut client) = two_shards();
    let _: ProduceResponse = client.ask(&produce("t", -1, &[(0, 3)]), 9);
    let mut request = fetch("t", &[(0, 9)]);
    request.topics[0].partitions[0].last_fetched_epoch = LeaderEpoch(0);
    let response: FetchResponse = client.ask(&request, 12);
    let diverging = &answers(&response)[0].diverging_epoch;
    assert_eq!(
        (diverging.epoch, diverging.end_offset),
        (LeaderEpoch(0), Offset(3))
    );
}

#[test]
fn offsets_and_epochs_are_listed() {
    let (_harness, mut client) = two_shards();
    let _: ProduceResponse = client.ask(&produce("t", -1, &[(2, 4)]), 9);
    let mut offset = |timestamp, version| {
        let request = list_offsets("t", 2, timestamp);
        let response: ListOffsetsResponse = client.ask(&request, version);
        let data = &response.topics[0].partitions[0];
        (data.error_code, data.offset.0)
    };
    assert_eq!(offset(-1, 1), (ErrorCode::NONE, 4));
    assert_eq!(offset(-2, 11), (ErrorCode::NONE, 0));
    assert_eq!(offset(0, 7), (ErrorCode::NONE, 0));
    assert_eq!(offset(i64::MAX, 7), (ErrorCode::NONE, -1));
    assert_eq!(offset(-3, 6).0, ErrorCode::UNSUPPORTED_VERSION);
    let response: OffsetForLeaderEpochResponse = client.ask(&epoch_end("t", 2), 4);
    assert_eq!(response.topics[0].partitions[0].end_offset, Offset(4));
}

#[test]
fn a_topic_deleted_in_use_answers_and_wakes() {
    let (mut harness, mut client) = two_shards();
    let topic_id = harness.create_topic("gone", 2);
    client.send(&fetch("gone", &[(0, 0), (1, 0)]), 12);
    std::thread::sleep(Duration::from_millis(50));
    harness.delete_topic(topic_id);
    let (_, response): (_, FetchResponse) = client.receive(12);
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert!(
        answers(&response)
            .iter()
            .any(|data| data.error_code == unknown)
    );
    let response: ProduceResponse = client.ask(&produce("gone", -1, &[(0, 1)]), 9);
    assert_eq!(errors_of(&response), [unknown]);
}

#[test]
fn a_failed_produce_with_acks_0_closes_the_connection() {
    let (_harness, mut client) = two_shards();
    client.send(&produce("t", 0, &[(0, 1)]), 9);
    assert!(!client.is_closed_within(Duration::from_millis(200)));
    client.send(&produce("no", 0, &[(0, 1)]), 9);
    assert!(client.is_closed_within(Duration::from_secs(5)));
}

#[test]
fn what_is_no_request_closes_the_connection() {
    let (harness, _client) = two_shards();
    let negative = (-1i32).to_be_bytes().to_vec();
    let large: Vec<u8> = [&(9i32 << 20).to_be_bytes()[..], &[0, 18, 0, 0]].concat();
    let tiny = 3i32.to_be_bytes().to_vec();
    let mut unserved = [&10i32.to_be_bytes()[..], &[0x7f, 0x7f, 0, 0]].concat();
    unserved.extend([0; 6]);
    let mut version = [&10i32.to_be_bytes()[..], &[0, 0, 0, 2]].concat();
    version.extend([0; 6]);
    let mut truncated = [&12i32.to_be_bytes()[..], &[0, 1, 0, 12]].concat();
    truncated.extend([0; 8]);
    let http = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let tls = vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01];
    for bytes in [
        negative, large, tiny, unserved, version, truncated, http, tls,
    ] {
        let mut client = harness.connect();
        client.stream.write_all(&bytes).unwrap();
        assert!(client.is_closed_within(Duration::from_secs(5)), "{bytes:?}");
    }
}

#[test]
fn half_sent_frames_block_nobody() {
    // Common part 1 MiB, kept share 1 MiB.
    let mut harness = Harness::start(HarnessOptions {
        requests_bytes: 2 << 20,
        request_bytes_max: 1 << 20,
        ..HarnessOptions::default()
    });
    harness.create_topic("t", 1);
    let mut head = (1_000_000i32).to_be_bytes().to_vec();
    head.extend([0, 0, 0, 9, 0, 0, 0, 1, 0, 0]);
    head.resize(300_000, 0);
    let held: Vec<Client> = (0..8)
        .map(|_| {
            let mut client = harness.connect();
            // Those without budget are not read; their bytes wait in the kernel.
            client.stream.set_nonblocking(true).unwrap();
            let _ = client.stream.write(&head);
            client
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    let mut client = harness.connect();
    for _ in 0..3 {
        let started = Instant::now();
        let response: ProduceResponse = client.ask(&produce("t", -1, &[(0, 1_000)]), 9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE]);
        assert!(
            started.elapsed() < Duration::from_secs(12),
            "{:?}",
            started.elapsed()
        );
    }
    drop(held);
}

#[test]
fn topics_and_records_survive_a_restart_with_other_shards() {
    let (mut harness, mut client) = two_shards();
    let topic_id = harness.create_topic("kept", 3);
    let mut request = produce("", -1, &[(0, 1), (2, 1)]);
    request.topic_data[0].topic_id = topic_id;
    let response: ProduceResponse = client.ask(&request, 13);
    assert_eq!(errors_of(&response), [ErrorCode::NONE; 2]);
    harness.restart(&HarnessOptions::default());
    let mut client = harness.connect();
    let response: ProduceResponse = client.ask(&request, 13);
    assert_eq!(errors_of(&response), [ErrorCode::NONE; 2]);
    let bases = response.responses[0].partition_responses.iter();
    let bases: Vec<_> = bases.map(|partition| partition.base_offset.0).collect();
    assert_eq!(bases, [1, 1], "the first ones are still there");
    let mut request = fetch("", &[(0, 0), (2, 0)]);
    request.topics[0].topic_id = topic_id;
    let response: FetchResponse = client.ask(&request, 18);
    assert!(
        answers(&response).iter().all(|data| bytes_of(data) > 100),
        "{response:?}"
    );
}
