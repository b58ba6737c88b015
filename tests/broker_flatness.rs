//! Retention, rolls and lagging readers over many rounds: descriptors and memory come to rest.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use broker::process::Process;
use broker::requests::{self, errors_of};
use broker::{Client, batch};
use coreline::base::error_code::ErrorCode;
use coreline::base::limits::MIB;
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::produce::ProduceResponse;

const PARTITIONS: i32 = 4;
/// Segments of 1 MiB, of which retention keeps three.
const SETTINGS: [(&str, &str); 4] = [
    ("segment.bytes", "1048576"),
    ("retention.bytes", "3145728"),
    ("file.delete.delay.ms", "100"),
    ("index.interval.bytes", "4096"),
];
/// MiB to each partition in a round.
const ROUND: usize = 4;
/// A segment's descriptors: its active file, the next one made ready, one to read by.
const DESCRIPTORS_PER_PARTITION: usize = 3 + 7;
/// Resident memory may be so much more after all rounds than after the warm-up.
const GROWTH_BYTES_MAX: usize = 6 * MIB;

/// The targets of a process's open descriptors.
fn descriptors(id: u32) -> Vec<PathBuf> {
    let folder = PathBuf::from(format!("/proc/{id}/fd"));
    let entries = std::fs::read_dir(folder).unwrap();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.collect()
}

fn round(client: &mut Client) {
    for number in 0..ROUND * 10 {
        let batches = (0..PARTITIONS).map(|partition| (partition, batch(1, MIB / 10)));
        client.send(&requests::produce("t", -1, batches), 9);
        let (_, answer) = client.receive::<ProduceResponse>(9);
        assert!(
            errors_of(&answer)
                .iter()
                .all(|error| *error == ErrorCode::NONE)
        );
        if number % 10 == 0 {
            lag(client);
        }
    }
}

/// Reads the oldest records of each partition.
fn lag(client: &mut Client) {
    for partition in 0..PARTITIONS {
        let asked = requests::list_offsets("t", partition, -2);
        let told: ListOffsetsResponse = client.ask(&asked, 6);
        let start = told.topics[0].partitions[0].offset.0;
        // Retention may have passed it since: then it is out of range.
        let _: FetchResponse = client.ask(&requests::fetch("t", &[(partition, start)]), 12);
    }
}

fn segments(folder: &Path) -> usize {
    let logs = |partition: i32| {
        let entries = std::fs::read_dir(folder.join(format!("t-{partition}"))).unwrap();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.ends_with(".log")).count()
    };
    (0..PARTITIONS).map(logs).sum()
}

/// Waits until what retention deleted is closed and gone; answers the descriptors beside those of
/// segments that are there, whose number is retention's affair, and the bytes in memory.
fn at_rest(process: &Process, folder: &Path) -> (usize, usize) {
    let began = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let open = descriptors(process.id());
        let gone = open
            .iter()
            .filter(|path| path.to_string_lossy().ends_with(" (deleted)"));
        let (gone, kept) = (gone.count(), segments(folder));
        let most = PARTITIONS as usize * 6;
        if gone == 0 && kept <= most {
            let logs = open
                .iter()
                .filter(|path| path.extension().is_some_and(|extension| extension == "log"));
            // Each open file of a segment is of one that is there.
            assert!(logs.count() <= 2 * kept, "{kept} segments: {open:?}");
            let of_segments = |path: &&PathBuf| {
                let folder = path.parent().and_then(Path::file_name);
                folder.is_some_and(|name| name.to_string_lossy().starts_with("t-"))
            };
            let others = open.len() - open.iter().filter(of_segments).count();
            return (others, process.resident_bytes());
        }
        let told = format!("{gone} deleted files are open, {kept} segments are kept");
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{told}: {open:?}"
        );
    }
}

#[test]
fn descriptors_and_memory_come_to_rest() {
    let is_full = std::env::var_os("CORELINE_ACCEPT").is_some();
    let (warm_up, rounds) = if is_full { (10, 60) } else { (2, 2) };
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start_set(
        folder.path(),
        &[
            "coreline.memory=75497472",
            "log.retention.check.interval.ms=100",
            "log.initial.task.delay.ms=0",
        ],
    );
    let address: SocketAddr = process.address;
    let mut client = Client::connect(address);
    client.create_topic_with("t", PARTITIONS, &SETTINGS);
    // With 72 MiB in all the cache has 19, and is full after two rounds of 16.
    for _ in 0..warm_up {
        round(&mut client);
    }
    let (open_before, resident_before) = at_rest(&process, folder.path());
    for _ in 0..rounds {
        round(&mut client);
    }
    let (open, resident) = at_rest(&process, folder.path());
    eprintln!(
        "{rounds} rounds: descriptors {open_before} and {open}, resident {} and {} MiB",
        resident_before / MIB,
        resident / MIB
    );
    assert!(
        open <= open_before + DESCRIPTORS_PER_PARTITION,
        "{open_before} and {open} descriptors"
    );
    assert!(
        resident <= resident_before + GROWTH_BYTES_MAX,
        "{resident_before} and {resident} bytes"
    );
}
