//! A snapshot of the producers' state (`ProducerStateManager`, `.snapshot` files): what recovery
//! starts from instead of reading a log from its beginning.
//!
//! Apache Kafka keeps the last batch of each producer and so forgets, at a restart, that the ones
//! before it may be retried. Here each of the last batches has an entry, oldest first. Kafka puts
//! the entries into a map by producer id in the order of the file, so that it ends up with the last
//! one, which is what it would have written itself.
//!
//! i16 version 1, u32 CRC-32C of all that follows it, i32 count, then entries of 46 bytes: i64
//! producer id, i16 epoch, i32 last sequence, i64 last offset, i32 offset delta, i64 timestamp, i32
//! coordinator epoch, i64 first offset of the open transaction or -1.

use super::FormatError;
use super::offset_index::{int_at, long_at};
use super::producer_state::{BatchMetadata, ProducerEntry, ProducerStates};
use crate::base::ids::{Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::limits::MIB;
use crate::base::time::TimestampMs;

const VERSION: i16 = 1;
const CRC_AT: usize = 2;
const COUNT_AT: usize = 6;
const ENTRIES_AT: usize = 10;
/// Bytes of one entry.
pub const PRODUCER_ENTRY_BYTES: usize = 46;
/// A file that would be larger keeps the last batch of each producer alone.
const ALL_BATCHES_BYTES_MAX: usize = 32 * MIB;

/// The file's bytes. Producers stand in the order of their ids.
#[must_use]
pub fn encode(states: &ProducerStates) -> Vec<u8> {
    encode_within(states, ALL_BATCHES_BYTES_MAX)
}

pub(super) fn encode_within(states: &ProducerStates, bytes_max: usize) -> Vec<u8> {
    let mut producers: Vec<_> = states.producers().collect();
    producers.sort_unstable_by_key(|(producer_id, _)| *producer_id);
    let batches = producers
        .iter()
        .map(|(_, entry)| entry.batches().len().max(1));
    let all: usize = batches.sum();
    let keeps_all = ENTRIES_AT + all * PRODUCER_ENTRY_BYTES <= bytes_max;
    let count = if keeps_all { all } else { producers.len() };
    let mut out = Vec::with_capacity(ENTRIES_AT + count * PRODUCER_ENTRY_BYTES);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; COUNT_AT - CRC_AT]);
    out.extend_from_slice(&(count as i32).to_be_bytes());
    for (producer_id, entry) in producers {
        let mut batches = entry.batches();
        let last = batches.next_back().copied().unwrap_or(BatchMetadata {
            last_sequence: Sequence::NONE,
            last_offset: Offset(-1),
            offset_delta: 0,
            timestamp: entry.last_timestamp,
        });
        if keeps_all {
            batches.for_each(|batch| put_earlier(&mut out, *producer_id, entry, batch));
        }
        let transaction = entry.transaction_first_offset.unwrap_or(Offset(-1));
        put(
            &mut out,
            (*producer_id, entry, &last),
            transaction,
            entry.last_timestamp,
        );
    }
    let crc = crc32c::crc32c(out.get(COUNT_AT..).unwrap_or_default());
    if let Some(field) = out.get_mut(CRC_AT..COUNT_AT) {
        field.copy_from_slice(&crc.to_be_bytes());
    }
    out
}

/// A batch before the last one. Its timestamp is at most the producer's last: Kafka leaves out
/// expired entries one by one, and must not be left with this one instead of the last.
fn put_earlier(
    out: &mut Vec<u8>,
    producer_id: ProducerId,
    entry: &ProducerEntry,
    batch: &BatchMetadata,
) {
    let timestamp = batch.timestamp.min(entry.last_timestamp);
    put(out, (producer_id, entry, batch), Offset(-1), timestamp);
}

fn put(
    out: &mut Vec<u8>,
    (producer_id, entry, batch): (ProducerId, &ProducerEntry, &BatchMetadata),
    transaction: Offset,
    timestamp: TimestampMs,
) {
    out.extend_from_slice(&producer_id.0.to_be_bytes());
    out.extend_from_slice(&entry.producer_epoch.0.to_be_bytes());
    out.extend_from_slice(&batch.last_sequence.0.to_be_bytes());
    out.extend_from_slice(&batch.last_offset.0.to_be_bytes());
    out.extend_from_slice(&batch.offset_delta.to_be_bytes());
    out.extend_from_slice(&timestamp.0.to_be_bytes());
    out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&transaction.0.to_be_bytes());
}

/// Reads a file.
///
/// # Errors
/// [`FormatError`] where version, checksum or length are wrong.
pub fn decode(bytes: &[u8]) -> Result<ProducerStates, FormatError> {
    let version = bytes
        .first_chunk::<2>()
        .map(|version| i16::from_be_bytes(*version));
    if version != Some(VERSION) {
        return Err(FormatError::new(
            0,
            "the producer snapshot's version is not 1",
        ));
    }
    let covered = bytes.get(COUNT_AT..).unwrap_or_default();
    if int_at(bytes, CRC_AT) != crc32c::crc32c(covered) || bytes.len() < ENTRIES_AT {
        return Err(FormatError::new(
            CRC_AT,
            "the producer snapshot has a wrong checksum",
        ));
    }
    let count = int_at(bytes, COUNT_AT) as usize;
    let entries = bytes.get(ENTRIES_AT..).unwrap_or_default();
    if count.checked_mul(PRODUCER_ENTRY_BYTES) != Some(entries.len()) {
        let what = "the producer snapshot's length does not go with its number of entries";
        return Err(FormatError::new(COUNT_AT, what));
    }
    let mut states = ProducerStates::default();
    for chunk in entries.chunks_exact(PRODUCER_ENTRY_BYTES) {
        let short = chunk.get(8..10).and_then(|short| short.try_into().ok());
        let last_offset = Offset(long_at(chunk, 14));
        let timestamp = TimestampMs(long_at(chunk, 26));
        let batch = (last_offset >= Offset(0)).then(|| BatchMetadata {
            last_sequence: Sequence(int_at(chunk, 10).cast_signed()),
            last_offset,
            offset_delta: int_at(chunk, 22).cast_signed(),
            timestamp,
        });
        let transaction = Offset(long_at(chunk, 38));
        let producer_epoch = i16::from_be_bytes(short.unwrap_or_default());
        let mut entry = ProducerEntry::default();
        entry.producer_epoch = ProducerEpoch(producer_epoch);
        entry.coordinator_epoch = int_at(chunk, 34).cast_signed();
        entry.last_timestamp = timestamp;
        entry.transaction_first_offset = (transaction >= Offset(0)).then_some(transaction);
        if let Some(batch) = batch {
            entry.push(batch);
        }
        states.load(ProducerId(long_at(chunk, 0)), entry);
    }
    Ok(states)
}
