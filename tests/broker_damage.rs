//! Logs that are damaged: what is lost is an error that clients and operators see, never an end of
//! the log, and never an offset out of range that makes a consumer go on elsewhere.

mod broker;

use std::path::{Path, PathBuf};

use broker::requests::{self, bytes_of};
use broker::{Client, Harness, HarnessOptions, batch};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::Offset;
use coreline::base::time::TimestampMs;
use coreline::log::format::damage_mark::DamageMark;
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::offset_for_leader_epoch::OffsetForLeaderEpochResponse;
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::record_batch::{BatchBuilder, NewRecord};

const STORAGE: ErrorCode = ErrorCode::KAFKA_STORAGE_ERROR;
const NONE: ErrorCode = ErrorCode::NONE;
/// Value of the one record of every batch.
const VALUE_BYTES: usize = 1_000;

fn produce(client: &mut Client, partition: i32) -> ErrorCode {
    let request = requests::produce("t", -1, [(partition, batch(1, VALUE_BYTES))]);
    let response: ProduceResponse = client.ask(&request, 9);
    response.responses[0].partition_responses[0].error_code
}

/// Code and bytes.
fn fetch(client: &mut Client, partition: i32, offset: i64) -> (ErrorCode, usize) {
    let mut request = requests::fetch("t", &[(partition, offset)]);
    request.max_wait_ms = 100;
    let response: FetchResponse = client.ask(&request, 12);
    let data = &response.responses[0].partitions[0];
    (data.error_code, bytes_of(data))
}

/// Code and offset.
fn offset(client: &mut Client, partition: i32, timestamp: i64) -> (ErrorCode, i64) {
    let request = requests::list_offsets("t", partition, timestamp);
    let response: ListOffsetsResponse = client.ask(&request, 7);
    let data = &response.topics[0].partitions[0];
    (data.error_code, data.offset.0)
}

fn epoch_end(client: &mut Client, partition: i32) -> ErrorCode {
    let response: OffsetForLeaderEpochResponse =
        client.ask(&requests::epoch_end("t", partition), 4);
    response.topics[0].partitions[0].error_code
}

/// Five records in each of two partitions.
fn filled() -> (Harness, usize) {
    let mut harness = Harness::start(HarnessOptions::default());
    harness.create_topic("t", 2);
    let mut client = harness.connect();
    for partition in [0, 1] {
        for _ in 0..5 {
            assert_eq!(produce(&mut client, partition), NONE);
        }
    }
    let (code, bytes) = fetch(&mut client, 0, 0);
    assert_eq!(code, NONE);
    (harness, bytes / 5)
}

fn assert_whole(client: &mut Client, partition: i32) {
    assert_eq!(offset(client, partition, -1), (NONE, 5));
    assert_eq!(fetch(client, partition, 5), (NONE, 0));
    assert_eq!(produce(client, partition), NONE);
}

#[test]
fn at_and_past_a_damage_there_is_a_storage_error() {
    let (mut harness, batch_bytes) = filled();
    harness.restart_after(&HarnessOptions::default(), |folder| {
        let mark = DamageMark {
            file: "00000000000000000000.log".to_owned(),
            position: 2 * batch_bytes as u64,
            offset: Offset(2),
            durable_end: Offset(5),
            cause: "a test".to_owned(),
        };
        std::fs::write(folder.join("t-0").join("coreline.damage"), mark.encode()).unwrap();
    });
    let mut client = harness.connect();
    assert_eq!(fetch(&mut client, 0, 0), (NONE, 2 * batch_bytes));
    assert_eq!(fetch(&mut client, 0, 1), (NONE, batch_bytes));
    for past in [2, 3, 5, 6] {
        assert_eq!(fetch(&mut client, 0, past), (STORAGE, 0), "{past}");
    }
    assert_eq!(offset(&mut client, 0, -1), (STORAGE, -1), "latest");
    assert_eq!(
        offset(&mut client, 0, -3),
        (STORAGE, -1),
        "of the largest time"
    );
    assert_eq!(offset(&mut client, 0, 0), (STORAGE, -1), "of a time");
    assert_eq!(offset(&mut client, 0, -2), (NONE, 0), "earliest");
    assert_eq!(produce(&mut client, 0), STORAGE);
    assert_whole(&mut client, 1);
}

