//! Partitions move between log directories while clients use them, are called off, deleted, killed
//! on their way, and are where they were asked to be in the end.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use broker::process::Process;
use broker::{Client, Harness, HarnessOptions, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::PartitionIndex;
use coreline::io::uring::{Fault, FaultHook, OperationKind, ShardFaults};
use coreline::wire::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
};
use coreline::wire::messages::describe_log_dirs::{
    DescribeLogDirsRequest, DescribeLogDirsResponse,
};
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::record_batch::BatchHeader;

/// How soon what was asked for has to be so.
const SOON: Duration = Duration::from_secs(20);
const T: &str = "t";

fn options() -> HarnessOptions {
    HarnessOptions {
        shards: 2,
        directories: vec!["a", "b", "c"],
        ..HarnessOptions::default()
    }
}

/// So slow that what has begun does not end by itself.
fn throttled() -> HarnessOptions {
    HarnessOptions {
        set: |config| config.move_bytes_per_second = Some(100_000),
        ..options()
    }
}

fn ask(client: &mut Client, moves: &[(&Path, &str, i32)]) -> Vec<ErrorCode> {
    let directory = |(path, topic, index): &(&Path, &str, i32)| AlterReplicaLogDir {
        path: path.display().to_string(),
        topics: vec![AlterReplicaLogDirTopic {
            name: (*topic).to_owned(),
            partitions: vec![PartitionIndex(*index)],
        }],
    };
    let request = AlterReplicaLogDirsRequest {
        dirs: moves.iter().map(directory).collect(),
    };
    let response: AlterReplicaLogDirsResponse = client.ask(&request, 2);
    let topics = response.results.iter();
    let partitions = topics.flat_map(|topic| &topic.partitions);
    partitions.map(|one| one.error_code).collect()
}

fn ask_for(client: &mut Client, to: &Path, index: i32) -> ErrorCode {
    let codes = ask(client, &[(to, T, index)]);
    let [code] = codes[..] else {
        panic!("{codes:?}")
    };
    code
}

/// Directory, whether it is a future log, its lag and size, of each log of a partition.
fn logs_of(client: &mut Client, index: i32) -> Vec<(PathBuf, bool, i64, i64)> {
    let request = DescribeLogDirsRequest { topics: None };
    let response: DescribeLogDirsResponse = client.ask(&request, 4);
    let mut logs = Vec::new();
    for result in response.results {
        for one in result.topics.iter().flat_map(|topic| &topic.partitions) {
            if one.partition_index.0 == index {
                let told = (one.is_future_key, one.offset_lag, one.partition_size);
                logs.push((PathBuf::from(&result.log_dir), told.0, told.1, told.2));
            }
        }
    }
    logs
}

fn wait_until_in(client: &mut Client, directory: &Path, index: i32) {
    let began = Instant::now();
    loop {
        let logs = logs_of(client, index);
        if let [(home, false, 0, _)] = &logs[..]
            && home == directory
        {
            return;
        }
        assert!(began.elapsed() < SOON, "{index}: {logs:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn append(client: &mut Client, index: i32, bytes: usize) -> ErrorCode {
    let request = requests::produce(T, -1, [(index, batch(1, bytes))]);
    let response: ProduceResponse = client.ask(&request, 9);
    requests::errors_of(&response)[0]
}

fn end_of(client: &mut Client, index: i32) -> i64 {
    let response: ListOffsetsResponse = client.ask(&requests::list_offsets(T, index, -1), 6);
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NONE);
    partition.offset.0
}

/// Reads everything from `from` to `end`, each offset once and in order.
fn read_all(client: &mut Client, index: i32, from: i64, end: i64) {
    let mut next = from;
    while next < end {
        let response: FetchResponse = client.ask(&requests::fetch(T, &[(index, next)]), 12);
        let data = requests::answers(&response)[0];
        assert_eq!(data.error_code, ErrorCode::NONE, "at {next}");
        let slices = data
            .records
            .as_ref()
            .map_or(&[][..], |records| &records.slices);
        let mut rest: bytes::Bytes = slices.concat().into();
        while rest.len() > 61 {
            let header = BatchHeader::parse(&rest).unwrap();
            if header.total_bytes() > rest.len() {
                break;
            }
            assert!(header.base_offset.0 <= next && next <= header.last_offset().0);
            next = header.next_offset().0;
            rest = rest.slice(header.total_bytes()..);
        }
    }
}

/// The folders in a directory whose names begin with the topic's.
fn folders(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("t-")).collect();
    names.sort();
    names
}

