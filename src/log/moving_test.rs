//! Moves of a log between two directories: what a copy has, and crashes at every step.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::format::file_names::{FolderState, LogFileKind, MOVE_MARK, parse_partition_folder};
use super::format::move_mark;
use super::format::transaction_index::{AbortedTransaction, TransactionIndex};
use super::log_test::{batch, context, identity, read_all, seeds};
use super::moved::{CopyFate, FoundCopy, carry_out, decide};
use super::segment::segment_path;
use super::*;
use crate::base::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, ShardId, Uuid};
use crate::base::limits::{KIB, MIB};
use crate::base::time::TimestampMs;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{self, TaskClass};
use crate::wire::record_batch::{BatchBuilder, NewRecord, stamp_base_offset, stamp_leader_epoch};

const A: Uuid = Uuid([1; 16]);
const B: Uuid = Uuid([2; 16]);
/// Says in which directory the log is: what the metadata is to a broker.
const ASSIGNED: &str = "/metadata/assigned";

fn path_of(directory: Uuid) -> PathBuf {
    PathBuf::from(if directory == A { "/a" } else { "/b" })
}

async fn start(directory: Uuid, incarnation: u8) -> Rc<ShardLogs> {
    let path = path_of(directory);
    io::directory::create_all(&path).await.unwrap();
    let incarnation = Uuid([incarnation; 16]);
    let report = recover(RecoveryOptions {
        directory: path.clone(),
        incarnation,
        shard_count: 1,
        journal_bytes: 2 * MIB as u64,
    })
    .await
    .unwrap();
    let told = report.notices.iter();
    let told: Vec<_> = told
        .filter(|notice| !notice.contains("a tear is cut"))
        .collect();
    assert!(told.is_empty(), "{told:?}");
    ShardLogs::open(ShardLogsOptions {
        directory: path,
        shard: ShardId(0),
        incarnation,
        journal_bytes: report.journal_bytes_per_shard,
        cache_bytes: 4 * MIB,
        random_seed: u64::from(incarnation.0[0]) + u64::from(directory.0[0]),
        metrics: Default::default(),
    })
    .await
    .unwrap()
}

async fn copy_all(source: &Rc<Log>, future: &Rc<Log>) {
    loop {
        match copy_step(source, future).await.unwrap() {
            CopyStep::CaughtUp if future.has_all_of(source) => return,
            CopyStep::CaughtUp => source.wait_durable(source.log_end_offset()).await.unwrap(),
            _ => {}
        }
    }
}

async fn append(log: &Rc<Log>, bytes: usize, mark: u8, acked: &Cell<i64>) {
    let appended = log.append(batch(bytes, mark), context()).await.unwrap();
    let end = appended.last_offset.plus(1);
    log.wait_durable(end).await.unwrap();
    acked.set(acked.get().max(end.0));
}

/// The value's bytes of the record at an offset: some pass the journal by.
fn bytes_at(offset: i64) -> usize {
    [30, 5_000, 200, 300_000, 4_096, 70_000][offset as usize % 6]
}

/// Appends before, beside and after a move, which this life makes.
async fn move_once(acked: Rc<Cell<i64>>, config: LogConfig) {
    let (a, b) = (start(A, 1).await, start(B, 1).await);
    io::directory::create_all(Path::new("/metadata"))
        .await
        .unwrap();
    io::directory::sync(Path::new("/")).await.unwrap();
    assign(A).await;
    let source = a.create_log(identity("t"), config).await.unwrap();
    for offset in 0..8 {
        append(&source, bytes_at(offset), offset as u8, &acked).await;
    }
    let future = b.create_future(&source).await.unwrap();
    let beside = {
        let (source, acked) = (Rc::clone(&source), Rc::clone(&acked));
        io::spawn(TaskClass::Produce, async move {
            for offset in 8..12 {
                append(&source, bytes_at(offset), offset as u8, &acked).await;
            }
        })
    };
    copy_all(&source, &future).await;
    source.mark_moving(B).await.unwrap();
    beside.await;
    copy_all(&source, &future).await;
    future.take_over(&source).await.unwrap();
    assign(B).await;
    future.take_name().await.unwrap();
    for offset in 12..15 {
        append(&future, bytes_at(offset), offset as u8, &acked).await;
    }
    a.delete_log(&source).await.unwrap();
    append(&future, bytes_at(15), 15, &acked).await;
    check(&future, 16).await;
}