#[test]
fn a_log_that_does_not_open_is_offline_and_not_unknown() {
    let (mut harness, _) = filled();
    harness.restart_after(&HarnessOptions::default(), |folder| {
        // A mark that cannot be read: nothing is known of the log.
        std::fs::create_dir(folder.join("t-0").join("coreline.damage")).unwrap();
    });
    let mut client = harness.connect();
    assert_eq!(fetch(&mut client, 0, 0), (STORAGE, 0));
    assert_eq!(offset(&mut client, 0, -1).0, STORAGE);
    assert_eq!(epoch_end(&mut client, 0), STORAGE);
    assert_eq!(produce(&mut client, 0), STORAGE);
    assert_whole(&mut client, 1);
}

#[test]
fn a_cut_and_a_missing_segment_are_storage_errors_and_the_others_serve() {
    let options = HarnessOptions::default();
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 3);
    let mut client = harness.connect();
    for _ in 0..10 {
        for index in 0..3 {
            assert_eq!(produce(&mut client, index), NONE);
        }
    }
    drop(client);
    harness.restart_after(&options, |folder: &std::path::Path| {
        let segment = |name: &str| folder.join(name).join("00000000000000000000.log");
        let cut = std::fs::OpenOptions::new().write(true).open(segment("t-0"));
        cut.unwrap().set_len(5_000).unwrap();
        std::fs::remove_file(segment("t-1")).unwrap();
    });
    let mut client = harness.connect();
    let (code, bytes) = fetch(&mut client, 0, 0);
    assert!(code == NONE && bytes > 3_000, "{code:?} {bytes}");
    assert_eq!(offset(&mut client, 0, -2), (NONE, 0));
    for offset in [4, 5, 9, 10, 11] {
        assert_eq!(fetch(&mut client, 0, offset).0, STORAGE, "{offset}");
    }
    assert_eq!(fetch(&mut client, 1, 0).0, STORAGE);
    assert_eq!(offset(&mut client, 1, -2).0, STORAGE);
    for index in [0, 1] {
        assert_eq!(produce(&mut client, index), STORAGE);
        assert_eq!(offset(&mut client, index, -1).0, STORAGE);
        assert_eq!(offset(&mut client, index, -3).0, STORAGE);
    }
    assert_eq!(produce(&mut client, 2), NONE);
    assert_eq!(offset(&mut client, 2, -1), (NONE, 11));
    assert_eq!(fetch(&mut client, 2, 0).0, NONE);
}

/// Of the record at an offset.
fn time_of(offset: i64) -> i64 {
    1_700_000_000_000 + offset * 1_000
}

/// One record with its time.
fn produce_at(client: &mut Client, offset: i64) {
    let value = vec![b'v'; 30_000];
    let mut builder = BatchBuilder::new(Offset(0));
    builder.append(NewRecord {
        timestamp: TimestampMs(time_of(offset)),
        key: None,
        value: Some(&value),
        headers: &[],
    });
    let request = requests::produce("t", -1, [(0, builder.build().unwrap())]);
    let response: ProduceResponse = client.ask(&request, 9);
    let data = &response.responses[0].partition_responses[0];
    assert_eq!((data.error_code, data.base_offset), (NONE, Offset(offset)));
}

/// The indexes of closed segments in a folder, in order.
fn closed_indexes(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("t-0")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let last = paths
        .iter()
        .rfind(|path| path.extension().is_some_and(|end| end == "log"));
    let last = last.unwrap().file_stem().unwrap().to_owned();
    paths.retain(|path| {
        let is_index = path
            .extension()
            .is_some_and(|end| end == "index" || end == "timeindex");
        is_index && path.file_stem() != Some(&last)
    });
    paths
}

