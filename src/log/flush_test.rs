//! `flush.ms` and `flush.messages` under `write.caching`: what they promise survives a loss of
//! power, although the shard is never idle and so flushes nothing by itself.

use std::rc::Rc;
use std::time::Duration;

use super::log_test::{batch, context, identity, read_all, start};
use super::*;
use crate::base::ids::Offset;
use crate::base::limits::MIB;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{self, TaskClass};

const SEEDS: u64 = 12;
/// Longer than a flush of the simulated disk takes.
const SLACK: Duration = Duration::from_millis(30);

fn cached() -> LogConfig {
    LogConfig {
        write_caching: true,
        ..LogConfig::default()
    }
}

/// Keeps the shard from being idle, without a flush.
async fn keep_busy(logs: &Rc<ShardLogs>) {
    let log = logs.create_log(identity("busy"), cached()).await.unwrap();
    io::spawn_detached(TaskClass::Produce, async move {
        loop {
            let appended = log.append(batch(10, 7), context()).await.unwrap();
            let end = appended.last_offset.plus(1);
            log.wait_durable(end).await.unwrap();
            io::sleep(Duration::from_millis(2)).await;
        }
    });
}

/// Appends so many records one after the other, waits, and loses the power; answers how many are
/// there afterwards.
fn left_after_power_cut(seed: u64, config: LogConfig, count: u8, wait: Duration) -> usize {
    let disk = SimDisk::new(SimDiskOptions::default(), seed);
    let life = async move {
        let logs = start(1, 4 * MIB).await;
        keep_busy(&logs).await;
        let log = logs.create_log(identity("a"), cached()).await.unwrap();
        for mark in 0..count {
            log.append(batch(100, mark), context()).await.unwrap();
            let end = Offset(i64::from(mark) + 1);
            log.wait_durable(end).await.unwrap();
        }
        // In force for what is not flushed yet.
        log.update_config(config);
        io::sleep(wait).await;
    };
    SimRuntime::new(&disk, seed).block_on(life).unwrap();
    disk.power_cut(seed);
    let life = async {
        let logs = start(2, 4 * MIB).await;
        let log = logs.open_log(identity("a"), cached()).await.unwrap();
        read_all(&log).await.len()
    };
    SimRuntime::new(&disk, seed).block_on(life).unwrap()
}

/// In how many of the seeds everything is left.
fn whole(config: &LogConfig, wait: Duration) -> u64 {
    let is_whole = |seed: &u64| left_after_power_cut(*seed, config.clone(), 5, wait) == 5;
    (0..SEEDS).filter(is_whole).count() as u64
}

#[test]
fn a_flush_comes_within_flush_ms() {
    let limit = Duration::from_millis(50);
    let config = LogConfig {
        flush_ms: 50,
        ..cached()
    };
    assert_eq!(whole(&config, limit + SLACK), SEEDS);
    assert!(
        whole(&config, limit / 2) < SEEDS,
        "before that nothing is promised"
    );
    assert!(whole(&cached(), limit + SLACK) < SEEDS, "nor without it");
}

/// A limit that is lowered does not wait for the end of the time that ran before.
#[test]
fn a_lower_limit_is_heeded_at_once() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let life = async {
        let logs = start(1, 4 * MIB).await;
        keep_busy(&logs).await;
        let limited = |flush_ms| LogConfig {
            flush_ms,
            ..cached()
        };
        let log = logs.create_log(identity("a"), limited(3_600_000)).await;
        let log = log.unwrap();
        log.append(batch(100, 0), context()).await.unwrap();
        log.wait_durable(Offset(1)).await.unwrap();
        io::sleep(SLACK).await;
        assert_eq!(log.stable_end(), Offset(0), "nothing has asked for a flush");
        log.update_config(limited(10));
        io::sleep(SLACK).await;
        assert_eq!(log.stable_end(), Offset(1));
    };
    SimRuntime::new(&disk, 1).block_on(life).unwrap();
}

#[test]
fn no_more_than_flush_messages_are_lost() {
    let config = LogConfig {
        flush_messages: 3,
        ..cached()
    };
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let life = async {
        let logs = start(1, 4 * MIB).await;
        keep_busy(&logs).await;
        let log = logs.create_log(identity("a"), config).await.unwrap();
        for mark in 0..20 {
            log.append(batch(100, mark), context()).await.unwrap();
            let end = Offset(i64::from(mark) + 1);
            log.wait_durable(end).await.unwrap();
            assert!(
                end.0 - log.stable_end().0 < 3,
                "{end}, {}",
                log.stable_end()
            );
        }
    };
    SimRuntime::new(&disk, 1).block_on(life).unwrap();
}
