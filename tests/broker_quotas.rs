//! Quotas of clients over sockets: limits that are set through the protocol, what a client past one
//! is told, and the rates that result, measured against the limits.
//!
//! Over 500 lines, as nine tests that need nothing of each other share one kind of measurement.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use broker::process::{Process, busy_time_of};
use broker::requests::{answers, errors_of, fetch, produce};
use broker::{Client, Harness, HarnessOptions, batch};
use coreline::base::config::QuotaWindows;
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::CorrelationId;
use coreline::wire::frame::{LENGTH_BYTES, encode_response};
use coreline::wire::messages::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, EntityData, EntryData, OpData,
};
use coreline::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::describe_client_quotas::{
    DescribeClientQuotasRequest, DescribeClientQuotasResponse,
};
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::metadata::{MetadataRequest, MetadataResponse};
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::primitives::Float64;

/// How far a measured rate may be from its limit.
const TOLERANCE: f64 = 0.1;
/// So little a second that a loaded machine can do it.
const PRODUCER_RATE: f64 = 50_000.0;
const CONSUMER_RATE: f64 = 50_000.0;
const CONNECTION_RATE: f64 = 10.0;
/// Cycles of samples over which a rate is measured.
const CYCLES: usize = 2;
/// Time for these.
const FOR_SO_LONG: Duration = Duration::from_millis(2_000 * CYCLES as u64 + 500);
/// A pause as long as this lies between two cycles of two samples of a second each.
const PAUSE_MIN: Duration = Duration::from_millis(400);

/// Two samples of a second: bursts of a second's worth come every other second.
fn start(shards: usize) -> (Harness, HarnessOptions) {
    let options = HarnessOptions {
        shards,
        set: |config| {
            config.quota_windows = QuotaWindows::of(2, 1);
            config.controller_quota_windows = QuotaWindows::of(2, 1);
        },
        ..HarnessOptions::default()
    };
    (Harness::start(options.clone()), options)
}

type Parts<'a> = &'a [(&'a str, Option<&'a str>)];

/// Sets a limit, or takes it away.
fn limit(harness: &Harness, parts: Parts<'_>, key: &str, value: Option<f64>) {
    limit_at(harness.address, parts, key, value);
}

fn limit_at(address: SocketAddr, parts: Parts<'_>, key: &str, value: Option<f64>) {
    let request = alteration(parts, key, value);
    let altered: AlterClientQuotasResponse = Client::connect(address).ask(&request, 1);
    let entry = &altered.entries[0];
    assert_eq!(
        entry.error_code,
        ErrorCode::NONE,
        "{:?}",
        entry.error_message
    );
}

fn alteration(parts: Parts<'_>, key: &str, value: Option<f64>) -> AlterClientQuotasRequest {
    let part = |(kind, name): &(&str, Option<&str>)| EntityData {
        entity_type: (*kind).to_owned(),
        entity_name: name.map(str::to_owned),
    };
    AlterClientQuotasRequest {
        entries: vec![EntryData {
            entity: parts.iter().map(part).collect(),
            ops: vec![OpData {
                key: key.to_owned(),
                value: Float64(value.unwrap_or_default()),
                remove: value.is_none(),
            }],
        }],
        validate_only: false,
    }
}

/// All clients of the tests call themselves so.
const TEST: Parts<'static> = &[("client-id", Some("test"))];

/// One request.
#[derive(Clone, Copy, Debug)]
struct Use {
    at: Duration,
    used: f64,
    /// For how long its client was told to wait.
    wait: Duration,
}

/// Requests in order of time.
type Uses = Vec<Use>;

/// Uses a broker from several connections at once until there were enough cycles.
fn use_up(
    address: SocketAddr,
    connections: usize,
    act: impl Fn(&mut Client) -> (f64, i32) + Copy + Send + 'static,
) -> Uses {
    let began = Instant::now();
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut uses = Uses::new();
                while began.elapsed() < FOR_SO_LONG {
                    // What is sent while the client waits is taken when that is over.
                    let (used, wait_ms) = act(&mut client);
                    let at = began.elapsed();
                    let wait = Duration::from_millis(wait_ms as u64);
                    uses.push(Use { at, used, wait });
                }
                uses
            })
        })
        .collect();
    joined(threads)
}

