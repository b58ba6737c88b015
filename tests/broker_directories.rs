//! Several log directories: where partitions go, what survives, and what becomes of the others when
//! one fails, is taken away or comes back.
//!
//! Over 500 lines, as ten tests that need nothing of each other share the folders and their questions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use broker::process::Process;
use broker::{Client, Harness, HarnessOptions, admin, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::Uuid;
use coreline::io::uring::{Fault, FaultHook, OperationKind, ShardFaults};
use coreline::log::format::meta_properties::MetaProperties;
use coreline::server::groups;
use coreline::wire::messages::describe_log_dirs::{
    DescribeLogDirsRequest, DescribeLogDirsResponse,
};
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use coreline::wire::messages::produce::ProduceResponse;

const EIO: i32 = 5;
const STORAGE: ErrorCode = ErrorCode::KAFKA_STORAGE_ERROR;
/// How soon what waits has to be answered.
const SOON: Duration = Duration::from_secs(5);

fn options(directories: &[&'static str]) -> HarnessOptions {
    HarnessOptions {
        shards: 2,
        directories: directories.to_vec(),
        ..HarnessOptions::default()
    }
}

/// What each directory is told to hold: its last name, its code, its partitions' numbers.
fn described(client: &mut Client) -> Vec<(String, ErrorCode, Vec<i32>)> {
    let request = DescribeLogDirsRequest { topics: None };
    let response: DescribeLogDirsResponse = client.ask(&request, 4);
    assert_eq!(response.error_code, ErrorCode::NONE);
    let results = response.results.into_iter();
    results
        .map(|result| {
            let name = Path::new(&result.log_dir).file_name().unwrap();
            let partitions = result.topics.iter().flat_map(|topic| &topic.partitions);
            let numbers = partitions.map(|partition| partition.partition_index.0);
            let name = name.to_string_lossy().into_owned();
            (name, result.error_code, numbers.collect())
        })
        .collect()
}

fn append(client: &mut Client, topic: &str, index: i32) -> ErrorCode {
    let request = requests::produce(topic, -1, [(index, batch(1, 100))]);
    let response: ProduceResponse = client.ask(&request, 9);
    requests::errors_of(&response)[0]
}

/// The end of a partition's log, or why it is not told.
fn end_of(client: &mut Client, topic: &str, index: i32) -> Result<i64, ErrorCode> {
    let response: ListOffsetsResponse = client.ask(&requests::list_offsets(topic, index, -1), 6);
    let partition = &response.topics[0].partitions[0];
    match partition.error_code {
        ErrorCode::NONE => Ok(partition.offset.0),
        code => Err(code),
    }
}

/// What a fetch from the beginning brings: bytes, or a code.
fn fetched(client: &mut Client, topic: &str, index: i32) -> Result<usize, ErrorCode> {
    let response: FetchResponse = client.ask(&requests::fetch(topic, &[(index, 0)]), 12);
    let answers = requests::answers(&response);
    match answers[0].error_code {
        ErrorCode::NONE => Ok(requests::bytes_of(answers[0])),
        code => Err(code),
    }
}

/// Leader and offline replicas of each partition.
fn leaders(client: &mut Client, topic: &str) -> BTreeMap<i32, (i32, usize)> {
    let request = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some(topic.to_owned()),
            topic_id: Uuid::ZERO,
        }]),
        ..MetadataRequest::default()
    };
    let response: MetadataResponse = client.ask(&request, 9);
    let partitions = response.topics[0].partitions.iter();
    partitions
        .map(|one| {
            let offline = one.offline_replicas.len();
            (one.partition_index.0, (one.leader_id.0, offline))
        })
        .collect()
}

fn identity(directory: &Path) -> MetaProperties {
    let bytes = std::fs::read(directory.join("meta.properties")).unwrap();
    MetaProperties::decode(&bytes).unwrap()
}

