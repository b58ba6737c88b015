//! Passes over logs on the simulated disk against a model of Kafka's rule.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::{CleanOptions, CleanOutcome, CleanerPace};
use crate::base::ids::{Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::limits::{KIB, MIB};
use crate::base::random::Random;
use crate::base::time::TimestampMs;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{self, TaskClass};
use crate::log::log_test::{context, identity, start};
use crate::log::{Log, LogConfig, ReadLimit};
use crate::wire::compression::{Codec, DecodeLimits, Decoder};
use crate::wire::record::RecordIter;
use crate::wire::record_batch::{BatchBuilder, BatchHeader, HEADER_BYTES, NewRecord, verify_crc};

/// Runs with other seeds in the full dose.
pub(super) fn seeds(few: u64) -> std::ops::Range<u64> {
    match std::env::var("CORELINE_ACCEPT").is_ok() {
        true => 0..few * 20,
        false => 0..few,
    }
}

pub(super) fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 3_000,
        compacted: true,
        deletes: false,
        retention_ms: None,
        file_delete_delay_ms: 100,
        min_cleanable_millionths: 0,
        delete_retention_ms: 0,
        index_interval_bytes: 512,
        ..LogConfig::default()
    }
}

pub(super) fn options(log: &Log) -> CleanOptions {
    CleanOptions {
        last_stable_offset: log.durable_end(),
        table_bytes: MIB,
        load_factor: 0.9,
        buffer_bytes: 4 * KIB,
        rate: Rc::new(|| f64::MAX),
        pace: Arc::new(CleanerPace::default()),
    }
}

/// Waits until all segments but the active one are finished.
pub(super) async fn closed(log: &Rc<Log>) {
    let is_open = |log: &Log| {
        let segments = log.all_segments();
        let (_, closed) = segments.split_last().unwrap();
        closed.iter().any(|segment| !segment.is_finished.get())
    };
    while is_open(log) {
        io::sleep(std::time::Duration::from_millis(1)).await;
    }
}

/// A record as it is appended and as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: u64,
    /// `None`: a tombstone.
    pub(super) value: Option<Vec<u8>>,
}

/// Appends a batch of random records; answers them with their offsets.
pub(super) async fn append(log: &Rc<Log>, random: &mut Random, keys: u64) -> Vec<(i64, Row)> {
    let codecs = [
        Codec::None,
        Codec::None,
        Codec::Lz4,
        Codec::Zstd,
        Codec::Gzip,
    ];
    let codec = codecs[random.below(5) as usize];
    let rows: Vec<Row> = (0..1 + random.below(6))
        .map(|_| Row {
            key: random.below(keys),
            value: (!random.chance(1, 6))
                .then(|| vec![random.below(256) as u8; random.below(90) as usize]),
        })
        .collect();
    let mut builder = BatchBuilder::new(Offset(0)).compressed(codec, None);
    for row in &rows {
        builder.append(NewRecord {
            timestamp: TimestampMs(1_800_000_000_000 + random.below(1_000) as i64),
            key: Some(&row.key.to_be_bytes()),
            value: row.value.as_deref(),
            headers: &[],
        });
    }
    let appended = log
        .append(builder.build().unwrap(), context())
        .await
        .unwrap();
    log.wait_durable(appended.last_offset.plus(1))
        .await
        .unwrap();
    let base = appended.base_offset.0;
    rows.into_iter()
        .zip(base..)
        .map(|(row, at)| (at, row))
        .collect()
}

/// All that can be read from `from` on, in windows of random sizes.
pub(super) async fn read_from(log: &Rc<Log>, from: Offset, random: &mut Random) -> Vec<(i64, Row)> {
    let (mut rows, mut next) = (Vec::new(), from);
    while next < log.log_end_offset() {
        let limit = ReadLimit {
            max_bytes: 100 + random.below(8_000) as usize,
            memory_max: usize::MAX,
            first_batch_max: usize::MAX,
            end: log.log_end_offset(),
        };
        let read = log.read(next, limit).await.unwrap();
        if read.bytes == 0 {
            break;
        }
        for slice in &read.slices {
            let mut at = 0;
            while at < slice.len() {
                let header = BatchHeader::parse(&slice[at..]).unwrap();
                let bytes = &slice[at..at + header.total_bytes()];
                verify_crc(bytes).unwrap();
                assert!(header.last_offset() >= next, "batches go back");
                rows.extend(
                    rows_of(&header, bytes)
                        .into_iter()
                        .filter(|(at, _)| *at >= from.0),
                );
                next = header.next_offset();
                at += bytes.len();
            }
        }
    }
    rows
}

