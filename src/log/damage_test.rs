//! Files that are gone or hold something else than what was written: noticed, named, never taken
//! for a shorter log.

use super::*;
use crate::io::{File, OpenOptions};

pub(super) const JOURNAL: &str = "/data/coreline-journal";

/// A life that ends in a kill with everything acknowledged.
pub(super) fn killed_life(disk: &SimDisk, seed: u64) {
    SimRuntime::new(disk, seed)
        .block_on(async {
            let logs = start(1, 64 * MIB).await;
            let log = logs
                .create_log(identity("a"), LogConfig::default())
                .await
                .unwrap();
            append_many(&log, &SIZES).await;
            io::sleep(Duration::from_millis(200)).await;
        })
        .unwrap();
    disk.kill(seed);
}

/// The same after a pause in which all is witnessed.
fn quiet_killed_life(disk: &SimDisk, seed: u64) {
    SimRuntime::new(disk, seed)
        .block_on(async {
            let logs = start(1, 64 * MIB).await;
            let log = logs.create_log(identity("a"), LogConfig::default());
            let log = log.await.unwrap();
            append_many(&log, &SIZES).await;
            io::sleep(Duration::from_secs(3)).await;
        })
        .unwrap();
    disk.kill(seed);
}

pub(super) fn options(incarnation: u8) -> RecoveryOptions {
    RecoveryOptions {
        directory: PathBuf::from("/data"),
        incarnation: Uuid([incarnation; 16]),
        shard_count: 1,
        journal_bytes: 2 * MIB as u64,
    }
}

pub(super) async fn recover_again(incarnation: u8) -> RecoveryReport {
    recover(options(incarnation)).await.unwrap()
}

pub(super) async fn open_again(incarnation: u8, report: &RecoveryReport) -> Rc<Log> {
    let options = ShardLogsOptions {
        directory: PathBuf::from("/data"),
        shard: ShardId(0),
        incarnation: Uuid([incarnation; 16]),
        journal_bytes: report.journal_bytes_per_shard,
        cache_bytes: 64 * MIB,
        random_seed: u64::from(incarnation),
        metrics: Default::default(),
    };
    let logs = ShardLogs::open(options).await.unwrap();
    logs.open_log(identity("a"), LogConfig::default())
        .await
        .unwrap()
}

/// The log is marked, takes nothing, and serves whole batches below the mark.
pub(super) async fn assert_damaged(log: &Rc<Log>) {
    let mark = log.damage().expect("a mark");
    let refused = log.append(batch(10, 1), context()).await.unwrap_err();
    assert_eq!(
        refused.error_code(),
        crate::base::error_code::ErrorCode::KAFKA_STORAGE_ERROR
    );
    let limit = ReadLimit {
        max_bytes: 64 * KIB,
        memory_max: usize::MAX,
        first_batch_max: usize::MAX,
        end: Offset(i64::MAX),
    };
    let mut from = Offset(0);
    while from < mark.offset {
        let read = log.read(from, limit).await.unwrap();
        assert!(read.bytes > 0, "nothing at {from}, damage {mark:?}");
        for slice in &read.slices {
            let header = crate::wire::record_batch::BatchHeader::parse(slice).unwrap();
            crate::wire::record_batch::verify_crc(&slice[..header.total_bytes()]).unwrap();
            from = header.next_offset();
        }
    }
}

#[test]
fn a_lost_ring_file_is_named_and_marks_the_logs_of_its_shard() {
    let disk = SimDisk::new(SimDiskOptions::default(), 11);
    killed_life(&disk, 11);
    let shard = format!("{JOURNAL}/shard-0000");
    let mut names = disk.list(&shard).unwrap();
    names.retain(|(name, _)| name.starts_with("ring-"));
    let used = names.into_iter().map(|(name, _)| format!("{shard}/{name}"));
    let used: Vec<_> = used
        .filter(|path| disk.contents(path).unwrap().iter().any(|byte| *byte != 0))
        .collect();
    SimRuntime::new(&disk, 12)
        .block_on(async {
            for path in &used {
                io::directory::remove_file(path.as_ref()).await.unwrap();
            }
            let report = recover_again(2).await;
            for path in &used {
                let named = |notice: &String| notice.contains(path) && notice.contains("missing");
                assert!(report.notices.iter().any(named), "{:?}", report.notices);
            }
            assert_damaged(&open_again(2, &report).await).await;
        })
        .unwrap();
}

