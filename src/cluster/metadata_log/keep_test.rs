//! When snapshots are due, what they are worth when they are damaged, and what goes wrong with
//! them.

use super::log_test::{config, disk, live, numbers, open_with, options};
use super::names::parse_segment_name;
use super::*;
use crate::io::sim::{Fault, FaultEffect, OperationKind, SimDisk};

const FOLDER: &str = "/data/__cluster_metadata-0";
const NOW: TimestampMs = TimestampMs(1_000);

fn with(settings: MetadataLogSettings) -> MetadataLogOptions {
    MetadataLogOptions {
        settings,
        ..options()
    }
}

/// Room for so many bytes of log and snapshots.
fn keeping(retention_bytes: i64) -> MetadataLogOptions {
    with(MetadataLogSettings {
        retention_bytes,
        ..MetadataLogSettings::default()
    })
}

/// Appends the settings of these numbers, and takes a snapshot.
async fn step(opened: &mut Opened, numbers: std::ops::Range<u64>) {
    append(opened, numbers).await;
    opened.log.snapshot(&opened.image, NOW).await.unwrap();
}

async fn append(opened: &mut Opened, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let records = [config(number, 10)];
        opened.log.append(&records, NOW).await.unwrap();
        opened.image.apply(&records[0]).unwrap();
        let (end, epoch) = (opened.log.next_offset(), opened.log.epoch());
        opened.image.advance_to(end, epoch);
    }
}

/// Names in the folder that end so, in order.
fn files(disk: &SimDisk, suffix: &str) -> Vec<String> {
    let entries = disk.list(FOLDER).unwrap().into_iter();
    let named = entries.filter_map(|(name, _)| name.ends_with(suffix).then_some(name));
    named.collect()
}

/// Thirty settings with a snapshot after ten and after twenty.
fn with_snapshots(seed: u64, retention_bytes: i64) -> SimDisk {
    let disk = disk(seed);
    let life = async {
        let mut opened = open_with(&keeping(retention_bytes)).await.unwrap();
        step(&mut opened, 0..10).await;
        step(&mut opened, 10..20).await;
        opened.log.clean(NOW).await.unwrap();
        append(&mut opened, 20..30).await;
        opened.log.close().await.unwrap();
    };
    live(&disk, seed, life).unwrap();
    disk
}

fn reopened(disk: &SimDisk) -> Result<Vec<u64>, MetadataLogError> {
    let opened = live(disk, 9, open_with(&options())).unwrap();
    opened.map(|opened| numbers(&opened.image))
}

#[test]
fn a_snapshot_is_due_at_its_bytes_or_at_its_time_with_any_record() {
    let disk = disk(1);
    live(&disk, 1, async {
        let settings = MetadataLogSettings {
            bytes_between_snapshots_max: 1_000,
            snapshot_interval_ms_max: 50,
            ..MetadataLogSettings::default()
        };
        let ms = Duration::from_millis;
        let mut log = open_with(&with(settings)).await.unwrap().log;
        // The records of the start.
        assert!(!log.is_snapshot_due(ms(49)) && log.is_snapshot_due(ms(50)));
        log.bytes_since_snapshot = 999;
        assert!(!log.is_snapshot_due(ms(49)));
        log.bytes_since_snapshot = 1_000;
        assert!(log.is_snapshot_due(ms(0)));
        log.bytes_since_snapshot = 0;
        assert!(!log.is_snapshot_due(ms(100_000)));
        log.settings.snapshot_interval_ms_max = 0;
        log.bytes_since_snapshot = 999;
        assert!(!log.is_snapshot_due(ms(100_000)));
    });
}

