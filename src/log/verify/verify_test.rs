//! Directories of lives that ended in order and of killed ones, whole and with flipped bits: what
//! is whole is never called damaged, what is damaged is named, and nothing is written.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::base::ids::{BrokerEpoch, ShardId, Uuid};
use crate::base::limits::MIB;
use crate::base::random::Random;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::format::meta_properties::MetaProperties;
use crate::log::log_test::{batch, context, identity, start};
use crate::log::{
    Log, LogConfig, RecoveryOptions, ShardLogs, ShardLogsOptions, recover, seal_directory,
};
use crate::wire::compression::Codec;
use crate::wire::record_batch::{BatchBuilder, NewRecord};

pub(super) const DIRECTORY: &str = "/data";
/// Some go straight to their segments.
const SIZES: [usize; 8] = [10, 5_000, 40_000, 200_000, 300_000, 4_096, 90_000, 1];

/// Value sizes by offset, as they were acknowledged; of each topic.
type Acknowledged = Rc<RefCell<BTreeMap<&'static str, Vec<(i64, u8)>>>>;

fn seeds(default: u64) -> u64 {
    let given = std::env::var("CORELINE_VERIFY_SEEDS").ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 400_000,
        index_interval_bytes: 256,
        ..LogConfig::default()
    }
}

fn compressed(mark: u8) -> bytes::BytesMut {
    let codec = Codec::ALL[usize::from(mark) % Codec::ALL.len()];
    let mut builder = BatchBuilder::default().compressed(codec, None);
    for number in 0..20 {
        builder.append(NewRecord {
            timestamp: crate::base::time::TimestampMs(1_800_000_000_000 + i64::from(mark)),
            key: Some(&[number]),
            value: Some(&[mark; 300]),
            headers: &[(b"h", None)],
        });
    }
    builder.build().unwrap()
}

async fn append(log: &Rc<Log>, place: usize) -> (i64, u8) {
    let mark = place as u8;
    let batch = match place % 3 {
        0 => compressed(mark),
        _ => batch(SIZES[place % SIZES.len()], mark),
    };
    let appended = log.append(batch, context()).await.unwrap();
    let end = appended.last_offset.plus(1);
    log.wait_durable(end).await.unwrap();
    (appended.base_offset.0, mark)
}

/// Two topics written to; one is cut now and then. Ends when the disk crashes, or in order.
async fn life(incarnation: u8, appends: usize, known: Acknowledged) {
    let shard = start(incarnation, 8 * MIB).await;
    let properties = MetaProperties {
        cluster_id: "c".to_owned(),
        node_id: crate::base::ids::BrokerId(1),
        directory_id: Some(Uuid([4; 16])),
    };
    let path = Path::new(DIRECTORY).join("meta.properties");
    let written = io::directory::write_file_durably(&path, &properties.encode()).await;
    written.unwrap();
    let mut logs = Vec::new();
    for topic in ["a", "b"] {
        let folder = format!("{DIRECTORY}/{topic}-0");
        let log = match io::directory::metadata(folder.as_ref()).await {
            Ok(_) => shard.open_log(identity(topic), small_segments()).await,
            Err(_) => shard.create_log(identity(topic), small_segments()).await,
        };
        logs.push((topic, log.unwrap()));
    }
    for place in 0..appends {
        let (topic, log) = &logs[place % 2];
        if place % 17 == 16 {
            // What is cut is no longer acknowledged, whether the cut survives or not.
            let last = known.borrow_mut().entry(topic).or_default().pop();
            let (cut, _) = last.expect("a batch");
            log.truncate_to(Offset(cut)).await.unwrap();
            continue;
        }
        let appended = append(log, place).await;
        known.borrow_mut().entry(topic).or_default().push(appended);
    }
    // The last cycle gets one that vouches for it.
    io::sleep(Duration::from_millis(200)).await;
    let closed = shard.close().await.unwrap();
    let path = Path::new(DIRECTORY);
    seal_directory(path, &closed, BrokerEpoch(i64::from(incarnation)))
        .await
        .unwrap();
}

/// All files with their bytes.
pub(super) fn files(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![DIRECTORY.to_owned()];
    while let Some(folder) = folders.pop() {
        for (name, is_directory) in disk.list(&folder).unwrap() {
            let path = format!("{folder}/{name}");
            match is_directory {
                true => folders.push(path),
                false => drop(found.insert(path.clone(), disk.contents(&path).unwrap())),
            }
        }
    }
    found
}

pub(super) struct Verified {
    partitions: Vec<Report>,
    directory: Report,
}

