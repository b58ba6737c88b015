//! Cleanings of logs that are cut, or not compacted any more, in the middle of a pass; and what one
//! batch may ask for.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::chunks::{ChunkLimits, Chunks};
use super::model_test::{append, closed, config, options, read_from, seeds};
use super::{CleanOptions, CleanOutcome};
use crate::base::ids::{BrokerEpoch, Offset};
use crate::base::limits::{KIB, MIB};
use crate::base::random::Random;
use crate::base::time::TimestampMs;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{self, TaskClass};
use crate::log::log_test::{context, identity, start};
use crate::log::{Log, LogConfig, seal_directory};
use crate::wire::record_batch::{BatchBuilder, NewRecord};

/// A log whose last segment but the active one supersedes all that comes before it.
async fn superseded(log: &Rc<Log>, random: &mut Random) -> i64 {
    for _ in 0..120 {
        append(log, random, 5).await;
    }
    let first = log.log_end_offset().0;
    for _ in 0..40 {
        append(log, random, 5).await;
    }
    first
}

#[test]
fn a_log_that_is_cut_ends_the_pass() {
    for groups in 0..4 {
        let disk = SimDisk::new(SimDiskOptions::default(), groups);
        let mut random = Random::new(groups);
        let run = async {
            let logs = start(1, 4 * MIB).await;
            let log = logs.create_log(identity("a"), config()).await.unwrap();
            let first = superseded(&log, &mut random).await;
            closed(&log).await;
            let before = read_from(&log, Offset(0), &mut random).await;
            let slow = CleanOptions {
                rate: Rc::new(|| 20_000.0),
                ..options(&log)
            };
            let cleaning = {
                let log = Rc::clone(&log);
                io::spawn(TaskClass::Background, async move { log.clean(&slow).await })
            };
            let old = log.all_segments();
            let replaced = || {
                let is_new = |new: &&Rc<_>| !old.iter().any(|old| Rc::ptr_eq(old, new));
                log.all_segments().iter().filter(is_new).count()
            };
            // All keys are in the table, and some segments are replaced.
            let is_begun = || log.cleaning.mark.get().holes_below > Offset(0);
            while !is_begun() || replaced() < groups as usize {
                assert!(log.cleaning.is_under_way.get() || !is_begun(), "it is over");
                io::sleep(std::time::Duration::from_millis(1)).await;
            }
            log.truncate_to(Offset(first)).await.unwrap();
            let left = read_from(&log, Offset(0), &mut random).await;
            let outcome = cleaning.await.unwrap();
            assert_eq!(outcome, CleanOutcome::Interrupted);
            assert_eq!(log.cleaned_to(), None);
            // Whatever the pass took before the cut, of what was there at the cut nothing goes.
            assert_eq!(read_from(&log, Offset(0), &mut random).await, left);
            assert!(left.len() < before.len());
            closed(&log).await;
            let outcome = log.clean(&options(&log)).await.unwrap();
            assert!(matches!(outcome, CleanOutcome::Cleaned(_)), "{outcome:?}");
            let last: BTreeMap<u64, i64> = left.iter().map(|(at, row)| (row.key, *at)).collect();
            let found = read_from(&log, Offset(0), &mut random).await;
            for (key, at) in last {
                assert!(
                    found.iter().any(|(found, _)| *found == at),
                    "{key} has lost {at}"
                );
            }
        };
        SimRuntime::new(&disk, groups).block_on(run).unwrap();
    }
}

#[test]
fn a_cut_log_is_dirty_from_the_cut_on_also_after_a_crash() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut random = Random::new(1);
    let run = async {
        let logs = start(1, 4 * MIB).await;
        let log = logs.create_log(identity("a"), config()).await.unwrap();
        superseded(&log, &mut random).await;
        closed(&log).await;
        log.clean(&options(&log)).await.unwrap();
        let cleaned = log.cleaned_to().unwrap();
        log.truncate_to(Offset(cleaned.0 / 2)).await.unwrap();
        assert!(log.cleaned_to().unwrap_or_default() <= Offset(cleaned.0 / 2));
        for _ in 0..160 {
            append(&log, &mut random, 5).await;
        }
        assert!(log.log_end_offset() > cleaned);
        log.log_end_offset()
    };
    let end = SimRuntime::new(&disk, 1).block_on(run).unwrap();
    disk.kill(1);
    let run = async {
        let logs = start(2, 4 * MIB).await;
        let log = logs.open_log(identity("a"), config()).await.unwrap();
        assert_eq!(log.log_end_offset(), end);
        closed(&log).await;
        log.clean(&options(&log)).await.unwrap();
        let cleaned = log.cleaned_to().unwrap();
        let found = read_from(&log, Offset(0), &mut random).await;
        let below: Vec<u64> = found
            .iter()
            .filter(|(at, _)| *at < cleaned.0)
            .map(|(_, row)| row.key)
            .collect();
        let distinct: std::collections::BTreeSet<u64> = below.iter().copied().collect();
        assert_eq!(below.len(), distinct.len(), "a key twice below {cleaned}");
    };
    SimRuntime::new(&disk, 2).block_on(run).unwrap();
}

