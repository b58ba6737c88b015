//! Lives with cleanings that are cut off after every operation: whatever the crash, the last record
//! of every key is there, no record comes back twice, and the log goes on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::CleanOutcome;
use super::model_test::{Row, append, closed, config, options, read_from, seeds};
use crate::base::ids::Offset;
use crate::base::limits::MIB;
use crate::base::random::Random;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::log_test::{identity, start};
use crate::log::{Log, LogConfig};

/// What was acknowledged, by offset.
type Acked = Rc<RefCell<BTreeMap<i64, Row>>>;

/// Small segments that become fewer, with tombstones that stay.
fn keeping() -> LogConfig {
    LogConfig {
        delete_retention_ms: u64::MAX,
        ..config()
    }
}

async fn write_and_clean(log: &Rc<Log>, random: &mut Random, acked: &Acked, passes: u32) {
    for _ in 0..passes {
        for _ in 0..25 {
            let rows = append(log, random, 12).await;
            acked.borrow_mut().extend(rows);
        }
        closed(log).await;
        let outcome = log.clean(&options(log)).await.unwrap();
        assert!(matches!(outcome, CleanOutcome::Cleaned(_)), "{outcome:?}");
    }
}

/// More, and segments that become fewer.
async fn write_into_larger(log: &Rc<Log>, random: &mut Random, acked: &Acked) {
    for _ in 0..25 {
        let rows = append(log, random, 12).await;
        acked.borrow_mut().extend(rows);
    }
    let larger = LogConfig {
        segment_bytes: 6_000,
        ..keeping()
    };
    log.update_config(larger);
    closed(log).await;
}

/// Every record found was acknowledged, or is the one under way at the crash; of every key the last
/// one is there; offsets rise.
async fn check(log: &Rc<Log>, acked: &BTreeMap<i64, Row>, random: &mut Random) {
    assert_eq!(log.damage(), None);
    let found = read_from(log, Offset(0), random).await;
    assert!(
        found.is_sorted_by(|left, right| left.0 < right.0),
        "offsets go back"
    );
    let end = acked.last_key_value().map_or(0, |(at, _)| at + 1);
    let mut last = BTreeMap::new();
    for (at, row) in acked {
        last.insert(row.key, *at);
    }
    let found: BTreeMap<i64, Row> = found.into_iter().collect();
    for (at, row) in found.range(..end) {
        assert_eq!(acked.get(at), Some(row), "offset {at}");
    }
    let behind: Vec<u64> = found.range(end..).map(|(_, row)| row.key).collect();
    for (key, at) in last {
        let is_there = found.contains_key(&at) || behind.contains(&key);
        assert!(is_there, "key {key} has lost its record at {at}");
    }
}

/// One life that crashes after so many steps of a cleaning, and the next. False where the cleanings
/// were over before.
fn crash_at(step: u64, seed: u64, is_power_cut: bool) -> bool {
    let disk = SimDisk::new(SimDiskOptions::default(), seed);
    let acked = Acked::default();
    let mut random = Random::new(seed);
    let has_ended = {
        let (disk, acked, random) = (disk.clone(), Rc::clone(&acked), &mut random);
        let run = async {
            let logs = start(1, 4 * MIB).await;
            let log = logs.create_log(identity("a"), keeping()).await.unwrap();
            write_and_clean(&log, random, &acked, 1).await;
            write_into_larger(&log, random, &acked).await;
            disk.crash_after(step);
            let outcome = log.clean(&options(&log)).await.unwrap();
            assert!(matches!(outcome, CleanOutcome::Cleaned(_)), "{outcome:?}");
            disk.never_crash();
        };
        SimRuntime::new(&disk, seed).block_on(run).is_ok()
    };
    match is_power_cut {
        true => disk.power_cut(seed + step),
        false => disk.kill(seed + step),
    }
    disk.never_crash();
    // The next start is cut off too, somewhere; the one after that is not.
    for life in 2..4 {
        let (random, acked) = (&mut random, Rc::clone(&acked));
        if life == 2 {
            disk.crash_after(step * 7 % 150);
        }
        let run = async {
            let logs = start(life, 4 * MIB).await;
            let log = logs.open_log(identity("a"), keeping()).await.unwrap();
            let known = acked.borrow().clone();
            check(&log, &known, random).await;
            let names = crate::log::open::list_folder(&log.folder.path())
                .await
                .unwrap()
                .names;
            let left: Vec<_> = names
                .iter()
                .filter(|name| super::has_leftovers(&[(*name).clone()]))
                .collect();
            assert!(left.is_empty(), "{left:?}");
            if life == 3 {
                // What the crash left half written is in the log now, acknowledged or not.
                let end = acked.borrow().last_key_value().map_or(0, |(at, _)| *at + 1);
                let behind = read_from(&log, Offset(end), random).await;
                acked.borrow_mut().extend(behind);
                write_and_clean(&log, random, &acked, 2).await;
                let known = acked.borrow().clone();
                check(&log, &known, random).await;
                logs.close().await.unwrap();
            }
        };
        let ran = SimRuntime::new(&disk, seed + u64::from(life)).block_on(run);
        assert!(ran.is_ok() || life == 2);
        if life == 2 {
            disk.kill(seed);
            disk.never_crash();
        }
    }
    has_ended
}

#[test]
fn a_crash_at_any_step_of_a_cleaning() {
    for seed in seeds(1) {
        for is_power_cut in [true, false] {
            // Every step in the full dose; in the small one another few for each kind of end.
            let (mut step, stride) = match std::env::var("CORELINE_ACCEPT").is_ok() {
                true => (0, 1),
                false => (u64::from(is_power_cut), 23),
            };
            while !crash_at(step, seed, is_power_cut) {
                step += stride;
                assert!(step < 20_000, "the cleaning has no end");
            }
            println!("seed {seed}: {step} steps");
            assert!(step > 40, "{step}");
        }
    }
}