/// Files in a folder of this name fail while it is set.
#[derive(Clone, Default)]
struct FailingDirectory(Arc<AtomicBool>);

impl FailingDirectory {
    fn faults(&self, name: &'static str, kinds: &'static [OperationKind]) -> ShardFaults {
        let fails = Arc::clone(&self.0);
        ShardFaults::new(move |_| {
            let fails = Arc::clone(&fails);
            FaultHook::new(move |point| {
                let is_wanted = fails.load(Ordering::SeqCst) && kinds.contains(&point.kind);
                let is_within = || {
                    let path = std::fs::read_link(format!("/proc/self/fd/{}", point.file));
                    path.is_ok_and(|path| path.components().any(|part| part.as_os_str() == name))
                };
                match is_wanted && is_within() {
                    true => Fault::Fail(EIO),
                    false => Fault::None,
                }
            })
        })
    }

    fn fail(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn heal(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[test]
fn partitions_are_dealt_out_and_stay_where_they_are() {
    let mut options = options(&["a", "b", "c"]);
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 6);
    let mut client = harness.connect();
    let expected = |last: &[i32]| {
        let of = |name: &str, numbers: &[i32]| (name.to_owned(), ErrorCode::NONE, numbers.to_vec());
        vec![of("a", &[0, 3]), of("b", &[1, 4]), of("c", last)]
    };
    assert_eq!(described(&mut client), expected(&[2, 5]));
    for index in 0..6 {
        for _ in 0..=index {
            assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
        }
    }
    let ids = ["a", "b", "c"].map(|name| identity(&harness.path().join(name)));
    let differ = |one: &MetaProperties, other: &MetaProperties| {
        assert_eq!(
            (&one.cluster_id, one.node_id),
            (&other.cluster_id, other.node_id)
        );
        assert_ne!(one.directory_id, other.directory_id);
    };
    differ(&ids[0], &ids[1]);
    differ(&ids[1], &ids[2]);
    for shards in [1, 3] {
        options.shards = shards;
        harness.restart_after(&options, |folder| {
            for name in ["a", "b", "c"] {
                assert!(folder.join(name).join(".kafka_cleanshutdown").exists());
                assert!(
                    folder
                        .join(name)
                        .join("recovery-point-offset-checkpoint")
                        .exists()
                );
            }
            assert!(folder.join("a/__cluster_metadata-0").is_dir());
        });
        let mut client = harness.connect();
        assert_eq!(described(&mut client), expected(&[2, 5]));
        for index in 0..6 {
            assert_eq!(end_of(&mut client, "t", index), Ok(i64::from(index) + 1));
            assert!(fetched(&mut client, "t", index).unwrap() > 100);
        }
    }
    // One more finds all equal, the next two the others.
    harness.create_topic("u", 1);
    let client = &mut harness.connect();
    assert_eq!(described(client)[0].2, [0, 3, 0]);
    let after = ["a", "b", "c"].map(|name| identity(&harness.path().join(name)));
    assert_eq!(ids, after);
}

#[test]
fn nothing_acknowledged_is_lost_by_kills_with_any_number_of_cores() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name| folder.path().join(name).display().to_string();
    let log_dirs = ["a", "b", "c"].map(named).join(",");
    let mut acked = [0_i64; 12];
    for (life, cores) in [2, 1, 3].into_iter().enumerate() {
        let process = Process::start_with(&log_dirs, cores);
        let mut client = Client::connect(process.address);
        if life == 0 {
            client.create_topic_with("t", 12, &[]);
        }
        for (index, end) in (0..).zip(&mut acked) {
            assert_eq!(end_of(&mut client, "t", index), Ok(*end), "life {life}");
            for size in [10, 3_000, 400_000] {
                let request = requests::produce("t", -1, [(index, batch(2, size))]);
                let response: ProduceResponse = client.ask(&request, 9);
                assert_eq!(requests::errors_of(&response), [ErrorCode::NONE]);
                *end += 2;
            }
        }
        process.kill();
    }
    let process = Process::start_with(&log_dirs, 2);
    let mut client = Client::connect(process.address);
    for (index, end) in (0..).zip(acked) {
        assert_eq!(end_of(&mut client, "t", index), Ok(end));
        assert!(fetched(&mut client, "t", index).unwrap() > 100);
    }
    let held: Vec<usize> = described(&mut client).iter().map(|of| of.2.len()).collect();
    assert_eq!(held, [4, 4, 4]);
}

/// Whether `wanted` comes true soon.
fn soon(mut wanted: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < SOON {
        if wanted() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_directory_that_fails_takes_its_partitions_alone() {
    let failing = FailingDirectory::default();
    let kinds = &[OperationKind::Write, OperationKind::Sync];
    let options = HarnessOptions {
        faults: Some(failing.faults("b", kinds)),
        has_admin: true,
        ..options(&["a", "b", "c"])
    };
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 6);
    let mut client = harness.connect();
    for index in 0..6 {
        assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
    }
    // A consumer waits for more of a partition in each directory.
    let mut waiting = harness.connect();
    let mut parked = requests::fetch("t", &[(0, 1), (1, 1), (2, 1)]);
    parked.max_wait_ms = 60_000;
    waiting.send(&parked, 12);
    std::thread::sleep(Duration::from_millis(100));
    failing.fail();
    let began = Instant::now();
    assert_eq!(append(&mut client, "t", 1), STORAGE);
    let (_, response): (_, FetchResponse) = waiting.receive(12);
    let codes = requests::answers(&response)
        .iter()
        .map(|one| one.error_code)
        .collect::<Vec<_>>();
    assert_eq!(codes, [ErrorCode::NONE, STORAGE, ErrorCode::NONE]);
    // The other partition of the directory, whichever shard has it, at once or as soon as it hears.
    assert!(soon(|| end_of(&mut client, "t", 4) == Err(STORAGE)));
    assert!(began.elapsed() < SOON);
    for index in [1, 4] {
        assert_eq!(append(&mut client, "t", index), STORAGE);
        assert_eq!(fetched(&mut client, "t", index), Err(STORAGE));
        assert_eq!(end_of(&mut client, "t", index), Err(STORAGE));
    }
    for index in [0, 2, 3, 5] {
        assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
        assert_eq!(end_of(&mut client, "t", index), Ok(2));
        assert!(fetched(&mut client, "t", index).unwrap() > 200);
    }
    assert!(soon(|| leaders(&mut client, "t")[&4] == (-1, 1)));
    assert_eq!(leaders(&mut client, "t")[&3], (1, 0));
    let held = described(&mut client);
    assert_eq!(held[1], ("b".to_owned(), STORAGE, Vec::new()));
    assert_eq!(held[2], ("c".to_owned(), ErrorCode::NONE, vec![2, 5]));
    told_of_the_failure(&harness);
    // A new topic goes to those that serve.
    harness.create_topic("u", 2);
    for index in 0..2 {
        assert_eq!(append(&mut client, "u", index), ErrorCode::NONE);
    }
    assert_eq!(options.told.reasons(), [""; 0], "the broker goes on");
    let report = harness.stop();
    assert!(!report.is_clean, "one directory did not close");
    failing.heal();
    harness.start_again(&options);
    let mut client = harness.connect();
    for index in 0..6 {
        let end = end_of(&mut client, "t", index).unwrap();
        // What was refused may stand there or not; what was acknowledged does.
        let acknowledged = if [1, 4].contains(&index) { 1 } else { 2 };
        assert!(end >= acknowledged, "{index}: {end}");
        assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
    }
    assert_eq!(leaders(&mut client, "t")[&4], (1, 0));
}

/// A client that is told of a coordinator which then is none asks both for ever.
#[test]
fn groups_of_a_directory_that_failed_have_no_coordinator() {
    let failing = FailingDirectory::default();
    let kinds = &[OperationKind::Write, OperationKind::Sync];
    let mut harness = Harness::start(HarnessOptions {
        faults: Some(failing.faults("b", kinds)),
        ..options(&["a", "b"])
    });
    let mut client = harness.connect();
    let request = FindCoordinatorRequest {
        coordinator_keys: (0..20).map(|number| number.to_string()).collect(),
        ..FindCoordinatorRequest::default()
    };
    let mut codes = || -> Vec<ErrorCode> {
        let found: FindCoordinatorResponse = client.ask(&request, 4);
        let coordinators = found.coordinators.iter();
        coordinators.map(|one| one.error_code).collect()
    };
    assert_eq!(codes(), [ErrorCode::NONE; 20]);
    harness.create_topic("t", 2);
    failing.fail();
    let mut other = harness.connect();
    let lost = (0..2).filter(|index| append(&mut other, "t", *index) == STORAGE);
    assert_eq!(lost.count(), 1);
    assert!(soon(
        || codes().contains(&ErrorCode::COORDINATOR_NOT_AVAILABLE)
    ));
    let home = |key: &String| groups::partition_for(key, 50).0;
    let led = leaders(&mut other, groups::OFFSETS_TOPIC);
    for (key, code) in request.coordinator_keys.iter().zip(codes()) {
        let has_leader = led[&home(key)].0 == 1;
        assert_eq!(code.is_none(), has_leader, "{key}: {code:?}");
    }
    assert!(codes().contains(&ErrorCode::NONE), "the other directory's");
    assert!(!harness.stop().is_clean, "one directory did not close");
}

fn told_of_the_failure(harness: &Harness) {
    let name = "kafka_log_logmanager_offlinelogdirectorycount";
    let has = |body: &str, wanted: &str| body.lines().any(|line| line == wanted).then_some(());
    admin::until(harness.admin(), "/metrics", |body| {
        has(body, &format!("{name} 1"))
    });
    let offline = "kafka_server_replicamanager_offlinereplicacount 2";
    admin::until(harness.admin(), "/metrics", |body| has(body, offline));
    let leading = "kafka_server_replicamanager_leadercount 4";
    admin::until(harness.admin(), "/metrics", |body| has(body, leading));
    let ready = admin::text(harness.admin(), "/readyz");
    assert!(
        ready.starts_with("ok\n") && ready.contains("/b is offline: "),
        "{ready}"
    );
}

#[test]
fn a_read_that_fails_takes_the_directory_offline() {
    let failing = FailingDirectory::default();
    let options = HarnessOptions {
        faults: Some(failing.faults("b", &[OperationKind::Read])),
        ..options(&["a", "b"])
    };
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 4);
    let mut client = harness.connect();
    for index in 0..4 {
        assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
    }
    // Out of the tail cache, so that a fetch has to read.
    harness.restart(&options);
    let mut client = harness.connect();
    failing.fail();
    assert_eq!(fetched(&mut client, "t", 1), Err(STORAGE));
    assert!(soon(|| append(&mut client, "t", 3) == STORAGE));
    assert_eq!(append(&mut client, "t", 1), STORAGE);
    for index in [0, 2] {
        assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
        assert!(fetched(&mut client, "t", index).unwrap() > 100);
    }
    let _ = harness.stop();
}

#[test]
fn without_the_metadata_log_or_any_directory_the_broker_cannot_go_on() {
    for (failing_name, begins) in [
        (
            "a",
            "the metadata log is in a directory that failed: the log directory /",
        ),
        ("all", "every log directory has failed: /"),
    ] {
        let failing = FailingDirectory::default();
        let kinds = &[OperationKind::Write, OperationKind::Sync];
        let options = HarnessOptions {
            faults: Some(failing.faults(failing_name, kinds)),
            set: match failing_name {
                "a" => |_| (),
                _ => |config| {
                    let root = config.log_dirs[0].parent().and_then(Path::parent);
                    config.metadata_log_dir = root.map(|root| root.join("metadata"));
                    std::fs::create_dir_all(config.metadata_log_dir()).unwrap();
                },
            },
            has_admin: true,
            ..options(match failing_name {
                "a" => &["a", "b"],
                _ => &["all/a", "all/b"],
            })
        };
        let mut harness = Harness::start(options.clone());
        harness.create_topic("t", 2);
        let mut client = harness.connect();
        assert_eq!(append(&mut client, "t", 0), ErrorCode::NONE);
        assert_eq!(append(&mut client, "t", 1), ErrorCode::NONE);
        failing.fail();
        assert_eq!(append(&mut client, "t", 0), STORAGE);
        let second = append(&mut client, "t", 1);
        assert_eq!(second == ErrorCode::NONE, failing_name == "a");
        assert!(soon(|| !options.told.reasons().is_empty()));
        let reasons = options.told.reasons();
        assert!(
            reasons.len() == 1 && reasons[0].starts_with(begins),
            "{reasons:?}"
        );
        if failing_name == "all" {
            let ready = || admin::get(harness.admin(), "/readyz").unwrap();
            assert!(soon(|| ready().status == 503));
            let told = ready().body;
            assert_eq!(told.matches(" is offline: ").count(), 2, "{told}");
        }
        assert!(!harness.stop().is_clean);
        failing.heal();
        harness.start_again(&options);
        let mut client = harness.connect();
        assert!(end_of(&mut client, "t", 0).unwrap() >= 1);
    }
}

#[test]
fn a_directory_that_is_taken_away_and_brought_back() {
    let both = options(&["a", "b"]);
    let mut harness = Harness::start(both.clone());
    harness.create_topic("t", 4);
    let mut client = harness.connect();
    for index in 0..4 {
        assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
    }
    // Without it, and with another in its place: nothing is made anew.
    for directories in [&["a"][..], &["a", "other"]] {
        harness.restart(&options(directories));
        let mut client = harness.connect();
        for index in [1, 3] {
            assert_eq!(append(&mut client, "t", index), STORAGE, "{directories:?}");
            assert_eq!(fetched(&mut client, "t", index), Err(STORAGE));
            assert_eq!(end_of(&mut client, "t", index), Err(STORAGE));
            assert_eq!(leaders(&mut client, "t")[&index], (-1, 1));
        }
        for index in [0, 2] {
            assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
        }
        let count = described(&mut client).len();
        assert_eq!(count, directories.len(), "only what the settings name");
    }
    harness.create_topic("u", 1);
    let mut client = harness.connect();
    assert_eq!(append(&mut client, "u", 0), ErrorCode::NONE);
    assert!(harness.path().join("other/u-0").is_dir(), "the emptiest");
    harness.restart(&options(&["a", "b", "other"]));
    let mut client = harness.connect();
    let ends: Vec<_> = (0..4)
        .map(|index| end_of(&mut client, "t", index))
        .collect();
    assert_eq!(ends, [Ok(3), Ok(1), Ok(3), Ok(1)]);
    assert_eq!(end_of(&mut client, "u", 0), Ok(1));
    assert_eq!(append(&mut client, "t", 1), ErrorCode::NONE);
}

#[test]
fn a_folder_that_was_moved_to_another_directory_is_served_there() {
    let options = options(&["a", "b"]);
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 2);
    let mut client = harness.connect();
    for index in 0..2 {
        assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
    }
    harness.restart_after(&options, |folder| {
        std::fs::rename(folder.join("b/t-1"), folder.join("a/t-1")).unwrap();
    });
    let mut client = harness.connect();
    assert_eq!(end_of(&mut client, "t", 1), Ok(1));
    assert_eq!(append(&mut client, "t", 1), ErrorCode::NONE);
    assert_eq!(described(&mut client)[0].2, [0, 1]);
}