#[test]
fn the_bytes_of_earlier_lives_count() {
    let disk = disk(1);
    let bytes = |seed| {
        let life = async {
            let mut opened = open_with(&options()).await.unwrap();
            let found = opened.log.bytes_since_snapshot;
            append(&mut opened, 0..1).await;
            (found, opened.log.bytes_since_snapshot)
        };
        live(&disk, seed, life).unwrap()
    };
    let (first, second) = (bytes(1), bytes(2));
    assert!(
        first.1 > first.0 && second.0 > first.1,
        "{first:?} {second:?}"
    );
    let disk = with_snapshots(2, -1);
    let life = async {
        open_with(&options())
            .await
            .unwrap()
            .log
            .bytes_since_snapshot
    };
    let after = live(&disk, 3, life).unwrap();
    let segments = files(&disk, ".log");
    let last = disk.contents(&format!("{FOLDER}/{}", segments[2])).unwrap();
    assert_eq!(after, last.len() as u64);
}

#[test]
fn a_snapshot_without_anything_new_is_none() {
    let disk = with_snapshots(1, -1);
    let count = files(&disk, ".checkpoint").len();
    live(&disk, 2, async {
        let mut opened = open_with(&options()).await.unwrap();
        for _ in 0..2 {
            opened.log.snapshot(&opened.image, NOW).await.unwrap();
        }
    });
    assert_eq!(files(&disk, ".checkpoint").len(), count + 1);
}

#[test]
fn what_lies_before_the_newest_snapshot_goes_when_there_is_no_room() {
    let disk = with_snapshots(1, 0);
    let (segments, snapshots) = (files(&disk, ".log"), files(&disk, ".checkpoint"));
    assert_eq!(
        (segments.len(), snapshots.len()),
        (1, 1),
        "{segments:?} {snapshots:?}"
    );
    assert_eq!(segments[0][..20], snapshots[0][..20]);
    assert_eq!(reopened(&disk).unwrap(), (0..30).collect::<Vec<_>>());
    // The epochs that are noted begin where the log does.
    let starts = disk.contents(&format!("{FOLDER}/leader-epoch-checkpoint"));
    let starts = String::from_utf8(starts.unwrap()).unwrap();
    let base = parse_segment_name(&segments[0]).unwrap();
    assert!(
        starts.starts_with(&format!("0\n2\n1 {base}\n2 ")),
        "{starts}"
    );
}

#[test]
fn files_that_kafka_keeps_beside_a_segment_go_with_it() {
    let disk = disk(1);
    let names = ["index", "timeindex", "txnindex", "snapshot"];
    live(&disk, 1, async {
        let mut opened = open_with(&keeping(0)).await.unwrap();
        for suffix in names {
            let path = format!("{FOLDER}/00000000000000000000.{suffix}");
            directory::write_file_durably(Path::new(&path), b"x")
                .await
                .unwrap();
        }
        step(&mut opened, 0..10).await;
        opened.log.clean(NOW).await.unwrap();
        // A snapshot alone is not enough: the one that the cluster began with must go first.
    });
    for suffix in names {
        assert!(files(&disk, suffix).is_empty(), "{suffix}");
    }
    assert_eq!(files(&disk, ".log").len(), 1);
}

