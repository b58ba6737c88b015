//! The facade over the simulated disk: what is appended is durable, read back and survives.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;

use super::*;
use crate::base::ids::{BrokerEpoch, LeaderEpoch, Offset, PartitionIndex, ShardId, Uuid};
use crate::base::limits::{KIB, MIB};
use crate::base::time::TimestampMs;
use crate::io;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::wire::record_batch::{BatchBuilder, NewRecord};

pub(super) fn batch(value_bytes: usize, mark: u8) -> BytesMut {
    let value = vec![mark; value_bytes];
    let mut builder = BatchBuilder::new(Offset(0));
    builder.append(NewRecord {
        timestamp: TimestampMs(1_800_000_000_000),
        key: None,
        value: Some(&value),
        headers: &[],
    });
    builder.build().unwrap()
}

pub(super) fn identity(topic: &str) -> LogIdentity {
    LogIdentity {
        topic: topic.to_owned(),
        topic_id: Uuid([9; 16]),
        partition: PartitionIndex(0),
    }
}

pub(super) fn context() -> AppendContext {
    AppendContext::client(LeaderEpoch(1), io::now(), Duration::from_secs(30))
}

pub(super) async fn start(incarnation: u8, cache_bytes: usize) -> Rc<ShardLogs> {
    let directory = PathBuf::from("/data");
    io::directory::create_all(&directory).await.unwrap();
    let report = recover(RecoveryOptions {
        directory: directory.clone(),
        incarnation: Uuid([incarnation; 16]),
        shard_count: 1,
        journal_bytes: 2 * MIB as u64,
    })
    .await
    .unwrap();
    ShardLogs::open(ShardLogsOptions {
        directory,
        shard: ShardId(0),
        incarnation: Uuid([incarnation; 16]),
        journal_bytes: report.journal_bytes_per_shard,
        cache_bytes,
        random_seed: u64::from(incarnation),
        metrics: Default::default(),
    })
    .await
    .unwrap()
}

pub(super) async fn read_all(log: &Rc<Log>) -> Vec<(i64, usize, u8)> {
    let mut found = Vec::new();
    let mut from = log.log_start_offset();
    while from < log.log_end_offset() {
        let end = log.log_end_offset();
        let limit = ReadLimit {
            max_bytes: 64 * KIB,
            memory_max: usize::MAX,
            first_batch_max: usize::MAX,
            end,
        };
        let read = log.read(from, limit).await.unwrap();
        assert!(read.bytes > 0, "nothing at {from}");
        for slice in &read.slices {
            let mut at = 0;
            while at < slice.len() {
                let header = crate::wire::record_batch::BatchHeader::parse(&slice[at..]).unwrap();
                let bytes = header.total_bytes();
                crate::wire::record_batch::verify_crc(&slice[at..at + bytes]).unwrap();
                found.push((header.base_offset.0, bytes, slice[at + bytes - 2]));
                from = header.next_offset();
                at += bytes;
            }
        }
    }
    found
}

async fn append_many(log: &Rc<Log>, sizes: &[usize]) {
    for (place, size) in sizes.iter().enumerate() {
        let appended = log
            .append(batch(*size, place as u8), context())
            .await
            .unwrap();
        log.wait_durable(appended.last_offset.plus(1))
            .await
            .unwrap();
    }
}

const SIZES: [usize; 12] = [
    10, 100, 5_000, 40_000, 200_000, 3, 300_000, 17, 4_096, 90_000, 1, 60_000,
];

#[test]
fn appends_are_durable_and_read_back() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    runtime
        .block_on(async {
            let logs = start(1, 64 * MIB).await;
            let log = logs
                .create_log(identity("a"), LogConfig::default())
                .await
                .unwrap();
            append_many(&log, &SIZES).await;
            assert_eq!(log.durable_end(), Offset(SIZES.len() as i64));
            let found = read_all(&log).await;
            assert_eq!(found.len(), SIZES.len());
            for (place, (offset, _, mark)) in found.iter().enumerate() {
                assert_eq!((*offset, *mark), (place as i64, place as u8));
            }
        })
        .unwrap();
}

