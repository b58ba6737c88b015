//! Whatever befalls the indexes of a log at rest, every record is read and every time is found as
//! a model of the log says.

use std::path::{Path, PathBuf};

use bytes::BytesMut;

use super::*;
use crate::base::ids::BrokerEpoch;
use crate::base::limits::{KIB, MIB};
use crate::base::random::Random;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::log_test::{context, identity, start};
use crate::log::{LogConfig, ReadLimit, ShardLogs, seal_directory};
use crate::wire::record_batch::{BatchBuilder, BatchHeader, NewRecord};

const FOLDER: &str = "/data/a-0";
const FIRST_TIME: i64 = 1_700_000_000_000;

/// The timestamp of every record, by offset.
type Times = Vec<i64>;

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 24 * KIB as u64,
        index_interval_bytes: 500,
        ..LogConfig::default()
    }
}

fn some_batch(random: &mut Random, times: &mut Times) -> BytesMut {
    let mut builder = BatchBuilder::new(Offset(0));
    for _ in 0..=random.below(3) {
        // Mostly growing, now and then early, equal or far ahead.
        let drift = i64::try_from(random.below(60)).unwrap() - 20;
        let jump = if random.below(25) == 0 { 500 } else { 0 };
        let time = FIRST_TIME + times.len() as i64 * 10 + drift + jump;
        times.push(time);
        let value = vec![7; random.below(700) as usize];
        builder.append(NewRecord {
            timestamp: TimestampMs(time),
            key: None,
            value: Some(&value),
            headers: &[],
        });
    }
    builder.build().unwrap()
}

async fn close(logs: &Rc<ShardLogs>, epoch: i64) {
    let closed = logs.close().await.unwrap();
    let directory = Path::new("/data");
    seal_directory(directory, &closed, BrokerEpoch(epoch))
        .await
        .unwrap();
}

/// A log of several segments, closed.
async fn write_log(random: &mut Random) -> Times {
    let logs = start(1, 64 * MIB).await;
    let log = logs.create_log(identity("a"), config()).await.unwrap();
    let mut times = Times::new();
    for _ in 0..120 {
        log.append(some_batch(random, &mut times), context())
            .await
            .unwrap();
    }
    log.wait_durable(log.log_end_offset()).await.unwrap();
    close(&logs, 1).await;
    times
}

/// Every file of the log, to begin from again.
fn files(disk: &SimDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let names = disk.list(FOLDER).unwrap();
    let path = |(name, _)| Path::new(FOLDER).join(name);
    let read = |path: PathBuf| {
        let bytes = disk.contents(path.to_str().unwrap()).unwrap();
        (path, bytes)
    };
    names.into_iter().map(path).map(read).collect()
}

async fn put(path: &Path, bytes: &[u8]) {
    io::directory::write_file_durably(path, bytes)
        .await
        .unwrap();
}

async fn assert_reads(log: &Rc<Log>, times: &Times, what: &str) {
    let limit = ReadLimit {
        max_bytes: 1,
        memory_max: usize::MAX,
        first_batch_max: usize::MAX,
        end: Offset(i64::MAX),
    };
    for offset in 0..times.len() as i64 {
        let read = log.read(Offset(offset), limit).await;
        let read = read.unwrap_or_else(|error| panic!("{what}: offset {offset}: {error}"));
        let header = BatchHeader::parse(&read.slices[0]).unwrap();
        let holds = header.base_offset.0 <= offset && offset <= header.last_offset().0;
        assert!(holds, "{what}: offset {offset} gave {}", header.base_offset);
    }
}

async fn assert_times(log: &Rc<Log>, times: &Times, what: &str) {
    let end = log.log_end_offset();
    let mut sought = times.clone();
    sought.sort_unstable();
    sought.dedup();
    for time in sought.iter().flat_map(|time| [*time, time + 1]) {
        let expected = times.iter().position(|at| *at >= time);
        let found = log
            .offset_for_timestamp(TimestampMs(time), end)
            .await
            .unwrap();
        let found = found.map(|found| (found.offset.0, found.timestamp.0));
        let expected = expected.map(|offset| (offset as i64, times[offset]));
        assert_eq!(found, expected, "{what}: time {time}");
    }
    let largest = times.iter().max().unwrap();
    let first = times.iter().position(|time| time == largest).unwrap() as i64;
    let found = log.offset_of_max_timestamp(end).await.unwrap().unwrap();
    assert_eq!(found.offset.0, first, "{what}: the largest time");
}