impl Verified {
    pub(super) fn problems(&self) -> Vec<&Problem> {
        let all = self.partitions.iter().chain([&self.directory]);
        all.flat_map(|report| &report.problems).collect()
    }

    pub(super) fn notes(&self) -> Vec<&String> {
        let all = self.partitions.iter().chain([&self.directory]);
        all.flat_map(|report| &report.notes).collect()
    }

    /// Problems and notes that name a file.
    pub(super) fn names(&self, path: &str) -> bool {
        let is_it = |problem: &&Problem| problem.file == Path::new(path);
        self.problems().iter().any(is_it) || self.notes().iter().any(|note| note.contains(path))
    }
}

pub(super) fn verify_disk(disk: &SimDisk, seed: u64) -> Verified {
    let mut runtime = SimRuntime::new(disk, seed);
    let verified = runtime.block_on(async {
        let mut partitions = Vec::new();
        let directory = verify(Path::new(DIRECTORY), |report| partitions.push(report)).await;
        Verified {
            partitions,
            directory: directory.unwrap(),
        }
    });
    verified.unwrap()
}

/// What a start makes of the directory: each topic's batches, or `None` where it is marked.
pub(super) fn start_again(
    disk: &SimDisk,
    seed: u64,
) -> BTreeMap<&'static str, Option<Vec<(i64, u8)>>> {
    let mut runtime = SimRuntime::new(disk, seed);
    let read = runtime.block_on(async {
        let options = RecoveryOptions {
            directory: DIRECTORY.into(),
            incarnation: Uuid([200; 16]),
            shard_count: 1,
            journal_bytes: 2 * MIB as u64,
        };
        let report = recover(options).await.unwrap();
        let options = ShardLogsOptions {
            directory: DIRECTORY.into(),
            shard: ShardId(0),
            incarnation: Uuid([200; 16]),
            journal_bytes: report.journal_bytes_per_shard,
            cache_bytes: 8 * MIB,
            random_seed: seed,
            metrics: Rc::default(),
        };
        let shard = ShardLogs::open(options).await.unwrap();
        let mut found = BTreeMap::new();
        for topic in ["a", "b"] {
            let folder = format!("{DIRECTORY}/{topic}-0");
            if io::directory::metadata(folder.as_ref()).await.is_err() {
                continue;
            }
            let log = shard.open_log(identity(topic), small_segments()).await;
            let log = log.unwrap();
            let batches = match log.damage() {
                Some(_) => None,
                None => batches_of(&log).await,
            };
            found.insert(topic, batches);
        }
        found
    });
    read.unwrap()
}

/// The batches that can be read; `None` where a read finds damage.
async fn batches_of(log: &Rc<Log>) -> Option<Vec<(i64, u8)>> {
    let mut found = Vec::new();
    let mut from = log.log_start_offset();
    while from < log.log_end_offset() {
        let limit = crate::log::ReadLimit {
            max_bytes: 1,
            memory_max: usize::MAX,
            first_batch_max: usize::MAX,
            end: log.log_end_offset(),
        };
        let read = log.read(from, limit).await.ok()?;
        let slice = read.slices.first()?;
        let header = crate::wire::record_batch::BatchHeader::parse(slice).unwrap();
        crate::wire::record_batch::verify_crc(slice).unwrap();
        found.push((header.base_offset.0, 0));
        from = header.next_offset();
    }
    Some(found)
}

fn has_all(found: &BTreeMap<&'static str, Option<Vec<(i64, u8)>>>, known: &Acknowledged) -> bool {
    known.borrow().iter().all(|(topic, known)| {
        let found = found.get(topic).and_then(Option::as_ref);
        known
            .iter()
            .all(|(offset, _)| found.is_some_and(|found| found.iter().any(|(is, _)| is == offset)))
    })
}

pub(super) fn closed_life(seed: u64, appends: usize) -> SimDisk {
    let disk = SimDisk::new(SimDiskOptions::default(), seed);
    SimRuntime::new(&disk, seed)
        .block_on(life(1, appends, Acknowledged::default()))
        .unwrap();
    disk.kill(seed);
    disk
}

#[test]
fn a_closed_directory_is_whole_and_counted_and_not_written_to() {
    let disk = closed_life(1, 60);
    let before = files(&disk);
    let verified = verify_disk(&disk, 2);
    assert_eq!(verified.problems(), Vec::<&Problem>::new());
    assert_eq!(verified.notes(), Vec::<&String>::new());
    assert!(files(&disk) == before, "something was written");
    let names: Vec<&str> = verified
        .partitions
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["a-0", "b-0"]);
    for report in &verified.partitions {
        let segments = before
            .keys()
            .filter(|path| path.contains(&format!("/{}/", report.name)) && path.ends_with(".log"));
        let bytes: usize = segments.clone().map(|path| before[path].len()).sum();
        assert_eq!(report.segments, segments.count() as u64);
        assert_eq!(report.bytes, bytes as u64);
        assert!(
            report.segments > 3 && report.records > report.batches,
            "{report:?}"
        );
    }
}

