//! Indexes in memory: those of active segments are charged to the cache, and of closed ones only so
//! many are kept, however many were read.

use std::rc::Rc;

use super::log_test::{context, identity, start};
use super::*;
use crate::base::ids::Offset;
use crate::base::limits::{KIB, MIB};
use crate::base::time::TimestampMs;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::wire::record_batch::{BatchBuilder, NewRecord};

const BATCHES: i64 = 12_000;
const SEGMENT_BATCHES: i64 = 400;
const START_MS: i64 = 1_800_000_000_000;
/// Offset and time index.
const ENTRY_BYTES: usize = 8 + 16;

/// Each batch a record of its own time; an index entry for nearly each.
async fn fill(log: &Rc<Log>) {
    for number in 0..BATCHES {
        let mut builder = BatchBuilder::new(Offset(0));
        builder.append(NewRecord {
            timestamp: TimestampMs(START_MS + number),
            key: None,
            value: Some(&[7; 30]),
            headers: &[],
        });
        let batch = builder.build().unwrap();
        log.append(batch, context()).await.unwrap();
        if number % 200 == 199 {
            log.wait_durable(Offset(number + 1)).await.unwrap();
        }
    }
}

#[test]
fn indexes_of_active_segments_are_charged_and_few_of_closed_ones_are_kept() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let ran = runtime.block_on(async {
        let logs = start(1, MIB).await;
        let config = LogConfig {
            segment_bytes: SEGMENT_BATCHES as u64 * 100,
            index_interval_bytes: 1,
            ..LogConfig::default()
        };
        let log = logs.create_log(identity("a"), config).await.unwrap();
        fill(&log).await;
        // Sealed segments are finished in the background.
        crate::io::sleep(std::time::Duration::from_secs(5)).await;
        let held = || log.shard.cache.indexes().get();
        let segments: Vec<Offset> = log
            .all_segments()
            .iter()
            .map(|one| one.base_offset)
            .collect();
        assert!(segments.len() > 20, "{}", segments.len());
        let of_active = held();
        assert!(of_active > 0, "what an active segment's takes is charged");

        // Every segment is read from its middle, and every time is looked for.
        let all = BATCHES as usize * ENTRY_BYTES;
        let most = MIB / 8 + 3 * SEGMENT_BATCHES as usize * ENTRY_BYTES;
        assert!(all > 2 * most - MIB / 8, "{all} {most}");
        for base in &segments {
            let from = base.plus(100);
            let limit = ReadLimit {
                max_bytes: KIB,
                memory_max: usize::MAX,
                first_batch_max: usize::MAX,
                end: log.log_end_offset(),
            };
            let read = log.read(from, limit).await.unwrap();
            let header = crate::wire::record_batch::BatchHeader::parse(&read.slices[0]).unwrap();
            assert_eq!(header.base_offset, from);
            assert!(held() <= most, "{} of {most} bytes", held());
        }
        for number in (0..BATCHES).step_by(97) {
            let sought = TimestampMs(START_MS + number);
            let found = log.offset_for_timestamp(sought, log.log_end_offset()).await;
            assert_eq!(found.unwrap().unwrap().offset, Offset(number));
            assert!(held() <= most, "{} of {most} bytes", held());
        }
        // What is dropped is charged no longer.
        log.all_segments().iter().for_each(|one| one.drop_index());
        assert_eq!(held(), of_active);
    });
    ran.unwrap();
}