fn joined(threads: impl IntoIterator<Item = JoinHandle<Uses>>) -> Uses {
    let threads = threads.into_iter();
    let mut uses: Uses = threads.flat_map(|thread| thread.join().unwrap()).collect();
    uses.sort_by_key(|one| one.at);
    uses
}

/// What was used a second, from the first use to the beginning of the last cycle: there was a long
/// pause before it, as the client was told. Nothing where a loaded machine got to no such cycle.
fn rate(uses: &Uses) -> f64 {
    let is_start = |at: &usize| {
        let (before, one) = (uses[at - 1], uses[*at]);
        one.used > 0.0 && before.wait > PAUSE_MIN && one.at - before.at > PAUSE_MIN
    };
    let starts: Vec<usize> = (1..uses.len()).filter(is_start).collect();
    let times: Vec<Duration> = starts.iter().map(|at| uses[*at].at).collect();
    println!("{} requests, cycles at {times:?}", uses.len());
    let Some(last) = starts.get(CYCLES - 1).copied() else {
        return 0.0;
    };
    let used: f64 = uses[..last].iter().map(|one| one.used).sum();
    used / (uses[last].at - uses[0].at).as_secs_f64()
}

fn is_near(measured: f64, limit: f64, (less, more): (f64, f64)) -> bool {
    println!("{measured:.1} of {limit} a second");
    // Too much is always a fault.
    assert!(
        measured <= (1.0 + more) * limit,
        "{measured} of {limit} a second"
    );
    measured >= (1.0 - less) * limit
}

/// Who waits for a loaded machine does not use what it may: of so many measurements one is to be
/// near the limit, and none above it.
const ATTEMPTS: usize = 4;

fn assert_near(measure: impl FnMut() -> f64, limit: f64) {
    assert_within(measure, limit, (TOLERANCE, TOLERANCE));
}

fn assert_within(mut measure: impl FnMut() -> f64, limit: f64, tolerances: (f64, f64)) {
    let near = (0..ATTEMPTS).any(|_| is_near(measure(), limit, tolerances));
    assert!(
        near,
        "none of {ATTEMPTS} measurements is near {limit} a second"
    );
}

/// Answers for how long the client is told to wait.
fn produce_once(client: &mut Client) -> i32 {
    let response: ProduceResponse = client.ask(&produce("t", -1, [(0, batch(1, 1_000))]), 9);
    assert_eq!(errors_of(&response), [ErrorCode::NONE]);
    response.throttle_time_ms
}

/// Requests are sent one behind the other, so that the disk's time is no part of it.
fn producers_rate(shards: usize) -> f64 {
    let (mut harness, _) = start(shards);
    harness.create_topic_with("t", 1, &[("write.caching", "true")]);
    limit(&harness, TEST, "producer_byte_rate", Some(PRODUCER_RATE));
    let (began, address) = (Instant::now(), harness.address);
    let produce = move || {
        let mut client = Client::connect(address);
        let request = client.encode(&produce("t", -1, [(0, batch(1, 1_000))]), 9);
        let mut stream = client.stream.try_clone().unwrap();
        let used = (request.len() - LENGTH_BYTES) as f64;
        let sender = std::thread::spawn(move || while stream.write_all(&request).is_ok() {});
        let mut uses = Uses::new();
        while began.elapsed() < FOR_SO_LONG {
            let (_, response) = client.receive::<ProduceResponse>(9);
            assert_eq!(errors_of(&response), [ErrorCode::NONE]);
            let wait = Duration::from_millis(response.throttle_time_ms as u64);
            let at = began.elapsed();
            uses.push(Use { at, used, wait });
        }
        client.stream.shutdown(Shutdown::Both).unwrap();
        sender.join().unwrap();
        uses
    };
    let both = [std::thread::spawn(produce), std::thread::spawn(produce)];
    rate(&joined(both))
}

