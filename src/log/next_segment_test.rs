//! When the file is made, how large, and that neither a roll nor a crash around it loses anything.

use std::cell::Cell;

use super::*;
use crate::io::sim::{Fault, FaultEffect, OperationKind, SimDisk, SimDiskOptions, SimRuntime};
use crate::log::log_test::{batch, context, identity, read_all, start};

fn near(size: u64, age_ms: i64) -> bool {
    let config = LogConfig {
        segment_bytes: 1_000,
        segment_ms: 800,
        ..LogConfig::default()
    };
    let first = TimestampMs(5_000);
    is_near_roll(&config, size, Some(first), TimestampMs(5_000 + age_ms))
}

#[test]
fn the_file_is_made_when_a_part_of_the_segment_or_its_time_is_left() {
    assert!(!near(499, 0));
    assert!(near(500, 0));
    assert!(!near(1, 700));
    assert!(near(1, 701));
    assert!(!near(0, 701), "an empty segment does not roll");
    let large = LogConfig {
        segment_bytes: 1 << 30,
        ..LogConfig::default()
    };
    let at = |size| is_near_roll(&large, size, None, TimestampMs(0));
    assert!(!at((1 << 30) / 8 * 7 - 1));
    assert!(at((1 << 30) / 8 * 7));
}

#[test]
fn the_first_reservation_stays_between_its_bounds() {
    assert_eq!(first_reservation(14, u64::MAX), STEP_BYTES_MIN);
    assert_eq!(first_reservation(32 * MIB as u64, u64::MAX), 2 * MIB as u64);
    assert_eq!(
        first_reservation(1 << 30, u64::MAX),
        FIRST_RESERVATION_BYTES_MAX
    );
    assert_eq!(first_reservation(1 << 30, MIB as u64), MIB as u64);
}

fn names(disk: &SimDisk) -> Vec<String> {
    let entries = disk.list("/data/next-0").unwrap();
    entries.into_iter().map(|(name, _)| name).collect()
}

fn has_no_name(disk: &SimDisk) -> bool {
    names(disk).iter().any(|name| name == NEXT_SEGMENT)
}

fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 64 * 1024,
        ..LogConfig::default()
    }
}

/// Appends batches of 9,000 bytes, seven of which make a segment, one after the other.
async fn append(log: &Rc<Log>, count: u8, durable: &Cell<i64>) {
    for mark in 0..count {
        log.append(batch(9_000, mark), context()).await.unwrap();
        log.wait_durable(log.log_end_offset()).await.unwrap();
        durable.set(log.durable_end().0);
    }
}

#[test]
fn a_roll_takes_the_file_made_ahead_and_a_clean_stop_leaves_none() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let run = runtime.block_on(async {
        let shard = start(1, MIB).await;
        let log = shard.create_log(identity("next"), small()).await.unwrap();
        append(&log, 6, &Cell::default()).await;
        io::sleep(Duration::from_secs(1)).await;
        let prepared = io::directory::metadata(&log.folder.join(NEXT_SEGMENT)).await;
        assert!(prepared.is_ok(), "the file is made ahead");
        append(&log, 6, &Cell::default()).await;
        assert_eq!(log.segments.borrow().len(), 2);
        assert_eq!(read_all(&log).await.len(), 12);
        shard.close().await.unwrap();
    });
    run.unwrap();
    let left = names(&disk);
    assert!(!has_no_name(&disk), "{left:?}");
    let rolled = "00000000000000000007.log".to_owned();
    assert!(left.contains(&rolled), "{left:?}");
}

/// Power is cut, or the process killed, at steps all over three rolls: all that was durable is
/// there, the log goes on, and no file stays without a name. Answers whether acknowledged records
/// were found in one.
fn crash_at(step: u64, is_power_cut: bool) -> Option<bool> {
    let disk = SimDisk::new(SimDiskOptions::default(), step);
    // Names are late, so that records are acknowledged before their file has its own.
    disk.arm(Fault {
        kind: OperationKind::Names,
        path_part: "next-0".to_owned(),
        skip: 0,
        count: u64::MAX,
        effect: FaultEffect::Stall(Duration::from_millis(3)),
    });
    let durable = Cell::default();
    let crashing = disk.clone();
    let mut runtime = SimRuntime::new(&disk, step);
    let outcome = runtime.block_on(async {
        let shard = start(1, MIB).await;
        let log = shard.create_log(identity("next"), small()).await.unwrap();
        crashing.crash_after(step);
        append(&log, 22, &durable).await;
    });
    drop(runtime);
    outcome.err()?;
    match is_power_cut {
        true => disk.power_cut(step),
        false => disk.kill(step),
    }
    disk.never_crash();
    disk.clear_faults();
    let base = durable.get() / 7 * 7;
    let name = LogFileName::live(Offset(base), LogFileKind::Log).to_string();
    let was_found = durable.get() > base && !names(&disk).contains(&name);
    assert!(!was_found || has_no_name(&disk), "step {step}: no file");
    let run = SimRuntime::new(&disk, step + 1).block_on(async {
        let shard = start(2, MIB).await;
        let log = shard.open_log(identity("next"), small()).await.unwrap();
        assert!(log.damage().is_none(), "step {step}: {:?}", log.damage());
        let there = read_all(&log).await.len();
        assert!(there as i64 >= durable.get(), "step {step}: {there}");
        append(&log, 16, &Cell::default()).await;
        assert_eq!(read_all(&log).await.len(), there + 16);
        shard.close().await.unwrap();
    });
    run.unwrap();
    assert!(!has_no_name(&disk), "step {step}: {:?}", names(&disk));
    Some(was_found)
}

#[test]
fn a_crash_anywhere_around_rolls_loses_nothing_and_leaves_no_file() {
    for is_power_cut in [true, false] {
        let crashes = (0..).map_while(|step| crash_at(step, is_power_cut));
        let seen: Vec<bool> = crashes.collect();
        let found = seen.iter().filter(|found| **found).count();
        assert!(
            found > 2,
            "{found} of {} crashes found records so",
            seen.len()
        );
    }
}
