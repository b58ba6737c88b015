//! What the files say of segments whose records all went.

use std::rc::Rc;

use super::chunks::batches;
use super::model_test::{closed, config, options};
use super::{CleanOutcome, CleanedMark};
use crate::base::ids::Offset;
use crate::base::limits::{KIB, MIB};
use crate::base::time::TimestampMs;
use crate::io;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::log_test::{context, identity, start};
use crate::log::segment::{Segment, SegmentIndex};
use crate::log::{Log, LogConfig, RetentionCause};
use crate::wire::record_batch::{BatchBuilder, BatchHeader, NewRecord};

const KEYS: i64 = 10;

/// Of few keys, each with a later timestamp: the last segments supersede all that comes before.
async fn fill(log: &Rc<Log>, count: i64) {
    let first = io::wall_clock().0;
    for number in 0..count {
        let mut builder = BatchBuilder::new(Offset(0));
        builder.append(NewRecord {
            timestamp: TimestampMs(first + number),
            key: Some(&(number % KEYS).to_be_bytes()),
            value: Some(&[7; 200]),
            headers: &[],
        });
        let appended = log.append(builder.build().unwrap(), context()).await;
        let end = appended.unwrap().last_offset.plus(1);
        log.wait_durable(end).await.unwrap();
    }
    closed(log).await;
}

async fn clean(log: &Rc<Log>) {
    let outcome = log.clean(&options(log)).await.unwrap();
    assert!(matches!(outcome, CleanOutcome::Cleaned(_)), "{outcome:?}");
}

async fn headers(segment: &Segment) -> Vec<BatchHeader> {
    let bytes = io::directory::read_file(&segment.path(), MIB).await;
    batches(&bytes.unwrap()).map(|(header, _)| header).collect()
}

async fn is_emptied(segment: &Segment) -> bool {
    let headers = headers(segment).await;
    headers.iter().all(|header| header.record_count == 0)
}

#[test]
fn a_time_index_names_records() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let run = async {
        let logs = start(1, 4 * MIB).await;
        let log = logs.create_log(identity("a"), config()).await.unwrap();
        fill(&log, 120).await;
        // Each segment for itself, then several in one.
        for segment_bytes in [3 * KIB, 16 * KIB] {
            log.cleaning.mark.set(CleanedMark::default());
            log.update_config(LogConfig {
                segment_bytes: segment_bytes as u64,
                ..config()
            });
            clean(&log).await;
            let (mut emptied, mut named) = (0, 0);
            let segments = log.all_segments();
            let (_, finished) = segments.split_last().unwrap();
            for segment in finished {
                let headers = headers(segment).await;
                let last = headers.last().unwrap();
                emptied += u32::from(last.record_count == 0);
                let folder = segment.folder.path();
                let loaded = SegmentIndex::load(&folder, segment.base_offset);
                for entry in loaded.await.unwrap().index.times.entries() {
                    let of_entry = |header: &&BatchHeader| header.last_offset() == entry.offset;
                    let header = headers.iter().find(of_entry).unwrap();
                    assert!(header.record_count > 0, "{entry:?}");
                    assert_eq!(header.max_timestamp, entry.timestamp);
                    named += 1;
                }
            }
            assert!(
                named > 0 && (emptied > 3 || segment_bytes > 3 * KIB),
                "{named} {emptied}"
            );
        }
    };
    SimRuntime::new(&disk, 1).block_on(run).unwrap();
}

#[test]
fn a_segment_of_which_nothing_is_left_is_as_old_as_it_was() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let run = async {
        let logs = start(1, 4 * MIB).await;
        let log = logs.create_log(identity("a"), config()).await.unwrap();
        fill(&log, 120).await;
        let long_ago = io::wall_clock().0 - 10_000_000;
        let times = |place: usize| TimestampMs(long_ago + place as i64);
        for (place, segment) in log.all_segments().iter().enumerate() {
            let set = io::directory::set_modified(&segment.path(), times(place)).await;
            set.unwrap();
        }
        clean(&log).await;
        let mut emptied = Vec::new();
        let segments = log.all_segments();
        let (_, finished) = segments.split_last().unwrap();
        for (place, segment) in finished.iter().enumerate() {
            let described = io::directory::metadata(&segment.path()).await.unwrap();
            assert_eq!(described.modified, times(place));
            if is_emptied(segment).await {
                emptied.push(segment.base_offset);
            }
        }
        assert!(emptied.len() > 3, "{emptied:?}");
        // So retention by time does not wait for it.
        log.update_config(LogConfig {
            deletes: true,
            retention_ms: Some(1_000_000),
            ..config()
        });
        let deleted = log.delete_old_segments(log.durable_end()).await.unwrap();
        assert!(deleted.iter().all(|one| one.cause == RetentionCause::Time));
        let deleted: Vec<Offset> = deleted.iter().map(|one| one.base_offset).collect();
        assert_eq!(deleted, emptied);
    };
    SimRuntime::new(&disk, 1).block_on(run).unwrap();
}