/// A life that is killed, or whose machine loses power, after so many steps of the disk.
pub(super) fn killed_life(seed: u64, steps: u64, is_power_cut: bool) -> (SimDisk, Acknowledged) {
    let disk = SimDisk::new(SimDiskOptions::default(), seed);
    let known = Acknowledged::default();
    // A first life, so that some of each log is at rest.
    SimRuntime::new(&disk, seed)
        .block_on(life(1, 12, Rc::clone(&known)))
        .unwrap();
    disk.crash_after(steps);
    let second = life(2, 60, Rc::clone(&known));
    let ended = SimRuntime::new(&disk, seed + 1).block_on(second);
    assert_eq!(ended.is_err(), disk.has_crashed());
    disk.never_crash();
    match is_power_cut {
        true => disk.power_cut(seed),
        false => disk.kill(seed),
    }
    // What the dead process had submitted lands.
    disk.pass_time(Duration::from_secs(1));
    (disk, known)
}

/// How many steps the second life takes.
pub(super) fn steps_of_a_life() -> u64 {
    let disk = SimDisk::new(SimDiskOptions::default(), 0);
    let known = Acknowledged::default();
    SimRuntime::new(&disk, 0)
        .block_on(life(1, 12, Rc::clone(&known)))
        .unwrap();
    let before = disk.steps();
    SimRuntime::new(&disk, 1)
        .block_on(life(2, 60, known))
        .unwrap();
    disk.steps() - before
}

#[test]
fn what_a_crash_leaves_to_the_journal_is_not_called_damage() {
    let steps = steps_of_a_life();
    let mut random = Random::new(7);
    let (mut crashes, mut journalled) = (0, 0);
    for seed in 0..seeds(60) {
        let after = random.below(steps);
        let (disk, known) = killed_life(seed * 10, after, seed % 2 == 0);
        crashes += 1;
        let before = files(&disk);
        let verified = verify_disk(&disk, seed);
        let at = format!("seed {seed}, step {after}");
        assert_eq!(verified.problems(), Vec::<&Problem>::new(), "{at}");
        assert!(files(&disk) == before, "{at}: something was written");
        journalled += u64::from(before.contains_key("/data/coreline-journal/current"));
        let found = start_again(&disk, seed);
        assert!(has_all(&found, &known), "{at}: {found:?} of {known:?}");
        // What it counted is what the start then serves.
        for report in &verified.partitions {
            let topic = &report.name[..1];
            let served = found.get(topic).and_then(Option::as_ref);
            assert_eq!(
                served.map(|served| served.len() as u64),
                Some(report.batches),
                "{at}"
            );
        }
    }
    assert!(
        crashes > 0 && journalled * 2 > crashes,
        "{journalled} of {crashes}"
    );
}

#[test]
fn every_flipped_byte_in_record_bytes_is_named() {
    let disk = closed_life(3, 60);
    let sizes: BTreeMap<String, usize> = files(&disk)
        .into_iter()
        .filter(|(path, bytes)| path.ends_with(".log") && !bytes.is_empty())
        .map(|(path, bytes)| (path, bytes.len()))
        .collect();
    let all: usize = sizes.values().sum();
    let mut random = Random::new(11);
    let mut detected = 0;
    let flips = seeds(150);
    for seed in 0..flips {
        // Every second one in a batch's header, which checksums cover least.
        let mut place = random.below(all as u64) as usize;
        let mut found = sizes.iter();
        let (path, size) = loop {
            let (path, size) = found.next().expect("a file holds the place");
            if place < *size {
                break (path, size);
            }
            place -= size;
        };
        if seed % 2 == 0 {
            let bytes = disk.contents(path).unwrap();
            place = header_near(&bytes, place) + random.below(61) as usize;
        }
        let (place, bit) = ((place as u64).min(*size as u64 - 1), random.below(8) as u32);
        disk.flip_bit(path, place, bit).unwrap();
        let verified = verify_disk(&disk, seed);
        let folder = Path::new(path).parent().unwrap();
        let is_of_folder = |problem: &&Problem| problem.file == folder;
        let is_named = verified.names(path) || verified.problems().iter().any(is_of_folder);
        let found = (verified.problems(), verified.notes());
        assert!(is_named, "{path} at {place} bit {bit}: {found:?}");
        detected += 1;
        disk.flip_bit(path, place, bit).unwrap();
    }
    assert_eq!(detected, flips);
    assert_eq!(
        verify_disk(&disk, 0).problems(),
        Vec::<&Problem>::new(),
        "flipped back"
    );
}