async fn assign(directory: Uuid) {
    io::directory::write_file_durably(Path::new(ASSIGNED), &directory.0)
        .await
        .unwrap();
}

async fn check(log: &Rc<Log>, acked: i64) {
    assert!(log.damage().is_none(), "{:?}", log.damage());
    let found = read_all(log).await;
    assert!(found.len() as i64 >= acked, "{} of {acked}", found.len());
    for (place, (offset, _, mark)) in found.iter().enumerate() {
        assert_eq!((*offset, *mark), (place as i64, place as u8));
    }
}

/// The folders of the partition in one directory, by their names.
async fn found_in(directory: Uuid, assigned: Uuid) -> Vec<(FoundCopy, PathBuf)> {
    let path = path_of(directory);
    let mut found = Vec::new();
    for entry in io::directory::list(&path).await.unwrap() {
        let Some(parsed) = parse_partition_folder(&entry.name) else {
            continue;
        };
        assert_ne!(parsed.state, FolderState::Delete, "recovery removes these");
        let folder = path.join(&entry.name);
        let mark = io::directory::read_file(&folder.join(MOVE_MARK), KIB).await;
        let mark = mark.ok().map(|bytes| move_mark::decode(&bytes).unwrap());
        let copy = FoundCopy {
            directory,
            is_future: parsed.state == FolderState::Future,
            is_given_up: mark == Some(assigned),
            is_damaged: false,
        };
        found.push((copy, folder));
    }
    found
}

/// The life after: both directories are recovered, what is found is settled, the log goes on.
async fn go_on(acked: Rc<Cell<i64>>, incarnation: u8) {
    let (a, b) = (start(A, incarnation).await, start(B, incarnation).await);
    let assigned = io::directory::read_file(Path::new(ASSIGNED), KIB).await;
    let Ok(assigned) = assigned else {
        assert_eq!(acked.get(), 0, "nothing is acknowledged before");
        return;
    };
    let assigned = Uuid(assigned.try_into().unwrap());
    let mut found = found_in(A, assigned).await;
    found.extend(found_in(B, assigned).await);
    let copies: Vec<FoundCopy> = found.iter().map(|(copy, _)| *copy).collect();
    let decided = decide(Some(assigned), true, &copies).unwrap();
    let mut home = None;
    for ((copy, folder), fate) in found.iter().zip(decided.fates) {
        carry_out(folder, fate, u128::from(incarnation))
            .await
            .unwrap();
        match fate {
            CopyFate::Serve | CopyFate::Promote => home = Some(copy.directory),
            CopyFate::Remove => {}
            CopyFate::Keep => panic!("both directories are there"),
        }
    }
    let Some(home) = home else {
        assert_eq!(acked.get(), 0, "the log is gone");
        return;
    };
    let logs = if home == A { &a } else { &b };
    let log = logs.open_log(identity("t"), LogConfig::default()).await;
    let log = log.unwrap();
    check(&log, acked.get()).await;
    let next = log.log_end_offset().0;
    append(&log, bytes_at(next), next as u8, &acked).await;
    check(&log, acked.get()).await;
}

/// How a life ends and the two that follow it. True when the first was cut short.
fn crash_at(step: u64, is_power_cut: bool, config: &LogConfig) -> bool {
    let disk = SimDisk::new(SimDiskOptions::default(), step);
    let end = |seed: u64| {
        match is_power_cut {
            true => disk.power_cut(seed),
            false => disk.kill(seed),
        }
        disk.never_crash();
    };
    let acked = Rc::new(Cell::new(0));
    disk.crash_after(step);
    let moved = move_once(Rc::clone(&acked), config.clone());
    let has_crashed = SimRuntime::new(&disk, step).block_on(moved).is_err();
    end(step);
    if config.write_caching && is_power_cut {
        // What was acknowledged is gone by the settings: the log is whole all the same.
        acked.set(0);
    }
    for life in [2, 3] {
        let seed = step + u64::from(life);
        let lived = SimRuntime::new(&disk, seed).block_on(go_on(Rc::clone(&acked), life));
        assert!(
            lived.is_ok(),
            "step {step}, life {life}, power cut {is_power_cut}"
        );
        end(seed);
        if config.write_caching && is_power_cut {
            acked.set(0);
        }
    }
    has_crashed
}