/// What befalls a file.
fn spoil(random: &mut Random, bytes: &mut Vec<u8>, entry: usize) -> &'static str {
    let length = bytes.len();
    let below = |random: &mut Random, bound: usize| random.below(bound.max(1) as u64) as usize;
    match random.below(7) {
        0..=2 if length > 0 => {
            let at = below(random, length);
            bytes[at] ^= 1 << random.below(8);
            "a flipped bit"
        }
        3 => {
            bytes.truncate(below(random, length));
            "cut anywhere"
        }
        4 => {
            bytes.truncate(below(random, length / entry) * entry);
            "cut after an entry"
        }
        5 => {
            bytes.clear();
            "emptied"
        }
        _ => {
            bytes
                .iter_mut()
                .for_each(|byte| *byte = random.below(256) as u8);
            "random bytes"
        }
    }
}

fn is_index(path: &Path) -> Option<usize> {
    let extension = path.extension()?.to_str()?;
    [("index", 8), ("timeindex", 12)]
        .into_iter()
        .find_map(|(name, entry)| (extension == name).then_some(entry))
}

/// One case: what was closed is there again but for what befell the indexes.
async fn opened(incarnation: u8) -> (Rc<ShardLogs>, Rc<Log>) {
    let logs = start(incarnation, 64 * MIB).await;
    let log = logs.open_log(identity("a"), config()).await.unwrap();
    assert_eq!(log.damage(), None);
    (logs, log)
}

/// Puts a log at rest, spoils it, and judges what is read then.
fn cases(seed: u64, vouched: bool) {
    let disk = SimDisk::new(SimDiskOptions::default(), seed);
    let mut random = Random::new(seed);
    let write = async { write_log(&mut random).await };
    let times = SimRuntime::new(&disk, seed).block_on(write).unwrap();
    let whole = files(&disk);
    let mut random = Random::new(seed + 1);
    let judged = async {
        for case in 0..12u8 {
            for (path, bytes) in &whole {
                put(path, bytes).await;
                let is_sums = path
                    .extension()
                    .is_some_and(|end| end == "coreline-indexes");
                if is_sums && !vouched {
                    io::directory::remove_file(path).await.unwrap();
                }
            }
            let indexes: Vec<_> = whole
                .iter()
                .filter(|(path, _)| is_index(path).is_some())
                .collect();
            let (path, bytes) = indexes[random.below(indexes.len() as u64) as usize];
            let mut spoilt = bytes.clone();
            let how = if random.below(6) == 0 {
                io::directory::remove_file(path).await.unwrap();
                "removed"
            } else {
                let how = spoil(&mut random, &mut spoilt, is_index(path).unwrap());
                put(path, &spoilt).await;
                how
            };
            let what = format!("seed {seed} case {case}: {} {how}", path.display());
            let (logs, log) = opened(case + 2).await;
            assert_reads(&log, &times, &what).await;
            if !vouched {
                // Kafka's indexes are proven in the background.
                for segment in log.all_segments() {
                    log.prove_index(&segment).await.unwrap();
                }
            }
            let is_active = path.to_str() == Some(&index_of(&log.active_segment(), path));
            if vouched || !is_active {
                assert_times(&log, &times, &what).await;
                assert_reads(&log, &times, &what).await;
            }
            close(&logs, i64::from(case) + 2).await;
        }
    };
    SimRuntime::new(&disk, seed + 2).block_on(judged).unwrap();
    if vouched {
        for (path, bytes) in whole.iter().filter(|(path, _)| is_index(path).is_some()) {
            let now = disk.contents(path.to_str().unwrap()).unwrap();
            assert_eq!(&now, bytes, "{} is made as it was", path.display());
        }
    }
}

fn index_of(segment: &Segment, like: &Path) -> String {
    let path = segment.path().with_extension(like.extension().unwrap());
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_spoilt_index_changes_no_answer_and_is_made_again_as_it_was() {
    (0..4).for_each(|seed| cases(seed * 10, true));
}

#[test]
fn a_spoilt_index_that_nothing_vouches_for_is_found_out_by_its_segment() {
    (0..4).for_each(|seed| cases(1_000 + seed * 10, false));
}

#[test]
fn missing_indexes_are_made_in_the_background_after_the_log_was_opened() {
    let disk = SimDisk::new(SimDiskOptions::default(), 5);
    let mut random = Random::new(5);
    let write = async { write_log(&mut random).await };
    SimRuntime::new(&disk, 5).block_on(write).unwrap();
    let whole = files(&disk);
    let open = async {
        for (path, _) in whole.iter().filter(|(path, _)| is_index(path).is_some()) {
            io::directory::remove_file(path).await.unwrap();
        }
        let (_logs, _log) = opened(2).await;
        io::sleep(Duration::from_secs(2)).await;
    };
    SimRuntime::new(&disk, 6).block_on(open).unwrap();
    for (path, bytes) in &whole {
        let now = disk.contents(path.to_str().unwrap());
        let is_kept = path.extension().is_some_and(|end| end != "log-id");
        assert!(
            !is_kept || now.as_ref().ok() == Some(bytes),
            "{}",
            path.display()
        );
    }
}