#[test]
fn a_ring_file_cut_short_is_named_and_marks_the_logs_of_its_shard() {
    for (seed, len) in [0, 1, 4_096, 65_536, 700_000].into_iter().enumerate() {
        let seed = seed as u64;
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        killed_life(&disk, seed);
        let path = format!("{JOURNAL}/shard-0000/ring-0000");
        SimRuntime::new(&disk, seed + 1)
            .block_on(async {
                let options = OpenOptions {
                    write: true,
                    ..OpenOptions::default()
                };
                let file = File::open(path.as_ref(), options).await.unwrap();
                file.truncate(len).await.unwrap();
                drop(file);
                let report = recover_again(2).await;
                let named = |notice: &String| {
                    notice.contains(&path) && notice.contains(&format!("ends at byte {len}"))
                };
                assert!(report.notices.iter().any(named), "{:?}", report.notices);
                assert_damaged(&open_again(2, &report).await).await;
            })
            .unwrap();
    }
}

/// A ring whose newest part was overwritten with zeros is as whole as one that never had it, but
/// for what its witness names.
#[test]
fn a_zeroed_end_of_the_journal_is_named_and_marks_the_logs_of_its_shard() {
    let path = format!("{JOURNAL}/shard-0000/ring-0000");
    for from in [0, 4_096, 40_960] {
        let disk = SimDisk::new(SimDiskOptions::default(), 31 + from);
        quiet_killed_life(&disk, 31);
        let used = disk.contents(&path).unwrap();
        let used = used.iter().rposition(|byte| *byte != 0).unwrap() as u64;
        for position in (from..=used).step_by(4_096) {
            disk.zero_block(&path, position).unwrap();
        }
        SimRuntime::new(&disk, 33)
            .block_on(async {
                let report = recover_again(2).await;
                let named =
                    |notice: &String| notice.contains(&path) && notice.contains(" at byte ");
                assert!(report.notices.iter().any(named), "{:?}", report.notices);
                assert_damaged(&open_again(2, &report).await).await;
            })
            .unwrap();
    }
}

/// Whatever becomes of the witness, a journal that is whole is no damage.
#[test]
fn a_whole_journal_is_never_taken_for_one_that_ends_too_early() {
    let witness = format!("{JOURNAL}/shard-0000/flushed");
    for seed in 0..24 {
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        SimRuntime::new(&disk, seed)
            .block_on(async {
                let logs = start(1, 64 * MIB).await;
                let log = logs.create_log(identity("a"), LogConfig::default());
                let log = log.await.unwrap();
                for _ in 0..=seed % 5 {
                    append_many(&log, &SIZES).await;
                    io::sleep(Duration::from_millis(350 * (seed % 4))).await;
                }
            })
            .unwrap();
        match seed % 3 {
            0 => disk.kill(seed),
            1 => disk.power_cut(seed),
            _ => {
                disk.kill(seed);
                let bytes = disk.contents(&witness).map_or(0, |bytes| bytes.len());
                if bytes > 0 {
                    disk.flip_bit(&witness, seed % bytes as u64, 3).unwrap();
                }
            }
        }
        SimRuntime::new(&disk, seed + 1)
            .block_on(async {
                let report = recover_again(2).await;
                let is_damage = |notice: &String| notice.contains("damage");
                assert!(
                    !report.notices.iter().any(is_damage),
                    "{:?}",
                    report.notices
                );
                assert!(open_again(2, &report).await.damage().is_none());
            })
            .unwrap();
    }
}