#[test]
fn old_snapshots_go_by_their_age() {
    let settings = MetadataLogSettings {
        retention_ms: 100,
        ..MetadataLogSettings::default()
    };
    let disk = disk(1);
    live(&disk, 1, async {
        let mut opened = open_with(&with(settings)).await.unwrap();
        step(&mut opened, 0..10).await;
        for (now, left) in [(1_100, 2), (1_101, 1), (100_000, 1)] {
            opened.log.clean(TimestampMs(now)).await.unwrap();
            assert_eq!(files(&disk, ".checkpoint").len(), left, "{now}");
        }
    });
    assert_eq!(reopened(&disk).unwrap(), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_damaged_snapshot_is_named_and_the_log_or_an_older_one_takes_its_place() {
    for damaged in [1, 2] {
        let disk = with_snapshots(1, -1);
        let snapshots = files(&disk, ".checkpoint");
        assert_eq!(snapshots.len(), 3);
        for name in &snapshots[3 - damaged..] {
            disk.flip_bit(&format!("{FOLDER}/{name}"), 300, 2).unwrap();
        }
        assert_eq!(reopened(&disk).unwrap(), (0..30).collect::<Vec<_>>());
        // Neither this node nor Kafka comes upon them again.
        assert_eq!(files(&disk, ".damaged").len(), damaged);
        assert_eq!(files(&disk, ".checkpoint").len(), 3 - damaged);
        assert_eq!(reopened(&disk).unwrap(), (0..30).collect::<Vec<_>>());
    }
}

#[test]
fn a_damaged_snapshot_that_nothing_replaces_is_refused() {
    let positions = |disk: &SimDisk| {
        let name = files(disk, ".checkpoint").remove(0);
        let path = format!("{FOLDER}/{name}");
        let bytes = disk.contents(&path).unwrap();
        let mut starts = vec![0];
        while let batch::Scan::Batch(header) = batch::scan(&bytes[*starts.last().unwrap()..]) {
            starts.push(starts.last().unwrap() + header.total_bytes());
        }
        (path, starts)
    };
    let (_, starts) = positions(&with_snapshots(1, 0));
    for start in &starts[..starts.len() - 1] {
        let disk = with_snapshots(1, 0);
        let (path, _) = positions(&disk);
        disk.flip_bit(&path, *start as u64 + 40, 1).unwrap();
        for _ in 0..2 {
            let fault = reopened(&disk).unwrap_err();
            let MetadataLogError::Damaged {
                path: named,
                position,
                ..
            } = &fault
            else {
                panic!("{fault}");
            };
            assert_eq!(
                (named.to_str().unwrap(), *position),
                (path.as_str(), *start as u64)
            );
        }
        assert!(files(&disk, ".damaged").is_empty());
    }
    // Cut between two of its batches, or empty.
    for start in &starts[..starts.len() - 1] {
        let disk = with_snapshots(1, 0);
        let (path, _) = positions(&disk);
        let bytes = disk.contents(&path).unwrap();
        live(&disk, 3, async {
            let path = Path::new(&path);
            directory::write_file_durably(path, &bytes[..*start])
                .await
                .unwrap();
        });
        let fault = reopened(&disk).unwrap_err();
        assert!(
            matches!(fault, MetadataLogError::Damaged { .. }),
            "{start}: {fault}"
        );
    }
}

#[test]
fn an_older_snapshot_does_not_do_without_the_segments_between() {
    let disk = with_snapshots(1, -1);
    let (segments, snapshots) = (files(&disk, ".log"), files(&disk, ".checkpoint"));
    let newest = format!("{FOLDER}/{}", snapshots[2]);
    disk.flip_bit(&newest, 300, 2).unwrap();
    live(&disk, 3, async {
        let between = format!("{FOLDER}/{}", segments[1]);
        directory::remove_file(Path::new(&between)).await.unwrap();
    });
    let fault = reopened(&disk).unwrap_err();
    assert!(fault.to_string().contains(&newest), "{fault}");
}

#[test]
fn a_log_that_ends_before_its_snapshot_is_refused() {
    let disk = with_snapshots(1, -1);
    let last = files(&disk, ".log").remove(2);
    let remove = |name: &str| {
        let path = format!("{FOLDER}/{name}");
        live(&disk, 3, async {
            directory::remove_file(Path::new(&path)).await.unwrap();
        });
    };
    remove(&last);
    let fault = reopened(&disk).unwrap_err();
    assert!(fault.to_string().contains(&last), "{fault}");
    remove(SYNCED_POINT_FILE);
    remove(&files(&disk, ".log")[1]);
    let fault = reopened(&disk).unwrap_err();
    assert!(
        matches!(fault, MetadataLogError::EndsEarly { .. }),
        "{fault}"
    );
    for name in files(&disk, ".log") {
        remove(&name);
    }
    let fault = reopened(&disk).unwrap_err();
    assert!(
        matches!(fault, MetadataLogError::EndsEarly { .. }),
        "{fault}"
    );
}

#[test]
fn a_last_segment_that_was_cut_between_batches_is_damage() {
    let disk = with_snapshots(1, -1);
    let last = format!("{FOLDER}/{}", files(&disk, ".log")[2]);
    let bytes = disk.contents(&last).unwrap();
    let batch::Scan::Batch(first) = batch::scan(&bytes) else {
        panic!("a batch");
    };
    let cut = first.total_bytes();
    live(&disk, 3, async {
        let path = Path::new(&last);
        directory::write_file_durably(path, &bytes[..cut])
            .await
            .unwrap();
    });
    let fault = reopened(&disk).unwrap_err();
    let MetadataLogError::Damaged { position, .. } = fault else {
        panic!("{fault}");
    };
    assert_eq!(position, cut as u64);
}

fn fault(kind: OperationKind, path_part: &str, effect: FaultEffect) -> Fault {
    Fault {
        kind,
        path_part: path_part.into(),
        skip: 0,
        count: 1,
        effect,
    }
}

#[test]
fn a_snapshot_that_fails_leaves_the_log_as_it_is() {
    let kinds = [
        (
            OperationKind::Write,
            ".checkpoint.part",
            FaultEffect::Enospc,
        ),
        (OperationKind::Flush, ".checkpoint.part", FaultEffect::Eio),
        (OperationKind::Open, ".checkpoint.part", FaultEffect::Enospc),
        (OperationKind::Names, ".checkpoint.part", FaultEffect::Eio),
    ];
    for (kind, part, effect) in kinds {
        let disk = disk(1);
        live(&disk, 1, async {
            let mut opened = open_with(&keeping(0)).await.unwrap();
            append(&mut opened, 0..10).await;
            disk.arm(fault(kind, part, effect));
            let refused = opened.log.snapshot(&opened.image, NOW).await;
            assert!(refused.is_err(), "{kind:?}");
            disk.clear_faults();
            append(&mut opened, 10..12).await;
            opened.log.clean(NOW).await.unwrap();
            assert_eq!(files(&disk, ".log").len(), 1);
            step(&mut opened, 12..14).await;
        });
        assert_eq!(
            reopened(&disk).unwrap(),
            (0..14).collect::<Vec<_>>(),
            "{kind:?}"
        );
        assert!(files(&disk, ".part").is_empty());
    }
}

#[test]
fn a_segment_that_cannot_be_begun_does_not_stay() {
    let kinds = [
        (OperationKind::Open, FaultEffect::Enospc),
        (OperationKind::Truncate, FaultEffect::Eio),
        (OperationKind::Lock, FaultEffect::Eio),
    ];
    for (kind, effect) in kinds {
        let disk = disk(1);
        live(&disk, 1, async {
            let mut opened = open_with(&options()).await.unwrap();
            append(&mut opened, 0..10).await;
            disk.arm(fault(kind, ".log", effect));
            let refused = opened.log.snapshot(&opened.image, NOW).await;
            assert!(refused.is_err(), "{kind:?}");
            disk.clear_faults();
            append(&mut opened, 10..12).await;
        });
        assert_eq!(
            reopened(&disk).unwrap(),
            (0..12).collect::<Vec<_>>(),
            "{kind:?}"
        );
    }
}

#[test]
fn a_segment_ends_at_its_age() {
    let settings = MetadataLogSettings {
        segment_ms_max: 500,
        ..MetadataLogSettings::default()
    };
    let disk = disk(1);
    let at = |seed, now: i64| {
        live(&disk, seed, async {
            let opened = MetadataLog::open(&with(settings), TimestampMs(now)).await;
            let mut log = opened.unwrap().log;
            log.append(&[config(seed, 1)], TimestampMs(now))
                .await
                .unwrap();
        });
        files(&disk, ".log").len()
    };
    assert_eq!((at(1, 1_000), at(2, 1_500), at(3, 1_501)), (1, 1, 2));
    assert_eq!(reopened(&disk).unwrap(), [1, 2, 3]);
}
