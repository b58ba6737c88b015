//! How many connections there may be, and how fast they may come, over sockets; and how much one
//! request may bring.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use broker::{Client, Harness, HarnessOptions, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::base::limits::JOURNAL_BYTES_MIN;
use coreline::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use coreline::wire::messages::metadata::{MetadataRequest, MetadataResponse};
use coreline::wire::messages::produce::ProduceResponse;

/// Long enough that a connection that is served would have been answered.
const NO_ANSWER_FOR: Duration = Duration::from_millis(500);

fn start(set: fn(&mut coreline::base::config::BrokerConfig)) -> Harness {
    Harness::start(HarnessOptions {
        shards: 2,
        set,
        ..HarnessOptions::default()
    })
}

fn ask(client: &mut Client) {
    client.send(&ApiVersionsRequest::default(), 0);
}

fn served(client: &mut Client) {
    let (_, response) = client.receive::<ApiVersionsResponse>(0);
    assert!(!response.api_keys.is_empty());
}

/// Whether nothing comes, not even the stream's end.
fn waits(client: &mut Client) -> bool {
    client.stream.set_read_timeout(Some(NO_ANSWER_FOR)).unwrap();
    let peeked = client.stream.peek(&mut [0]);
    client.stream.set_read_timeout(None).unwrap();
    peeked.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

fn is_closed(client: &mut Client) -> bool {
    let limit = Some(Duration::from_secs(10));
    client.stream.set_read_timeout(limit).unwrap();
    match client.stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn one_past_max_connections_waits_for_a_place() {
    let harness = start(|config| config.connections_max = 3);
    let mut first: Vec<Client> = (0..3).map(|_| harness.connect()).collect();
    for client in &mut first {
        ask(client);
        served(client);
    }
    let mut waiting = harness.connect();
    ask(&mut waiting);
    assert!(waits(&mut waiting));
    drop(first.pop());
    served(&mut waiting);
    ask(&mut first[0]);
    served(&mut first[0]);
}

#[test]
fn one_past_max_connections_per_ip_is_closed() {
    let harness = start(|config| config.connections_per_ip_max = 2);
    let mut first: Vec<Client> = (0..2).map(|_| harness.connect()).collect();
    for client in &mut first {
        ask(client);
        served(client);
    }
    assert!(is_closed(&mut harness.connect()));
    drop(first.pop());
    let begun = Instant::now();
    loop {
        // The place is free once the broker has seen the end of the other.
        let mut client = harness.connect();
        ask(&mut client);
        client
            .stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        if client.stream.peek(&mut [0]).is_ok_and(|count| count > 0) {
            break served(&mut client);
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the place is not given back"
        );
    }
}

#[test]
fn an_override_counts_for_its_address() {
    let harness = start(|config| {
        config.connections_per_ip_max = 1;
        config.connections_per_ip_overrides = vec![("127.0.0.1".to_owned(), 2)];
    });
    let mut both = [harness.connect(), harness.connect()];
    for client in &mut both {
        ask(client);
        served(client);
    }
    assert!(is_closed(&mut harness.connect()));
}

#[test]
fn connections_past_the_rate_begin_later_and_all_are_served() {
    let harness = start(|config| config.connection_creation_rate_max = 10);
    let begun = Instant::now();
    let mut all: Vec<Client> = (0..25).map(|_| harness.connect()).collect();
    for client in &mut all {
        ask(client);
    }
    for client in &mut all {
        served(client);
    }
    // Ten come at once, the rest at 100 ms each.
    assert!(
        begun.elapsed() > Duration::from_millis(1_300),
        "{:?}",
        begun.elapsed()
    );
}

/// The smallest journal has fewer blocks than this request has batches.
#[test]
fn a_request_for_more_partitions_than_the_journal_has_blocks_holds_nobody_up() {
    const PARTITIONS: i32 = 600;
    let mut harness = Harness::start(HarnessOptions {
        set: |config| config.journal_bytes = Some(JOURNAL_BYTES_MIN as u64),
        ..HarnessOptions::default()
    });
    harness.create_topic("many", PARTITIONS);
    harness.create_topic("other", 1);
    let (mut client, mut other) = (harness.connect(), harness.connect());
    for offset in 0..2 {
        let batches = (0..PARTITIONS).map(|index| (index, batch(1, 1)));
        let mut request = requests::produce("many", -1, batches);
        request.timeout_ms = 60_000;
        let sent_at = Instant::now();
        client.send(&request, 9);
        let one = requests::produce("other", -1, [(0, batch(1, 1))]);
        let answered: ProduceResponse = other.ask(&one, 9);
        assert_eq!(appended(&answered), [(ErrorCode::NONE, offset)]);
        let (_, answered) = client.receive::<ProduceResponse>(9);
        let all = vec![(ErrorCode::NONE, offset); PARTITIONS as usize];
        assert_eq!(appended(&answered), all);
        let took = sent_at.elapsed();
        assert!(took < Duration::from_secs(40), "{took:?}");
    }
}

/// As librdkafka 2.12 asks for all topics: `null` takes one byte of the four that it kept for the
/// number of topics, and three are left at the end. Apache Kafka answers that.
#[test]
fn bytes_after_the_last_field_of_a_request_are_passed_over() {
    let harness = start(|_| {});
    let mut client = harness.connect();
    client.create_topic_with("t", 1, &[]);
    let request = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    let mut bytes = client.encode(&request, 13);
    bytes.extend([1, 0, 0]);
    let length = u32::try_from(bytes.len() - 4).unwrap();
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    for _ in 0..2 {
        client.stream.write_all(&bytes).unwrap();
        let (_, response) = client.receive::<MetadataResponse>(13);
        assert_eq!(response.topics[0].name.as_deref(), Some("t"));
    }
}

fn appended(response: &ProduceResponse) -> Vec<(ErrorCode, i64)> {
    let topics = response.responses.iter();
    let partitions = topics.flat_map(|topic| &topic.partition_responses);
    partitions
        .map(|partition| (partition.error_code, partition.base_offset.0))
        .collect()
}
