//! Segments that are gone or have another size than a clean shutdown left; evidence that a crash
//! must not take; journals that say nothing.

use super::damage_test::*;
use super::*;

const FOLDER: &str = "/data/a-0";
/// Three segments are made of [`SIZES`], each with a large batch.
const SEGMENT_BYTES: u64 = 310_000;

fn segments(disk: &SimDisk) -> Vec<String> {
    let entries = disk.list(FOLDER).unwrap().into_iter();
    let mut names: Vec<String> = entries.map(|(name, _)| name).collect();
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
}

fn base_of(name: &str) -> Offset {
    Offset(name.trim_end_matches(".log").parse().unwrap())
}

fn path_of(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// Closes a log of several segments, has `harm` done to the folder, opens it, twice.
fn after_harm(seed: u64, harm: impl AsyncFn(&[String]), check: impl AsyncFn(&Rc<Log>)) {
    let disk = SimDisk::new(SimDiskOptions::default(), seed);
    clean_life(&disk, seed, SEGMENT_BYTES);
    let names = segments(&disk);
    assert!(names.len() >= 3, "{names:?}");
    for life in 2..4 {
        let life_of = async {
            let report = recover_again(life).await;
            check(&open_again(life, &report).await).await;
        };
        if life == 2 {
            SimRuntime::new(&disk, seed + 100)
                .block_on(harm(&names))
                .unwrap();
        }
        SimRuntime::new(&disk, seed + u64::from(life))
            .block_on(life_of)
            .unwrap();
        disk.kill(seed);
    }
}

async fn assert_marked(log: &Rc<Log>, (file, position, offset): (&str, u64, Offset)) {
    let mark = log.damage().expect("a mark");
    assert_eq!(
        (mark.file.as_str(), mark.position, mark.offset),
        (file, position, offset)
    );
    assert_eq!(mark.durable_end, Offset(SIZES.len() as i64));
    assert_damaged(log).await;
    assert_unserved_past_damage(log).await;
}

#[test]
fn a_rolled_segment_that_is_gone_is_marked_wherever_it_stood() {
    for place in 0..3 {
        let gone = std::cell::RefCell::new(String::new());
        let harm = async |names: &[String]| {
            *gone.borrow_mut() = names[place].clone();
            io::directory::remove_file(path_of(&names[place]).as_ref())
                .await
                .unwrap();
        };
        let check = async |log: &Rc<Log>| {
            let name = gone.borrow().clone();
            assert_marked(log, (&name, 0, base_of(&name))).await;
        };
        after_harm(30 + place as u64, harm, check);
    }
}

#[test]
fn a_rolled_segment_that_is_cut_is_marked_where_its_whole_batches_end() {
    // Within the first batch, at its end, within the second.
    for (bytes, batches) in [(5, 0), (0, 1), (9, 1)] {
        let expected = std::cell::RefCell::new((String::new(), 0, Offset(0)));
        let harm = async |names: &[String]| {
            let path = path_of(&names[0]);
            let file = io::directory::read_file(path.as_ref(), MIB).await.unwrap();
            let first = crate::wire::record_batch::BatchHeader::parse(&file).unwrap();
            let whole = first.total_bytes() as u64 * batches;
            cut(&path, whole + bytes).await;
            *expected.borrow_mut() = (names[0].clone(), whole, Offset(batches as i64));
        };
        let check = async |log: &Rc<Log>| {
            let (name, position, offset) = expected.borrow().clone();
            assert_marked(log, (&name, position, offset)).await;
        };
        after_harm(40 + bytes + batches, harm, check);
    }
}

#[test]
fn a_rolled_segment_with_bytes_behind_its_end_serves_what_it_had() {
    let expected = std::cell::RefCell::new((String::new(), 0, Offset(0)));
    let harm = async |names: &[String]| {
        let path = path_of(&names[1]);
        let bytes = io::directory::metadata(path.as_ref()).await.unwrap().len;
        cut(&path, bytes + 1).await;
        *expected.borrow_mut() = (names[1].clone(), bytes, base_of(&names[2]));
    };
    let check = async |log: &Rc<Log>| {
        let (name, position, offset) = expected.borrow().clone();
        assert_marked(log, (&name, position, offset)).await;
    };
    after_harm(50, harm, check);
}

#[test]
fn a_folder_that_is_gone_is_no_empty_log() {
    let disk = SimDisk::new(SimDiskOptions::default(), 51);
    clean_life(&disk, 51, SEGMENT_BYTES);
    let second_life = async {
        io::directory::remove_all(FOLDER.as_ref()).await.unwrap();
        let shard = start(2, MIB).await;
        // Whoever finds no folder makes one.
        let log = shard
            .create_log(identity("a"), LogConfig::default())
            .await
            .unwrap();
        assert_marked(&log, ("00000000000000000000.log", 0, Offset(0))).await;
    };
    SimRuntime::new(&disk, 52).block_on(second_life).unwrap();
    disk.kill(52);
    let third_life = async {
        let report = recover_again(3).await;
        let log = open_again(3, &report).await;
        assert_marked(&log, ("00000000000000000000.log", 0, Offset(0))).await;
    };
    SimRuntime::new(&disk, 53).block_on(third_life).unwrap();
}

#[test]
fn what_another_broker_left_is_not_compared() {
    let harm = async |names: &[String]| {
        let path = path_of(&names[1]);
        io::directory::remove_file(path.as_ref()).await.unwrap();
        let clean = crate::log::format::clean_shutdown::encode(BrokerEpoch(2));
        let path = "/data/.kafka_cleanshutdown";
        io::directory::write_file_durably(path.as_ref(), &clean)
            .await
            .unwrap();
    };
    let check = async |log: &Rc<Log>| {
        assert_eq!(log.damage(), None);
        // The gap is stepped over, as in a log that was compacted once, and told in the log.
        let found = read_all(log).await;
        assert!(found.len() < SIZES.len() && found.len() > 3);
        assert!(log.read_failure_told.borrow().is_some());
    };
    after_harm(52, harm, check);
}

#[test]
fn a_topic_made_anew_is_not_held_against_the_old_one() {
    let disk = SimDisk::new(SimDiskOptions::default(), 53);
    clean_life(&disk, 53, SEGMENT_BYTES);
    let second_life = async {
        let shard = start(2, MIB).await;
        let log = shard
            .open_log(identity("a"), LogConfig::default())
            .await
            .unwrap();
        shard.delete_log(&log).await.unwrap();
        let log = shard
            .create_log(identity("a"), LogConfig::default())
            .await
            .unwrap();
        assert_eq!(log.damage(), None);
        append_many(&log, &SIZES[..3]).await;
        assert_eq!(read_all(&log).await.len(), 3);
    };
    SimRuntime::new(&disk, 54).block_on(second_life).unwrap();
    disk.kill(54);
    // After a kill the list of the shutdown before says nothing.
    let third_life = async {
        let report = recover_again(3).await;
        let log = open_again(3, &report).await;
        assert_eq!(log.damage(), None);
        assert_eq!(read_all(&log).await.len(), 3);
    };
    SimRuntime::new(&disk, 55).block_on(third_life).unwrap();
}

#[test]
fn a_crash_at_any_step_of_recovery_leaves_the_damaged_ring_for_repair() {
    let mut has_crashed = true;
    let mut steps = 0;
    while has_crashed {
        let disk = SimDisk::new(SimDiskOptions::default(), 60);
        killed_life(&disk, 60);
        let shard = format!("{JOURNAL}/shard-0000");
        let names = disk.list(&shard).unwrap().into_iter().map(|(name, _)| name);
        let rings = names.filter(|name| name.starts_with("ring-"));
        let paths = rings.map(|name| format!("{shard}/{name}"));
        // In the fourth batch, far below what is known to be flushed.
        let payload_in = |path: String| {
            let bytes = disk.contents(&path).unwrap();
            let at = bytes.windows(1_000).position(|bytes| bytes == [3; 1_000])?;
            Some((path, at as u64 + 500))
        };
        let (ring, at) = paths.into_iter().find_map(payload_in).unwrap();
        disk.flip_bit(&ring, at, 3).unwrap();
        let damaged = disk.contents(&ring).unwrap();
        let crashing = disk.clone();
        let outcome = SimRuntime::new(&disk, steps).block_on(async move {
            crashing.crash_after(steps);
            recover_again(2).await
        });
        has_crashed = outcome.is_err();
        disk.power_cut(steps);
        disk.never_crash();
        let next_life = async {
            let report = recover_again(3).await;
            let log = open_again(3, &report).await;
            assert!(log.damage().is_some(), "step {steps}");
        };
        SimRuntime::new(&disk, steps + 1)
            .block_on(next_life)
            .unwrap();
        let root = disk
            .list("/data")
            .unwrap()
            .into_iter()
            .map(|(name, _)| name);
        let mut kept = root.filter(|name| name.starts_with("coreline-damaged-"));
        let is_kept = kept.any(|name| disk.contents(&format!("/data/{name}")).unwrap() == damaged);
        assert!(is_kept, "step {steps}: the damaged ring file is gone");
        steps += 1;
    }
    assert!(steps > 20, "{steps} steps");
}

#[test]
fn a_damaged_name_of_the_incarnation_is_refused_with_what_to_do() {
    for bytes in [0, 20] {
        let disk = SimDisk::new(SimDiskOptions::default(), 70);
        killed_life(&disk, 70);
        let before = disk.contents("/data/a-0/00000000000000000000.log").unwrap();
        let refused = async {
            cut(&format!("{JOURNAL}/current"), bytes).await;
            let error = recover(options(2)).await.unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, LogError::Refused(_)), "{text}");
            assert!(
                text.contains("coreline-journal/current") && text.contains("copy"),
                "{text}"
            );
            // What the message offers: to go without the journal.
            io::directory::rename(JOURNAL.as_ref(), "/away".as_ref())
                .await
                .unwrap();
            let report = recover_again(3).await;
            assert_damaged(&open_again(3, &report).await).await;
        };
        SimRuntime::new(&disk, 71).block_on(refused).unwrap();
        assert_eq!(
            disk.contents("/data/a-0/00000000000000000000.log").unwrap(),
            before
        );
    }
}

