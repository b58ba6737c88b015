//! Sequential readers find what comes next in memory, others cost none, and what is held there is
//! never what the log no longer holds.

use super::*;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::log_test::{batch, context, identity, read_all, start};
use crate::log::{LogConfig, ShardLogs};

const CACHE_BYTES: usize = 64 * MIB;
const BATCHES: u8 = 200;
const BATCH_BYTES: usize = 20_000;

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 1_500_000,
        ..LogConfig::default()
    }
}

/// Runs a test on a log of 4 MB in several segments, none of it in memory.
fn run(test: impl AsyncFnOnce(Rc<ShardLogs>, Rc<Log>)) {
    run_on(BATCHES, BATCH_BYTES, test);
}

fn run_on(count: u8, value_bytes: usize, test: impl AsyncFnOnce(Rc<ShardLogs>, Rc<Log>)) {
    let disk = SimDisk::new(SimDiskOptions::default(), 5);
    let first_life = async {
        let shard = start(1, CACHE_BYTES).await;
        let log = shard.create_log(identity("ahead"), config()).await.unwrap();
        for mark in 0..count {
            let appended = log.append(batch(value_bytes, mark), context()).await;
            appended.unwrap();
        }
        shard.close().await.unwrap();
    };
    SimRuntime::new(&disk, 5).block_on(first_life).unwrap();
    let second_life = async {
        let shard = start(2, CACHE_BYTES).await;
        let log = shard.open_log(identity("ahead"), config()).await.unwrap();
        test(shard, log).await;
    };
    SimRuntime::new(&disk, 6).block_on(second_life).unwrap();
}

async fn read(log: &Rc<Log>, from: i64, max_bytes: usize) -> ReadResult {
    let limit = ReadLimit {
        max_bytes,
        memory_max: usize::MAX,
        first_batch_max: usize::MAX,
        end: log.log_end_offset(),
    };
    log.read(Offset(from), limit).await.unwrap()
}

#[test]
fn the_share_of_the_cache_begins_with_one_window() {
    assert_eq!(share_of(16 * MIB - 1), 0);
    assert_eq!(share_of(16 * MIB), MIB);
    assert_eq!(share_of(1 << 40), SHARE_BYTES_MAX);
}

#[test]
fn a_sequential_reader_is_read_ahead_for_and_gets_every_batch_once() {
    run(async |shard, log| {
        let found = read_all(&log).await;
        let expected = (0..BATCHES).map(|mark| (i64::from(mark), mark));
        assert!(found.iter().map(|(at, _, mark)| (*at, *mark)).eq(expected));
        let (mut at, mut from_windows) = (0, 0);
        while at < i64::from(BATCHES) {
            from_windows += usize::from(log.read_ahead.window_of(Offset(at)).is_some());
            at += (read(&log, at, 64 * 1024).await.bytes / BATCH_BYTES) as i64;
        }
        assert!(from_windows > 50, "{from_windows} reads found a window");
        assert!(shard.context().read_ahead.used() <= 4 * MIB);
    });
}

#[test]
fn reads_in_no_order_cost_no_memory() {
    run(async |shard, log| {
        for at in [100, 7, 180, 60, 3, 150, 42] {
            assert!(read(&log, at, 64 * 1024).await.bytes > 0);
        }
        assert_eq!(shard.context().read_ahead.used(), 0);
    });
}

#[test]
fn a_window_gives_no_more_than_was_asked_for() {
    run(async |_shard, log| {
        for at in 0..20 {
            let one = read(&log, at, 1).await;
            let header = BatchHeader::parse(&one.slices[0]).unwrap();
            assert_eq!(
                (header.base_offset, one.bytes),
                (Offset(at), header.total_bytes())
            );
        }
        assert!(log.read_ahead.window_of(Offset(20)).is_some());
        let limit = ReadLimit {
            max_bytes: MIB,
            memory_max: usize::MAX,
            first_batch_max: usize::MAX,
            end: Offset(22),
        };
        let below = log.read(Offset(20), limit).await.unwrap();
        assert_eq!(below.bytes / BATCH_BYTES, 2, "nothing at or past the end");
        let limit = ReadLimit {
            max_bytes: 1,
            first_batch_max: 0,
            ..limit
        };
        assert_eq!(log.read(Offset(20), limit).await.unwrap().bytes, 0);
    });
}

