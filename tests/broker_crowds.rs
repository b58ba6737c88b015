//! Crowds of connections that want nothing good: requests that never come whole, connections that
//! say nothing, more and more new ones. They are closed in time, and a busy client is served
//! meanwhile (RELIABILITY rows 15 and 16). `CORELINE_ACCEPT=1` takes the full doses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use broker::process::Process;
use broker::{Client, Harness, HarnessOptions, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::base::limits::{KIB, PARTIAL_REQUEST_MAX};
use coreline::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::produce::ProduceResponse;

fn is_full_dose() -> bool {
    std::env::var_os("CORELINE_ACCEPT").is_some()
}

/// How much later than promised something may happen on a loaded machine.
const LATE_MAX: Duration = Duration::from_secs(5);

/// A connection of the crowd.
struct Member {
    stream: TcpStream,
    closed_after: Option<Duration>,
}

impl Member {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self {
            stream,
            closed_after: None,
        }
    }

    /// Notes since when the broker has closed it.
    fn look(&mut self, begun: Instant) {
        if self.closed_after.is_none() {
            let is_open = match self.stream.read(&mut [0; 64]) {
                Ok(count) => count > 0,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            self.closed_after = (!is_open).then(|| begun.elapsed());
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        // Whether it is closed is told by `look`.
        let _ = self.stream.write(bytes);
    }
}

/// Sends one produce after the other; answers how long each took.
fn busy(address: SocketAddr, until: impl Fn() -> bool) -> Vec<Duration> {
    let mut client = Client::connect(address);
    let mut took = Vec::new();
    while !until() {
        let begun = Instant::now();
        let request = requests::produce("t", 1, [(0, batch(1, 100))]);
        let answer: ProduceResponse = client.ask(&request, 9);
        assert_eq!(requests::errors_of(&answer), [ErrorCode::NONE]);
        took.push(begun.elapsed());
    }
    took.sort();
    took
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Looks at a crowd until `end`, feeding a byte to each at every `pause`, beside a busy client.
fn watch(
    harness: &Harness,
    crowd: &mut [Member],
    (begun, end): (Instant, Instant),
    pause: Option<Duration>,
) -> Vec<Duration> {
    let address = harness.address;
    let client = thread::spawn(move || busy(address, || Instant::now() >= end));
    let mut feed_at = begun;
    while Instant::now() < end {
        let feeds = pause.is_some() && Instant::now() >= feed_at;
        for member in crowd.iter_mut() {
            member.look(begun);
            if feeds && member.closed_after.is_none() {
                member.send(&[0]);
            }
        }
        if feeds {
            feed_at = Instant::now() + pause.unwrap();
        }
        thread::sleep(Duration::from_millis(20));
    }
    client.join().unwrap()
}

fn start(set: fn(&mut coreline::base::config::BrokerConfig)) -> Harness {
    let mut harness = Harness::start(HarnessOptions {
        shards: 2,
        set,
        ..HarnessOptions::default()
    });
    harness.create_topic("t", 5);
    harness
}

fn create(address: SocketAddr) {
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: "t".to_owned(),
            num_partitions: 5,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        timeout_ms: 10_000,
        ..CreateTopicsRequest::default()
    };
    let created: CreateTopicsResponse = Client::connect(address).ask(&request, 7);
    assert_eq!(created.topics[0].error_code, ErrorCode::NONE);
}

/// A sixth of it is for connections, 16 KiB each: room for all of them.
const CROWD_MEMORY_BYTES: u64 = 2 << 30;
/// What an idle connection may cost.
const IDLE_BYTES_MAX: usize = 48 * KIB;
/// Connections at once while they are opened, so that the queues of listeners hold them.
const OPENED_AT_ONCE: usize = 20;

#[test]
fn idle_connections_cost_little_and_slow_nobody_down() {
    let (idle, busy_ones) = if is_full_dose() {
        (9_000, 200)
    } else {
        (500, 20)
    };
    coreline::io::startup::raise_open_files().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start_within(folder.path(), CROWD_MEMORY_BYTES);
    let address = process.address;
    create(address);
    let run = || {
        let end = Instant::now() + Duration::from_secs(4);
        let clients: Vec<_> = (0..busy_ones)
            .map(|_| thread::spawn(move || busy(address, || Instant::now() >= end)))
            .collect();
        let mut took: Vec<_> = clients
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect();
        took.sort();
        percentile(&took, 99)
    };
    run();
    let (p99_alone, before) = (run(), process.resident_bytes());
    let mut crowd = Vec::with_capacity(idle);
    while crowd.len() < idle {
        let mut some: Vec<_> = (0..OPENED_AT_ONCE)
            .map(|_| Client::connect(address))
            .collect();
        for client in &mut some {
            let _: ApiVersionsResponse = client.ask(&ApiVersionsRequest::default(), 3);
        }
        crowd.extend(some);
    }
    let each = process.resident_bytes().saturating_sub(before) / idle;
    let p99_beside = run();
    eprintln!(
        "{idle} idle connections: {} KiB each; {busy_ones} busy ones' p99 {p99_alone:.2?} alone, \
         {p99_beside:.2?} beside them",
        each / KIB
    );
    assert!(each <= IDLE_BYTES_MAX, "{each} bytes");
    // The goal is twice; half a second is room for a loaded machine.
    assert!(p99_beside < 2 * p99_alone + Duration::from_millis(500));
}

/// A frame that claims 1,000 bytes and brings some of them.
const HALF_FRAME: [u8; 12] = [0, 0, 0x03, 0xe8, 0, 0, 0, 9, 0, 0, 0, 1];

#[test]
fn requests_that_never_come_whole_are_closed_and_others_served() {
    let (limit, count, pause) = if is_full_dose() {
        (PARTIAL_REQUEST_MAX, 2_000, Duration::from_secs(10))
    } else {
        (Duration::from_secs(3), 100, Duration::from_millis(300))
    };
    let harness = if is_full_dose() {
        start(|_| ())
    } else {
        start(|config| config.partial_request_max = Duration::from_secs(3))
    };
    let alone = {
        let end = Instant::now() + Duration::from_secs(2);
        busy(harness.address, || Instant::now() >= end)
    };
    let mut crowd: Vec<Member> = (0..count)
        .map(|_| Member::connect(harness.address))
        .collect();
    let begun = Instant::now();
    for member in &mut crowd {
        member.send(&HALF_FRAME);
    }
    let end = begun + limit + LATE_MAX;
    let beside = watch(&harness, &mut crowd, (begun, end), Some(pause));
    let closed: Vec<Duration> = crowd.iter().filter_map(|one| one.closed_after).collect();
    assert_eq!(closed.len(), crowd.len(), "some are still open");
    let (first, last) = (*closed.iter().min().unwrap(), *closed.iter().max().unwrap());
    let (p99_alone, p99_beside) = (percentile(&alone, 99), percentile(&beside, 99));
    eprintln!(
        "{count} senders at a byte each {pause:?}: closed after {first:.1?} to {last:.1?}; \
         produce p99 {p99_alone:.2?} alone, {p99_beside:.2?} beside them"
    );
    assert!(first >= limit / 2, "closed too early: {first:?}");
    assert!(last <= limit + LATE_MAX / 2, "closed too late: {last:?}");
}

/// A large request over a slow line comes whole, though it takes longer than a small one may.
#[test]
fn a_large_request_that_moves_is_waited_for() {
    let harness = start(|config| config.partial_request_max = Duration::from_secs(2));
    let mut client = harness.connect();
    let batches = (0..5).map(|partition| (partition, batch(1, 1_000_000)));
    let frame = client.encode(&requests::produce("t", -1, batches), 9);
    let begun = Instant::now();
    for piece in frame.chunks(frame.len().div_ceil(8)) {
        client.stream.write_all(piece).unwrap();
        thread::sleep(Duration::from_millis(500));
    }
    assert!(begun.elapsed() > Duration::from_secs(3));
    let (_, answer) = client.receive::<ProduceResponse>(9);
    assert_eq!(requests::errors_of(&answer), [ErrorCode::NONE; 5]);
}

#[test]
fn connections_that_say_nothing_are_closed_when_idle_for_too_long() {
    let count = if is_full_dose() { 5_000 } else { 200 };
    let harness = start(|config| config.connections_idle_ms_max = 4_000);
    let limit = Duration::from_secs(4);
    let begun = Instant::now();
    let mut crowd: Vec<Member> = (0..count)
        .map(|_| Member::connect(harness.address))
        .collect();
    let connected = begun.elapsed();
    // Half of them begin a request first.
    for member in crowd.iter_mut().step_by(2) {
        member.send(&HALF_FRAME);
    }
    let end = Instant::now() + limit + LATE_MAX;
    let beside = watch(&harness, &mut crowd, (begun, end), None);
    let closed: Vec<Duration> = crowd.iter().filter_map(|one| one.closed_after).collect();
    assert_eq!(closed.len(), crowd.len(), "some are still open");
    let (first, last) = (*closed.iter().min().unwrap(), *closed.iter().max().unwrap());
    eprintln!(
        "{count} silent connections: closed after {first:.1?} to {last:.1?}; produce p99 {:.2?}",
        percentile(&beside, 99)
    );
    assert!(first >= limit, "closed too early: {first:?}");
    assert!(last <= connected + limit + LATE_MAX, "too late: {last:?}");
}

/// Connections come at 1,000 a second and go; a client that is there is served as before.
#[test]
fn a_storm_of_connections_keeps_nobody_from_being_served() {
    let seconds = if is_full_dose() { 60 } else { 2 };
    let harness = start(|_| ());
    let address = harness.address;
    let run = |end: Instant| thread::spawn(move || busy(address, || Instant::now() >= end));
    let alone = run(Instant::now() + Duration::from_secs(2)).join().unwrap();
    let begun = Instant::now();
    let end = begun + Duration::from_secs(seconds);
    let client = run(end);
    let mut count = 0_u32;
    while Instant::now() < end {
        drop(TcpStream::connect(address).unwrap());
        count += 1;
        let due = begun + Duration::from_millis(u64::from(count));
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    let beside = client.join().unwrap();
    let (p99_alone, p99_beside) = (percentile(&alone, 99), percentile(&beside, 99));
    eprintln!(
        "{count} connections in {seconds} s: produce p99 {p99_alone:.2?} alone, {p99_beside:.2?} \
         beside them"
    );
    assert!(u64::from(count) >= seconds * 300, "the storm was a breeze");
    assert!(p99_beside < Duration::from_secs(1), "{p99_beside:?}");
    Client::connect(address);
}