fn rows_of(header: &BatchHeader, bytes: &[u8]) -> Vec<(i64, Row)> {
    let codec = header.attributes.codec().unwrap();
    let mut plain = Vec::new();
    let mut decoder = Decoder::new(codec, &bytes[HEADER_BYTES..], DecodeLimits::default()).unwrap();
    decoder.read_to_end(&mut plain).unwrap();
    let rows = RecordIter::new(&plain, header.record_count).map(|record| {
        let record = record.unwrap();
        let key = u64::from_be_bytes(record.key.unwrap().try_into().unwrap());
        let row = Row {
            key,
            value: record.value.map(<[u8]>::to_vec),
        };
        (header.base_offset.0 + i64::from(record.offset_delta), row)
    });
    rows.collect()
}

/// What Kafka's rule keeps after passes: the model of the log.
#[derive(Default)]
pub(super) struct Model {
    pub(super) rows: BTreeMap<i64, Row>,
    /// When a tombstone may go, once a pass has met it.
    horizons: BTreeMap<i64, i64>,
}

impl Model {
    /// A pass at `now` that covers the offsets below `end`.
    fn pass(&mut self, (first_dirty, end): (i64, i64), now: i64, retention: i64) {
        let mut last = BTreeMap::new();
        for (offset, row) in self.rows.range(first_dirty..end) {
            last.insert(row.key, *offset);
        }
        let horizons = &mut self.horizons;
        self.rows.retain(|offset, row| {
            if *offset >= end {
                return true;
            }
            let is_last = last.get(&row.key).is_none_or(|last| offset >= last);
            let has_passed = horizons.get(offset).is_some_and(|horizon| *horizon <= now);
            is_last && (row.value.is_some() || !has_passed)
        });
        for (offset, row) in self.rows.range(..end) {
            if row.value.is_none() {
                horizons.entry(*offset).or_insert(now + retention);
            }
        }
    }

    fn check(&self, found: &[(i64, Row)]) {
        let expected: Vec<(i64, Row)> = self
            .rows
            .iter()
            .map(|(at, row)| (*at, row.clone()))
            .collect();
        let offsets = |rows: &[(i64, Row)]| rows.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        assert_eq!(offsets(found), offsets(&expected));
        assert_eq!(found, &expected[..]);
    }
}

