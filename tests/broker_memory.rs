//! `coreline.memory` is a cap for the whole process: small batches beside large ones, readers that
//! read nothing, fetches of everything at once, parked fetches and half-sent frames together stay
//! within it, and a client that behaves is served meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use broker::{Client, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::base::limits::MIB;
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
};
use coreline::wire::messages::fetch::{FetchRequest, FetchResponse};
use coreline::wire::messages::produce::ProduceResponse;

/// What the process may take, its own code in a debug build included.
const MEMORY: usize = 128 * MIB;
/// Within this all is as before once the load has ended.
const RECOVERS_WITHIN: Duration = Duration::from_secs(10);

/// Connections that are kept stalled at a time, of each kind: all of them fit into the share of
/// [`MEMORY`] that is for connections, where half of it is for the rooms of busy ones.
const STALLED_MAX: usize = 250;

/// What is done to the broker at once.
#[derive(Clone, Copy)]
struct Load {
    partitions: i32,
    /// Each with four requests under way; four of them are what two cores can take.
    producers: i32,
    /// Bytes of the batches, in turn.
    sizes: [usize; 4],
    /// Readers that read nothing, new ones each round.
    stalled: usize,
    lasts: Duration,
}

const LOAD: Load = Load {
    partitions: 100,
    producers: 4,
    sizes: [60_000, 300_000, 60_000, 100_000],
    stalled: 5,
    lasts: Duration::from_secs(6),
};

/// `CORELINE_ACCEPT=1` takes the full dose.
fn long(short: u64, full: u64) -> Duration {
    let is_full = std::env::var_os("CORELINE_ACCEPT").is_some();
    Duration::from_secs(if is_full { full } else { short })
}
/// Within this a client that behaves is served on a loaded machine.
const SERVED_WITHIN: Duration = Duration::from_secs(20);

const CREATED_WITHIN: Duration = Duration::from_secs(120);

/// A description may wait until connections that do not read are closed, and for its memory.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(60);

/// The broker as a process of its own, so that its memory can be told.
struct Process {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
}

fn free() -> SocketAddr {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    port.local_addr().unwrap()
}

impl Process {
    fn start(folder: &Path) -> Self {
        let (address, admin) = (free(), free());
        let child = Command::new(env!("CARGO_BIN_EXE_coreline"))
            .arg("--override")
            .arg(format!("listeners=PLAINTEXT://{address}"))
            .arg("--override")
            .arg(format!("log.dirs={}", folder.display()))
            .args(["--override", "coreline.cores=2", "--override"])
            .arg(format!("coreline.admin.listener={admin}"))
            .arg("--override")
            .arg(format!("coreline.memory={MEMORY}"))
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(started.elapsed() < SERVED_WITHIN, "it does not start");
            thread::sleep(Duration::from_millis(20));
        }
        Self {
            child,
            address,
            admin,
        }
    }

    fn peak_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.unwrap().parse::<usize>().unwrap() * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything at once, up to 60 MiB.
fn fetch_all(partitions: i32, max_wait_ms: i32) -> FetchRequest {
    let places: Vec<(i32, i64)> = (0..partitions).map(|partition| (partition, 0)).collect();
    let mut request = requests::fetch("t", &places);
    (request.max_bytes, request.max_wait_ms) = (60 << 20, max_wait_ms);
    for partition in &mut request.topics[0].partitions {
        partition.partition_max_bytes = 20 << 20;
    }
    request
}

/// Batches of these sizes, four requests deep, until told to stop.
fn overload(address: SocketAddr, seed: i32, (load, stop): (Load, &AtomicBool)) -> usize {
    let (mut client, mut appended, mut turn) = (Client::connect(address), 0, seed);
    while !stop.load(Ordering::Relaxed) {
        for size in load.sizes {
            turn += 7;
            let one = [(turn % load.partitions, batch(1, size))];
            client.send(&requests::produce("t", -1, one), 9);
        }
        for _ in 0..4 {
            let (_, response) = client.receive::<ProduceResponse>(9);
            appended += usize::from(requests::errors_of(&response) == [ErrorCode::NONE]);
        }
    }
    appended
}