#[test]
fn a_log_that_is_cut_in_a_hole_ends_where_a_start_finds_its_end() {
    // The hole may be of the beginning of a segment, or lie between two batches.
    let mut of_holes = 0;
    for seed in seeds(5) {
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        let mut random = Random::new(seed);
        let run = async {
            let logs = start(1, 4 * MIB).await;
            let log = logs.create_log(identity("a"), config()).await.unwrap();
            superseded(&log, &mut random).await;
            closed(&log).await;
            log.clean(&options(&log)).await.unwrap();
            let at = Offset(random.below(log.cleaned_to().unwrap().0 as u64) as i64);
            let end = log.truncate_to(at).await.unwrap();
            assert_eq!(log.log_end_offset(), end);
            of_holes += u32::from(end.0 + 6 < at.0);
            let closed = logs.close().await.unwrap();
            let sealed = seal_directory(logs.directory(), &closed, BrokerEpoch(1)).await;
            sealed.unwrap();
            end
        };
        let end = SimRuntime::new(&disk, 1).block_on(run).unwrap();
        let run = async {
            let logs = start(2, 4 * MIB).await;
            let log = logs.open_log(identity("a"), config()).await.unwrap();
            assert_eq!(log.log_end_offset(), end, "seed {seed}");
            assert!(log.damage().is_none());
        };
        SimRuntime::new(&disk, 2).block_on(run).unwrap();
    }
    assert!(of_holes > 1, "{of_holes}");
}

#[test]
fn a_log_that_is_not_compacted_any_more_is_left_alone() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut random = Random::new(1);
    let run = async {
        let logs = start(1, 4 * MIB).await;
        let log = logs.create_log(identity("a"), config()).await.unwrap();
        superseded(&log, &mut random).await;
        closed(&log).await;
        let slow = CleanOptions {
            rate: Rc::new(|| 20_000.0),
            ..options(&log)
        };
        let cleaning = {
            let log = Rc::clone(&log);
            io::spawn(TaskClass::Background, async move { log.clean(&slow).await })
        };
        io::sleep(std::time::Duration::from_millis(300)).await;
        log.update_config(LogConfig {
            compacted: false,
            ..config()
        });
        let sizes = log.segment_sizes();
        assert_eq!(cleaning.await.unwrap(), CleanOutcome::Interrupted);
        assert_eq!(log.segment_sizes(), sizes);
    };
    SimRuntime::new(&disk, 1).block_on(run).unwrap();
}

#[test]
fn a_batch_takes_no_more_memory_than_it_may() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let run = async {
        let logs = start(1, 4 * MIB).await;
        let larger = LogConfig {
            segment_bytes: 20_000,
            ..config()
        };
        let log = logs.create_log(identity("a"), larger).await.unwrap();
        let mut builder = BatchBuilder::new(Offset(0));
        builder.append(NewRecord {
            timestamp: TimestampMs(1_800_000_000_000),
            key: Some(b"k"),
            value: Some(&[7; 6_000]),
            headers: &[],
        });
        let batch = builder.build().unwrap();
        let bytes = batch.len();
        log.append(batch, context()).await.unwrap();
        let mut random = Random::new(1);
        while log.all_segments().len() < 2 {
            append(&log, &mut random, 5).await;
        }
        closed(&log).await;
        let first = Rc::clone(&log.all_segments()[0]);
        let chunk = async |batch_bytes_max| {
            let limits = ChunkLimits {
                buffer_bytes: 4 * KIB,
                batch_bytes_max,
            };
            Chunks::new(&first, limits).await.unwrap().next().await
        };
        assert_eq!(chunk(bytes).await.unwrap().unwrap().len(), bytes);
        let refused = chunk(bytes - 1).await.unwrap_err().to_string();
        assert!(refused.contains("at most"), "{refused}");
    };
    SimRuntime::new(&disk, 1).block_on(run).unwrap();
}