#[test]
fn a_batch_larger_than_the_smallest_ring_is_durable() {
    let disk = SimDisk::new(SimDiskOptions::default(), 80);
    let sizes = [3 * MIB, 10, 20 * MIB, 300_000];
    let first_life = async {
        let shard = start(1, 4 * MIB).await;
        let config = LogConfig {
            max_message_bytes: 64 * MIB,
            ..LogConfig::default()
        };
        let log = shard.create_log(identity("a"), config).await.unwrap();
        append_many(&log, &sizes).await;
    };
    SimRuntime::new(&disk, 80).block_on(first_life).unwrap();
    disk.power_cut(80);
    let second_life = async {
        let report = recover_again(2).await;
        assert_eq!(report.journal_bytes_per_shard, 2 * MIB as u64);
        let found = read_all(&open_again(2, &report).await).await;
        assert_eq!(found.len(), sizes.len());
    };
    SimRuntime::new(&disk, 81).block_on(second_life).unwrap();
    // One byte less than the smallest ring is refused with the figures.
    let too_small = async {
        let error = recover(RecoveryOptions {
            journal_bytes: 2 * MIB as u64 - 1,
            ..options(3)
        });
        let text = error.await.unwrap_err().to_string();
        assert!(
            text.contains("coreline.journal.bytes") && text.contains("2097152"),
            "{text}"
        );
    };
    SimRuntime::new(&disk, 82).block_on(too_small).unwrap();
}
