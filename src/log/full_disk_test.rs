//! A full disk is the producer's to know at once, and deleting a log is what makes room again.

use std::rc::Rc;
use std::time::Duration;

use super::log_test::{batch, context, identity, start};
use super::*;
use crate::base::limits::MIB;
use crate::io;
use crate::io::sim::{Fault, FaultEffect, OperationKind, SimDisk, SimDiskOptions, SimRuntime};

/// Appends until one is refused; answers why.
async fn fill(log: &Rc<Log>) -> AppendError {
    for mark in 0..2_000 {
        let began = io::now();
        if let Err(error) = log.append(batch(20_000, mark as u8), context()).await {
            let waited = Duration::from_nanos(io::now().0 - began.0);
            assert!(waited < Duration::from_secs(2), "{error} after {waited:?}");
            return error;
        }
    }
    unreachable!("the ring is full before");
}

/// A log whose first segment was closed when the disk had no room for what is derived from it, and
/// one with reserved blocks to spare. Whatever becomes free is taken by another program.
async fn without_room(disk: &SimDisk, logs: &Rc<ShardLogs>) -> [Rc<Log>; 2] {
    let config = LogConfig::default;
    let log = logs.create_log(identity("a"), config()).await.unwrap();
    let other = logs.create_log(identity("b"), config()).await.unwrap();
    for mark in 0..150 {
        other.append(batch(20_000, mark), context()).await.unwrap();
    }
    let appended = log.append(batch(20_000, 1), context()).await.unwrap();
    log.wait_durable(appended.last_offset.plus(1))
        .await
        .unwrap();
    log.roll().await.unwrap();
    disk.leave_available(Some(0));
    let disk = disk.clone();
    io::spawn(io::TaskClass::Background, async move {
        for _ in 0..3_000 {
            disk.leave_available(Some(0));
            io::sleep(Duration::from_millis(1)).await;
        }
        disk.leave_available(None);
    });
    io::sleep(Duration::from_millis(100)).await;
    [log, other]
}

#[test]
fn appends_that_would_wait_for_the_ring_are_refused_at_once() {
    let disk = SimDisk::new(SimDiskOptions::default(), 5);
    let full = disk.clone();
    SimRuntime::new(&disk, 5)
        .block_on(async move {
            let logs = start(1, 16 * MIB).await;
            let [log, other] = without_room(&full, &logs).await;
            let refused = fill(&other).await.to_string();
            assert!(refused.contains("closed segments"), "{refused}");
            let refused = fill(&log).await;
            assert!(matches!(refused, AppendError::StorageFull(_)), "{refused}");
            // Deleting is how an operator makes room: it waits for none.
            let began = io::now();
            logs.delete_log(&log).await.unwrap();
            assert!(io::now().0 - began.0 < 2_000_000_000);
            io::sleep(Duration::from_secs(5)).await;
            let appended = other.append(batch(20_000, 1), context()).await.unwrap();
            let end = appended.last_offset.plus(1);
            other.wait_durable(end).await.unwrap();
            logs.close().await.unwrap();
        })
        .unwrap();
}

#[test]
fn a_shard_short_of_disk_does_not_wait_for_room_to_close() {
    let disk = SimDisk::new(SimDiskOptions::default(), 6);
    let full = disk.clone();
    SimRuntime::new(&disk, 6)
        .block_on(async move {
            let logs = start(1, 16 * MIB).await;
            without_room(&full, &logs).await;
            let error = logs.close().await.unwrap_err();
            assert!(error.is_full_disk(), "{error}");
        })
        .unwrap();
    disk.leave_available(None);
    SimRuntime::new(&disk, 7)
        .block_on(async move {
            let logs = start(2, 16 * MIB).await;
            for (topic, end) in [("a", 1), ("b", 150)] {
                let log = logs.open_log(identity(topic), LogConfig::default()).await;
                assert_eq!(log.unwrap().log_end_offset().0, end);
            }
        })
        .unwrap();
}

/// The next `count` changes of names on paths with `path_part` find no room.
fn names_without_room(disk: &SimDisk, path_part: &str, count: u64) {
    disk.arm(Fault {
        kind: OperationKind::Names,
        path_part: path_part.to_owned(),
        skip: 0,
        count,
        effect: FaultEffect::Enospc,
    });
}

async fn two_logs(logs: &Rc<ShardLogs>) -> [Rc<Log>; 2] {
    let mut made = Vec::new();
    for topic in ["a", "b"] {
        let log = logs.create_log(identity(topic), LogConfig::default()).await;
        let log = log.unwrap();
        let appended = log.append(batch(20_000, 1), context()).await.unwrap();
        let end = appended.last_offset.plus(1);
        log.wait_durable(end).await.unwrap();
        made.push(log);
    }
    made.try_into().unwrap_or_else(|_| unreachable!("two"))
}