#[test]
fn a_small_ring_and_cache_go_round() {
    let disk = SimDisk::new(SimDiskOptions::default(), 2);
    let mut runtime = SimRuntime::new(&disk, 2);
    runtime
        .block_on(async {
            let logs = start(1, MIB).await;
            let config = LogConfig {
                segment_bytes: 400_000,
                ..LogConfig::default()
            };
            let log = logs
                .create_log(identity("a"), config.clone())
                .await
                .unwrap();
            let quiet = logs.create_log(identity("quiet"), config).await.unwrap();
            append_many(&quiet, &[100]).await;
            for _ in 0..6 {
                append_many(&log, &SIZES).await;
            }
            let found = read_all(&log).await;
            assert_eq!(found.len(), 6 * SIZES.len());
            assert_eq!(read_all(&quiet).await.len(), 1);
            let closed = logs.close().await.unwrap();
            seal_directory(logs.directory(), &closed, BrokerEpoch(1))
                .await
                .unwrap();
        })
        .unwrap();
}

#[test]
fn a_clean_stop_leaves_logs_at_rest() {
    let disk = SimDisk::new(SimDiskOptions::default(), 3);
    let config = || LogConfig {
        segment_bytes: 400_000,
        ..LogConfig::default()
    };
    SimRuntime::new(&disk, 3)
        .block_on(async {
            let logs = start(1, MIB).await;
            let log = logs.create_log(identity("a"), config()).await.unwrap();
            append_many(&log, &SIZES).await;
            let closed = logs.close().await.unwrap();
            seal_directory(logs.directory(), &closed, BrokerEpoch(1))
                .await
                .unwrap();
        })
        .unwrap();
    disk.power_cut(3);
    SimRuntime::new(&disk, 4)
        .block_on(async {
            let logs = start(2, MIB).await;
            let log = logs.open_log(identity("a"), config()).await.unwrap();
            assert_eq!(read_all(&log).await.len(), SIZES.len());
            append_many(&log, &SIZES).await;
            assert_eq!(read_all(&log).await.len(), 2 * SIZES.len());
        })
        .unwrap();
}

