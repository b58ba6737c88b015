//! A cycle: one header, a table of record headers, their payloads. Encoding and decoding alone.
//!
//! The cycle header is 80 bytes, big-endian:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `CLCYCLE1` |
//! | 8 | 16 | incarnation |
//! | 24 | 8 | sequence, from 1 |
//! | 32 | 4 | length: header, table and payloads, without padding |
//! | 36 | 4 | records |
//! | 40 | 8 | highest flushed sequence; 0: none |
//! | 48 | 8 | lowest live sequence |
//! | 56 | 4 | the previous cycle's checksum; 0 for the first |
//! | 60 | 2 | shard |
//! | 62 | 14 | zero |
//! | 76 | 4 | CRC-32C of the 76 bytes before and of the table |
//!
//! Payloads are covered through the checksums in the table.

use super::record::{FieldReader, FieldWriter, RECORD_HEADER_BYTES, RecordHeader};
use crate::base::ids::{ShardId, Uuid};
use crate::metrics::touched;
use crate::wire::record_batch::{BatchHeader, verify_crc};

/// Length of a cycle's header.
pub const CYCLE_HEADER_BYTES: usize = 80;
const MAGIC: [u8; 8] = *b"CLCYCLE1";
/// What a batch's own checksum does not cover stands in its first 21 bytes.
const BATCH_PREFIX_BYTES: usize = 21;

/// A cycle's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleHeader {
    /// The broker's start that wrote it.
    pub incarnation: Uuid,
    /// Its place in the chain, from 1.
    pub sequence: u64,
    /// Bytes without padding.
    pub length: u32,
    /// Records in its table.
    pub record_count: u32,
    /// All cycles up to here were on stable storage when this one was built.
    pub flushed_sequence: u64,
    /// Replay starts here.
    pub lowest_live_sequence: u64,
    /// Checksum of the cycle before.
    pub previous_checksum: u32,
    /// The shard that wrote it.
    pub shard: ShardId,
}

/// A header as it stands on disk, with the checksum that it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundHeader {
    /// The fields.
    pub header: CycleHeader,
    /// CRC of header and table, as claimed.
    pub checksum: u32,
}

impl CycleHeader {
    /// The header's bytes over `table`, and its checksum.
    #[must_use]
    pub fn encode(&self, table: &[u8]) -> ([u8; CYCLE_HEADER_BYTES], u32) {
        let mut writer = FieldWriter::<CYCLE_HEADER_BYTES>::new();
        writer.put(&MAGIC);
        writer.put(&self.incarnation.0);
        writer.put(&self.sequence.to_be_bytes());
        writer.put(&self.length.to_be_bytes());
        writer.put(&self.record_count.to_be_bytes());
        writer.put(&self.flushed_sequence.to_be_bytes());
        writer.put(&self.lowest_live_sequence.to_be_bytes());
        writer.put(&self.previous_checksum.to_be_bytes());
        writer.put(&self.shard.0.to_be_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(writer.checked()), table);
        (writer.finish(checksum), checksum)
    }

    /// Reads the fields at the start of a block without checking the checksum; `None` where no
    /// cycle starts.
    #[must_use]
    pub fn peek(block: &[u8]) -> Option<FoundHeader> {
        let mut reader = FieldReader { bytes: block };
        if reader.take::<8>()? != MAGIC {
            return None;
        }
        let header = Self {
            incarnation: Uuid(reader.take()?),
            sequence: u64::from_be_bytes(reader.take()?),
            length: u32::from_be_bytes(reader.take()?),
            record_count: u32::from_be_bytes(reader.take()?),
            flushed_sequence: u64::from_be_bytes(reader.take()?),
            lowest_live_sequence: u64::from_be_bytes(reader.take()?),
            previous_checksum: u32::from_be_bytes(reader.take()?),
            shard: crate::base::ids::ShardId(u16::from_be_bytes(reader.take()?)),
        };
        reader.take::<14>()?;
        let checksum = u32::from_be_bytes(reader.take()?);
        Some(FoundHeader { header, checksum })
    }

