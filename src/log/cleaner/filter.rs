//! One batch under the cleaner's rules: kept as it is, written anew, emptied, or gone
//! (`Cleaner.cleanInto`, `MemoryRecords.filterTo`). Pure.

use std::collections::HashMap;

use bytes::BytesMut;

use super::key_map::KeyMap;
use super::transactions::{CleanedTransactions, Control};
use crate::base::ids::{Offset, ProducerEpoch, ProducerId};
use crate::base::time::{TimestampMs, TimestampType};
use crate::log::format::producer_state::ProducerStates;
use crate::log::producers::marker_of;
use crate::wire::compression::{Codec, DecodeLimits, Decoder};
use crate::wire::record::{Record, RecordIter};
use crate::wire::record_batch::{BatchBuilder, BatchHeader, HEADER_BYTES, NewRecord, verify_crc};

/// The last thing that a log knows of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastRecord {
    /// Its last record; `None` where only a marker is known.
    pub(crate) offset: Option<Offset>,
    pub(crate) producer_epoch: ProducerEpoch,
}

/// What the log knows of its producers.
pub(crate) fn last_records(producers: &ProducerStates) -> HashMap<ProducerId, LastRecord> {
    let last = producers.producers().map(|(id, entry)| {
        let last = LastRecord {
            offset: entry.batches().next_back().map(|batch| batch.last_offset),
            producer_epoch: entry.producer_epoch,
        };
        (*id, last)
    });
    last.collect()
}

/// By what a pass goes.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) now: TimestampMs,
    pub(crate) delete_retention_ms: u64,
    /// Where the part ends that may be cleaned. The batch that ends there stays, without records if
    /// need be: the log's end stays where it was.
    pub(crate) round_end: Offset,
    /// So does the last batch of what becomes one segment, whose file alone tells a start after a
    /// crash which segments it takes the place of. Kafka lets it go. So nothing but its offsets
    /// stays of it: to times, to producers and to transactions it is as gone as there.
    pub(crate) segment_end: Option<Offset>,
    pub(crate) producers: HashMap<ProducerId, LastRecord>,
    pub(crate) limits: DecodeLimits,
}

/// What becomes of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Rewritten(BytesMut),
    Gone,
}

/// A batch that was looked at.
#[derive(Debug)]
pub(crate) struct Filtered {
    pub(crate) fate: Fate,
    pub(crate) records_read: u64,
    pub(crate) records_kept: u64,
}

/// Checks one whole batch and decodes its records into `scratch`, where they are compressed;
/// answers where they are then.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn open_batch<'a>(
    header: &BatchHeader,
    bytes: &'a [u8],
    limits: DecodeLimits,
    scratch: &'a mut Vec<u8>,
) -> Result<RecordIter<'a>, String> {
    verify_crc(bytes).map_err(|error| error.to_string())?;
    let codec = header
        .attributes
        .codec()
        .map_err(|error| error.to_string())?;
    let records = bytes.get(HEADER_BYTES..).unwrap_or_default();
    if codec == Codec::None {
        return Ok(RecordIter::new(records, header.record_count));
    }
    scratch.clear();
    // The topic may have taken larger batches once.
    let limits = limits.max(DecodeLimits::for_message_bytes_max(bytes.len()));
    let decoder = Decoder::new(codec, records, limits);
    let decoded = decoder.and_then(|mut decoder| decoder.read_to_end(scratch));
    decoded.map_err(|error| error.to_string())?;
    Ok(RecordIter::new(scratch, header.record_count))
}

/// What a control batch holds.
pub(crate) fn control_of(header: &BatchHeader, bytes: &[u8]) -> Control {
    match marker_of(header, bytes) {
        _ if header.record_count == 0 => Control::Empty,
        Some(marker) => Control::Marker(marker.kind),
        None => Control::Other,
    }
}

/// What is left of a batch.
struct Left<'a> {
    records: Vec<Record<'a>>,
    read: u64,
    has_tombstone: bool,
}

/// What becomes of a batch of which no record stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Emptied {
    Gone,
    /// It says what it said, of its producer and of the largest timestamp too.
    Header,
    /// It names its offsets.
    Offsets,
}

/// What the rules say of a batch before its records are looked at.
struct Verdict {
    /// None of its records stays.
    drops_all: bool,
    emptied: Emptied,
    /// A marker of whose transaction nothing is left: from now on its time runs.
    is_marker_alone: bool,
}

impl Rules {
    fn judge(
        &self,
        header: &BatchHeader,
        bytes: &[u8],
        transactions: &mut CleanedTransactions,
    ) -> Verdict {
        let is_control = header.attributes.is_control();
        let may_go = match is_control {
            true => transactions.on_control(header, control_of(header, bytes)),
            false => transactions.on_batch(header),
        };
        let horizon = header.delete_horizon();
        let is_past = horizon.is_some_and(|horizon| horizon <= self.now);
        Verdict {
            drops_all: may_go && (!is_control || is_past),
            emptied: self.emptied(header),
            is_marker_alone: may_go && is_control,
        }
    }