fn crash_at_every(stride: u64, config: &LogConfig) {
    let (mut step, mut has_crashed) = (0, true);
    while has_crashed {
        has_crashed = crash_at(step, false, config);
        has_crashed |= crash_at(step, true, config);
        step += stride;
    }
    assert!(step > 100, "{step} steps");
    println!("{step} steps, every {stride}");
}

#[test]
fn a_crash_at_any_step_of_a_move_loses_nothing() {
    let stride = if seeds(1).count() > 1 { 3 } else { 41 };
    crash_at_every(stride, &LogConfig::default());
    let rolling = LogConfig {
        segment_bytes: 310_000,
        ..LogConfig::default()
    };
    crash_at_every(4 * stride, &rolling);
}

#[test]
fn a_crash_during_a_move_of_a_write_cached_log_leaves_it_whole() {
    let config = LogConfig {
        write_caching: true,
        ..LogConfig::default()
    };
    crash_at_every(121, &config);
}

fn stamped(sequence: i32) -> bytes::BytesMut {
    let producer = (ProducerId(7), ProducerEpoch(0), Sequence(sequence));
    let mut builder = BatchBuilder::new(Offset(0)).producer(producer.0, producer.1, producer.2);
    builder.append(NewRecord {
        timestamp: TimestampMs(1_800_000_000_000),
        key: None,
        value: Some(b"of a producer"),
        headers: &[],
    });
    builder.build().unwrap()
}

/// What stands in no batch that is copied: the start within the log, epochs and producers of what
/// is deleted.
#[test]
fn a_copy_has_the_start_the_epochs_and_the_producers_of_its_source() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let moved = async {
        let (a, b) = (start(A, 1).await, start(B, 1).await);
        let acked = Cell::new(0);
        let config = LogConfig {
            segment_bytes: 20_000,
            ..LogConfig::default()
        };
        let source = a.create_log(identity("t"), config).await.unwrap();
        for offset in 0..19 {
            append(&source, 5_000, offset, &acked).await;
        }
        source.append(stamped(0), context()).await.unwrap();
        source.wait_durable(Offset(20)).await.unwrap();
        source.make_leader(LeaderEpoch(5));
        source.advance_log_start(Offset(9)).await.unwrap();
        source
            .delete_old_segments(source.durable_end())
            .await
            .unwrap();
        let future = b.create_future(&source).await.unwrap();
        assert!(future.is_future() && future.log_end_offset() <= Offset(9));
        copy_all(&source, &future).await;
        // The start goes on meanwhile, past what was copied.
        source.advance_log_start(Offset(12)).await.unwrap();
        copy_all(&source, &future).await;
        future.take_over(&source).await.unwrap();
        let told = source.producers(|id, entry| (id, entry.clone()));
        assert_eq!(told.len(), 1);
        future.take_name().await.unwrap();
        assert!(!future.is_future());
        a.delete_log(&source).await.unwrap();
        assert_eq!(future.log_start_offset(), Offset(12));
        assert_eq!(future.latest_epoch(), LeaderEpoch(5));
        let end = future.epoch_end_offset(LeaderEpoch(1));
        assert_eq!(end, Some((LeaderEpoch(1), Offset(20))));
        assert_eq!(told, future.producers(|id, entry| (id, entry.clone())));
        assert_eq!(read_all(&future).await.first().unwrap().0, 12);
        a.close().await.unwrap();
        let closed = b.close().await.unwrap();
        let ends: Vec<_> = closed.iter().map(|log| log.recovery_point).collect();
        assert_eq!(ends, [Offset(20)]);
    };
    runtime.block_on(moved).unwrap();
}

