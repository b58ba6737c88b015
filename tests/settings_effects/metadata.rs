//! When the metadata log takes snapshots, ends segments and drops what is old.

use std::time::{Duration, Instant};

use crate::changes::{TOPIC, alter};
use crate::starts::{Process, create};

/// How long a loaded machine may take for what is done beside.
const DONE_WITHIN: Duration = Duration::from_secs(30);

/// How long nothing must happen for it to be taken for never.
const NEVER: Duration = Duration::from_millis(500);

/// A snapshot after every change.
const ALWAYS: &str = "metadata.log.max.record.bytes.between.snapshots=1";

/// Names of the metadata log's files that end so, sorted.
fn files(process: &Process, suffix: &str) -> Vec<String> {
    let folder = process.folder.path().join("data/__cluster_metadata-0");
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(suffix)).collect();
    names.sort_unstable();
    names
}

/// Whether `is_so` comes to be.
fn comes(is_so: impl Fn() -> bool, limit: Duration) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn with_a_topic(settings: &[&str]) -> Process {
    let process = Process::start(settings);
    create(&mut process.connect(), "first", 1, 1);
    process
}

/// Whether a snapshot comes beside the one that every cluster begins with.
fn takes_a_snapshot(settings: &[&str], limit: Duration) -> bool {
    let process = with_a_topic(settings);
    comes(|| files(&process, ".checkpoint").len() > 1, limit)
}

#[test]
fn snapshots_come_after_so_many_bytes() {
    assert!(takes_a_snapshot(&[ALWAYS], DONE_WITHIN));
    assert!(!takes_a_snapshot(&[], NEVER));
    // More than a topic's records, less than a few hundred topics'.
    let setting = "metadata.log.max.record.bytes.between.snapshots=20000";
    let process = with_a_topic(&[setting]);
    let has_one = || files(&process, ".checkpoint").len() > 1;
    assert!(!comes(has_one, NEVER));
    create(&mut process.connect(), "large", 400, 1);
    assert!(comes(has_one, DONE_WITHIN));
}

#[test]
fn snapshots_come_after_so_long() {
    let setting = "metadata.log.max.snapshot.interval.ms=50";
    assert!(takes_a_snapshot(&[setting], DONE_WITHIN));
    assert!(!takes_a_snapshot(
        &["metadata.log.max.snapshot.interval.ms=0"],
        NEVER
    ));
}

/// Whether the log comes to begin behind its first record.
fn drops_its_beginning(settings: &[&str], limit: Duration) -> bool {
    let process = with_a_topic(settings);
    let begins_later = || !files(&process, ".log")[0].starts_with("00000000000000000000.");
    comes(begins_later, limit)
}

#[test]
fn what_lies_before_a_snapshot_goes_by_size() {
    let bytes = |bytes: u32| format!("metadata.max.retention.bytes={bytes}");
    assert!(drops_its_beginning(&[ALWAYS, &bytes(1)], DONE_WITHIN));
    assert!(!drops_its_beginning(&[ALWAYS, &bytes(1_000_000)], NEVER));
}

#[test]
fn what_lies_before_a_snapshot_goes_by_age() {
    let ms = |ms: u32| format!("metadata.max.retention.ms={ms}");
    let soon = "metadata.log.max.snapshot.interval.ms=50";
    assert!(drops_its_beginning(&[ALWAYS, soon, &ms(20)], DONE_WITHIN));
    assert!(!drops_its_beginning(&[ALWAYS, soon, &ms(60_000)], NEVER));
}

/// Segments after so many changes of 30 kB.
fn segments_after(settings: &[&str], changes: usize) -> usize {
    let process = with_a_topic(settings);
    let mut client = process.connect();
    for number in 0..changes {
        let value = format!("{}:1{}", number % 10, ",0:1".repeat(7_500));
        let setting = ("leader.replication.throttled.replicas", value.as_str());
        alter(&mut client, TOPIC, "first", &[setting]);
    }
    files(&process, ".log").len()
}

#[test]
fn the_metadata_logs_segments_end_at_their_size() {
    let internal = "internal.metadata.log.segment.bytes=50000";
    assert_eq!(segments_after(&[internal], 4), 4);
    let smallest = "metadata.log.segment.bytes=8388608";
    // 9 MB are one segment by default.
    assert_eq!(segments_after(&[smallest], 300), 2);
    assert_eq!(segments_after(&[], 300), 1);
    assert_eq!(segments_after(&[smallest, internal], 4), 4);
}

#[test]
fn the_metadata_logs_segments_end_at_their_age() {
    let segments = |setting: &str| {
        let process = with_a_topic(&[setting]);
        std::thread::sleep(Duration::from_millis(300));
        create(&mut process.connect(), "second", 1, 1);
        files(&process, ".log").len()
    };
    assert!(segments("metadata.log.segment.ms=250") > 1);
    assert_eq!(segments("metadata.log.segment.ms=600000"), 1);
}
