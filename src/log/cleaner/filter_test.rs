//! One batch under the rules, each rule at its limit.

use std::collections::HashMap;

use super::filter::{Fate, Filtered, LastRecord, Rules};
use super::key_map::{KeyMap, KeyMapSize};
use super::transactions::CleanedTransactions;
use crate::base::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::time::TimestampMs;
use crate::log::format::transaction_index::AbortedTransaction;
use crate::wire::compression::{Codec, DecodeLimits, Decoder};
use crate::wire::record::RecordIter;
use crate::wire::record_batch::{
    BatchBuilder, BatchHeader, EndTransactionMarker, HEADER_BYTES, MarkerKind, NewRecord,
    stamp_base_offset, verify_crc,
};

const NOW: i64 = 5_000;

/// Key, value and offset delta.
type Row<'a> = (Option<&'a str>, Option<&'a str>, i32);

fn batch(builder: BatchBuilder, rows: &[Row<'_>]) -> Vec<u8> {
    let mut builder = builder.leader_epoch(LeaderEpoch(3));
    for (key, value, delta) in rows {
        let headers = [(&b"h"[..], Some(&b"x"[..]))];
        builder.append_at(
            *delta,
            NewRecord {
                timestamp: TimestampMs(1_000 + i64::from(*delta)),
                key: key.map(str::as_bytes),
                value: value.map(str::as_bytes),
                headers: &headers,
            },
        );
    }
    builder.build().unwrap().to_vec()
}

fn at(offset: i64) -> BatchBuilder {
    BatchBuilder::new(Offset(offset))
}

fn map(latest: i64, keys: &[(&str, i64)]) -> KeyMap {
    let size = KeyMapSize {
        bytes_max: 1 << 16,
        load_factor: 0.9,
        keys_max: 100,
    };
    let mut map = KeyMap::new(size, [1, 2]);
    for (key, offset) in keys {
        assert!(map.put(key.as_bytes(), Offset(*offset)));
    }
    map.cover(Offset(latest));
    map
}

fn rules() -> Rules {
    Rules {
        now: TimestampMs(NOW),
        delete_retention_ms: 700,
        round_end: Offset(1_000),
        segment_end: None,
        producers: HashMap::new(),
        limits: DecodeLimits::default(),
    }
}

fn run(rules: &Rules, bytes: &[u8], map: &KeyMap) -> Filtered {
    let header = BatchHeader::parse(bytes).unwrap();
    let transactions = &mut CleanedTransactions::default();
    rules
        .filter((&header, bytes), map, transactions, &mut Vec::new())
        .unwrap()
}

type LeftRow = (i64, i64, String, Option<String>);

/// What is left: header and (offset, timestamp, key, value).
fn left(filtered: Filtered) -> (BatchHeader, Vec<LeftRow>) {
    let Fate::Rewritten(bytes) = filtered.fate else {
        panic!("{filtered:?}");
    };
    verify_crc(&bytes).unwrap();
    let header = BatchHeader::parse(&bytes).unwrap();
    let codec = header.attributes.codec().unwrap();
    let mut plain = Vec::new();
    let mut decoder = Decoder::new(codec, &bytes[HEADER_BYTES..], DecodeLimits::default()).unwrap();
    decoder.read_to_end(&mut plain).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let rows = RecordIter::new(&plain, header.record_count).map(|record| {
        let record = record.unwrap();
        assert_eq!(
            record.headers.iter().next(),
            Some((&b"h"[..], Some(&b"x"[..])))
        );
        (
            header.base_offset.0 + i64::from(record.offset_delta),
            header.base_timestamp.0 + record.timestamp_delta,
            text(record.key.unwrap()),
            record.value.map(text),
        )
    });
    (header, rows.collect())
}

#[test]
fn the_last_record_of_each_key_stays_in_its_codec() {
    for codec in [
        Codec::None,
        Codec::Gzip,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ] {
        let producer = (ProducerId(4), ProducerEpoch(1), Sequence(70));
        let builder = at(20)
            .compressed(codec, None)
            .producer(producer.0, producer.1, producer.2)
            .transactional();
        let rows: [Row<'_>; 4] = [
            (Some("a"), Some("1"), 0),
            (Some("b"), Some("2"), 1),
            (None, Some("no key"), 2),
            (Some("c"), Some("3"), 3),
        ];
        let bytes = batch(builder, &rows);
        let map = map(100, &[("a", 90), ("b", 21), ("c", 91)]);
        let filtered = run(&rules(), &bytes, &map);
        assert_eq!((filtered.records_read, filtered.records_kept), (4, 1));
        let (header, rows) = left(filtered);
        assert_eq!(rows, [(21, 1_001, "b".to_owned(), Some("2".to_owned()))]);
        assert_eq!(header.attributes.codec(), Ok(codec));
        assert_eq!(
            (header.base_offset, header.last_offset()),
            (Offset(20), Offset(23))
        );
        assert_eq!(header.leader_epoch, LeaderEpoch(3));
        assert_eq!(
            (header.producer_id, header.producer_epoch),
            (producer.0, producer.1)
        );
        assert_eq!(
            (header.base_sequence, header.last_sequence()),
            (Sequence(70), Sequence(73))
        );
        assert_eq!(header.max_timestamp, TimestampMs(1_001));
        assert!(header.attributes.is_transactional() && !header.attributes.is_control());
    }
}

#[test]
fn a_whole_batch_keeps_its_bytes_and_an_empty_one_goes() {
    let bytes = batch(
        at(20),
        &[(Some("a"), Some("1"), 0), (Some("b"), Some("2"), 1)],
    );
    let fate = |keys: &[(&str, i64)], latest| run(&rules(), &bytes, &map(latest, keys)).fate;
    assert_eq!(fate(&[("a", 20), ("b", 21)], 100), Fate::Kept);
    assert_eq!(
        fate(&[], 100),
        Fate::Kept,
        "the dirty part does not know the keys"
    );
    assert_eq!(fate(&[("a", 30), ("b", 31)], 100), Fate::Gone);
    // Past what the map covers everything stays.
    assert_eq!(fate(&[("a", 30), ("b", 31)], 19), Fate::Kept);
    let kept = run(&rules(), &bytes, &map(20, &[("a", 30), ("b", 31)]));
    assert_eq!(
        left(kept).1,
        [(21, 1_001, "b".to_owned(), Some("2".to_owned()))]
    );
}

#[test]
fn tombstones_stay_until_their_horizon() {
    let bytes = batch(at(20), &[(Some("a"), None, 0), (Some("b"), Some("2"), 1)]);
    // Past what a full map covers there may be older records yet: the time does not begin.
    let full = map(19, &[("a", 20)]);
    assert_eq!(run(&rules(), &bytes, &full).fate, Fate::Kept);
    let map = map(100, &[("a", 20), ("b", 21)]);
    // The first pass that meets it sets the time.
    let (header, rows) = left(run(&rules(), &bytes, &map));
    assert_eq!(header.delete_horizon(), Some(TimestampMs(NOW + 700)));
    let a = (20, 1_000, "a".to_owned(), None);
    let b = (21, 1_001, "b".to_owned(), Some("2".to_owned()));
    assert_eq!(rows, [a, b.clone()]);
    let Fate::Rewritten(bytes) = run(&rules(), &bytes, &map).fate else {
        panic!()
    };
    let later = |now| Rules {
        now: TimestampMs(now),
        ..rules()
    };
    assert_eq!(run(&later(NOW + 699), &bytes, &map).fate, Fate::Kept);
    let (header, rows) = left(run(&later(NOW + 700), &bytes, &map));
    assert_eq!(rows, [b]);
    assert_eq!(
        header.delete_horizon(),
        Some(TimestampMs(NOW + 700)),
        "it stays"
    );
}

#[test]
fn the_last_batch_of_a_producer_stays_without_records() {
    let producer = |epoch| at(20).producer(ProducerId(4), ProducerEpoch(epoch), Sequence(70));
    let rows: [Row<'_>; 2] = [(Some("a"), Some("1"), 0), (Some("a"), Some("2"), 3)];
    let bytes = batch(producer(1), &rows);
    let map = map(100, &[("a", 90)]);
    let with = |offset: Option<i64>, epoch| {
        let last = LastRecord {
            offset: offset.map(Offset),
            producer_epoch: ProducerEpoch(epoch),
        };
        Rules {
            producers: HashMap::from([(ProducerId(4), last)]),
            ..rules()
        }
    };
    assert_eq!(run(&with(Some(24), 1), &bytes, &map).fate, Fate::Gone);
    assert_eq!(
        run(&with(None, 1), &bytes, &map).fate,
        Fate::Gone,
        "no marker"
    );
    let (header, rows) = left(run(&with(Some(23), 1), &bytes, &map));
    assert!(rows.is_empty() && header.total_bytes() == HEADER_BYTES);
    assert_eq!(
        (header.base_offset, header.last_offset()),
        (Offset(20), Offset(23))
    );
    assert_eq!(header.last_sequence(), Sequence(73));
    assert_eq!(header.max_timestamp, TimestampMs(1_003));
    // Once empty it keeps its bytes, and goes when the producer is forgotten.
    let Fate::Rewritten(empty) = run(&with(Some(23), 1), &bytes, &map).fate else {
        panic!()
    };
    assert_eq!(run(&with(Some(23), 1), &empty, &map).fate, Fate::Kept);
    assert_eq!(run(&rules(), &empty, &map).fate, Fate::Gone);
}

#[test]
fn the_last_batch_of_a_round_stays_without_records() {
    let bytes = batch(at(20), &[(Some("a"), Some("1"), 0)]);
    let map = map(100, &[("a", 90)]);
    let ends_at = |end| Rules {
        round_end: Offset(end),
        ..rules()
    };
    let (header, rows) = left(run(&ends_at(21), &bytes, &map));
    assert!(rows.is_empty());
    assert_eq!(header.max_timestamp, TimestampMs(1_000), "as Kafka");
    assert_eq!(run(&ends_at(22), &bytes, &map).fate, Fate::Gone);
}

#[test]
fn of_the_last_batch_of_a_segment_nothing_but_its_offsets_stays() {
    let producer = |id| at(20).producer(ProducerId(id), ProducerEpoch(1), Sequence(70));
    let rows: [Row<'_>; 2] = [(Some("a"), Some("1"), 0), (Some("a"), Some("2"), 3)];
    let bytes = batch(producer(4).transactional(), &rows);
    let map = map(100, &[("a", 90)]);
    let with = |end, last: Option<i64>| {
        let last = last.map(|offset| LastRecord {
            offset: Some(Offset(offset)),
            producer_epoch: ProducerEpoch(1),
        });
        Rules {
            segment_end: Some(Offset(end)),
            producers: last.map(|last| (ProducerId(4), last)).into_iter().collect(),
            ..rules()
        }
    };
    assert_eq!(run(&with(25, None), &bytes, &map).fate, Fate::Gone);
    let (header, rows) = left(run(&with(24, None), &bytes, &map));
    assert!(rows.is_empty() && header.total_bytes() == HEADER_BYTES);
    assert_eq!(
        (header.base_offset, header.last_offset()),
        (Offset(20), Offset(23))
    );
    assert_eq!(header.leader_epoch, LeaderEpoch(3));
    assert_eq!(header.max_timestamp, TimestampMs::NONE);
    assert!(!header.has_producer_id() && !header.attributes.is_transactional());
    let bare = |end, last, bytes: &[u8]| match run(&with(end, last), bytes, &map).fate {
        Fate::Rewritten(bytes) => bytes.to_vec(),
        other => panic!("{other:?}"),
    };
    let once = bare(24, None, &bytes);
    assert_eq!(run(&with(24, None), &once, &map).fate, Fate::Kept);
    assert_eq!(run(&with(25, None), &once, &map).fate, Fate::Gone);
    // The last one of a producer stays as such, until the producer is forgotten.
    let known = bare(24, Some(23), &bytes);
    let header = BatchHeader::parse(&known).unwrap();
    assert_eq!(header.producer_id, ProducerId(4));
    assert_eq!(header.max_timestamp, TimestampMs(1_003));
    assert_eq!(run(&with(24, Some(23)), &known, &map).fate, Fate::Kept);
    assert_eq!(bare(24, None, &known), once);
}

#[test]
fn the_time_of_append_stays() {
    let bytes = batch(
        at(20).log_append_time(TimestampMs(8_888)),
        &[(Some("a"), Some("1"), 0), (Some("b"), Some("2"), 1)],
    );
    let (header, _) = left(run(&rules(), &bytes, &map(100, &[("a", 90), ("b", 21)])));
    assert_eq!(header.max_timestamp, TimestampMs(8_888));
    assert_eq!(
        header.attributes.timestamp_type(),
        crate::base::time::TimestampType::LogAppendTime
    );
}

fn marker(kind: MarkerKind, offset: i64) -> Vec<u8> {
    let marker = EndTransactionMarker {
        kind,
        coordinator_epoch: 0,
    };
    let bytes = marker.batch(ProducerId(4), ProducerEpoch(1), TimestampMs(1_500));
    let mut bytes = bytes.unwrap().to_vec();
    stamp_base_offset(&mut bytes, Offset(offset));
    bytes
}

/// Runs batches one after the other; the fates.
fn walk(rules: &Rules, aborted: Vec<AbortedTransaction>, batches: &[Vec<u8>]) -> Vec<Fate> {
    let mut transactions = CleanedTransactions::new(aborted);
    let map = map(100, &[("a", 90)]);
    let fates = batches.iter().map(|bytes| {
        let header = BatchHeader::parse(bytes).unwrap();
        let batch = (&header, &bytes[..]);
        let filtered = rules.filter(batch, &map, &mut transactions, &mut Vec::new());
        filtered.unwrap().fate
    });
    fates.collect()
}

#[test]
fn a_marker_stays_until_nothing_of_its_transaction_is_left_and_its_time_has_passed() {
    let data = |key| {
        let producer = at(20).producer(ProducerId(4), ProducerEpoch(1), Sequence(0));
        batch(producer.transactional(), &[(Some(key), Some("1"), 0)])
    };
    let commit = marker(MarkerKind::Commit, 21);
    let fates = walk(&rules(), vec![], &[data("b"), commit.clone()]);
    assert_eq!(fates, [Fate::Kept, Fate::Kept]);
    // The walk in which the data goes still meets it.
    let fates = walk(&rules(), vec![], &[data("a"), commit.clone()]);
    assert_eq!(fates, [Fate::Gone, Fate::Kept]);
    let fates = walk(&rules(), vec![], &[commit]);
    let Fate::Rewritten(timed) = &fates[0] else {
        panic!("{fates:?}")
    };
    let header = BatchHeader::parse(timed).unwrap();
    assert_eq!(header.delete_horizon(), Some(TimestampMs(NOW + 700)));
    assert!(header.attributes.is_control() && header.record_count == 1);
    let timed = timed.to_vec();
    assert_eq!(
        walk(&rules(), vec![], std::slice::from_ref(&timed)),
        [Fate::Kept]
    );
    let late = Rules {
        now: TimestampMs(NOW + 700),
        ..rules()
    };
    assert_eq!(walk(&late, vec![], &[timed]), [Fate::Gone]);
}

#[test]
fn records_of_an_aborted_transaction_go() {
    let producer = at(20).producer(ProducerId(4), ProducerEpoch(1), Sequence(0));
    let data = batch(producer.transactional(), &[(Some("b"), Some("1"), 0)]);
    let abort = marker(MarkerKind::Abort, 21);
    let entry = AbortedTransaction {
        producer_id: ProducerId(4),
        first_offset: Offset(20),
        last_offset: Offset(21),
        last_stable_offset: Offset(22),
    };
    let fates = walk(&rules(), vec![entry], &[data.clone(), abort.clone()]);
    assert_eq!(fates, [Fate::Gone, Fate::Kept]);
    let fates = walk(&rules(), vec![entry], std::slice::from_ref(&abort));
    assert!(matches!(fates[0], Fate::Rewritten(_)), "its time runs");
    // Where the index does not name it, nobody knows that it was aborted.
    assert_eq!(walk(&rules(), vec![], &[data])[0], Fate::Kept);
    let mut transactions = CleanedTransactions::new(vec![entry]);
    let header = BatchHeader::parse(&abort).unwrap();
    transactions.on_control(&header, super::filter::control_of(&header, &abort));
    assert!(transactions.take_kept().is_empty());
}

#[test]
fn a_batch_that_is_not_what_was_written_is_told() {
    let mut bytes = batch(at(20), &[(Some("a"), Some("1"), 0)]);
    *bytes.last_mut().unwrap() ^= 1;
    let header = BatchHeader::parse(&bytes).unwrap();
    let transactions = &mut CleanedTransactions::default();
    let filtered = rules().filter((&header, &bytes), &map(100, &[]), transactions, &mut vec![]);
    assert!(filtered.unwrap_err().contains("checksum"));
}