fn soon(mut wanted: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < SOON {
        if wanted() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn clients_go_on_during_a_move() {
    let options = options();
    let mut harness = Harness::start(options.clone());
    harness.create_topic_with(T, 1, &[("segment.bytes", "1048576")]);
    let [a, b] = ["a", "b"].map(|name| harness.path().join(name));
    let mut client = harness.connect();
    for _ in 0..40 {
        assert_eq!(append(&mut client, 0, 100_000), ErrorCode::NONE);
    }
    wait_until_in(&mut client, &a, 0);
    let (is_over, acked) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicI64::new(40)),
    );
    let (mut producer, mut reader) = (harness.connect(), harness.connect());
    let producing = std::thread::spawn({
        let (is_over, acked) = (Arc::clone(&is_over), Arc::clone(&acked));
        move || {
            while !is_over.load(Ordering::SeqCst) {
                assert_eq!(append(&mut producer, 0, 3_000), ErrorCode::NONE);
                acked.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let reading = std::thread::spawn({
        let (is_over, acked) = (Arc::clone(&is_over), Arc::clone(&acked));
        move || {
            let mut next = 0;
            while !is_over.load(Ordering::SeqCst) {
                let end = acked.load(Ordering::SeqCst);
                read_all(&mut reader, 0, next, end);
                next = if next > 200 { 0 } else { end };
            }
        }
    });
    for to in [&b, &a, &b] {
        assert_eq!(ask_for(&mut client, to, 0), ErrorCode::NONE);
        wait_until_in(&mut client, to, 0);
    }
    is_over.store(true, Ordering::SeqCst);
    producing.join().unwrap();
    reading.join().unwrap();
    let acked = acked.load(Ordering::SeqCst);
    assert_eq!(end_of(&mut client, 0), acked);
    read_all(&mut client, 0, 0, acked);
    assert!(soon(|| folders(&a).is_empty()), "{:?}", folders(&a));
    assert_eq!(folders(&b), ["t-0"]);
    harness.restart(&options);
    let mut client = harness.connect();
    wait_until_in(&mut client, &b, 0);
    read_all(&mut client, 0, 0, acked);
}

#[test]
fn what_cannot_be_is_refused_as_kafka_refuses_it() {
    let mut harness = Harness::start(options());
    harness.create_topic(T, 1);
    let [a, b, c] = ["a", "b", "c"].map(|name| harness.path().join(name));
    let mut client = harness.connect();
    let long = "t".repeat(240);
    let asked: [(&Path, &str, i32); 7] = [
        (Path::new("/nowhere"), T, 0),
        (Path::new("a"), T, 1),
        (&c, "nope", 0),
        (&b, T, 7),
        (&b, &long, 0),
        (Path::new("/nowhere"), &long, 1),
        (Path::new(""), "other", 0),
    ];
    let mut told = BTreeMap::new();
    for one in asked {
        told.insert((one.1.len(), one.2), ask(&mut client, &[one]));
    }
    let expected = [
        ((1, 0), ErrorCode::LOG_DIR_NOT_FOUND),
        ((1, 1), ErrorCode::LOG_DIR_NOT_FOUND),
        ((1, 7), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ((4, 0), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ((5, 0), ErrorCode::LOG_DIR_NOT_FOUND),
        ((240, 0), ErrorCode::INVALID_TOPIC_EXCEPTION),
        ((240, 1), ErrorCode::INVALID_TOPIC_EXCEPTION),
    ];
    assert_eq!(told, expected.map(|(of, code)| (of, vec![code])).into());
    // Where it is, it stays; of two wishes the last counts.
    assert_eq!(ask_for(&mut client, &a, 0), ErrorCode::NONE);
    let twice: [(&Path, &str, i32); 2] = [(&b, T, 0), (&a, T, 0)];
    assert_eq!(ask(&mut client, &twice), [ErrorCode::NONE]);
    wait_until_in(&mut client, &a, 0);
    assert_eq!(folders(&b), Vec::<String>::new());
    // What comes later comes where it was wanted.
    harness.create_topic("nope", 1);
    let later = c.join("nope-0");
    assert!(later.is_dir(), "{}", later.display());
}

#[test]
fn a_move_is_seen_on_its_way_called_off_turned_and_gone_on_with() {
    let slow = throttled();
    let mut harness = Harness::start(slow.clone());
    harness.create_topic(T, 1);
    let [a, b, c] = ["a", "b", "c"].map(|name| harness.path().join(name));
    let mut client = harness.connect();
    for _ in 0..16 {
        assert_eq!(append(&mut client, 0, 200_000), ErrorCode::NONE);
    }
    let on_its_way = |client: &mut Client, to: &Path| {
        let logs = logs_of(client, 0);
        let [ref home, ref future] = logs[..] else {
            return false;
        };
        assert_eq!((home.0.as_path(), home.1, home.2), (a.as_path(), false, 0));
        assert!(future.2 > 0 && future.2 <= 16, "{logs:?}");
        future.1 && future.0 == to
    };
    assert_eq!(ask_for(&mut client, &b, 0), ErrorCode::NONE);
    assert!(on_its_way(&mut client, &b));
    assert_eq!(ask_for(&mut client, &b, 0), ErrorCode::NONE, "again");
    let [future] = &folders(&b)[..] else {
        panic!("{:?}", folders(&b))
    };
    assert!(future.starts_with("t-0.") && future.ends_with("-future"));
    // Elsewhere.
    assert_eq!(ask_for(&mut client, &c, 0), ErrorCode::NONE);
    assert!(on_its_way(&mut client, &c));
    assert_eq!(folders(&b), Vec::<String>::new());
    // Called off.
    assert_eq!(ask_for(&mut client, &a, 0), ErrorCode::NONE);
    assert!(soon(|| folders(&c).is_empty()));
    wait_until_in(&mut client, &a, 0);
    // A stop does not forget it.
    assert_eq!(ask_for(&mut client, &b, 0), ErrorCode::NONE);
    assert!(on_its_way(&mut client, &b));
    harness.restart(&slow);
    let mut client = harness.connect();
    assert!(on_its_way(&mut client, &b));
    assert_eq!(folders(&b).len(), 1);
    harness.restart(&options());
    let mut client = harness.connect();
    wait_until_in(&mut client, &b, 0);
    read_all(&mut client, 0, 0, 16);
    assert!(soon(|| folders(&a).is_empty()));
}

#[test]
fn a_topic_that_is_deleted_on_its_way_leaves_nothing() {
    let mut harness = Harness::start(throttled());
    let id = harness.create_topic(T, 2);
    let [a, b, c] = ["a", "b", "c"].map(|name| harness.path().join(name));
    let mut client = harness.connect();
    for index in [0, 1].repeat(8) {
        assert_eq!(append(&mut client, index, 200_000), ErrorCode::NONE);
    }
    for index in [0, 1] {
        assert_eq!(ask_for(&mut client, &c, index), ErrorCode::NONE);
    }
    harness.delete_topic(id);
    assert!(soon(|| [&a, &b, &c]
        .iter()
        .all(|one| folders(one).is_empty())));
    harness.create_topic(T, 2);
    assert_eq!(append(&mut client, 0, 10), ErrorCode::NONE);
    assert_eq!(end_of(&mut client, 0), 1);
}

/// Files in a folder of this name fail while it is set.
fn failing(name: &'static str, fails: &Arc<AtomicBool>) -> ShardFaults {
    let fails = Arc::clone(fails);
    ShardFaults::new(move |_| {
        let fails = Arc::clone(&fails);
        FaultHook::new(move |point| {
            let kinds = [OperationKind::Write, OperationKind::Sync];
            let is_within = || {
                let path = std::fs::read_link(format!("/proc/self/fd/{}", point.file));
                path.is_ok_and(|path| path.components().any(|part| part.as_os_str() == name))
            };
            match fails.load(Ordering::SeqCst) && kinds.contains(&point.kind) && is_within() {
                true => Fault::Fail(5),
                false => Fault::None,
            }
        })
    })
}

/// How many partitions `/metrics` says are moving, and have failed to; those that move are behind.
fn wait_until_told(harness: &Harness, wanted: (f64, f64)) {
    broker::admin::until(harness.admin(), "/metrics", |text| {
        let series = broker::admin::series(text);
        let of_kafka = |name: &str| {
            let labels = "{clientId=\"ReplicaAlterLogDirs\"}";
            series[&format!("kafka_server_replicaalterlogdirsmanager_{name}{labels}")]
        };
        let told = (
            series["coreline_moving_partitions"],
            of_kafka("failedpartitionscount"),
        );
        let is_behind = of_kafka("maxlag") > 0.0;
        (told == wanted && is_behind == (wanted.0 > 0.0)).then_some(())
    });
}

#[test]
fn a_directory_that_fails_ends_the_move_alone() {
    for name in ["b", "a"] {
        let fails = Arc::new(AtomicBool::new(false));
        let mut options = HarnessOptions {
            faults: Some(failing(name, &fails)),
            // The metadata log stays out of it.
            directories: vec!["c", "a", "b"],
            set: |config| config.move_bytes_per_second = Some(400_000),
            ..options()
        };
        options.has_admin = true;
        let mut harness = Harness::start(options.clone());
        harness.create_topic(T, 2);
        let [a, b] = ["a", "b"].map(|name| harness.path().join(name));
        let mut client = harness.connect();
        wait_until_in(&mut client, &a, 1);
        for _ in 0..8 {
            assert_eq!(append(&mut client, 1, 200_000), ErrorCode::NONE);
        }
        assert_eq!(ask_for(&mut client, &b, 1), ErrorCode::NONE);
        assert_eq!(logs_of(&mut client, 1).len(), 2);
        wait_until_told(&harness, (1.0, 0.0));
        fails.store(true, Ordering::SeqCst);
        let serves = name == "b";
        if serves {
            // The next step fails, and with it the copy alone.
            assert!(soon(|| logs_of(&mut client, 1).len() == 1));
            wait_until_in(&mut client, &a, 1);
            assert_eq!(append(&mut client, 1, 10), ErrorCode::NONE);
            let refused = ask_for(&mut client, &b, 1);
            assert_eq!(refused, ErrorCode::KAFKA_STORAGE_ERROR);
        } else {
            assert_eq!(append(&mut client, 1, 10), ErrorCode::KAFKA_STORAGE_ERROR);
            assert!(soon(|| folders(&b).is_empty()));
            let refused = ask_for(&mut client, &b, 1);
            assert_eq!(refused, ErrorCode::KAFKA_STORAGE_ERROR);
        }
        wait_until_told(&harness, (0.0, 1.0));
        let _ = harness.stop();
        fails.store(false, Ordering::SeqCst);
        options.set = |_| ();
        harness.start_again(&options);
        let mut client = harness.connect();
        let home = if serves { &b } else { &a };
        // What was on its way when the target failed goes on.
        wait_until_in(&mut client, home, 1);
        wait_until_told(&harness, (0.0, 0.0));
        let end = end_of(&mut client, 1);
        assert!(end >= 8 + i64::from(serves), "{end}");
        read_all(&mut client, 1, 0, end);
    }
}

/// Killed at any moment of a move, with clients at work: what was acknowledged is there, once, in
/// one folder.
#[test]
fn kills_on_the_way_lose_nothing() {
    let lives = match std::env::var_os("CORELINE_ACCEPT") {
        Some(_) => 60,
        None => 3,
    };
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let log_dirs = format!("{},{}", a.display(), b.display());
    let mut acked = 0;
    let mut to = &b;
    for life in 0..=lives {
        let process = Process::start_with(&log_dirs, 1);
        let mut client = Client::connect(process.address);
        if life == 0 {
            client.create_topic_with(T, 1, &[("segment.bytes", "1048576")]);
        }
        let end = end_of(&mut client, 0);
        assert!(end >= acked, "life {life}: {end} of {acked}");
        read_all(&mut client, 0, 0, end);
        acked = end;
        if life == lives {
            wait_until_in(&mut client, to, 0);
            assert!(soon(|| folders(&a).len() + folders(&b).len() == 1));
            process.kill();
            break;
        }
        for _ in 0..20 {
            assert_eq!(append(&mut client, 0, 100_000), ErrorCode::NONE);
            acked += 1;
        }
        to = if life % 2 == 0 { &b } else { &a };
        assert_eq!(ask_for(&mut client, to, 0), ErrorCode::NONE);
        let until = Instant::now() + Duration::from_millis(7 * life as u64 % 90);
        while Instant::now() < until {
            if append(&mut client, 0, 3_000) == ErrorCode::NONE {
                acked += 1;
            }
        }
        process.kill();
    }
}