#[test]
fn a_cut_log_serves_nothing_of_what_was_read_before() {
    run(async |_shard, log| {
        for at in 0..3 {
            read(&log, at, 1).await;
        }
        assert!(log.read_ahead.window_of(Offset(3)).is_some());
        log.truncate_to(Offset(4)).await.unwrap();
        for mark in 0..40 {
            log.append(batch(BATCH_BYTES, 200 + mark), context())
                .await
                .unwrap();
        }
        let marks: Vec<u8> = read_all(&log)
            .await
            .iter()
            .map(|(_, _, mark)| *mark)
            .collect();
        let expected: Vec<u8> = (0..4).chain(200..240).collect();
        assert_eq!(marks, expected);
    });
}

#[test]
fn windows_stay_within_their_share_and_idle_ones_make_room() {
    run(async |shard, log| {
        let budget = AheadBudget::new(3 * WINDOW_BYTES);
        let held: Vec<_> = (0..4).map(|_| budget.take()).collect();
        assert_eq!(held.iter().flatten().count(), 3);
        assert_eq!(budget.used(), 3 * WINDOW_BYTES);
        drop(held);
        assert_eq!(budget.used(), 0);
        for at in 0..3 {
            read(&log, at, 1).await;
        }
        let budget = &shard.context().read_ahead;
        // The one that is served, and the next.
        assert_eq!(budget.used(), 2 * WINDOW_BYTES);
        io::sleep(IDLE).await;
        budget.drop_idle();
        assert_eq!(budget.used(), 0);
    });
}

#[test]
fn an_answer_that_nobody_takes_keeps_its_window_charged() {
    run(async |shard, log| {
        for at in 0..2 {
            read(&log, at, 1).await;
        }
        let answer = read(&log, 2, 1).await;
        log.read_ahead.clear();
        // What is being read meanwhile is of no use any more, and dropped.
        io::sleep(Duration::from_millis(100)).await;
        let budget = &shard.context().read_ahead;
        assert_eq!(budget.used(), WINDOW_BYTES);
        // Answers are dropped where they are sent.
        std::thread::spawn(move || drop(answer)).join().unwrap();
        assert_eq!(budget.used(), 0);
    });
}

#[test]
fn the_tail_is_read_from_memory_and_costs_no_window() {
    run(async |shard, log| {
        for mark in 0..40 {
            let appended = log.append(batch(BATCH_BYTES, mark), context()).await;
            appended.unwrap();
        }
        let cached = shard.context().cache.used();
        for at in 200..240 {
            assert!(read(&log, at, 1).await.bytes > 0);
        }
        assert_eq!(shard.context().read_ahead.used(), 0);
        // Nor does a reader of the whole log take anything from it.
        read_all(&log).await;
        assert_eq!(shard.context().cache.used(), cached);
    });
}

#[test]
fn batches_of_which_a_window_holds_only_one_are_not_read_ahead() {
    let header_bytes = batch(600_000, 0).len() - 600_000;
    for (value_bytes, is_read_ahead) in [
        (AHEAD_BATCH_BYTES_MAX - header_bytes, true),
        (AHEAD_BATCH_BYTES_MAX - header_bytes + 1, false),
    ] {
        run_on(6, value_bytes, async |shard, log| {
            for at in 0..3 {
                assert!(read(&log, at, 1).await.bytes > 0);
            }
            assert_eq!(shard.context().read_ahead.used() > 0, is_read_ahead);
        });
    }
}
