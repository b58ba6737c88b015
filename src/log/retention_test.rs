use std::cell::Cell;
use std::time::Duration;

use super::*;
use crate::base::limits::KIB;
use crate::base::random::Random;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::log_test::{batch, context, identity, read_all, seeds, start};

use RetentionCause::{Bytes, LogStart, Time};

/// Three segments of 100, 200 and 50 bytes at 0, 10 and 30, the log's end at 35.
const FACTS: [SegmentFacts; 3] = [
    facts(0, 100, 1_000),
    facts(10, 200, 2_000),
    facts(30, 50, 3_000),
];

const fn facts(base: i64, bytes: u64, largest: i64) -> SegmentFacts {
    SegmentFacts {
        base_offset: Offset(base),
        bytes,
        largest_timestamp: TimestampMs(largest),
    }
}

fn limits(retention_ms: Option<u64>, retention_bytes: Option<u64>) -> LogConfig {
    LogConfig {
        retention_ms,
        retention_bytes,
        ..LogConfig::default()
    }
}

/// With the log's start at 0 and the high watermark at its end.
fn causes_of(
    config: &LogConfig,
    change: impl FnOnce(&mut RetentionQuestion<'_>),
) -> Vec<RetentionCause> {
    let mut question = RetentionQuestion {
        config,
        segments: &FACTS,
        log_start: Offset(0),
        log_end: Offset(35),
        high_watermark: Offset(35),
        now: TimestampMs(10_000),
    };
    change(&mut question);
    question.causes()
}

#[test]
fn time_takes_what_is_one_past_its_limit() {
    assert_eq!(causes_of(&limits(Some(9_000), None), |_| ()), []);
    assert_eq!(causes_of(&limits(Some(8_999), None), |_| ()), [Time]);
    assert_eq!(
        causes_of(&limits(Some(0), None), |_| ()),
        [Time; 3],
        "the active one too"
    );
    // A clock that lies behind the records.
    let early = |question: &mut RetentionQuestion<'_>| question.now = TimestampMs(0);
    assert_eq!(causes_of(&limits(Some(0), None), early), []);
    // An old segment behind a younger one stays, as offsets have no holes.
    const YOUNG_FIRST: [SegmentFacts; 3] =
        [facts(0, 100, 9_999), facts(10, 200, 1), facts(30, 50, 1)];
    let behind = |question: &mut RetentionQuestion<'_>| question.segments = &YOUNG_FIRST;
    assert_eq!(causes_of(&limits(Some(500), None), behind), []);
}

#[test]
fn bytes_take_whole_segments_while_the_limit_is_still_held() {
    assert_eq!(causes_of(&limits(None, Some(251)), |_| ()), []);
    assert_eq!(causes_of(&limits(None, Some(250)), |_| ()), [Bytes]);
    assert_eq!(causes_of(&limits(None, Some(51)), |_| ()), [Bytes]);
    assert_eq!(causes_of(&limits(None, Some(50)), |_| ()), [Bytes; 2]);
    assert_eq!(causes_of(&limits(None, Some(0)), |_| ()), [Bytes; 3]);
    let both = limits(Some(7_500), Some(250));
    assert_eq!(causes_of(&both, |_| ()), [Bytes, Time]);
}

#[test]
fn what_is_not_below_the_high_watermark_stays() {
    let watermark =
        |at| move |question: &mut RetentionQuestion<'_>| question.high_watermark = Offset(at);
    let none = limits(Some(0), None);
    assert_eq!(causes_of(&none, watermark(34)), [Time; 2]);
    assert_eq!(causes_of(&none, watermark(30)), [Time; 2]);
    assert_eq!(causes_of(&none, watermark(29)), [Time]);
    assert_eq!(causes_of(&none, watermark(9)), []);
}

#[test]
fn segments_below_the_start_go_whatever_the_policy() {
    let start = |at| move |question: &mut RetentionQuestion<'_>| question.log_start = Offset(at);
    let compacted = LogConfig {
        deletes: false,
        ..limits(Some(0), Some(0))
    };
    assert_eq!(causes_of(&compacted, start(9)), []);
    assert_eq!(causes_of(&compacted, start(10)), [LogStart]);
    assert_eq!(
        causes_of(&compacted, start(35)),
        [LogStart; 2],
        "the active one stays"
    );
    assert_eq!(causes_of(&limits(None, None), start(10)), [LogStart]);
}

#[test]
fn an_empty_active_segment_stays() {
    const EMPTY: [SegmentFacts; 2] = [facts(0, 100, 1), facts(35, 0, -1)];
    let with_empty = |question: &mut RetentionQuestion<'_>| question.segments = &EMPTY;
    assert_eq!(causes_of(&limits(Some(0), Some(0)), with_empty), [Bytes]);
}

fn config(retention_bytes: u64) -> LogConfig {
    LogConfig {
        segment_bytes: 20_000,
        file_delete_delay_ms: 1_000,
        ..limits(None, Some(retention_bytes))
    }
}

async fn names(log: &Rc<Log>) -> Vec<String> {
    list_folder(&log.folder.path()).await.unwrap().names
}

async fn append(log: &Rc<Log>, count: i64) {
    for _ in 0..count {
        let mark = log.log_end_offset().0 as u8;
        let appended = log.append(batch(3_000, mark), context()).await.unwrap();
        log.wait_durable(appended.last_offset.plus(1))
            .await
            .unwrap();
    }
}

/// What is there is whole, in order and up to `end`.
async fn check(log: &Rc<Log>, end: i64) {
    assert_eq!(log.damage(), None);
    assert_eq!(log.log_end_offset(), Offset(end));
    let start = log.log_start_offset().0;
    let found = read_all(log).await;
    assert_eq!(found.len() as i64, end - start);
    for (place, (offset, _, mark)) in found.iter().enumerate() {
        let expected = start + place as i64;
        assert_eq!((*offset, *mark), (expected, expected as u8));
    }
}

#[test]
fn old_segments_leave_the_log_at_once_and_the_disk_after_the_delay() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    SimRuntime::new(&disk, 1)
        .block_on(async {
            let logs = start(1, 4 * 1024 * KIB).await;
            let log = logs
                .create_log(identity("a"), config(25_000))
                .await
                .unwrap();
            append(&log, 30).await;
            assert_eq!(log.delete_old_segments(Offset(0)).await.unwrap(), []);
            let deleted = log.delete_old_segments(Offset(30)).await.unwrap();
            let bases: Vec<i64> = deleted.iter().map(|one| one.base_offset.0).collect();
            // Six batches of 3,0xx bytes a segment; two of them, or 24 kB and more, stay.
            assert_eq!(bases, [0, 6, 12]);
            assert!(
                deleted
                    .iter()
                    .all(|one| one.cause == Bytes && one.bytes > 18_000)
            );
            assert_eq!(log.log_start_offset(), Offset(18));
            check(&log, 30).await;
            let read = log.read(
                Offset(17),
                crate::log::ReadLimit {
                    max_bytes: 1,
                    memory_max: 1,
                    first_batch_max: 1,
                    end: Offset(30),
                },
            );
            assert!(read.await.is_err(), "below the start");
            let marked = |names: &[String]| {
                names
                    .iter()
                    .filter(|name| name.ends_with(".deleted"))
                    .count()
            };
            let before = names(&log).await;
            assert!(marked(&before) >= 3 * 3, "{before:?}");
            assert!(!before.contains(&"00000000000000000000.log".to_owned()));
            io::sleep(Duration::from_millis(1_100)).await;
            assert_eq!(marked(&names(&log).await), 0);
            assert_eq!(log.delete_old_segments(Offset(30)).await.unwrap(), []);
        })
        .unwrap();
}

