use proptest::prelude::*;

use super::offset_index::{OffsetIndex, OffsetPosition};
use super::time_index::{TimeIndex, TimestampOffset};
use super::transaction_index::{AbortedTransaction, TransactionIndex};
use crate::base::ids::{Offset, ProducerId};
use crate::base::time::TimestampMs;

const BASE: i64 = 1_000;

#[test]
fn offset_entries_are_kafkas_bytes() {
    let mut index = OffsetIndex::new(Offset(BASE));
    assert!(index.append(Offset(BASE + 3), 4_200));
    assert!(index.append(Offset(BASE + 9), 9_000));
    assert_eq!(
        index.encode(),
        [0, 0, 0, 3, 0, 0, 0x10, 0x68, 0, 0, 0, 9, 0, 0, 0x23, 0x28]
    );
    assert_eq!(index.encode_from(1), [0, 0, 0, 9, 0, 0, 0x23, 0x28]);
    let start = OffsetPosition {
        offset: Offset(BASE),
        position: 0,
    };
    assert_eq!(index.lookup(Offset(BASE + 2)), start);
    assert_eq!(index.lookup(Offset(0)), start);
    assert_eq!(index.lookup(Offset(BASE + 3)).position, 4_200);
    assert_eq!(index.lookup(Offset(i64::MAX)).position, 9_000);
}

#[test]
fn offset_entries_that_do_not_follow_are_refused() {
    let mut index = OffsetIndex::new(Offset(BASE));
    assert!(
        !index.append(Offset(BASE + 1), 0),
        "no batch is indexed at the start"
    );
    assert!(index.append(Offset(BASE + 1), 10));
    assert!(!index.append(Offset(BASE + 1), 20));
    assert!(!index.append(Offset(BASE + 2), 10));
    assert!(!index.append(Offset(BASE - 1), 30));
    assert!(index.append(Offset(BASE + i64::from(i32::MAX)), 30));
    assert!(
        !index.append(Offset(BASE + 1 + i64::from(i32::MAX)), 40),
        "past an i32"
    );
    assert!(!index.is_full(24));
    assert!(index.is_full(23));
}

#[test]
fn index_files_with_a_zero_tail_are_read_and_torn_ones_refused() {
    let mut index = OffsetIndex::new(Offset(BASE));
    index.append(Offset(BASE + 256), 4_096);
    let mut bytes = index.encode();
    assert!(bytes.ends_with(&[0]), "the last entry itself ends in zeros");
    bytes.resize(4_096, 0);
    assert_eq!(OffsetIndex::decode(Offset(BASE), &bytes), Ok(index));
    assert_eq!(
        OffsetIndex::decode(Offset(BASE), &[0, 0, 0, 1, 9])
            .unwrap_err()
            .position,
        5
    );
    let doubled = [&bytes[..8], &bytes[..8]].concat();
    assert_eq!(
        OffsetIndex::decode(Offset(BASE), &doubled)
            .unwrap_err()
            .position,
        8
    );
    let negative = [0xff, 0, 0, 1, 0, 0, 0, 9];
    assert_eq!(
        OffsetIndex::decode(Offset(BASE), &negative)
            .unwrap_err()
            .position,
        0
    );

    let mut times = TimeIndex::new(Offset(BASE));
    assert!(times.maybe_append(TimestampMs(77), Offset(BASE + 256)));
    let mut bytes = times.encode();
    bytes.resize(1_200, 0);
    assert_eq!(TimeIndex::decode(Offset(BASE), &bytes), Ok(times));
    let doubled = [&bytes[..12], &bytes[..12]].concat();
    assert_eq!(
        TimeIndex::decode(Offset(BASE), &doubled)
            .unwrap_err()
            .position,
        12
    );
    assert!(TimeIndex::decode(Offset(BASE), &bytes[..11]).is_err());
}