#[test]
fn the_process_stays_within_its_memory() {
    stays_within(LOAD);
}

/// A small batch in an answer that is not read keeps its whole receive buffer alive.
#[test]
fn the_process_stays_within_its_memory_with_small_batches_between() {
    stays_within(Load {
        sizes: [500, 300_000, 500, 60_000],
        ..LOAD
    });
}

/// RELIABILITY row 20: four times the producers that two cores can take, fetches of 2,000 partitions
/// at once, and readers that read none of them.
#[test]
fn the_process_stays_within_its_memory_with_2000_partitions_and_four_times_its_load() {
    stays_within(Load {
        partitions: 2_000,
        producers: 16,
        sizes: [500, 100_000, 16_000, 1_000],
        stalled: 3,
        lasts: long(8, 120),
    });
}

/// What is answered without records, unread: a hundred times the descriptions of all topics.
#[test]
fn descriptions_that_are_not_read_stay_within_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path());
    let address = process.address;
    let topics: Vec<_> = (0..300).map(|topic| (format!("t{topic}"), 1)).collect();
    create(address, &topics);
    let resource = |(name, _): &(String, i32)| DescribeConfigsResource {
        resource_type: 2,
        resource_name: name.clone(),
        configuration_keys: None,
    };
    let describe = DescribeConfigsRequest {
        resources: topics.iter().map(resource).collect(),
        include_synonyms: true,
        include_documentation: true,
    };
    let resting = process.peak_bytes();
    let held: Vec<_> = (0..100)
        .map(|_| {
            let mut unread = Client::connect(address);
            for _ in 0..3 {
                unread.send(&describe, 4);
            }
            unread
        })
        .collect();
    let begun = Instant::now();
    let mut client = Client::connect(address);
    let stream = &client.stream;
    stream.set_read_timeout(Some(DESCRIBED_WITHIN)).unwrap();
    let answer: DescribeConfigsResponse = client.ask(&describe, 4);
    assert_eq!(answer.results.len(), topics.len());
    assert!(
        answer
            .results
            .iter()
            .all(|result| !result.configs.is_empty())
    );
    assert!(begun.elapsed() < DESCRIBED_WITHIN);
    eprintln!("described within {:?}", begun.elapsed());
    let peak = process.peak_bytes();
    eprintln!(
        "from {} to {} MiB of {}",
        resting / MIB,
        peak / MIB,
        MEMORY / MIB
    );
    assert!(peak <= MEMORY, "the process took {peak} bytes");
    drop(held);
}

/// Who asks for metrics and reads nothing of them takes no memory from anybody, and the next one
/// gets its answer.
#[test]
fn metrics_that_are_not_read_are_few() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path());
    create(process.address, &[("t".to_owned(), 2_000)]);
    let ask = || {
        let mut stream = TcpStream::connect(process.admin).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .unwrap();
        stream
    };
    let whole = |mut stream: TcpStream| {
        let mut text = String::new();
        stream.set_read_timeout(Some(SERVED_WITHIN)).unwrap();
        stream.read_to_string(&mut text).unwrap();
        text.len()
    };
    let (bytes, resting) = (whole(ask()), process.peak_bytes());
    let held: Vec<_> = (0..30)
        .map(|_| {
            let stream = ask();
            thread::sleep(Duration::from_millis(50));
            stream
        })
        .collect();
    assert!(whole(ask()) > bytes / 2, "one that reads is answered");
    let more = process.peak_bytes().saturating_sub(resting);
    eprintln!("30 answers of {bytes} bytes took {more} bytes");
    assert!(more < 6 * bytes, "30 answers took {more} bytes");
    drop(held);
}