/// A copy that has fallen behind the log's start begins anew there, and an empty log moves too.
#[test]
fn a_copy_of_what_is_gone_begins_where_the_log_does() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let moved = async {
        let (a, b) = (start(A, 1).await, start(B, 1).await);
        let acked = Cell::new(0);
        let config = LogConfig {
            segment_bytes: 20_000,
            ..LogConfig::default()
        };
        let source = a.create_log(identity("t"), config).await.unwrap();
        for offset in 0..20 {
            append(&source, 5_000, offset, &acked).await;
        }
        let future = b.create_future(&source).await.unwrap();
        source.advance_log_start(Offset(20)).await.unwrap();
        source
            .delete_old_segments(source.durable_end())
            .await
            .unwrap();
        copy_all(&source, &future).await;
        future.take_over(&source).await.unwrap();
        let ends = (future.log_start_offset(), future.log_end_offset());
        assert_eq!(ends, (Offset(20), Offset(20)));
        let refused = b.create_future(&source).await.map(|_| ());
        assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
        b.delete_log(&future).await.unwrap();
        let names = io::directory::list(&path_of(B)).await.unwrap();
        assert!(names.iter().all(|entry| !entry.name.starts_with("t-0")));
        source.wait_durable(Offset(20)).await.unwrap();
        io::sleep(Duration::from_millis(1)).await;
    };
    runtime.block_on(moved).unwrap();
}

/// One record at each offset, as a cleaning leaves them.
async fn append_at(log: &Rc<Log>, offsets: &[i64]) {
    for (place, offset) in offsets.iter().enumerate() {
        let mut batch = batch(5_000, place as u8);
        stamp_base_offset(&mut batch, Offset(*offset));
        stamp_leader_epoch(&mut batch, LeaderEpoch(1));
        let replica = AppendContext {
            origin: AppendOrigin::Replica,
            ..context()
        };
        log.append(batch, replica).await.unwrap();
    }
    log.wait_durable(log.log_end_offset()).await.unwrap();
}

/// What a cleaning has left: offsets without records, in the middle and between segments.
#[test]
fn a_log_with_holes_moves_with_them_and_is_not_cleaned_meanwhile() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let offsets = [0_i64, 3, 4, 50, 51, 90];
    let moved = async {
        let (a, b) = (start(A, 1).await, start(B, 1).await);
        let config = LogConfig {
            segment_bytes: 12_000,
            compacted: true,
            ..LogConfig::default()
        };
        let source = a.create_log(identity("t"), config).await.unwrap();
        append_at(&source, &offsets).await;
        source.cleaning.mark.set(super::cleaner::CleanedMark {
            holes_below: Offset(91),
            cleaned_to: Offset(51),
        });
        let aborted = |first: i64, last: i64| AbortedTransaction {
            producer_id: ProducerId(7),
            first_offset: Offset(first),
            last_offset: Offset(last),
            last_stable_offset: Offset(last),
        };
        // As Apache Kafka writes it, in the segment that has the marker.
        let mut index = TransactionIndex::default();
        assert!(index.append(aborted(0, 3)));
        let kind = LogFileKind::TransactionIndex;
        let path = segment_path(&source.folder.path(), Offset(0), kind);
        io::directory::write_file_durably(&path, &index.encode())
            .await
            .unwrap();
        let future = b.create_future(&source).await.unwrap();
        assert!(source.is_moving());
        copy_all(&source, &future).await;
        future.copy_aborted(&source).await.unwrap();
        let path = segment_path(&future.folder.path(), Offset(0), kind);
        let copied = io::directory::read_file(&path, KIB).await.unwrap();
        assert_eq!(copied, index.encode());
        future.take_over(&source).await.unwrap();
        future.take_name().await.unwrap();
        assert_eq!(future.cleaned_to(), Some(Offset(51)));
        future
    };
    let found = SimRuntime::new(&disk, 1).block_on(async {
        let future = moved.await;
        read_all(&future).await
    });
    let found: Vec<i64> = found.unwrap().iter().map(|(offset, ..)| *offset).collect();
    assert_eq!(found, offsets);
    disk.kill(1);
    let again = SimRuntime::new(&disk, 2).block_on(async {
        let b = start(B, 2).await;
        let log = b.open_log(identity("t"), LogConfig::default()).await;
        let log = log.unwrap();
        assert!(log.damage().is_none(), "{:?}", log.damage());
        assert_eq!(log.cleaned_to(), Some(Offset(51)));
        let ends = (log.log_start_offset(), log.log_end_offset());
        assert_eq!(ends, (Offset(0), Offset(91)));
        let found = read_all(&log).await;
        let found: Vec<i64> = found.iter().map(|(offset, ..)| *offset).collect();
        assert_eq!(found, offsets);
    });
    again.unwrap();
}