#[test]
fn a_log_that_is_old_altogether_goes_on_empty() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    SimRuntime::new(&disk, 1)
        .block_on(async {
            let logs = start(1, 4 * 1024 * KIB).await;
            let old = LogConfig {
                retention_ms: Some(0),
                ..config(u64::MAX)
            };
            let log = logs.create_log(identity("a"), old.clone()).await.unwrap();
            // The records are of 2027; a clock before that keeps them.
            let is_past = io::wall_clock().0 > 1_800_000_000_000;
            append(&log, 8).await;
            let deleted = log.delete_old_segments(Offset(8)).await.unwrap();
            assert_eq!(deleted.len(), if is_past { 2 } else { 0 });
            log.update_config(config(0));
            log.delete_old_segments(Offset(8)).await.unwrap();
            assert_eq!(log.log_start_offset(), Offset(8));
            check(&log, 8).await;
            append(&log, 3).await;
            check(&log, 11).await;
        })
        .unwrap();
    disk.power_cut(1);
    SimRuntime::new(&disk, 2)
        .block_on(async {
            let logs = start(2, 4 * 1024 * KIB).await;
            let log = logs.open_log(identity("a"), config(0)).await.unwrap();
            assert_eq!(log.log_start_offset(), Offset(8));
            check(&log, 11).await;
        })
        .unwrap();
}