    fn emptied(&self, header: &BatchHeader) -> Emptied {
        let end = header.next_offset();
        if self.is_last_of_producer(header) || end == self.round_end {
            return Emptied::Header;
        }
        match self.segment_end == Some(end) {
            true => Emptied::Offsets,
            false => Emptied::Gone,
        }
    }

    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        let last = self.producers.get(&header.producer_id);
        let Some(last) = last.filter(|_| header.has_producer_id()) else {
            return false;
        };
        match last.offset {
            Some(offset) => header.last_offset() == offset,
            None => header.attributes.is_control() && header.producer_epoch == last.producer_epoch,
        }
    }

    /// Whether a record of a batch stays.
    fn keeps(&self, header: &BatchHeader, record: &Record<'_>, map: &KeyMap) -> bool {
        let offset = header.base_offset.plus(record.offset_delta.into());
        if offset > map.latest() || header.attributes.is_control() {
            return true;
        }
        let Some(key) = record.key else {
            // Appended before the log was compacted.
            return false;
        };
        let is_last = map.get(key).is_none_or(|last| offset >= last);
        let is_kept_tombstone = || {
            header
                .delete_horizon()
                .is_none_or(|horizon| self.now < horizon)
        };
        is_last && (record.value.is_some() || is_kept_tombstone())
    }

    /// Decides over one whole batch.
    ///
    /// # Errors
    /// What is wrong with the batch.
    pub(crate) fn filter(
        &self,
        (header, bytes): (&BatchHeader, &[u8]),
        map: &KeyMap,
        transactions: &mut CleanedTransactions,
        scratch: &mut Vec<u8>,
    ) -> Result<Filtered, String> {
        let records = open_batch(header, bytes, self.limits, scratch)?;
        let verdict = self.judge(header, bytes, transactions);
        let mut left = Left {
            records: Vec::new(),
            read: 0,
            has_tombstone: false,
        };
        for record in records {
            let record = record.map_err(|error| error.to_string())?;
            left.read += 1;
            if !verdict.drops_all && self.keeps(header, &record, map) {
                // Past what the map covers there may still be older records of its key.
                let is_covered = header.last_offset() <= map.latest();
                left.has_tombstone |= record.value.is_none() && is_covered;
                left.records.push(record);
            }
        }
        let (records_read, records_kept) = (left.read, left.records.len() as u64);
        Ok(Filtered {
            fate: self.fate(header, &verdict, left)?,
            records_read,
            records_kept,
        })
    }

    fn fate(
        &self,
        header: &BatchHeader,
        verdict: &Verdict,
        left: Left<'_>,
    ) -> Result<Fate, String> {
        let is_whole = left.records.len() as u64 == left.read;
        if left.records.is_empty() {
            let says_more = header.has_producer_id() || header.max_timestamp != TimestampMs::NONE;
            return match verdict.emptied {
                Emptied::Gone => Ok(Fate::Gone),
                Emptied::Header if is_whole => Ok(Fate::Kept),
                Emptied::Offsets if is_whole && !says_more => Ok(Fate::Kept),
                Emptied::Header => empty(header).map(Fate::Rewritten),
                Emptied::Offsets => offsets_of(header).map(Fate::Rewritten),
            };
        }
        let known = header.delete_horizon();
        let begins = known.is_none() && (left.has_tombstone || verdict.is_marker_alone);
        if is_whole && !begins {
            return Ok(Fate::Kept);
        }
        let new = || {
            let ms = i64::try_from(self.delete_retention_ms).unwrap_or(i64::MAX);
            TimestampMs(self.now.0.saturating_add(ms))
        };
        let horizon = known.or_else(|| begins.then(new));
        rewritten(header, &left.records, horizon).map(Fate::Rewritten)
    }
}

/// A batch that says what `header` says of producer, offsets and flags, and holds no record yet.
fn like(header: &BatchHeader) -> BatchBuilder {
    let producer = (header.producer_id, header.producer_epoch);
    let mut builder = BatchBuilder::new(header.base_offset)
        .leader_epoch(header.leader_epoch)
        .producer(producer.0, producer.1, header.base_sequence)
        .last_offset_delta(header.last_offset_delta);
    if header.attributes.is_transactional() {
        builder = builder.transactional();
    }
    if header.attributes.is_control() {
        builder = builder.control();
    }
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        builder = builder.log_append_time(header.max_timestamp);
    }
    builder
}

/// The batch without its records (`DefaultRecordBatch.writeEmptyHeader`).
fn empty(header: &BatchHeader) -> Result<BytesMut, String> {
    let builder = like(header).max_timestamp(header.max_timestamp);
    builder.build().map_err(|error| error.to_string())
}

/// Its offsets alone.
fn offsets_of(header: &BatchHeader) -> Result<BytesMut, String> {
    let builder = BatchBuilder::new(header.base_offset)
        .leader_epoch(header.leader_epoch)
        .last_offset_delta(header.last_offset_delta);
    builder.build().map_err(|error| error.to_string())
}

/// The batch with some of its records, in its codec.
fn rewritten(
    header: &BatchHeader,
    records: &[Record<'_>],
    horizon: Option<TimestampMs>,
) -> Result<BytesMut, String> {
    let codec = header
        .attributes
        .codec()
        .map_err(|error| error.to_string())?;
    let mut builder = like(header).compressed(codec, None);
    if let Some(horizon) = horizon {
        builder = builder.delete_horizon(horizon);
    }
    for record in records {
        let headers: Vec<_> = record.headers.iter().collect();
        let at = header.base_timestamp.0.wrapping_add(record.timestamp_delta);
        let new = NewRecord {
            timestamp: TimestampMs(at),
            key: record.key,
            value: record.value,
            headers: &headers,
        };
        builder.append_at(record.offset_delta, new);
    }
    builder.build().map_err(|error| error.to_string())
}