fn is_there(disk: &SimDisk, part: &str) -> bool {
    let names = disk.list("/data").unwrap();
    names.iter().any(|(name, _)| name.contains(part))
}

#[test]
fn a_name_that_finds_no_room_takes_that_of_the_records_that_go() {
    let disk = SimDisk::new(SimDiskOptions::default(), 8);
    let full = disk.clone();
    SimRuntime::new(&disk, 8)
        .block_on(async move {
            let logs = start(1, 16 * MIB).await;
            let [log, _] = two_logs(&logs).await;
            names_without_room(&full, "a-0", 1);
            logs.delete_log(&log).await.unwrap();
            assert!(!is_there(&full, "a-0"));
            logs.close().await.unwrap();
        })
        .unwrap();
}

#[test]
fn a_deletion_without_room_is_told_at_once_and_done_as_soon_as_there_is_some() {
    let disk = SimDisk::new(SimDiskOptions::default(), 9);
    let full = disk.clone();
    SimRuntime::new(&disk, 9)
        .block_on(async move {
            let logs = start(1, 16 * MIB).await;
            let [log, other] = two_logs(&logs).await;
            names_without_room(&full, "a-0", 1_000);
            let began = io::now();
            let refused = logs.delete_log(&log).await.unwrap_err();
            assert!(refused.is_full_disk(), "{refused}");
            assert!(io::now().0 - began.0 < 2_000_000_000);
            // A new topic of the name does not get what the old one held.
            let mut new = identity("a");
            new.topic_id = crate::base::ids::Uuid([10; 16]);
            let refused = logs.open_log(new.clone(), LogConfig::default()).await;
            let refused = refused.err().expect("a refusal").to_string();
            assert!(refused.contains("belongs to another topic"), "{refused}");
            // The journal cannot pass the deletion: it takes what it holds, then refuses at once.
            let refused = fill(&other).await;
            assert!(matches!(refused, AppendError::StorageFull(_)), "{refused}");
            full.clear_faults();
            io::sleep(Duration::from_secs(5)).await;
            assert!(!is_there(&full, "a-0"));
            let log = logs.create_log(new, LogConfig::default()).await.unwrap();
            assert_eq!(log.log_end_offset().0, 0);
            // And now it goes round.
            for mark in 0..1_000 {
                other
                    .append(batch(20_000, mark as u8), context())
                    .await
                    .unwrap();
            }
            logs.close().await.unwrap();
        })
        .unwrap();
}

#[test]
fn a_shard_closes_over_a_deletion_without_room_and_the_next_start_ends_it() {
    let disk = SimDisk::new(SimDiskOptions::default(), 10);
    let full = disk.clone();
    SimRuntime::new(&disk, 10)
        .block_on(async move {
            let logs = start(1, 16 * MIB).await;
            let [log, _] = two_logs(&logs).await;
            names_without_room(&full, "a-0", 1_000);
            logs.delete_log(&log).await.unwrap_err();
            let error = logs.close().await.unwrap_err();
            assert!(error.is_full_disk(), "{error}");
        })
        .unwrap();
    disk.clear_faults();
    let later = disk.clone();
    SimRuntime::new(&disk, 11)
        .block_on(async move {
            let logs = start(2, 16 * MIB).await;
            assert!(!is_there(&later, "a-0"));
            let log = logs.open_log(identity("b"), LogConfig::default()).await;
            assert_eq!(log.unwrap().log_end_offset().0, 1);
            logs.close().await.unwrap();
        })
        .unwrap();
}

#[test]
fn below_the_reserve_producers_are_refused_and_others_are_not() {
    let disk = SimDisk::new(SimDiskOptions::default(), 12);
    SimRuntime::new(&disk, 12)
        .block_on(async {
            let logs = start(1, 16 * MIB).await;
            let [log, _] = two_logs(&logs).await;
            let coordinator = AppendContext {
                origin: AppendOrigin::Coordinator,
                ..context()
            };
            for room in [DiskRoom::Reserve, DiskRoom::Little, DiskRoom::Enough] {
                logs.set_disk_room(room);
                let appended = log.append(batch(100, 1), context()).await;
                match room {
                    DiskRoom::Reserve => {
                        let refused = appended.unwrap_err().to_string();
                        assert!(refused.contains("coreline.disk.reserve.bytes"), "{refused}");
                    }
                    _ => drop(appended.unwrap()),
                }
                log.append(batch(100, 1), coordinator).await.unwrap();
            }
            let refused = crate::metrics::Counter::AppendsWithoutRoom;
            assert_eq!(logs.metrics().get(refused), 1);
            logs.set_disk_room(DiskRoom::Reserve);
            // Deleting is what makes room.
            logs.delete_log(&log).await.unwrap();
            logs.close().await.unwrap();
        })
        .unwrap();
}
