//! A full disk is the producer's to know at once, and deleting a log is what makes room again.

use std::rc::Rc;
use std::time::Duration;

use super::log_test::{batch, context, identity, start};
use super::*;
use crate::base::limits::MIB;
use crate::io;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};

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