#[test]
fn a_lost_journal_folder_is_damage_and_nothing_is_cut() {
    let disk = SimDisk::new(SimDiskOptions::default(), 13);
    killed_life(&disk, 13);
    let segment = "/data/a-0/00000000000000000000.log";
    let before = disk.contents(segment).unwrap();
    SimRuntime::new(&disk, 14)
        .block_on(async {
            io::directory::remove_all(JOURNAL.as_ref()).await.unwrap();
            let report = recover_again(2).await;
            let named = |notice: &String| notice.contains("a-0") && notice.contains("missing");
            assert!(report.notices.iter().any(named), "{:?}", report.notices);
            assert_damaged(&open_again(2, &report).await).await;
        })
        .unwrap();
    assert_eq!(disk.contents(segment).unwrap(), before);
}

#[test]
fn a_shutdown_cut_short_is_no_lost_journal() {
    for steps in 0..60 {
        let disk = SimDisk::new(SimDiskOptions::default(), steps);
        let crashing = disk.clone();
        let _ = SimRuntime::new(&disk, steps).block_on(async move {
            let logs = start(1, 64 * MIB).await;
            let log = logs
                .create_log(identity("a"), LogConfig::default())
                .await
                .unwrap();
            append_many(&log, &SIZES).await;
            let closed = logs.close().await.unwrap();
            crashing.crash_after(steps);
            let _ = seal_directory(logs.directory(), &closed, BrokerEpoch(1)).await;
        });
        disk.power_cut(steps);
        disk.never_crash();
        SimRuntime::new(&disk, steps + 1)
            .block_on(async {
                let report = recover_again(2).await;
                let log = open_again(2, &report).await;
                assert_eq!(log.damage(), None, "step {steps}: {:?}", report.notices);
                assert_eq!(read_all(&log).await.len(), SIZES.len());
            })
            .unwrap();
    }
}

const SEGMENT: &str = "/data/a-0/00000000000000000000.log";

async fn stop_cleanly(logs: &Rc<ShardLogs>) {
    let closed = logs.close().await.unwrap();
    seal_directory(logs.directory(), &closed, BrokerEpoch(1))
        .await
        .unwrap();
}

/// A life that ends in order, its records below `segment_bytes` a segment.
pub(super) fn clean_life(disk: &SimDisk, seed: u64, segment_bytes: u64) {
    SimRuntime::new(disk, seed)
        .block_on(async {
            let logs = start(1, 64 * MIB).await;
            let config = LogConfig {
                segment_bytes,
                ..LogConfig::default()
            };
            let log = logs.create_log(identity("a"), config).await.unwrap();
            append_many(&log, &SIZES).await;
            stop_cleanly(&logs).await;
        })
        .unwrap();
}

pub(super) async fn cut(path: &str, bytes: u64) {
    let options = io::OpenOptions {
        write: true,
        ..io::OpenOptions::default()
    };
    let file = io::File::open(path.as_ref(), options).await.unwrap();
    file.truncate(bytes).await.unwrap();
}

/// Nothing at or past the damage is an offset out of range.
pub(super) async fn assert_unserved_past_damage(log: &Rc<Log>) {
    let mark = log.damage().unwrap();
    let limit = ReadLimit {
        max_bytes: 64 * KIB,
        memory_max: usize::MAX,
        first_batch_max: usize::MAX,
        end: Offset(i64::MAX),
    };
    for from in [mark.offset, mark.offset.plus(1), Offset(1_000_000)] {
        let error = log.read(from, limit).await.unwrap_err();
        assert!(
            matches!(error, ReadError::Log(LogError::Damaged(_))),
            "{error}"
        );
    }
}

#[test]
fn a_segment_cut_after_a_clean_stop_is_marked_and_serves_below() {
    let disk = SimDisk::new(SimDiskOptions::default(), 15);
    clean_life(&disk, 15, 1 << 30);
    SimRuntime::new(&disk, 16)
        .block_on(async {
            cut(SEGMENT, 300_000).await;
            let report = recover_again(2).await;
            let log = open_again(2, &report).await;
            assert_damaged(&log).await;
            let mark = log.damage().unwrap();
            // Six batches lie whole below byte 300,000.
            assert_eq!((mark.offset, mark.durable_end), (Offset(6), Offset(12)));
            assert_unserved_past_damage(&log).await;
        })
        .unwrap();
    disk.kill(16);
    // Later starts obey the mark.
    SimRuntime::new(&disk, 17)
        .block_on(async {
            let report = recover_again(3).await;
            assert_damaged(&open_again(3, &report).await).await;
        })
        .unwrap();
}

