use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Uuid};
use crate::base::time::{TimestampMs, TimestampType};
use crate::wire::compression::Codec;
use crate::wire::record::RecordIter;

fn one_record() -> BytesMut {
    let mut builder = BatchBuilder::default();
    builder.append(NewRecord {
        timestamp: TimestampMs(1_000),
        key: Some(b"key"),
        value: Some(b"value"),
        headers: &[],
    });
    builder.build().unwrap()
}

#[test]
fn offset_and_leader_epoch_are_stamped_outside_the_checksum() {
    let mut batch = one_record();
    stamp_base_offset(&mut batch, Offset(i64::MAX - 7));
    stamp_leader_epoch(&mut batch, LeaderEpoch(42));
    verify_crc(&batch).unwrap();
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!(header.base_offset, Offset(i64::MAX - 7));
    assert_eq!(header.last_offset(), Offset(i64::MAX - 7));
    assert_eq!(header.leader_epoch, LeaderEpoch(42));
}

#[test]
fn what_lies_inside_the_checksum_needs_a_new_one() {
    let mut batch = one_record();
    set_log_append_time(&mut batch, TimestampMs(77));
    assert!(matches!(verify_crc(&batch), Err(BatchError::Crc { .. })));
    recompute_crc(&mut batch);
    verify_crc(&batch).unwrap();
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!(header.max_timestamp, TimestampMs(77));
    assert_eq!(header.base_timestamp, TimestampMs(1_000));
    assert_eq!(
        header.attributes.timestamp_type(),
        TimestampType::LogAppendTime
    );
    clear_timestamp_type(&mut batch);
    set_delete_horizon(&mut batch, TimestampMs(5));
    recompute_crc(&mut batch);
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!(
        header.attributes.timestamp_type(),
        TimestampType::CreateTime
    );
    assert_eq!(header.delete_horizon(), Some(TimestampMs(5)));
}

#[test]
fn a_header_is_refused_one_byte_short_and_taken_whole() {
    let batch = one_record();
    assert!(BatchHeader::parse(&batch[..HEADER_BYTES]).is_ok());
    let short = BatchHeader::parse(&batch[..HEADER_BYTES - 1]);
    assert_eq!(short, Err(BatchError::Truncated { have: 60, need: 61 }));
    assert_eq!(
        BatchHeader::parse(&[]),
        Err(BatchError::Truncated { have: 0, need: 61 })
    );
    let mut old = batch.clone();
    old[MAGIC_AT] = 1;
    assert_eq!(BatchHeader::parse(&old), Err(BatchError::Magic(1)));
    old[MAGIC_AT] = 0xff;
    assert_eq!(BatchHeader::parse(&old[..17]), Err(BatchError::Magic(-1)));
}

#[test]
fn a_length_is_refused_below_the_header_and_taken_at_it() {
    let mut batch = one_record();
    for (claimed, is_good) in [(49i32, true), (48, false), (0, false), (-1, false)] {
        batch[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&claimed.to_be_bytes());
        let parsed = BatchHeader::parse(&batch);
        assert_eq!(parsed.is_ok(), is_good, "{claimed}");
        if is_good {
            assert_eq!(parsed.unwrap().total_bytes(), HEADER_BYTES);
        } else {
            assert_eq!(parsed, Err(BatchError::Length(claimed)));
        }
    }
}

#[test]
fn consecutive_batches_are_taken_apart_and_a_torn_one_is_named() {
    let batch = one_record();
    let mut bytes = batch.to_vec();
    bytes.extend_from_slice(&batch);
    bytes.extend_from_slice(&batch[..70]);
    let mut splitter = split_batches(Bytes::from(bytes));
    for _ in 0..2 {
        assert_eq!(splitter.next().unwrap().unwrap().bytes, batch);
    }
    let torn = splitter.next().unwrap().unwrap_err();
    assert_eq!(
        torn,
        BatchError::Truncated {
            have: 70,
            need: batch.len()
        }
    );
    assert_eq!(splitter.rest().len(), 70);
    assert!(splitter.next().is_none());
}