/// The closed segments' batches in a folder, in order, with the segments' base offsets; the last
/// path is the active segment's.
fn segments(folder: &Path) -> Vec<(i64, PathBuf)> {
    let entries = std::fs::read_dir(folder.join("t-0")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let logs = paths.filter(|path| path.extension().is_some_and(|end| end == "log"));
    let base = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let mut logs: Vec<_> = logs.map(|path| (base(&path), path)).collect();
    logs.sort();
    logs
}

#[test]
fn a_new_segment_that_ends_within_old_ones_takes_nobodys_place() {
    const RECORDS: i64 = 120;
    let options = HarnessOptions::default();
    let mut harness = Harness::start(options.clone());
    harness.create_topic_with("t", 1, &[("segment.bytes", "1048576")]);
    let mut client = harness.connect();
    (0..RECORDS).for_each(|offset| produce_at(&mut client, offset));
    drop(client);
    harness.restart_after(&options, |folder| {
        let segments = segments(folder);
        assert!(segments.len() >= 4, "{segments:?}");
        for (place, pair) in segments.windows(2).enumerate() {
            let [(base, path), (next, _)] = pair else {
                panic!("a window has two");
            };
            let bytes = std::fs::read(path).unwrap();
            // Nothing at all, then some of the batches: whole ones, and not all that there were.
            let batch = bytes.len() / usize::try_from(next - base).unwrap();
            let swap = path.with_extension("log.swap");
            std::fs::write(swap, &bytes[..place * 5 * batch]).unwrap();
        }
    });
    let mut client = harness.connect();
    for record in 0..RECORDS {
        let (code, bytes) = fetch(&mut client, 0, record);
        assert!(
            code == NONE && bytes > 30_000,
            "{record}: {code:?}, {bytes} bytes"
        );
    }
    assert_eq!(offset(&mut client, 0, -1), (NONE, RECORDS));
}

#[test]
fn a_log_that_begins_past_its_end_is_offline_until_that_is_put_right() {
    let options = HarnessOptions::default();
    let (mut harness, batch_bytes) = filled();
    let checkpoint = |folder: &Path| folder.join("log-start-offset-checkpoint");
    for start in ["6", "9999999", "9223372036854775807"] {
        harness.restart_after(&options, |folder| {
            std::fs::write(checkpoint(folder), format!("0\n1\nt 0 {start}\n")).unwrap();
        });
        let mut client = harness.connect();
        for at in [0, 4, 5, 6] {
            assert_eq!(fetch(&mut client, 0, at), (STORAGE, 0), "{start}: {at}");
        }
        assert_eq!(produce(&mut client, 0), STORAGE, "{start}");
        assert_eq!(offset(&mut client, 1, -1), (NONE, 5));
    }
    // At its end it may begin.
    for (start, whole) in [("3", 2 * batch_bytes), ("5", 0)] {
        harness.restart_after(&options, |folder| {
            std::fs::write(checkpoint(folder), format!("0\n1\nt 0 {start}\n")).unwrap();
        });
        let mut client = harness.connect();
        let start = start.parse().unwrap();
        assert_eq!(offset(&mut client, 0, -2), (NONE, start));
        assert_eq!(fetch(&mut client, 0, start), (NONE, whole));
    }
    assert_whole(&mut harness.connect(), 0);
}

#[test]
fn a_file_at_the_last_offset_there_is_is_no_segment() {
    let (mut harness, batch_bytes) = filled();
    harness.restart_after(&HarnessOptions::default(), |folder| {
        let path = folder.join("t-0").join(format!("{:020}.log", i64::MAX));
        std::fs::write(path, b"").unwrap();
    });
    let mut client = harness.connect();
    assert_eq!(fetch(&mut client, 0, 4), (NONE, batch_bytes));
    assert_whole(&mut client, 0);
}

#[test]
fn spoilt_indexes_change_no_answer_and_are_made_again() {
    const RECORDS: i64 = 120;
    let options = HarnessOptions::default();
    let mut harness = Harness::start(options.clone());
    harness.create_topic_with("t", 1, &[("segment.bytes", "1048576")]);
    let mut client = harness.connect();
    (0..RECORDS).for_each(|offset| produce_at(&mut client, offset));
    drop(client);
    let spoil: [fn(&Path); 5] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::write(path, b"").unwrap(),
        |path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        },
        |path| {
            let mut bytes = std::fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 2;
            std::fs::write(path, bytes).unwrap();
        },
        |path| {
            // As large as it was and in order, of another segment's making.
            let mut bytes = std::fs::read(path).unwrap();
            let entry = if path.extension().unwrap() == "index" {
                8
            } else {
                12
            };
            bytes
                .chunks_mut(entry)
                .for_each(|entry| entry[entry.len() - 1] ^= 1);
            std::fs::write(path, bytes).unwrap();
        },
    ];
    for spoil in spoil {
        let mut whole = Vec::new();
        harness.restart_after(&options, |folder| {
            let paths = closed_indexes(folder);
            assert!(paths.len() >= 6, "{paths:?}");
            for path in paths {
                whole.push((path.clone(), std::fs::read(&path).unwrap()));
                spoil(&path);
            }
        });
        let mut client = harness.connect();
        for record in 0..RECORDS {
            assert_eq!(offset(&mut client, 0, time_of(record)), (NONE, record));
            let (code, bytes) = fetch(&mut client, 0, record);
            assert!(
                code == NONE && bytes > 30_000,
                "{record}: {code:?}, {bytes} bytes"
            );
        }
        assert_eq!(offset(&mut client, 0, -3), (NONE, RECORDS - 1));
        for (path, bytes) in whole {
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{}", path.display());
        }
    }
}