fn consumers_rate(shards: usize) -> f64 {
    let (mut harness, _) = start(shards);
    harness.create_topic("t", 1);
    produce_once(&mut harness.connect());
    limit(&harness, TEST, "consumer_byte_rate", Some(CONSUMER_RATE));
    let uses = use_up(harness.address, 4, |client| {
        let response: FetchResponse = client.ask(&fetch("t", &[(0, 0)]), 12);
        assert_eq!(response.error_code, ErrorCode::NONE);
        if response.throttle_time_ms > 0 {
            assert!(
                answers(&response).is_empty(),
                "nothing but the time to wait"
            );
            return (0.0, response.throttle_time_ms);
        }
        let pieces = encode_response(&response, 12, CorrelationId(1)).unwrap();
        (pieces.concat().len() as f64, 0)
    });
    rate(&uses)
}

fn connections_rate(shards: usize) -> f64 {
    let (harness, _) = start(shards);
    let local = [("ip", Some("127.0.0.1"))];
    limit(
        &harness,
        &local,
        "connection_creation_rate",
        Some(CONNECTION_RATE),
    );
    let began = Instant::now();
    let mut uses = Uses::new();
    while began.elapsed() < FOR_SO_LONG {
        let at = began.elapsed();
        let mut client = Client::connect(harness.address);
        client.send(&ApiVersionsRequest::default(), 3);
        // One too many is closed without a word, after a while.
        let is_served = client.stream.read(&mut [0]).is_ok_and(|count| count > 0);
        let (used, wait) = match is_served {
            true => (1.0, Duration::ZERO),
            false => (0.0, began.elapsed() - at),
        };
        uses.push(Use { at, used, wait });
    }
    rate(&uses)
}

/// How many connections of four in a row are served, once the last limit is in force.
fn served(harness: &Harness) -> usize {
    let connect = |_: &i32| {
        let mut client = Client::connect(harness.address);
        client.send(&ApiVersionsRequest::default(), 3);
        client.stream.read(&mut [0]).is_ok_and(|count| count > 0)
    };
    (0..4).filter(connect).count()
}

#[test]
fn a_limit_of_a_hosts_name_counts_for_its_addresses_and_after_a_restart() {
    let (mut harness, options) = start(2);
    let key = "connection_creation_rate";
    let mut configure = harness.connect();
    let mut limit = |rate| {
        let request = alteration(&[("ip", Some("localhost"))], key, rate);
        let altered: AlterClientQuotasResponse = configure.ask(&request, 1);
        assert_eq!(altered.entries[0].error_code, ErrorCode::NONE);
    };
    // The address is known a little after the answer.
    let until = |harness: &Harness, is_limited: bool| {
        let began = Instant::now();
        while (served(harness) < 4) != is_limited {
            assert!(began.elapsed() < Duration::from_secs(20), "{is_limited}");
        }
    };
    limit(Some(1.0));
    until(&harness, true);
    limit(None);
    until(&harness, false);
    limit(Some(1.0));
    until(&harness, true);
    harness.restart(&options);
    until(&harness, true);
}

/// What measures a rate on so many shards, and its limit.
type Measured = (fn(usize) -> f64, f64);

/// In the full dose on one core too.
#[test]
fn rates_are_those_that_are_allowed_on_one_core_and_on_two() {
    let one = std::env::var_os("CORELINE_ACCEPT").map(|_| 1);
    let measure: [Measured; 3] = [
        (producers_rate, PRODUCER_RATE),
        (consumers_rate, CONSUMER_RATE),
        (connections_rate, CONNECTION_RATE),
    ];
    for shards in one.into_iter().chain([2]) {
        let all = measure.map(|(measure, limit)| {
            std::thread::spawn(move || assert_near(|| measure(shards), limit))
        });
        for thread in all {
            thread.join().unwrap();
        }
    }
}