/// A life with retention beside appends that carry the ring round, cut off somewhere.
fn life_with_retention(disk: &SimDisk, seed: u64) -> (i64, i64) {
    let (acked, told_start) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (ends, starts) = (Rc::clone(&acked), Rc::clone(&told_start));
    let run = async move {
        let logs = start(1, 1024 * KIB).await;
        let log = logs
            .create_log(identity("a"), config(50_000))
            .await
            .unwrap();
        let roomy = LogConfig {
            segment_bytes: 300_000,
            ..config(600_000)
        };
        let other = logs.create_log(identity("b"), roomy).await.unwrap();
        let mut random = Random::new(seed);
        for _ in 0..60 {
            append(&log, 1 + random.below(4) as i64).await;
            ends.set(log.log_end_offset().0);
            for _ in 0..random.below(6) {
                let size = 1 << random.below(18);
                other.append(batch(size, 0), context()).await.unwrap();
            }
            if random.chance(1, 2) {
                log.delete_old_segments(log.durable_end()).await.unwrap();
                starts.set(log.log_start_offset().0);
                other
                    .delete_old_segments(other.durable_end())
                    .await
                    .unwrap();
            }
            if random.chance(1, 8) {
                // DeleteRecords, within a segment.
                let to = Offset(log.log_end_offset().0 - random.below(9) as i64);
                starts.set(log.advance_log_start(to).await.unwrap().0);
            }
        }
    };
    disk.crash_after(seed * 191 % 9_000);
    let _ = SimRuntime::new(disk, seed).block_on(run);
    (acked.get(), told_start.get())
}

#[test]
fn a_crash_around_a_retention_keeps_the_start_and_everything_behind_it() {
    for seed in seeds(40) {
        println!("seed {seed}");
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        let (acked, told_start) = life_with_retention(&disk, seed);
        if seed % 2 == 0 {
            disk.power_cut(seed);
        } else {
            disk.kill(seed);
        }
        disk.never_crash();
        SimRuntime::new(&disk, seed + 1)
            .block_on(async {
                let logs = start(2, 1024 * KIB).await;
                let Ok(log) = logs.open_log(identity("a"), config(50_000)).await else {
                    assert_eq!(acked, 0, "the log was there");
                    return;
                };
                let end = log.log_end_offset().0;
                assert!(end >= acked, "{end} of {acked}");
                assert!(
                    log.log_start_offset().0 >= told_start,
                    "the start went back"
                );
                check(&log, end).await;
                let marked = names(&log)
                    .await
                    .into_iter()
                    .find(|name| name.ends_with(".deleted"));
                assert_eq!(marked, None);
                log.delete_old_segments(Offset(end)).await.unwrap();
                append(&log, 3).await;
                check(&log, end + 3).await;
            })
            .unwrap();
    }
}