/// Starts the command on `log_dirs`, which it has to refuse; answers what it says.
fn refusal(log_dirs: &[PathBuf]) -> String {
    let named: Vec<String> = log_dirs
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_coreline"))
        .args(["--override", "listeners=PLAINTEXT://127.0.0.1:0"])
        .args(["--override", &format!("log.dirs={}", named.join(","))])
        .args(["--override", "coreline.cores=1"])
        .args(["--override", "coreline.memory=134217728"])
        .args(["--override", "coreline.admin.listener="])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_cannot_be_told_apart_is_refused() {
    let options = options(&["a", "b"]);
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 2);
    assert!(harness.stop().is_clean);
    let [a, b] = ["a", "b"].map(|name| harness.path().join(name));
    let copy = |from: &Path, to: &Path| {
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .args([from, to])
            .status();
        assert!(copied.unwrap().success());
    };
    // The same partition twice.
    copy(&a.join("t-0"), &b.join("t-0"));
    let told = refusal(&[a.clone(), b.clone()]);
    assert!(
        told.contains("the partition t-0 is in two log directories"),
        "{told}"
    );
    assert!(told.contains("/a/t-0") && told.contains("/b/t-0"), "{told}");
    std::fs::remove_dir_all(b.join("t-0")).unwrap();
    // A directory twice, by another name.
    let alias = harness.path().join("alias");
    std::os::unix::fs::symlink(&b, &alias).unwrap();
    let told = refusal(&[a.clone(), b.clone(), alias]);
    assert!(
        told.contains("log.dirs names the folder") && told.contains("twice"),
        "{told}"
    );
    // A copy of a directory, and one of another cluster.
    let copied = harness.path().join("copied");
    copy(&b, &copied);
    let told = refusal(&[a.clone(), b.clone(), copied.clone()]);
    assert!(told.contains("Duplicate directory ID"), "{told}");
    let other = MetaProperties {
        cluster_id: "other".to_owned(),
        directory_id: Some(Uuid([0x55; 16])),
        ..identity(&copied)
    };
    std::fs::write(copied.join("meta.properties"), other.encode()).unwrap();
    let told = refusal(&[a, b, copied]);
    assert!(
        told.contains("Invalid cluster.id in: ") && told.contains("read other"),
        "{told}"
    );
    harness.start_again(&options);
}