#[test]
fn one_that_is_past_its_limit_is_answered_at_once_and_not_read_for_as_long_as_it_is_told() {
    let (mut harness, _) = start(2);
    harness.create_topic("t", 1);
    limit(&harness, TEST, "producer_byte_rate", Some(10_000.0));
    let mut client = harness.connect();
    produce_once(&mut client);
    let request = produce("t", -1, [(0, batch(1, 18_000))]);
    let began = Instant::now();
    let response: ProduceResponse = client.ask(&request, 9);
    assert_eq!(
        errors_of(&response),
        [ErrorCode::NONE],
        "what was sent is kept"
    );
    assert!(
        began.elapsed() < Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
    let told = Duration::from_millis(response.throttle_time_ms as u64);
    assert!(told > Duration::from_millis(700), "{told:?}");
    let _: ApiVersionsResponse = client.ask(&ApiVersionsRequest::default(), 3);
    let waited = began.elapsed();
    assert!(
        waited > told - Duration::from_millis(20),
        "{waited:?} of {told:?}"
    );
    assert!(
        waited < told + Duration::from_millis(500),
        "{waited:?} of {told:?}"
    );
    // Another connection of the same client waits only once it asks for more itself.
    let began = Instant::now();
    let _: ApiVersionsResponse = harness.connect().ask(&ApiVersionsRequest::default(), 3);
    assert!(began.elapsed() < Duration::from_millis(500));
}

#[test]
fn one_that_leaves_while_it_waits_is_gone_and_a_stop_does_not_wait_for_it() {
    let (mut harness, _) = start(1);
    harness.create_topic("t", 1);
    limit(&harness, TEST, "producer_byte_rate", Some(100.0));
    for _ in 0..3 {
        let mut client = harness.connect();
        produce_once(&mut client);
        client.send(&ApiVersionsRequest::default(), 3);
    }
    let mut stays = harness.connect();
    produce_once(&mut stays);
    // The harness asserts that the stop is clean and within two seconds.
    assert!(harness.stop().is_clean);
}

#[test]
fn the_nearest_limit_counts_and_others_do_not() {
    let (mut harness, _) = start(1);
    harness.create_topic("t", 1);
    let throttle = |harness: &Harness| {
        let response: ProduceResponse =
            (harness.connect()).ask(&produce("t", -1, [(0, batch(1, 1_000))]), 9);
        response.throttle_time_ms
    };
    let key = "producer_byte_rate";
    limit(&harness, &[("client-id", None)], key, Some(1.0));
    limit(&harness, &[("user", Some("ann"))], key, Some(1.0));
    limit(&harness, TEST, key, Some(1e9));
    assert_eq!(throttle(&harness), 0, "the client's own");
    limit(&harness, &[("user", None)], key, Some(10.0));
    assert!(
        throttle(&harness) > 10_000,
        "any user's before any client's"
    );
    let own = [("user", Some("ANONYMOUS")), ("client-id", Some("test"))];
    limit(&harness, &own, key, Some(1e9));
    assert_eq!(throttle(&harness), 0);
    limit(&harness, &own, key, None);
    assert!(throttle(&harness) > 10_000);
}

#[test]
fn limits_are_kept_over_a_restart() {
    let (mut harness, options) = start(1);
    limit(&harness, TEST, "consumer_byte_rate", Some(2_000.0));
    limit(
        &harness,
        &[("ip", Some("10.0.0.1"))],
        "connection_creation_rate",
        Some(3.0),
    );
    let told = |harness: &Harness| -> DescribeClientQuotasResponse {
        let request = DescribeClientQuotasRequest::default();
        harness.connect().ask(&request, 1)
    };
    let before = told(&harness);
    assert_eq!(before.entries.as_ref().map(Vec::len), Some(2));
    harness.restart(&options);
    assert_eq!(told(&harness), before);
}

#[test]
fn threads_time_is_limited() {
    let (mut harness, _) = start(2);
    harness.create_topic("t", 1_000);
    limit(&harness, TEST, "request_percentage", Some(1.0));
    let mut client = harness.connect();
    let request = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    let began = Instant::now();
    let mut told = Duration::ZERO;
    while told.is_zero() {
        let response: MetadataResponse = client.ask(&request, 12);
        told = Duration::from_millis(response.throttle_time_ms as u64);
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "never told to wait"
        );
    }
    assert!(told <= Duration::from_secs(1), "one sample at most");
    let began = Instant::now();
    produce_once(&mut client);
    assert!(began.elapsed() > told.saturating_sub(Duration::from_millis(20)));
}

/// How far the time that a broker's threads had a CPU may be below and above the limit of one
/// client, which is of its requests alone. Below: a thread that others keep from its CPU is at a
/// request for longer than it has one. Above: the broker has work of its own, the journal's and that
/// of the kernel's threads above all, which counts for no client.
const TIME_TOLERANCES: (f64, f64) = (0.3, 0.5);
/// Percent of one thread.
const THREADS_TIME: f64 = 20.0;

/// A broker's threads, and the requests that keep them busy.
struct Threads {
    process: u32,
    busy_ns: AtomicU64,
    turn: AtomicUsize,
}