/// Opening failed although the folder is there.
fn known_folder(error: &LogError) -> bool {
    !matches!(error, LogError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

type Acked = Rc<std::cell::RefCell<[i64; 2]>>;

/// One life that ends in a crash; answers how many appends of each log were acknowledged, in all.
fn crashing_life(disk: &SimDisk, life: u8, acked: &Acked, seed: u64, write_caching: bool) {
    let config = LogConfig {
        segment_bytes: 300_000,
        write_caching,
        flush_messages: 20,
        ..LogConfig::default()
    };
    let counts = Rc::clone(acked);
    let run = async move {
        let logs = start(life, (64 << (seed % 5)) * KIB).await;
        let mut tasks = Vec::new();
        for (place, topic) in ["a", "b"].into_iter().enumerate() {
            let known = logs.open_log(identity(topic), config.clone()).await;
            let log = match known {
                Ok(log) => log,
                Err(error) if known_folder(&error) => unreachable!("{error}"),
                Err(_) => logs
                    .create_log(identity(topic), config.clone())
                    .await
                    .unwrap(),
            };
            let known_acked = counts.borrow()[place];
            check(&log, known_acked).await;
            counts.borrow_mut()[place] = log.log_end_offset().0;
            let counts = Rc::clone(&counts);
            tasks.push(io::spawn(io::TaskClass::Produce, async move {
                let mut random = crate::base::random::Random::new(seed ^ place as u64);
                for _ in 0..200 {
                    let size = 1 << random.below(18);
                    if random.chance(1, 40) {
                        let target = Offset(log.log_end_offset().0 - random.below(5) as i64);
                        let floor = counts.borrow()[place].min(target.0);
                        counts.borrow_mut()[place] = floor;
                        if log.truncate_to(target.max(Offset(0))).await.is_err() {
                            return;
                        }
                    }
                    let mark = log.log_end_offset().0 as u8;
                    let Ok(appended) = log.append(batch(size, mark), context()).await else {
                        return;
                    };
                    let end = appended.last_offset.plus(1);
                    if random.chance(1, 3) && log.wait_durable(end).await.is_ok() {
                        let mut counts = counts.borrow_mut();
                        counts[place] = counts[place].max(end.0);
                    }
                }
            }));
        }
        for task in tasks {
            task.await;
        }
    };
    disk.crash_after(seed % 4_000);
    let _ = SimRuntime::new(disk, seed).block_on(run);
}

async fn check(log: &Rc<Log>, acked: i64) {
    assert!(
        log.log_end_offset().0 >= acked,
        "{} of {acked}",
        log.log_end_offset()
    );
    assert_eq!(log.damage(), None);
    for (place, (offset, _, mark)) in read_all(log).await.iter().enumerate() {
        assert_eq!((*offset, *mark), (place as i64, place as u8));
    }
}

pub(super) fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("SEED").unwrap_or(0);
    first..first + number("SEEDS").unwrap_or(default)
}

/// Lives that end in crashes, each checked by the next.
fn crash_often(seed: u64, write_caching: bool) {
    let disk = SimDisk::new(SimDiskOptions::default(), seed);
    let acked = Acked::default();
    let mut random = crate::base::random::Random::new(seed);
    for life in 1..6 {
        println!("seed {seed} life {life} acked {:?}", acked.borrow());
        crashing_life(&disk, life, &acked, random.next_u64(), write_caching);
        if random.chance(1, 2) {
            disk.power_cut(random.next_u64());
            if write_caching {
                // What no flush vouches for may be gone; what is left is whole and in order.
                *acked.borrow_mut() = [0, 0];
            }
        } else {
            disk.kill(random.next_u64());
        }
        disk.never_crash();
    }
}

#[test]
fn crashes_lose_nothing_acknowledged() {
    for seed in seeds(20) {
        crash_often(seed, false);
    }
}

#[test]
fn write_caching_leaves_a_tear_and_never_damage() {
    for seed in seeds(10) {
        crash_often(seed, true);
    }
}

/// G3: journal writes per acknowledged batch, 16 batches in flight, on one partition and on many.
#[test]
fn cycles_are_shared_by_what_is_in_flight() {
    const IN_FLIGHT: usize = 16;
    const ROUNDS: usize = 20;
    for partitions in [1, 16] {
        let disk = SimDisk::new(SimDiskOptions::default(), 7);
        let mut runtime = SimRuntime::new(&disk, 7);
        let cycles = runtime.block_on(async {
            let logs = start(1, 64 * MIB).await;
            let mut all = Vec::new();
            for number in 0..partitions {
                let name = identity(&format!("p{number}"));
                all.push(logs.create_log(name, LogConfig::default()).await.unwrap());
            }
            let before = logs.journal_cycles();
            let mut producers = Vec::new();
            for place in 0..IN_FLIGHT {
                let log = Rc::clone(&all[place % partitions]);
                producers.push(io::spawn(io::TaskClass::Produce, async move {
                    for _ in 0..ROUNDS {
                        let appended = log.append(batch(100, 1), context()).await.unwrap();
                        log.wait_durable(appended.last_offset.plus(1))
                            .await
                            .unwrap();
                    }
                }));
            }
            for producer in producers {
                producer.await;
            }
            logs.journal_cycles() - before
        });
        // K batches in flight: at most 2/K writes a batch.
        let allowed = (2 * ROUNDS) as u64;
        let cycles = cycles.unwrap();
        assert!(
            cycles <= allowed,
            "{partitions} partitions: {cycles} of {allowed}"
        );
    }
}

#[path = "damage_test.rs"]
mod damage_test;
#[path = "closed_test.rs"]
mod closed_test;

#[path = "checkpoints_test.rs"]
mod checkpoints_test;

/// A topic was deleted and made anew, and the shard ended before the new log had its id.
#[test]
fn a_new_log_does_not_start_where_a_deleted_one_of_its_name_did() {
    for has_segment in [false, true] {
        let disk = SimDisk::new(SimDiskOptions::default(), 1);
        SimRuntime::new(&disk, 1)
            .block_on(async { drop(start(1, MIB).await) })
            .unwrap();
        disk.kill(1);
        SimRuntime::new(&disk, 2)
            .block_on(async {
                let folder = PathBuf::from("/data/a-0");
                io::directory::create_all(&folder).await.unwrap();
                let stale = Path::new("/data/log-start-offset-checkpoint");
                let written = io::directory::write_file_durably(stale, b"0\n1\na 0 49\n");
                written.await.unwrap();
                if has_segment {
                    let empty = folder.join("00000000000000000000.log");
                    io::directory::write_file_durably(&empty, b"")
                        .await
                        .unwrap();
                }
                let logs = start(2, MIB).await;
                let log = logs.open_log(identity("a"), LogConfig::default());
                let log = log.await.unwrap();
                let ends = (log.log_start_offset(), log.log_end_offset());
                assert_eq!(ends, (Offset(0), Offset(0)));
                append_many(&log, &[10]).await;
                assert_eq!(read_all(&log).await.len(), 1);
            })
            .unwrap();
    }
}