#[test]
fn aborted_transactions_are_kafkas_bytes_and_found_by_range() {
    let aborted = |first: i64, last: i64, stable: i64| AbortedTransaction {
        producer_id: ProducerId(1),
        first_offset: Offset(first),
        last_offset: Offset(last),
        last_stable_offset: Offset(stable),
    };
    let mut index = TransactionIndex::default();
    assert!(index.append(aborted(10, 20, 12)));
    assert!(
        !index.append(aborted(11, 20, 12)),
        "the marker is not behind the last one"
    );
    assert!(index.append(aborted(12, 30, 31)));
    let bytes = index.encode();
    assert_eq!(bytes.len(), 68);
    assert_eq!(bytes[..10], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(
        TransactionIndex::decode(Offset(0), &bytes),
        Ok(index.clone())
    );
    assert_eq!(
        TransactionIndex::decode(Offset(21), &bytes)
            .unwrap_err()
            .position,
        0
    );
    assert_eq!(
        TransactionIndex::decode(Offset(0), &bytes[..50])
            .unwrap_err()
            .position,
        34
    );
    let mut unknown = bytes.clone();
    unknown[35] = 1;
    assert_eq!(
        TransactionIndex::decode(Offset(0), &unknown)
            .unwrap_err()
            .position,
        34
    );
    let collect = |from: i64, end: i64| {
        let mut found = Vec::new();
        let is_complete = index.collect(Offset(from), Offset(end), &mut found);
        (
            found
                .iter()
                .map(|entry| entry.first_offset.0)
                .collect::<Vec<_>>(),
            is_complete,
        )
    };
    assert_eq!(collect(0, 10), (vec![], true));
    assert_eq!(collect(0, 12), (vec![10], true));
    assert_eq!(collect(0, 13), (vec![10, 12], true));
    assert_eq!(collect(21, 40), (vec![12], false));
    index.clone().truncate_to(Offset(30));
    let mut cut = index.clone();
    cut.truncate_to(Offset(30));
    assert_eq!(cut.entries().len(), 1);
}

proptest! {
    #[test]
    fn offsets_are_found_as_in_a_list(
        gaps in proptest::collection::vec((1i64..50, 1u32..10_000), 0..60),
        probes in proptest::collection::vec(0i64..4_000, 1..20),
        cut in 0i64..4_000,
    ) {
        let mut index = OffsetIndex::new(Offset(BASE));
        let mut model = vec![(BASE, 0)];
        let (mut offset, mut position) = (BASE, 0);
        for (step, bytes) in gaps {
            offset += step;
            position += bytes;
            prop_assert!(index.append(Offset(offset), position));
            model.push((offset, position));
        }
        prop_assert_eq!(OffsetIndex::decode(Offset(BASE), &index.encode()), Ok(index.clone()));
        let check = |index: &OffsetIndex, model: &[(i64, u32)]| {
            for probe in &probes {
                let expected = model.iter().rev().find(|(offset, _)| offset <= probe);
                let (offset, position) = expected.copied().unwrap_or((BASE, 0));
                let expected = OffsetPosition { offset: Offset(offset), position };
                assert_eq!(index.lookup(Offset(*probe)), expected);
            }
        };
        check(&index, &model);
        index.truncate_to(Offset(cut));
        model.retain(|(offset, position)| *position == 0 || *offset < cut);
        check(&index, &model);
    }

    #[test]
    fn times_are_found_as_in_a_list(
        entries in proptest::collection::vec((0i64..500, 0i64..20), 0..60),
        probe in -5i64..600,
        cut in 0i64..1_200,
    ) {
        let mut index = TimeIndex::new(Offset(BASE));
        let mut model: Vec<(i64, i64)> = Vec::new();
        let mut offset = BASE;
        for (time, step) in entries {
            offset += step;
            let follows = model.last().is_none_or(|(last, _)| time > *last);
            prop_assert_eq!(index.maybe_append(TimestampMs(time), Offset(offset)), follows);
            if follows {
                model.push((time, offset));
            }
        }
        // An index whose only entry is all zeros cannot be told from an empty, preallocated one.
        if model != [(0, BASE)] {
            let decoded = TimeIndex::decode(Offset(BASE), &index.encode());
            prop_assert_eq!(decoded, Ok(index.clone()));
        }
        index.truncate_to(Offset(cut));
        model.retain(|(_, offset)| *offset < cut);
        let expected = model.iter().rev().find(|(time, _)| *time <= probe);
        let (time, offset) = expected.copied().unwrap_or((-1, BASE));
        let expected = TimestampOffset { timestamp: TimestampMs(time), offset: Offset(offset) };
        prop_assert_eq!(index.lookup(TimestampMs(probe)), expected);
    }

    #[test]
    fn any_bytes_are_an_index_or_refused(bytes: Vec<u8>) {
        if let Ok(index) = OffsetIndex::decode(Offset(0), &bytes) {
            prop_assert!(bytes.starts_with(&index.encode()));
        }
        if let Ok(index) = TimeIndex::decode(Offset(0), &bytes) {
            prop_assert!(bytes.starts_with(&index.encode()));
        }
        if let Ok(index) = TransactionIndex::decode(Offset(0), &bytes) {
            prop_assert_eq!(index.encode(), bytes);
        }
    }
}
