//! A cut outlives its record in the journal.

use std::rc::Rc;

use super::*;
use crate::base::limits::MIB;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::LogConfig;
use crate::log::log_test::{batch, context, identity, read_all, start};

async fn append(log: &Rc<Log>, count: u8, bytes: usize) {
    for mark in 0..count {
        log.append(batch(bytes, mark), context()).await.unwrap();
        log.wait_durable(log.log_end_offset()).await.unwrap();
    }
}

/// A log with an end is opened, cut far below it and goes on; the journal comes round so often
/// that the cut's record is gone; the power goes.
fn records_after(rounds: u8, is_power_cut: bool) -> (usize, bool) {
    let disk = SimDisk::new(SimDiskOptions::default(), 5);
    let run = SimRuntime::new(&disk, 5).block_on(async {
        let shard = start(1, 8 * MIB).await;
        let created = shard.create_log(identity("cut"), LogConfig::default());
        append(&created.await.unwrap(), 10, 9_000).await;
    });
    run.unwrap();
    disk.kill(5);
    let run = SimRuntime::new(&disk, 6).block_on(async {
        let shard = start(2, 8 * MIB).await;
        let open = shard.open_log(identity("cut"), LogConfig::default());
        let log = open.await.unwrap();
        append(&log, 1, 9_000).await;
        log.truncate_to(Offset(5)).await.unwrap();
        append(&log, 2, 900).await;
        let created = shard.create_log(identity("other"), LogConfig::default());
        let other = created.await.unwrap();
        append(&other, rounds, 40_000).await;
        append(&log, 1, 900).await;
    });
    run.unwrap();
    match is_power_cut {
        true => disk.power_cut(6),
        false => disk.kill(6),
    }
    let run = SimRuntime::new(&disk, 7).block_on(async {
        let shard = start(3, 8 * MIB).await;
        let open = shard.open_log(identity("cut"), LogConfig::default());
        let log = open.await.unwrap();
        (read_all(&log).await.len(), log.damage().is_some())
    });
    run.unwrap()
}

#[test]
fn a_cut_holds_after_its_record_is_gone() {
    for is_power_cut in [true, false] {
        for rounds in [0, 20, 60, 120, 240] {
            let found = records_after(rounds, is_power_cut);
            assert_eq!(found, (8, false), "{rounds} rounds, power {is_power_cut}");
        }
    }
}
