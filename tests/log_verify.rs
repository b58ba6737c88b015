//! `coreline log verify` as an operator runs it: exit codes, what it names, that it refuses a
//! directory in use and writes nothing.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use broker::process::Process;
use broker::requests::{self, errors_of};
use broker::{Client, Harness, HarnessOptions, batch};
use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::produce::ProduceResponse;

/// Exit code, and all that it prints.
fn verify(folder: &Path) -> (i32, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_coreline"))
        .args(["log", "verify"])
        .arg(folder)
        .output()
        .unwrap();
    let text = [done.stdout, done.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (done.status.code().unwrap(), text)
}

fn fill(client: &mut Client, topic: &str, partitions: i32) {
    for round in 0..30 {
        for partition in 0..partitions {
            let size = [100, 5_000, 300_000][round % 3];
            let request = requests::produce(topic, -1, [(partition, batch(3, size))]);
            let response: ProduceResponse = client.ask(&request, 9);
            assert_eq!(errors_of(&response), [ErrorCode::NONE]);
        }
    }
}

/// A stopped broker's directory.
fn closed() -> Harness {
    let mut harness = Harness::start(HarnessOptions::default());
    harness.create_topic_with("t", 2, &[("segment.bytes", "1048576")]);
    fill(&mut harness.connect(), "t", 2);
    assert!(harness.stop().is_clean);
    harness
}

/// Every file, its bytes and when it was written.
fn files(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, metadata) = (entry.path(), entry.metadata().unwrap());
            if metadata.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.insert(path, (bytes, metadata.modified().unwrap()));
            }
        }
    }
    found
}

fn flip(path: &Path, position: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[position] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_closed_directory_is_whole_and_stays_as_it_was() {
    let harness = closed();
    let before = files(harness.folder());
    let (code, text) = verify(harness.folder());
    assert_eq!(code, 0, "{text}");
    for expected in [
        "t-0",
        "t-1",
        "__cluster_metadata-0",
        " 90 ",
        "as it was written",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(files(harness.folder()) == before, "something was written");
}

#[test]
fn what_is_wrong_is_named_with_file_and_position() {
    let harness = closed();
    let log = harness.folder().join("t-1/00000000000000000000.log");
    flip(&log, 1_000);
    let (code, text) = verify(harness.folder());
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("t-1/00000000000000000000.log at byte "),
        "{text}"
    );
    flip(&log, 1_000);
    let metadata = harness
        .folder()
        .join("__cluster_metadata-0/00000000000000000000.log");
    let middle = std::fs::metadata(&metadata).unwrap().len() / 2;
    flip(&metadata, middle as usize);
    let (code, text) = verify(harness.folder());
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("__cluster_metadata-0/00000000000000000000.log at byte "),
        "{text}"
    );
    flip(&metadata, middle as usize);
    // Another topic's id: whole, and not this folder's.
    let owner = harness.folder().join("t-0/partition.metadata");
    let text = std::fs::read_to_string(&owner).unwrap();
    let id = text.rsplit(": ").next().unwrap().trim().to_owned();
    let other = text.replace(&id, "BBBBBBBBBBBBBBBBBBBBBA");
    std::fs::write(&owner, other).unwrap();
    let (code, told) = verify(harness.folder());
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("t-0/partition.metadata"), "{told}");
    std::fs::write(&owner, text).unwrap();
    assert_eq!(verify(harness.folder()).0, 0);
    // A start that lies past the end hides all that is there.
    let starts = harness.folder().join("log-start-offset-checkpoint");
    let text = std::fs::read(&starts).unwrap();
    std::fs::write(&starts, "0\n1\nt 1 91\n").unwrap();
    let (code, told) = verify(harness.folder());
    assert_eq!(code, 1, "{told}");
    assert!(
        told.contains("begins at 91 by log-start-offset-checkpoint"),
        "{told}"
    );
    std::fs::write(&starts, text).unwrap();
    // Without it nobody knows whose the partitions are; all directories but one have none.
    let metadata = harness.folder().join("__cluster_metadata-0");
    let away = harness.folder().join("away");
    std::fs::rename(&metadata, &away).unwrap();
    let (code, told) = verify(harness.folder());
    assert_eq!(code, 0, "{told}");
    assert!(
        told.contains("note: there is no metadata log here"),
        "{told}"
    );
    std::fs::rename(&away, &metadata).unwrap();
    // A new segment that the cleaner never wrote so.
    let swap = harness.folder().join("t-1/00000000000000000000.log.swap");
    std::fs::write(&swap, b"").unwrap();
    let (code, told) = verify(harness.folder());
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("log.swap: it ends at offset 0"), "{told}");
    std::fs::remove_file(&swap).unwrap();
    assert_eq!(verify(harness.folder()).0, 0);
}

#[test]
fn a_directory_in_use_is_refused_and_that_of_a_killed_broker_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let process = Process::start(&data);
    let mut client = Client::connect(process.address);
    let request = coreline::wire::messages::create_topics::CreateTopicsRequest {
        topics: vec![coreline::wire::messages::create_topics::CreatableTopic {
            name: "t".to_owned(),
            num_partitions: 3,
            replication_factor: 1,
            ..Default::default()
        }],
        timeout_ms: 10_000,
        ..Default::default()
    };
    let _: coreline::wire::messages::create_topics::CreateTopicsResponse = client.ask(&request, 7);
    fill(&mut client, "t", 3);
    let (code, text) = verify(&data);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("in use by another process"), "{text}");
    process.kill();
    let before = files(&data);
    let (code, text) = verify(&data);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(" 90 "), "{text}");
    assert!(files(&data) == before, "something was written");
}

#[test]
fn what_is_no_data_directory_is_not_called_whole() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(verify(folder.path()).0, 2);
    assert_eq!(verify(&folder.path().join("none")).0, 2);
}

/// Files that Apache Kafka 4.4 wrote and closed, transactions among them.
#[test]
fn apache_kafkas_files_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka_files/data");
    for (path, (bytes, _)) in files(&root) {
        let to = folder.path().join(path.strip_prefix(&root).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
    std::fs::write(folder.path().join(".kafka_cleanshutdown"), "").unwrap();
    let (code, text) = verify(folder.path());
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("txn-0") && text.contains("sequences-0"),
        "{text}"
    );
    flip(
        &folder.path().join("txn-0/00000000000000000000.txnindex"),
        20,
    );
    let (code, text) = verify(folder.path());
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("txn-0/00000000000000000000.txnindex at byte "),
        "{text}"
    );
}
