//! Clients that ask for much and read nothing: they hold what the limits give them, and everybody
//! else is served as if they were not there.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::io::Write;
use std::time::{Duration, Instant};

use broker::requests::{self, answers, bytes_of};
use broker::{Client, Harness, HarnessOptions, batch};
use coreline::base::error_code::ErrorCode;
use coreline::base::limits::MIB;
use coreline::server::connection::REQUESTS_IN_FLIGHT_MAX;
use coreline::wire::messages::fetch::{FetchRequest, FetchResponse};
use coreline::wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use coreline::wire::messages::produce::{ProduceRequest, ProduceResponse};

/// What a served client may wait for at most, the time aside in which this process had no CPU.
/// Answers come in milliseconds; the rest is slack, and far below the time for which an unread
/// answer may stand.
const SERVED_WITHIN: Duration = Duration::from_millis(900);

/// How long the threads of this process, the broker's among them, have been ready to run while
/// others had the CPU. A stall of the broker is no such time, and on a quiet machine there is next
/// to none.
fn waited_for_cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let waited = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waited.sum::<u64>())
}

fn produce(topic: &str, partition: i32, value_bytes: usize) -> ProduceRequest {
    requests::produce(topic, 1, [(partition, batch(1, value_bytes))])
}

fn fetch(topic: &str) -> FetchRequest {
    let mut request = requests::fetch(topic, &[(0, 0)]);
    request.max_wait_ms = 500;
    request.topics[0].partitions[0].partition_max_bytes = 20 << 20;
    request
}

fn fetched_bytes(response: &FetchResponse) -> usize {
    answers(response).into_iter().map(bytes_of).sum()
}

fn code_of(response: &ProduceResponse) -> ErrorCode {
    response.responses[0].partition_responses[0].error_code
}

/// Asks for metadata, produces and fetches on a connection of its own.
fn assert_served(harness: &Harness, what: &str) {
    for round in 0..4 {
        let mut client = harness.connect();
        let begin = || (Instant::now(), waited_for_cpu());
        let timed = |step: &str, (started, waited): (Instant, Duration)| {
            let took = started.elapsed();
            let waited = waited_for_cpu().saturating_sub(waited);
            assert!(
                took.saturating_sub(waited) < SERVED_WITHIN,
                "{what}, round {round}: {step} took {took:?}, {waited:?} without a CPU"
            );
        };
        let started = begin();
        let request = MetadataRequest {
            topics: Some(vec![MetadataRequestTopic {
                name: Some("small".to_owned()),
                ..MetadataRequestTopic::default()
            }]),
            ..MetadataRequest::default()
        };
        let response: MetadataResponse = client.ask(&request, 9);
        assert_eq!(response.topics[0].error_code, ErrorCode::NONE);
        timed("metadata", started);
        let started = begin();
        let response: ProduceResponse = client.ask(&produce("small", 0, 10), 9);
        assert_eq!(code_of(&response), ErrorCode::NONE);
        timed("a produce", started);
        let started = begin();
        let response: FetchResponse = client.ask(&fetch("small"), 11);
        assert!(fetched_bytes(&response) > 0);
        timed("a fetch", started);
    }
}

/// A broker with 20 records of 900 kB in `big`, and `small`.
fn broker_with_much(shards: usize, requests_bytes: usize) -> Harness {
    let mut harness = Harness::start(HarnessOptions {
        shards,
        requests_bytes: requests_bytes as u64,
        request_bytes_max: 2 * MIB,
        ..HarnessOptions::default()
    });
    harness.create_topic("big", 1);
    harness.create_topic("small", 1);
    let mut client = harness.connect();
    for _ in 0..20 {
        let response: ProduceResponse = client.ask(&produce("big", 0, 900_000), 9);
        assert_eq!(code_of(&response), ErrorCode::NONE);
    }
    harness
}

/// Connections that send `each` and read nothing; what the broker does not take stays with them.
fn send_unread(
    harness: &Harness,
    count: usize,
    each: impl Fn(&mut Client) -> Vec<u8>,
) -> Vec<Client> {
    let unread = (0..count).map(|_| {
        let mut client = harness.connect();
        let bytes = each(&mut client);
        client.stream.set_nonblocking(true).unwrap();
        let _ = client.stream.write(&bytes);
        client
    });
    unread.collect()
}

#[test]
fn unread_fetches_hold_up_nobody() {
    for (shards, connections) in [(1, 60), (2, 60)] {
        let harness = broker_with_much(shards, 64 * MIB);
        let unread = send_unread(&harness, connections, |client| {
            let requests = (0..20).map(|_| client.encode(&fetch("big"), 11));
            requests.collect::<Vec<_>>().concat()
        });
        assert_served(&harness, "at once");
        std::thread::sleep(Duration::from_millis(300));
        assert_served(&harness, "while they stay");
        drop(unread);
        assert_served(&harness, "after they have gone");
    }
}

/// More unread answers than there is memory for: those that stand longest give way.
#[test]
fn unread_fetches_give_way_to_a_reader() {
    let harness = broker_with_much(1, 8 * MIB);
    let unread = send_unread(&harness, 60, |client| client.encode(&fetch("big"), 11));
    std::thread::sleep(Duration::from_millis(1_500));
    let mut client = harness.connect();
    let started = Instant::now();
    let bytes = loop {
        let response: FetchResponse = client.ask(&fetch("big"), 11);
        if fetched_bytes(&response) > 0 {
            break fetched_bytes(&response);
        }
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "never any memory"
        );
    };
    assert!(bytes >= 900_000);
    assert_served(&harness, "while they stay");
    drop(unread);
}

/// Pipelined produce requests with large answers, at the limit of those under way and past it.
#[test]
fn unread_produce_answers_hold_up_nobody() {
    let harness = broker_with_much(1, 64 * MIB);
    for requests in [REQUESTS_IN_FLIGHT_MAX, 2 * REQUESTS_IN_FLIGHT_MAX] {
        let unread = send_unread(&harness, 20, |client| {
            let mut request = produce("nowhere", 0, 10);
            let batch = request.topic_data[0].partition_data[0].clone();
            request.topic_data[0].partition_data = vec![batch; 500];
            let bytes = client.encode(&request, 9);
            bytes.repeat(requests)
        });
        std::thread::sleep(Duration::from_millis(200));
        assert_served(&harness, "produce");
        drop(unread);
    }
}

/// A client that pipelines and then reads gets every answer, in order and whole.
#[test]
fn a_late_reader_gets_all_of_its_answers() {
    let harness = broker_with_much(1, 64 * MIB);
    let mut client = harness.connect();
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(client.send(&fetch("big"), 11));
        sent.push(client.send(&produce("small", 0, 10), 9));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_served(&harness, "before it reads");
    for pair in sent.chunks(2) {
        let (id, response) = client.receive::<FetchResponse>(11);
        assert_eq!(id, pair[0]);
        assert!(fetched_bytes(&response) >= 900_000);
        let (id, response) = client.receive::<ProduceResponse>(9);
        assert_eq!((id, code_of(&response)), (pair[1], ErrorCode::NONE));
    }
}
