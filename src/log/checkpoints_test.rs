//! Recovery points follow the snapshots and never pass what is durable; the files of a running
//! broker hold what is open and what has a folder.

use super::*;
use crate::log::format::checkpoint_files::{decode, encode};
use crate::log::format::file_names::{
    LOG_START_CHECKPOINT, LogFileKind, LogFileName, RECOVERY_POINT_CHECKPOINT,
};
use crate::wire::record_batch::{BatchHeader, verify_crc};

const BATCH_BYTES: usize = 900_000;
/// A snapshot is due after 64 MiB.
const BATCHES: u8 = 80;
const SNAPSHOT_BATCHES: u8 = 75;

fn name(offset: i64, kind: LogFileKind) -> String {
    format!("/data/a-0/{}", LogFileName::live(Offset(offset), kind))
}

/// The power goes so many steps after a snapshot became due; answers the recovery point then.
fn recovery_point_at(steps: u64) -> (i64, bool) {
    let disk = SimDisk::new(SimDiskOptions::default(), steps);
    let (crashing, point) = (disk.clone(), std::cell::Cell::new(0));
    let outcome = SimRuntime::new(&disk, steps).block_on(async {
        let logs = start(1, 8 * MIB).await;
        let created = logs.create_log(identity("a"), LogConfig::default()).await;
        let log = created.unwrap();
        for place in 0..BATCHES {
            if place == SNAPSHOT_BATCHES {
                crashing.crash_after(steps);
            }
            let appended = log
                .append(batch(BATCH_BYTES, place), context())
                .await
                .unwrap();
            log.wait_durable(appended.last_offset.plus(1))
                .await
                .unwrap();
            if place >= SNAPSHOT_BATCHES {
                io::sleep(Duration::from_millis(3)).await;
            }
            point.set(log.recovery_point().0);
        }
        io::sleep(Duration::from_millis(200)).await;
        point.set(log.recovery_point().0);
    });
    disk.power_cut(steps);
    disk.never_crash();
    (assert_durable_below(&disk, point.get()), outcome.is_err())
}

/// Every batch below the recovery point is whole on the disk, and so is what is derived.
fn assert_durable_below(disk: &SimDisk, point: i64) -> i64 {
    let bytes = disk.contents(&name(0, LogFileKind::Log)).unwrap();
    let (mut at, mut next) = (0, 0);
    while next < point {
        let header = BatchHeader::parse(&bytes[at..]).unwrap();
        verify_crc(&bytes[at..at + header.total_bytes()]).unwrap();
        at += header.total_bytes();
        next = header.next_offset().0;
    }
    if point > 0 {
        assert!(
            disk.contents(&name(point, LogFileKind::ProducerSnapshot))
                .is_ok()
        );
        assert!(disk.contents(&name(0, LogFileKind::OffsetIndex)).is_ok());
    }
    point
}

#[test]
fn the_recovery_point_follows_snapshots_and_never_passes_what_is_durable() {
    let mut steps = 0;
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let (point, has_crashed) = recovery_point_at(steps);
        seen.insert(point > 0);
        if !has_crashed {
            assert!(point >= 74, "{point} after all appends");
            break;
        }
        steps += 7;
    }
    assert_eq!(seen.len(), 2, "crashes before and after it moved");
}

#[test]
fn a_checkpoint_holds_open_logs_and_those_with_a_folder() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let key = |topic: &str| (topic.to_owned(), PartitionIndex(0));
    let test = async {
        let directory = PathBuf::from("/data");
        io::directory::create_all(&directory.join("kept-0"))
            .await
            .unwrap();
        let path = directory.join(RECOVERY_POINT_CHECKPOINT);
        let old = [
            (key("kept"), Offset(7)),
            (key("gone"), Offset(8)),
            (key("open"), Offset(9)),
        ];
        io::directory::write_file_durably(&path, &encode(&old.into()))
            .await
            .unwrap();
        let open = [(key("open"), Offset(3)), (key("new"), Offset(0))].into();
        for file in CheckpointFile::ALL {
            let has_others = write_checkpoint(&directory, file, &open).await.unwrap();
            assert_eq!(has_others, file == CheckpointFile::RecoveryPoints);
        }
        let read = async |name: &str| {
            let bytes = io::directory::read_file(&directory.join(name), MIB)
                .await
                .unwrap();
            decode(&bytes).unwrap()
        };
        let expected = [
            (key("kept"), Offset(7)),
            (key("open"), Offset(3)),
            (key("new"), Offset(0)),
        ];
        assert_eq!(read(RECOVERY_POINT_CHECKPOINT).await, expected.into());
        // A log that starts at 0 has no line.
        assert_eq!(
            read(LOG_START_CHECKPOINT).await,
            [(key("open"), Offset(3))].into()
        );
        assert_eq!(read("replication-offset-checkpoint").await, open);
        // The same offsets once more, after the other log's folder has gone: so does its line.
        io::directory::remove_all(&directory.join("kept-0"))
            .await
            .unwrap();
        let points = CheckpointFile::RecoveryPoints;
        assert!(!write_checkpoint(&directory, points, &open).await.unwrap());
        assert_eq!(read(RECOVERY_POINT_CHECKPOINT).await, open);
    };
    SimRuntime::new(&disk, 1).block_on(test).unwrap();
}
