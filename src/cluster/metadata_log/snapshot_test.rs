//! Folders in which Apache Kafka has taken a snapshot, and removed the segments before it or not.

use super::log_test::{config, disk, live, numbers, open_with, options};
use super::names::{SnapshotId, parse_segment_name};
use super::*;
use crate::io::sim::SimDisk;
use crate::wire::record_batch::ControlRecord;

fn small() -> MetadataLogOptions {
    MetadataLogOptions {
        settings: log_test::segments_of(1_000),
        ..options()
    }
}

/// Writes forty records over several segments; answers the offset of each, and the segments.
fn written(disk: &SimDisk) -> (Vec<i64>, Vec<i64>) {
    let offsets = live(disk, 1, async {
        let mut opened = open_with(&small()).await.unwrap();
        let mut offsets = Vec::new();
        for number in 0..40 {
            offsets.push(opened.log.next_offset().0);
            let records = [config(number, 10)];
            opened.log.append(&records, TimestampMs(5)).await.unwrap();
        }
        offsets
    });
    let entries = disk.list("/data/__cluster_metadata-0").unwrap();
    let bases = entries
        .iter()
        .filter_map(|(name, _)| parse_segment_name(name));
    let mut bases: Vec<i64> = bases.map(|base| base.0).collect();
    bases.sort_unstable();
    (offsets.unwrap(), bases)
}

/// A snapshot of the first `count` records, as Kafka lays it out.
fn snapshot(count: u64, is_whole: bool) -> Vec<u8> {
    let epoch = LeaderEpoch(1);
    let now = TimestampMs(5);
    let head = [
        ControlRecord::snapshot_header(now),
        ControlRecord::kraft_version(1),
    ];
    let records: Vec<MetadataRecord> = (0..count).map(|number| config(number, 10)).collect();
    let mut bytes = create::control_batch(Offset(0), epoch, now, &head)
        .unwrap()
        .to_vec();
    let at = Offset(head.len() as i64);
    bytes.extend_from_slice(&batch::build(at, epoch, now, &records).unwrap());
    if is_whole {
        let foot = [ControlRecord::snapshot_footer()];
        let at = at.plus(records.len() as i64);
        bytes.extend_from_slice(&create::control_batch(at, epoch, now, &foot).unwrap());
    }
    bytes
}

async fn put(end_offset: i64, bytes: &[u8]) {
    let id = SnapshotId {
        end_offset: Offset(end_offset),
        epoch: LeaderEpoch(1),
    };
    let path = Path::new("/data/__cluster_metadata-0").join(id.file_name());
    directory::write_file_durably(&path, bytes).await.unwrap();
}

#[test]
fn a_log_is_read_from_its_snapshot_on() {
    for keeps_older in [true, false] {
        let disk = disk(1);
        let (offsets, bases) = written(&disk);
        let from = bases[bases.len() - 2];
        let count = offsets.iter().filter(|offset| **offset < from).count() as u64;
        let there = live(&disk, 2, async {
            put(from, &snapshot(count, true)).await;
            for base in bases.iter().filter(|base| !keeps_older && **base < from) {
                let name = segment_name(Offset(*base));
                let path = Path::new("/data/__cluster_metadata-0").join(name);
                directory::remove_file(&path).await.unwrap();
            }
            let opened = open_with(&small()).await.unwrap();
            assert_eq!(opened.log.next_offset().0, offsets[39] + 1 + 3);
            numbers(&opened.image)
        });
        assert_eq!(there.unwrap(), (0..40).collect::<Vec<_>>(), "{keeps_older}");
    }
}

#[test]
fn a_snapshot_inside_a_segment_is_not_applied_twice() {
    let disk = disk(2);
    let (offsets, _) = written(&disk);
    let opened = live(&disk, 2, async {
        put(offsets[17], &snapshot(17, true)).await;
        open_with(&small())
            .await
            .map(|opened| numbers(&opened.image))
    });
    assert_eq!(opened.unwrap().unwrap(), (0..40).collect::<Vec<_>>());
}

#[test]
fn a_snapshot_without_its_footer_counts_for_nothing() {
    let disk = disk(3);
    let (offsets, _) = written(&disk);
    let opened = live(&disk, 2, async {
        put(offsets[17], &snapshot(17, false)).await;
        let opened = open_with(&small()).await.unwrap();
        numbers(&opened.image)
    });
    // The log holds all of it.
    assert_eq!(opened.unwrap(), (0..40).collect::<Vec<_>>());
}
