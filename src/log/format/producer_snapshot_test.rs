use std::collections::HashMap;

use proptest::prelude::*;

use super::producer_snapshot;
use super::producer_state::{BatchMetadata, ProducerEntry, ProducerStates};
use super::producer_state_test::{Batch, DATA, PRODUCER, header};
use crate::base::ids::{Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::time::TimestampMs;

#[test]
fn a_snapshot_has_kafkas_bytes() {
    let mut states = ProducerStates::default();
    states.apply(&header(&Batch {
        epoch: 2,
        sequence: 5,
        records: 3,
        offset: 40,
        ..DATA
    }));
    let bytes = producer_snapshot::encode(&states);
    let mut entry = vec![0, 0, 0, 1];
    entry.extend_from_slice(&7i64.to_be_bytes());
    entry.extend_from_slice(&2i16.to_be_bytes());
    entry.extend_from_slice(&7i32.to_be_bytes());
    entry.extend_from_slice(&42i64.to_be_bytes());
    entry.extend_from_slice(&2i32.to_be_bytes());
    entry.extend_from_slice(&1_040i64.to_be_bytes());
    entry.extend_from_slice(&(-1i32).to_be_bytes());
    entry.extend_from_slice(&(-1i64).to_be_bytes());
    assert_eq!(bytes[6..], entry);
    assert_eq!(bytes[..2], [0, 1]);
    assert_eq!(bytes[2..6], crc32c::crc32c(&entry).to_be_bytes());
    assert_eq!(producer_snapshot::decode(&bytes), Ok(states));
    for (cut, position) in [(0, 0), (1, 0), (2, 2), (9, 2), (bytes.len() - 1, 2)] {
        let error = producer_snapshot::decode(&bytes[..cut]).unwrap_err();
        assert_eq!(error.position, position, "cut at {cut}");
    }
    let mut more = bytes.clone();
    more[9] = 2;
    let crc = crc32c::crc32c(&more[6..]);
    more[2..6].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(producer_snapshot::decode(&more).unwrap_err().position, 6);
}

/// What Apache Kafka has after it has read a snapshot: the last entry of each producer.
pub(super) fn as_kafka_reads(bytes: &[u8]) -> ProducerStates {
    let mut entries: HashMap<&[u8], &[u8]> = HashMap::new();
    for entry in bytes[10..].chunks_exact(producer_snapshot::PRODUCER_ENTRY_BYTES) {
        entries.insert(&entry[..8], entry);
    }
    let mut alone = bytes[..6].to_vec();
    alone.extend_from_slice(&(entries.len() as i32).to_be_bytes());
    entries
        .values()
        .for_each(|entry| alone.extend_from_slice(entry));
    let crc = crc32c::crc32c(&alone[6..]);
    alone[2..6].copy_from_slice(&crc.to_be_bytes());
    producer_snapshot::decode(&alone).unwrap()
}

#[test]
fn a_snapshot_has_an_entry_for_each_of_the_last_five_batches() {
    let mut states = ProducerStates::default();
    for sequence in 0..7 {
        states.apply(&header(&Batch {
            sequence,
            offset: 10 + i64::from(sequence),
            is_transactional: true,
            ..DATA
        }));
    }
    let bytes = producer_snapshot::encode(&states);
    let entry_bytes = producer_snapshot::PRODUCER_ENTRY_BYTES;
    assert_eq!(bytes.len(), 10 + 5 * entry_bytes);
    let transactions = bytes[10..]
        .chunks_exact(entry_bytes)
        .map(|entry| entry[38..46].to_vec());
    let none = (-1i64).to_be_bytes().to_vec();
    let first = 10i64.to_be_bytes().to_vec();
    let expected = [none.clone(), none.clone(), none.clone(), none, first];
    assert!(
        transactions.eq(expected),
        "the last entry alone has the transaction"
    );
    let decoded = producer_snapshot::decode(&bytes).unwrap();
    assert_eq!(decoded, states);
    // One byte less than all batches need: the last one of each is kept, as Kafka does.
    let all = producer_snapshot::encode_within(&states, bytes.len());
    assert_eq!(all, bytes);
    let few = producer_snapshot::encode_within(&states, bytes.len() - 1);
    assert_eq!(few.len(), 10 + entry_bytes);
    assert_eq!(
        as_kafka_reads(&bytes),
        producer_snapshot::decode(&few).unwrap()
    );
}

#[test]
fn entries_of_another_epoch_are_no_earlier_batches() {
    let mut old = ProducerStates::default();
    old.apply(&header(&Batch {
        epoch: 1,
        is_transactional: true,
        ..DATA
    }));
    let mut new = ProducerStates::default();
    new.apply(&header(&Batch {
        epoch: 2,
        offset: 9,
        ..DATA
    }));
    let mut loaded = ProducerStates::default();
    for states in [&old, &new] {
        loaded.load(PRODUCER, states.get(PRODUCER).unwrap().clone());
    }
    assert_eq!(loaded, new);
}

proptest! {
    #[test]
    fn snapshots_come_back(
        entries in proptest::collection::hash_map(0i64.., (0i16.., 0i32.., 0i64..1 << 40), 0..20)
    ) {
        let mut states = ProducerStates::default();
        for (id, (epoch, sequence, offset)) in entries {
            let mut entry = ProducerEntry::default();
            entry.producer_epoch = ProducerEpoch(epoch);
            entry.last_timestamp = TimestampMs(offset);
            entry.transaction_first_offset = (offset % 2 == 0).then_some(Offset(offset));
            let timestamp = TimestampMs(offset);
            let last_offset = Offset(offset + 1);
            let last_sequence = Sequence(sequence);
            entry.push(BatchMetadata { last_sequence, last_offset, offset_delta: 0, timestamp });
            states.load(ProducerId(id), entry);
        }
        let decoded = producer_snapshot::decode(&producer_snapshot::encode(&states)).unwrap();
        let listed = |states: &ProducerStates| -> HashMap<ProducerId, ProducerEntry> {
            states.producers().map(|(id, entry)| (*id, entry.clone())).collect()
        };
        prop_assert_eq!(listed(&decoded), listed(&states));
        prop_assert_eq!(decoded.first_unstable_offset(), states.first_unstable_offset());
    }

    #[test]
    fn any_bytes_are_a_snapshot_or_refused(bytes: Vec<u8>) {
        let _ = producer_snapshot::decode(&bytes);
        let mut sealed = vec![0, 1, 0, 0, 0, 0];
        sealed.extend_from_slice(&bytes);
        let crc = crc32c::crc32c(&bytes);
        sealed[2..6].copy_from_slice(&crc.to_be_bytes());
        let _ = producer_snapshot::decode(&sealed);
    }
}
