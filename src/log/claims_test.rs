//! Who makes room in memory or in the journal beside a segment that comes to its end.

use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::base::ids::Offset;
use crate::base::limits::MIB;
use crate::io::sim::{Fault, FaultEffect, OperationKind, SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{self, TaskClass};
use crate::log::LogConfig;
use crate::log::format::file_names::LogFileKind;
use crate::log::log_test::{batch, context, identity, start};
use crate::log::segment::segment_path;

fn claim_of(log: &Rc<Log>, segment: &Segment) -> Claim {
    Claim {
        segment_base: segment.base_offset.0,
        end_position: segment.size.get(),
        log: Rc::clone(log),
    }
}

/// How the segment comes to its end.
#[derive(Clone, Copy, Debug)]
enum End {
    Roll,
    Close,
}

/// The partial block is asked for while appends are on their way, the last of them after so many
/// microseconds; answers the first segment's size and its file's.
fn sizes_after(end: End, busy_us: u64) -> (u64, usize) {
    let disk = SimDisk::new(SimDiskOptions::default(), busy_us);
    disk.arm(Fault {
        kind: OperationKind::Flush,
        path_part: "ends-0".to_owned(),
        skip: 0,
        count: u64::MAX,
        effect: FaultEffect::Stall(Duration::from_millis(1)),
    });
    let config = LogConfig {
        segment_bytes: 64 * 1024,
        ..LogConfig::default()
    };
    let run = SimRuntime::new(&disk, busy_us).block_on(async {
        let shard = start(1, MIB).await;
        let log = shard.create_log(identity("ends"), config).await.unwrap();
        for mark in 0..6 {
            log.append(batch(9_000, mark), context()).await.unwrap();
        }
        // The next segment's file is there, so that the roll waits for nothing.
        io::sleep(Duration::from_millis(20)).await;
        log.append(batch(9_000, 6), context()).await.unwrap();
        let segment = log.active_segment();
        let claim = claim_of(&log, &segment);
        let asked = io::spawn(TaskClass::Background, async move {
            claim.log.write_partial_block(&claim).await.unwrap();
        });
        io::sleep(Duration::from_nanos(100)).await;
        if matches!(end, End::Roll) {
            let until = io::now().after(Duration::from_micros(busy_us));
            log.append(batch(9_000, 7), context()).await.unwrap();
            while io::now() < until {
                log.append(batch(10, 8), context()).await.unwrap();
                io::sleep(Duration::from_micros(30)).await;
            }
            log.wait_until_finished(&segment).await.unwrap();
        } else {
            io::sleep(Duration::from_micros(busy_us)).await;
            shard.close().await.unwrap();
        }
        asked.await;
        segment.size.get()
    });
    let path = segment_path("/data/ends-0".as_ref(), Offset(0), LogFileKind::Log);
    let size = disk.contents(path.to_str().unwrap()).unwrap().len();
    (run.unwrap(), size)
}

#[test]
fn no_partial_block_lengthens_a_segment_that_came_to_its_end() {
    for end in [End::Roll, End::Close] {
        for busy_us in (0..6_000).step_by(50) {
            let (size, file) = sizes_after(end, busy_us);
            assert_eq!(file as u64, size, "{end:?}, busy for {busy_us} µs");
        }
    }
}