/// A disk that is not there at the start: the others serve, and with it back so do its partitions.
#[test]
fn a_directory_that_cannot_be_used_at_the_start_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let log_dirs = format!("{},{}", a.display(), b.display());
    let process = Process::start_with(&log_dirs, 1);
    let mut client = Client::connect(process.address);
    client.create_topic_with("t", 2, &[]);
    assert_eq!(append(&mut client, "t", 0), ErrorCode::NONE);
    assert_eq!(append(&mut client, "t", 1), ErrorCode::NONE);
    process.kill();
    let away = folder.path().join("away");
    std::fs::rename(&b, &away).unwrap();
    std::fs::write(&b, "no folder").unwrap();
    let process = Process::start_with(&log_dirs, 2);
    let mut client = Client::connect(process.address);
    assert_eq!(append(&mut client, "t", 0), ErrorCode::NONE);
    assert_eq!(append(&mut client, "t", 1), STORAGE);
    let held = described(&mut client);
    assert_eq!(held[1], ("b".to_owned(), STORAGE, Vec::new()));
    process.kill();
    std::fs::remove_file(&b).unwrap();
    std::fs::rename(&away, &b).unwrap();
    let process = Process::start_with(&log_dirs, 1);
    let mut client = Client::connect(process.address);
    assert_eq!(end_of(&mut client, "t", 0), Ok(2));
    assert_eq!(end_of(&mut client, "t", 1), Ok(1));
    assert_eq!(append(&mut client, "t", 1), ErrorCode::NONE);
}