/// Where the batch begins that holds a position.
fn header_near(bytes: &[u8], place: usize) -> usize {
    let mut at = 0;
    while let Ok(header) = crate::wire::record_batch::BatchHeader::parse(&bytes[at..])
        && at + header.total_bytes() <= place
    {
        at += header.total_bytes();
    }
    at
}

#[test]
fn flipped_bytes_beside_the_records_are_named_with_their_file() {
    let disk = closed_life(4, 60);
    let mut random = Random::new(13);
    let kinds: [(&str, f64); 8] = [
        (".index", 1.0),
        (".timeindex", 1.0),
        (".snapshot", 1.0),
        ("coreline-closed", 1.0),
        // Of a number in a text another may be made that is as good as the first.
        ("partition.metadata", 0.2),
        ("leader-epoch-checkpoint", 0.5),
        ("recovery-point-offset-checkpoint", 0.5),
        ("meta.properties", 0.1),
    ];
    for (kind, least) in kinds {
        let of_kind = |(path, bytes): (String, Vec<u8>)| {
            (path.ends_with(kind) && !bytes.is_empty()).then_some((path, bytes.len()))
        };
        let all: Vec<(String, usize)> = files(&disk).into_iter().filter_map(of_kind).collect();
        assert!(!all.is_empty(), "{kind}");
        let flips = seeds(40);
        let mut named = 0;
        for seed in 0..flips {
            let (path, size) = &all[random.below(all.len() as u64) as usize];
            let (place, bit) = (random.below(*size as u64), random.below(8) as u32);
            disk.flip_bit(path, place, bit).unwrap();
            let verified = verify_disk(&disk, seed);
            let folder = Path::new(path).parent().unwrap().display().to_string();
            // Where a log ends is told of its folder, epochs of the batch that contradicts them.
            let is_told = !verified.problems().is_empty();
            let is_text = least < 1.0;
            let is_named = verified.names(path)
                || (is_text && is_told)
                || (kind == "coreline-closed" && verified.names(&folder));
            named += u64::from(is_named);
            assert!(least < 1.0 || is_named, "{path} at {place} bit {bit}");
            disk.flip_bit(path, place, bit).unwrap();
        }
        assert!(
            named as f64 >= least * flips as f64,
            "{kind}: {named} of {flips}"
        );
    }
    assert_eq!(
        verify_disk(&disk, 0).problems(),
        Vec::<&Problem>::new(),
        "flipped back"
    );
}

/// After a kill: what a flip takes is told, and where nothing is told nothing is lost.
#[test]
fn a_flip_after_a_kill_is_told_or_takes_nothing() {
    let steps = steps_of_a_life();
    let mut random = Random::new(17);
    let (mut told, mut harmless) = (0, 0);
    for seed in 0..seeds(60) {
        // Late in the life, so that there is something to lose.
        let after = steps / 2 + random.below(steps / 3);
        let (disk, known) = killed_life(seed * 10 + 5, after, false);
        let used: Vec<(String, usize)> = files(&disk)
            .into_iter()
            .filter(|(path, _)| path.ends_with(".log") || path.contains("/ring-"))
            .map(|(path, bytes)| (path, bytes.iter().rposition(|byte| *byte != 0)))
            .filter_map(|(path, last)| Some((path, last? + 1)))
            .collect();
        let (path, size) = &used[random.below(used.len() as u64) as usize];
        let (place, bit) = (random.below(*size as u64), random.below(8) as u32);
        disk.flip_bit(path, place, bit).unwrap();
        let verified = verify_disk(&disk, seed);
        let is_told = !verified.problems().is_empty();
        let is_tear = verified
            .notes()
            .iter()
            .any(|note| note.contains("torn append"));
        let found = start_again(&disk, seed);
        let is_whole = has_all(&found, &known);
        let at = format!("seed {seed}: {path} at {place} bit {bit}");
        // The last cycle of a killed life has none that vouches for it: a flip there is a tear.
        assert!(
            is_whole || is_told || is_tear || path.contains("/ring-"),
            "{at}: {found:?}"
        );
        let is_marked = found.values().any(Option::is_none);
        assert!(!is_marked || is_told, "{at}: a mark that was not foretold");
        told += u64::from(is_told);
        harmless += u64::from(is_whole);
    }
    assert!(told > 0 && harmless > 0, "{told} told, {harmless} harmless");
}