/// One pass, and the model's.
async fn pass(log: &Rc<Log>, model: &mut Model, options: &CleanOptions) -> bool {
    let now = io::wall_clock().0;
    let retention = log.config().delete_retention_ms as i64;
    match log.clean(options).await.unwrap() {
        CleanOutcome::Nothing => false,
        CleanOutcome::Cleaned(stats) => {
            let range = (stats.first_dirty.0, stats.cleaned_to.0);
            model.pass(range, now, retention);
            true
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_kept_is_what_the_model_keeps() {
    for seed in seeds(2) {
        println!("seed {seed}");
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        let mut random = Random::new(seed);
        let config = LogConfig {
            delete_retention_ms: 1_000,
            segment_bytes: 1_000 + random.below(9_000),
            ..config()
        };
        let mut model = Model::default();
        let mut passes = 0;
        for life in 1..4 {
            let (model, passes, random) = (&mut model, &mut passes, &mut random);
            let config = config.clone();
            let run = async {
                let logs = start(life, 4 * MIB).await;
                let log = match life {
                    1 => logs.create_log(identity("a"), config).await.unwrap(),
                    _ => logs.open_log(identity("a"), config).await.unwrap(),
                };
                assert_eq!(log.damage(), None);
                for _ in 0..12 {
                    let keys = 1 + random.below(60);
                    for _ in 0..random.below(60) {
                        model.rows.extend(append(&log, random, keys).await);
                    }
                    io::sleep(std::time::Duration::from_millis(700 * random.below(2) + 5)).await;
                    *passes += u32::from(pass(&log, model, &options(&log)).await);
                    model.check(&read_from(&log, Offset(0), random).await);
                    let from = random.below(log.log_end_offset().0 as u64 + 1) as i64;
                    let behind = read_from(&log, Offset(from), random).await;
                    let expected = model.rows.range(from..).count();
                    assert_eq!(behind.len(), expected, "from {from}");
                }
                if random.chance(1, 2) {
                    logs.close().await.unwrap();
                }
            };
            SimRuntime::new(&disk, seed + u64::from(life))
                .block_on(run)
                .unwrap();
            disk.kill(seed);
        }
        assert!(passes > 10, "{passes} passes");
    }
}

#[test]
fn a_table_that_is_too_small_cleans_in_several_passes() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut random = Random::new(1);
    let mut model = Model::default();
    let run = async {
        let logs = start(1, 4 * MIB).await;
        let log = logs.create_log(identity("a"), config()).await.unwrap();
        for _ in 0..200 {
            model.rows.extend(append(&log, &mut random, 50).await);
        }
        let small = CleanOptions {
            table_bytes: 24 * 20,
            ..options(&log)
        };
        let mut passes = 0;
        while pass(&log, &mut model, &small).await {
            passes += 1;
        }
        assert!(passes > 5, "{passes}");
        // Of each key the last record, in the part that was cleaned.
        let cleaned = log.cleaned_to().unwrap();
        let found = read_from(&log, Offset(0), &mut random).await;
        let mut last = BTreeMap::new();
        for (at, row) in &model.rows {
            last.insert(row.key, *at);
        }
        let stale = found.iter().filter(|(at, row)| {
            Offset(*at) < cleaned && last[&row.key] < cleaned.0 && *at != last[&row.key]
        });
        assert_eq!(stale.count(), 0);
        for _ in 0..40 {
            append(&log, &mut random, 50).await;
        }
        let tiny = CleanOptions {
            table_bytes: 0,
            ..options(&log)
        };
        let outcome = log.clean(&tiny).await.unwrap();
        assert!(
            matches!(outcome, CleanOutcome::Uncleanable(_)),
            "{outcome:?}"
        );
        assert!(log.uncleanable(0).unwrap().contains("dedupe.buffer.size"));
        assert_eq!(log.uncleanable(1), None, "more memory is another question");
    };
    SimRuntime::new(&disk, 1).block_on(run).unwrap();
}

#[test]
fn reads_beside_a_cleaning_miss_nothing() {
    for seed in seeds(1) {
        println!("seed {seed}");
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        let run = async {
            // A cache that holds little, so that reads go to the files.
            let logs = start(1, 96 * KIB).await;
            let log = logs.create_log(identity("a"), config()).await.unwrap();
            let mut random = Random::new(seed);
            let is_over = Rc::new(Cell::new(false));
            let mut last = BTreeMap::new();
            for _ in 0..150 {
                for (at, row) in append(&log, &mut random, 40).await {
                    last.insert(row.key, at);
                }
            }
            let reader = {
                let (log, is_over) = (Rc::clone(&log), Rc::clone(&is_over));
                let mut random = Random::new(seed + 1);
                io::spawn(TaskClass::Fetch, async move {
                    let mut reads = 0;
                    while !is_over.get() {
                        let found = read_from(&log, Offset(0), &mut random).await;
                        let found: std::collections::BTreeSet<i64> =
                            found.into_iter().map(|(at, _)| at).collect();
                        for at in last.values() {
                            assert!(found.contains(at), "offset {at} is missing");
                        }
                        let latest = log.offset_for_timestamp(
                            TimestampMs(1_800_000_000_900),
                            log.log_end_offset(),
                        );
                        assert!(latest.await.unwrap().is_some());
                        reads += 1;
                    }
                    reads
                })
            };
            let keep = LogConfig {
                delete_retention_ms: u64::MAX,
                ..config()
            };
            for segment_bytes in [3_000, 6_000, 12_000, 50_000] {
                // The same part again, into ever larger segments.
                log.update_config(LogConfig {
                    segment_bytes,
                    ..keep.clone()
                });
                log.cleaning.mark.set(super::CleanedMark::default());
                let outcome = log.clean(&options(&log)).await.unwrap();
                assert!(matches!(outcome, CleanOutcome::Cleaned(_)), "{outcome:?}");
            }
            is_over.set(true);
            assert!(reader.await > 3);
        };
        SimRuntime::new(&disk, seed).block_on(run).unwrap();
    }
}

#[test]
fn producers_go_on_after_all_their_records_went() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let send = |log: Rc<Log>, id: i64, sequence: i32| async move {
        let mut builder = BatchBuilder::new(Offset(0)).producer(
            ProducerId(id),
            ProducerEpoch(0),
            Sequence(sequence),
        );
        builder.append(NewRecord {
            timestamp: TimestampMs(1_800_000_000_000),
            key: Some(b"k"),
            value: Some(&[7; 300]),
            headers: &[],
        });
        let appended = log.append(builder.build().unwrap(), context()).await?;
        log.wait_durable(appended.last_offset.plus(1))
            .await
            .unwrap();
        Ok::<bool, crate::log::AppendError>(appended.duplicate)
    };
    for life in 1..4 {
        let run = async {
            let logs = start(life, 4 * MIB).await;
            let log = match life {
                1 => logs.create_log(identity("a"), config()).await.unwrap(),
                _ => logs.open_log(identity("a"), config()).await.unwrap(),
            };
            if life == 1 {
                assert!(!send(Rc::clone(&log), 1, 0).await.unwrap());
                assert!(!send(Rc::clone(&log), 2, 0).await.unwrap());
            }
            for round in 0..20 {
                let sequence = (i32::from(life) - 1) * 20 + round;
                assert!(!send(Rc::clone(&log), 3, sequence).await.unwrap());
            }
            closed(&log).await;
            let outcome = log.clean(&options(&log)).await.unwrap();
            assert!(matches!(outcome, CleanOutcome::Cleaned(_)), "{outcome:?}");
            let headers = headers_below(&log, log.cleaned_to().unwrap()).await;
            let rows: i32 = headers.iter().map(|header| header.record_count).sum();
            assert!(rows <= 1, "{rows} records of one key");
            // A retry is known, and the sequence goes on.
            assert!(send(Rc::clone(&log), 2, 0).await.unwrap());
            let wrong = send(Rc::clone(&log), 1, 7).await;
            assert!(wrong.is_err());
            // Without a snapshot the batches alone would tell.
            let headers = headers_below(&log, log.log_end_offset()).await;
            for id in [1, 2] {
                let of_producer = |header: &&BatchHeader| header.producer_id == ProducerId(id);
                let last = headers.iter().rfind(of_producer).unwrap();
                assert_eq!((last.record_count, last.last_sequence()), (0, Sequence(0)));
            }
            logs.close().await.unwrap();
        };
        SimRuntime::new(&disk, 1).block_on(run).unwrap();
        disk.kill(1);
    }
}

/// The batches below an offset.
async fn headers_below(log: &Rc<Log>, end: Offset) -> Vec<BatchHeader> {
    let (mut next, mut headers) = (log.log_start_offset(), Vec::new());
    while next < end {
        let limit = ReadLimit {
            max_bytes: 1,
            memory_max: usize::MAX,
            first_batch_max: usize::MAX,
            end,
        };
        let read = log.read(next, limit).await.unwrap();
        let Some(slice) = read.slices.first() else {
            break;
        };
        let header = BatchHeader::parse(slice).unwrap();
        next = header.next_offset();
        headers.push(header);
    }
    headers
}

#[test]
fn a_damaged_log_is_left_alone_and_named() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut random = Random::new(1);
    let run = async {
        let logs = start(1, 4 * MIB).await;
        let log = logs.create_log(identity("a"), config()).await.unwrap();
        let whole = logs.create_log(identity("b"), config()).await.unwrap();
        for log in [&log, &whole] {
            for _ in 0..100 {
                append(log, &mut random, 9).await;
            }
        }
        closed(&whole).await;
        let (before, before_whole) = (log.segment_sizes(), whole.size_bytes());
        let second = log.all_segments()[1].path();
        disk.flip_bit(&second.to_string_lossy(), 700, 3).unwrap();
        let outcome = log.clean(&options(&log)).await.unwrap();
        let CleanOutcome::Uncleanable(what) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(what.contains(&*second.to_string_lossy()), "{what}");
        assert_eq!(log.uncleanable(usize::MAX), Some(what));
        assert_eq!(log.segment_sizes(), before);
        let names = crate::log::open::list_folder(&log.folder.path())
            .await
            .unwrap()
            .names;
        assert!(!super::has_leftovers(&names), "{names:?}");
        let outcome = whole.clean(&options(&whole)).await.unwrap();
        assert!(matches!(outcome, CleanOutcome::Cleaned(_)), "{outcome:?}");
        assert!(
            whole.size_bytes() < before_whole / 3,
            "{}",
            whole.size_bytes()
        );
    };
    SimRuntime::new(&disk, 1).block_on(run).unwrap();
}