impl Threads {
    /// Percent of a thread, times seconds, since this was last asked.
    fn used(&self) -> f64 {
        let now = busy_time_of(self.process).as_nanos() as u64;
        let before = self.busy_ns.fetch_max(now, Ordering::Relaxed);
        now.saturating_sub(before) as f64 * 100.0 / 1e9
    }

    /// Much to decode and to encode, to read and to send, to receive and to append, in turns.
    /// Answers for how long the client is to wait.
    fn keep_busy(&self, client: &mut Client) -> i32 {
        match self.turn.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => {
                let request = MetadataRequest {
                    topics: None,
                    ..MetadataRequest::default()
                };
                let response: MetadataResponse = client.ask(&request, 12);
                response.throttle_time_ms
            }
            1 => {
                let all: Vec<_> = (0..PARTITIONS).map(|index| (index, 0)).collect();
                let response: FetchResponse = client.ask(&fetch("t", &all), 12);
                assert_eq!(response.error_code, ErrorCode::NONE);
                response.throttle_time_ms
            }
            _ => {
                let batches = (0..PARTITIONS).map(|index| (index, batch(1, 1_000)));
                let response: ProduceResponse = client.ask(&produce("t", 1, batches), 9);
                response.throttle_time_ms
            }
        }
    }
}

const PARTITIONS: i32 = 200;

fn threads_rate(shards: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["quota.window.num=2", "quota.window.size.seconds=1"];
    let process = Process::start_on(folder.path(), shards, &settings);
    let caching = [("write.caching", "true")];
    Client::connect(process.address).create_topic_with("t", PARTITIONS, &caching);
    limit_at(
        process.address,
        TEST,
        "request_percentage",
        Some(THREADS_TIME),
    );
    let threads: &'static Threads = Box::leak(Box::new(Threads {
        process: process.id(),
        busy_ns: AtomicU64::new(0),
        turn: AtomicUsize::new(0),
    }));
    threads.used();
    let uses = use_up(process.address, 2, |client| {
        let wait_ms = threads.keep_busy(client);
        (threads.used(), wait_ms)
    });
    rate(&uses)
}

/// The limit is a broker's, whichever of its threads are at work for the client.
#[test]
fn threads_have_a_cpu_for_as_long_as_is_allowed_on_one_core_and_on_two() {
    for shards in [1, 2] {
        assert_within(|| threads_rate(shards), THREADS_TIME, TIME_TOLERANCES);
    }
}

fn create(client: &mut Client, (name, partitions): (&str, i32), version: i16) -> (ErrorCode, i32) {
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.to_owned(),
            num_partitions: partitions,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        timeout_ms: 10_000,
        validate_only: true,
    };
    let created: CreateTopicsResponse = client.ask(&request, version);
    (created.topics[0].error_code, created.throttle_time_ms)
}

fn mutations_rate(client: &mut Client) -> f64 {
    let began = Instant::now();
    let mut created = Vec::new();
    while began.elapsed() < Duration::from_millis(1_500) {
        let (error, throttle_ms) = create(client, ("t", 4), 7);
        match error {
            ErrorCode::NONE => created.push(began.elapsed()),
            error => {
                assert_eq!(error, ErrorCode::THROTTLING_QUOTA_EXCEEDED);
                assert!(throttle_ms > 0, "and it is told for how long");
            }
        }
    }
    let took = created[created.len() - 1] - created[0];
    4.0 * (created.len() - 1) as f64 / took.as_secs_f64()
}

#[test]
fn changes_of_partitions_come_at_the_rate_that_is_allowed() {
    let (harness, _) = start(1);
    let rate = 20.0;
    limit(&harness, TEST, "controller_mutation_rate", Some(rate));
    let mut client = harness.connect();
    assert_eq!(
        create(&mut client, ("all", 40), 7),
        (ErrorCode::NONE, 0),
        "a bucket full"
    );
    assert_near(|| mutations_rate(&mut client), rate);
    // Older versions know no such error: they are served, and wait.
    let (error, throttle_ms) = create(&mut client, ("t", 40), 5);
    assert_eq!(error, ErrorCode::NONE);
    assert!(throttle_ms > 1_000, "{throttle_ms}");
}