    /// Bytes of the table.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        (self.record_count as usize).saturating_mul(RECORD_HEADER_BYTES)
    }
}

impl FoundHeader {
    /// Whether header and table are what was written. `cycle` starts at the header.
    #[must_use]
    pub fn is_intact(&self, cycle: &[u8]) -> bool {
        let table_end = CYCLE_HEADER_BYTES.saturating_add(self.header.table_bytes());
        let Some(table) = cycle.get(CYCLE_HEADER_BYTES..table_end) else {
            return false;
        };
        let Some(head) = cycle.get(..CYCLE_HEADER_BYTES - 4) else {
            return false;
        };
        table_end <= self.header.length as usize
            && crc32c::crc32c_append(crc32c::crc32c(head), table) == self.checksum
    }

    /// The readable record headers in a cycle's table, in order; `None` in place of one that
    /// cannot be read.
    pub fn records<'a>(
        &self,
        cycle: &'a [u8],
    ) -> impl Iterator<Item = Option<RecordHeader>> + use<'a> {
        let end = CYCLE_HEADER_BYTES
            .saturating_add(self.header.table_bytes())
            .min(cycle.len());
        let table = cycle.get(CYCLE_HEADER_BYTES..end).unwrap_or_default();
        table.chunks(RECORD_HEADER_BYTES).map(RecordHeader::decode)
    }
}

/// A record and where its inline bytes stand in the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedRecord {
    /// The header.
    pub header: RecordHeader,
    /// Offset of its inline bytes from the cycle's start.
    pub inline_at: usize,
}

/// All records of a whole cycle; `None` unless header, table and every inline payload are what was
/// written. An EXTENT's inline tail is checked together with the segment, by the second pass.
#[must_use]
pub fn read_whole(found: &FoundHeader, cycle: &[u8]) -> Option<Vec<PlacedRecord>> {
    let length = found.header.length as usize;
    let cycle = cycle.get(..length)?;
    if !found.is_intact(cycle) {
        return None;
    }
    let mut inline_at = CYCLE_HEADER_BYTES + found.header.table_bytes();
    let mut records = Vec::with_capacity(found.header.record_count as usize);
    for header in found.records(cycle) {
        let header = header?;
        let end = inline_at.checked_add(header.inline_length as usize)?;
        let inline = cycle.get(inline_at..end)?;
        let is_checked_later = header.length != header.inline_length;
        if !is_checked_later && checksum_of(inline, header.is_batches) != Some(header.checksum) {
            return None;
        }
        records.push(PlacedRecord { header, inline_at });
        inline_at = end;
    }
    (inline_at == length).then_some(records)
}

/// Checksum of a record's bytes. For whole batches: over the 21 bytes before each one's own
/// checksummed part, `None` when one of them is not whole or fails its own CRC.
#[must_use]
pub fn checksum_of(bytes: &[u8], is_batches: bool) -> Option<u32> {
    if !is_batches {
        touched::note_checked(bytes.len());
        return Some(crc32c::crc32c(bytes));
    }
    let mut rest = bytes;
    let mut checksum = 0;
    while !rest.is_empty() {
        let header = BatchHeader::parse(rest).ok()?;
        let (batch, after) = rest.split_at_checked(header.total_bytes())?;
        verify_crc(batch).ok()?;
        checksum = append_prefix(checksum, batch);
        rest = after;
    }
    Some(checksum)
}

/// Lengthens the checksum of a run of batches by one whose own CRC is known to be right.
#[must_use]
pub fn append_prefix(checksum: u32, batch: &[u8]) -> u32 {
    let prefix = batch.get(..BATCH_PREFIX_BYTES).unwrap_or(batch);
    touched::note_checked(prefix.len());
    crc32c::crc32c_append(checksum, prefix)
}