#[test]
fn a_segment_that_is_gone_after_a_clean_stop_is_no_empty_log() {
    let disk = SimDisk::new(SimDiskOptions::default(), 18);
    clean_life(&disk, 18, 1 << 30);
    SimRuntime::new(&disk, 19)
        .block_on(async {
            io::directory::remove_file(SEGMENT.as_ref()).await.unwrap();
            let report = recover_again(2).await;
            let log = open_again(2, &report).await;
            assert_damaged(&log).await;
            assert_unserved_past_damage(&log).await;
        })
        .unwrap();
}

#[test]
fn a_segment_cut_at_a_batch_after_a_clean_stop_is_no_shorter_log() {
    let disk = SimDisk::new(SimDiskOptions::default(), 20);
    clean_life(&disk, 20, 1 << 30);
    SimRuntime::new(&disk, 21)
        .block_on(async {
            let first = disk.contents(SEGMENT).unwrap();
            let header = crate::wire::record_batch::BatchHeader::parse(&first).unwrap();
            cut(SEGMENT, header.total_bytes() as u64).await;
            let report = recover_again(2).await;
            let log = open_again(2, &report).await;
            assert_eq!(log.damage().map(|mark| mark.offset), Some(Offset(1)));
            assert_damaged(&log).await;
        })
        .unwrap();
}

#[test]
fn a_segment_cut_or_gone_after_a_kill_takes_its_log_alone() {
    for is_gone in [false, true] {
        let disk = SimDisk::new(SimDiskOptions::default(), 22);
        killed_life(&disk, 22);
        SimRuntime::new(&disk, 23)
            .block_on(async {
                if is_gone {
                    io::directory::remove_file(SEGMENT.as_ref()).await.unwrap();
                } else {
                    // Within the first batch that went to the segment directly.
                    disk.zero_block(SEGMENT, 300_000).unwrap();
                }
                let report = recover_again(2).await;
                let named = |notice: &String| notice.contains(SEGMENT);
                assert!(report.notices.iter().any(named), "{:?}", report.notices);
                let log = open_again(2, &report).await;
                assert_damaged(&log).await;
                assert_unserved_past_damage(&log).await;
            })
            .unwrap();
    }
}

#[test]
fn a_batch_with_a_wrong_checksum_is_never_served() {
    let disk = SimDisk::new(SimDiskOptions::default(), 24);
    clean_life(&disk, 24, 1 << 30);
    SimRuntime::new(&disk, 25)
        .block_on(async {
            // In the fifth batch, of 200,000 bytes, far below the recovery point.
            disk.flip_bit(SEGMENT, 150_000, 3).unwrap();
            let report = recover_again(2).await;
            let log = open_again(2, &report).await;
            let limit = ReadLimit {
                max_bytes: MIB,
                memory_max: usize::MAX,
                first_batch_max: usize::MAX,
                end: log.log_end_offset(),
            };
            let mut from = Offset(0);
            while from < Offset(4) {
                let read = log.read(from, limit).await.unwrap();
                let mut rest = &read.slices[0][..];
                while !rest.is_empty() {
                    let header = crate::wire::record_batch::BatchHeader::parse(rest).unwrap();
                    assert!(header.base_offset < Offset(4));
                    rest = &rest[header.total_bytes()..];
                    from = header.next_offset();
                }
            }
            let error = log.read(from, limit).await.unwrap_err();
            let code = crate::base::error_code::ErrorCode::KAFKA_STORAGE_ERROR;
            assert_eq!(error.error_code(), code);
            assert!(error.to_string().contains(SEGMENT), "{error}");
            let after = log.read(Offset(5), limit).await.unwrap();
            assert!(after.bytes > 0, "what follows is whole");
        })
        .unwrap();
}