fn create(address: SocketAddr, topics: &[(String, i32)]) {
    let topic = |(name, partitions): &(String, i32)| CreatableTopic {
        name: name.clone(),
        num_partitions: *partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let create = CreateTopicsRequest {
        topics: topics.iter().map(topic).collect(),
        timeout_ms: CREATED_WITHIN.as_millis() as i32,
        ..CreateTopicsRequest::default()
    };
    // 2,000 folders take their time on a disk that others use.
    let mut client = Client::connect(address);
    client
        .stream
        .set_read_timeout(Some(CREATED_WITHIN))
        .unwrap();
    let created: CreateTopicsResponse = client.ask(&create, 7);
    let is_created = |topic: &CreatableTopicResult| topic.error_code == ErrorCode::NONE;
    assert!(created.topics.iter().all(is_created));
}

/// A client that behaves is served, as clients are that ask again: others may hold the memory for a
/// while, and on a loaded machine it may read too slowly once.
fn served(address: SocketAddr, partitions: i32, has_records: bool) -> Duration {
    let begun = Instant::now();
    loop {
        let mut client = Client::connect(address);
        let sent = client.try_send(&fetch_all(partitions, 500), 12);
        if let Some(answer) = sent.and_then(|()| client.try_receive::<FetchResponse>(12)) {
            let bytes = requests::answers(&answer)
                .into_iter()
                .map(requests::bytes_of);
            if bytes.sum::<usize>() > 0 || !has_records {
                break;
            }
        }
        assert!(begun.elapsed() < SERVED_WITHIN, "it gets nothing");
    }
    assert!(begun.elapsed() < SERVED_WITHIN, "{:?}", begun.elapsed());
    begun.elapsed()
}

fn stays_within(load: Load) {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path());
    let address = process.address;
    create(address, &[("t".to_owned(), load.partitions)]);
    let resting = process.peak_bytes();

    let stop = Arc::new(AtomicBool::new(false));
    let producers: Vec<_> = (0..load.producers)
        .map(|seed| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || overload(address, seed, (load, &stop)))
        })
        .collect();
    let started = Instant::now();
    let (mut held, mut halves) = (VecDeque::new(), VecDeque::new());
    let mut slowest = Duration::ZERO;
    while started.elapsed() < load.lasts {
        for _ in 0..load.stalled {
            let mut unread = Client::connect(address);
            for _ in 0..3 {
                // Whoever stalls may be closed at any time.
                let _ = unread.try_send(&fetch_all(load.partitions, 500), 12);
            }
            held.push_back(unread);
        }
        // A frame that claims 3 MiB and brings 70 KiB of them.
        let mut half = TcpStream::connect(address).unwrap();
        let mut frame = (3 * MIB as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(&[0, 0, 0, 9]);
        frame.resize(70 * 1024, 0);
        let _ = half.write_all(&frame);
        halves.push_back(half);
        // As many as this process may have open; those before them were stalled for long.
        held.drain(..held.len().saturating_sub(STALLED_MAX));
        halves.drain(..halves.len().saturating_sub(STALLED_MAX));
        let has_records = started.elapsed() > Duration::from_secs(2);
        slowest = slowest.max(served(address, load.partitions, has_records));
        thread::sleep(Duration::from_millis(100));
    }
    stop.store(true, Ordering::Relaxed);
    let appended: usize = producers
        .into_iter()
        .map(|producer| producer.join().unwrap())
        .sum();
    let recovered = served(address, load.partitions, true);
    let peak = process.peak_bytes();
    eprintln!(
        "{appended} batches from {} producers to {} partitions: from {} to {} MiB of {}, a fetch took \
         {slowest:.1?} at most, {recovered:.1?} after it",
        load.producers,
        load.partitions,
        resting / MIB,
        peak / MIB,
        MEMORY / MIB
    );
    assert!(appended > 0, "nobody was served");
    assert!(recovered < RECOVERS_WITHIN, "{recovered:?}");
    assert!(peak <= MEMORY, "the process took {peak} bytes");
}