#[test]
fn unknown_codecs_are_named() {
    for (id, codec) in [(0, Codec::None), (1, Codec::Gzip), (2, Codec::Snappy)] {
        assert_eq!(Attributes(id | 0x18).codec(), Ok(codec));
    }
    for id in 5..8 {
        assert_eq!(
            Attributes(id).codec(),
            Err(BatchError::UnknownCodec(id as u8))
        );
    }
}

#[test]
fn last_sequences_wrap_as_kafka_counts() {
    let builder =
        BatchBuilder::default().producer(ProducerId(1), ProducerEpoch(0), Sequence(i32::MAX - 1));
    let mut builder = builder;
    for _ in 0..4 {
        builder.append(NewRecord::default());
    }
    let header = BatchHeader::parse(&builder.build().unwrap()).unwrap();
    assert_eq!(header.last_sequence(), Sequence(1));
    assert_eq!(header.next_offset(), Offset(4));
}

#[test]
fn a_transaction_marker_has_kafkas_bytes() {
    let marker = EndTransactionMarker {
        kind: MarkerKind::Commit,
        coordinator_epoch: 9,
    };
    let batch = marker
        .batch(ProducerId(7), ProducerEpoch(3), TimestampMs(11))
        .unwrap();
    assert_eq!(batch.len(), CONTROL_MARKER_BYTES);
    verify_crc(&batch).unwrap();
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!(header.attributes, Attributes(0x30));
    assert_eq!(header.base_sequence, Sequence::NONE);
    let record = RecordIter::new(&batch[HEADER_BYTES..], 1)
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(record.key, Some(&[0, 0, 0, 1][..]));
    assert_eq!(record.value, Some(&[0, 0, 0, 0, 0, 9][..]));
    let read = EndTransactionMarker::parse(record.key.unwrap(), record.value.unwrap());
    assert_eq!(read, Some(marker));
    assert_eq!(
        EndTransactionMarker::parse(&[0, 0, 0, 2], &[0, 0, 0, 0, 0, 9]),
        None
    );
    assert_eq!(
        EndTransactionMarker::parse(&[0, 0, 0, 1], &[0, 0, 0, 0, 0]),
        None
    );
    assert_eq!(
        EndTransactionMarker::parse(&[0xff, 0, 0, 1], &[0, 0, 0, 0, 0, 9]),
        None
    );
}

#[test]
fn a_leader_change_names_voters_with_their_directories() {
    let directory = Uuid([7; 16]);
    let record = ControlRecord::leader_change(BrokerId(5), &[(BrokerId(5), directory)]);
    let mut expected = vec![0, 1, 0, 0, 0, 5];
    for _ in 0..2 {
        expected.extend_from_slice(&[2, 0, 0, 0, 5]);
        expected.extend_from_slice(&directory.0);
        expected.push(0);
    }
    expected.push(0);
    assert_eq!(record.value, expected);
    let batch = kraft_control_batch(Offset(3), LeaderEpoch(2), TimestampMs(1), &[record]).unwrap();
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!(header.attributes, Attributes(0x20));
    assert_eq!(header.leader_epoch, LeaderEpoch(2));
    let key = RecordIter::new(&batch[HEADER_BYTES..], 1)
        .next()
        .unwrap()
        .unwrap()
        .key;
    assert_eq!(
        parse_control_key(key.unwrap()),
        Some(ControlRecordType::LeaderChange)
    );
}

proptest! {
    #[test]
    fn no_bytes_make_the_parsers_panic(bytes: Vec<u8>, count: i32, magic in 0u8..4) {
        let mut bytes = bytes;
        if let Some(place) = bytes.get_mut(MAGIC_AT) {
            *place = magic;
        }
        let _ = BatchHeader::parse(&bytes);
        let _ = verify_crc(&bytes);
        let _ = parse_control_key(&bytes);
        for record in RecordIter::new(&bytes, count).flatten() {
            prop_assert_eq!(record.headers.iter().count(), record.headers.len());
        }
        for batch in split_batches(Bytes::from(bytes)) {
            let _ = batch;
        }
    }
}
