//! A journal record's header: 80 bytes, big-endian, with a checksum of its own.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 1 | kind |
//! | 1 | 1 | flags: bit 0 = the bytes are whole batches, checked through their own CRC |
//! | 2 | 2 | zero |
//! | 4 | 4 | length: bytes of the log that the record vouches for |
//! | 8 | 4 | inline length: bytes of the payload in this cycle |
//! | 12 | 16 | log id |
//! | 28 | 8 | segment base offset |
//! | 36 | 8 | file position |
//! | 44 | 8 | the log's end before the record |
//! | 52 | 8 | the log's end after it |
//! | 60 | 8 | the log's durable end as known at the write |
//! | 68 | 4 | checksum of the bytes |
//! | 72 | 4 | zero |
//! | 76 | 4 | CRC-32C of the 76 bytes before |

use crate::base::ids::Offset;

/// Length of a record's header.
pub const RECORD_HEADER_BYTES: usize = 80;
const CHECKED_BYTES: usize = RECORD_HEADER_BYTES - 4;
const FLAG_BATCHES: u8 = 1;

/// Most bytes that a record vouches for.
pub const LENGTH_MAX: usize = i32::MAX as usize;

/// A log's random 128 bits.
pub type LogId = [u8; 16];

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// Bytes of the log stand in this cycle. With length 0: a note of the durable end.
    Data = 1,
    /// Bytes of the log stand in the segment, those past its last whole block in this cycle.
    Extent = 2,
    /// A new segment begins at `segment_base`.
    Roll = 3,
    /// The log was cut to `end_after` at the segment and position named.
    Truncate = 4,
    /// The log start offset is `end_after`.
    LogStart = 5,
    /// The log was emptied and starts anew at `end_after`.
    Reset = 6,
    /// The log is deleted.
    Delete = 7,
    /// All below the segment and position named is durable in segments. Its 16 inline bytes are
    /// the log start offset and the recovery point.
    Watermark = 8,
}

impl RecordKind {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Data,
            2 => Self::Extent,
            3 => Self::Roll,
            4 => Self::Truncate,
            5 => Self::LogStart,
            6 => Self::Reset,
            7 => Self::Delete,
            8 => Self::Watermark,
            _ => return None,
        })
    }
}

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// What it says.
    pub kind: RecordKind,
    /// The bytes are whole batches; `checksum` covers the 21 bytes before each one's own
    /// checksummed part. Otherwise it covers all bytes.
    pub is_batches: bool,
    /// Bytes of the log that it vouches for, from `position` on.
    pub length: u32,
    /// Bytes of it that stand in the cycle: all for DATA, the tail for EXTENT.
    pub inline_length: u32,
    /// The log.
    pub log_id: LogId,
    /// Which segment file.
    pub segment_base: Offset,
    /// Where in that file.
    pub position: u64,
    /// The log's end before the record.
    pub end_before: Offset,
    /// The log's end after it (see the kinds).
    pub end_after: Offset,
    /// The log's stable end as known when the cycle was built.
    pub durable_end: Offset,
    /// Checksum of the bytes.
    pub checksum: u32,
}

impl RecordHeader {
    /// A header that says nothing yet but what and where.
    #[must_use]
    pub fn new(kind: RecordKind, log_id: LogId, segment_base: Offset, position: u64) -> Self {
        Self {
            kind,
            is_batches: false,
            length: 0,
            inline_length: 0,
            log_id,
            segment_base,
            position,
            end_before: Offset(0),
            end_after: Offset(0),
            durable_end: Offset(0),
            checksum: 0,
        }
    }

    /// The bytes of the header.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_HEADER_BYTES] {
        let mut writer = FieldWriter::<RECORD_HEADER_BYTES>::new();
        writer.put(&[
            self.kind as u8,
            u8::from(self.is_batches) * FLAG_BATCHES,
            0,
            0,
        ]);
        writer.put(&self.length.to_be_bytes());
        writer.put(&self.inline_length.to_be_bytes());
        writer.put(&self.log_id);
        writer.put(&self.segment_base.0.to_be_bytes());
        writer.put(&self.position.to_be_bytes());
        writer.put(&self.end_before.0.to_be_bytes());
        writer.put(&self.end_after.0.to_be_bytes());
        writer.put(&self.durable_end.0.to_be_bytes());
        writer.put(&self.checksum.to_be_bytes());
        writer.put(&[0; 4]);
        writer.seal()
    }

    /// Reads a header; `None` when its checksum or a field is not what `encode` writes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let checked = bytes.get(..CHECKED_BYTES)?;
        let mut reader = FieldReader { bytes };
        let kind = RecordKind::from_code(reader.take::<1>()?[0])?;
        let flags = reader.take::<1>()?[0];
        reader.take::<2>()?;
        let header = Self {
            kind,
            is_batches: flags & FLAG_BATCHES != 0,
            length: u32::from_be_bytes(reader.take()?),
            inline_length: u32::from_be_bytes(reader.take()?),
            log_id: reader.take()?,
            segment_base: Offset(i64::from_be_bytes(reader.take()?)),
            position: u64::from_be_bytes(reader.take()?),
            end_before: Offset(i64::from_be_bytes(reader.take()?)),
            end_after: Offset(i64::from_be_bytes(reader.take()?)),
            durable_end: Offset(i64::from_be_bytes(reader.take()?)),
            checksum: u32::from_be_bytes(reader.take()?),
        };
        reader.take::<4>()?;
        let stored = u32::from_be_bytes(reader.take()?);
        (stored == crc32c::crc32c(checked)).then_some(header)
    }
}

/// Fills a fixed header field by field and seals it with a checksum in its last four bytes.
pub(super) struct FieldWriter<const LENGTH: usize> {
    bytes: [u8; LENGTH],
    at: usize,
}

impl<const LENGTH: usize> FieldWriter<LENGTH> {
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; LENGTH],
            at: 0,
        }
    }

    pub(super) fn put(&mut self, field: &[u8]) {
        let end = self.at + field.len();
        assert!(end + 4 <= LENGTH, "a header field past its header");
        if let Some(place) = self.bytes.get_mut(self.at..end) {
            place.copy_from_slice(field);
        }
        self.at = end;
    }

    fn seal(self) -> [u8; LENGTH] {
        let checksum = crc32c::crc32c(self.bytes.get(..LENGTH - 4).unwrap_or_default());
        self.finish(checksum)
    }

    pub(super) fn checked(&self) -> &[u8] {
        self.bytes.get(..LENGTH - 4).unwrap_or_default()
    }

    pub(super) fn finish(mut self, checksum: u32) -> [u8; LENGTH] {
        if let Some(place) = self.bytes.last_chunk_mut::<4>() {
            *place = checksum.to_be_bytes();
        }
        self.bytes
    }
}

/// Takes fixed fields off the front of a header.
pub(super) struct FieldReader<'a> {
    pub(super) bytes: &'a [u8],
}

impl FieldReader<'_> {
    pub(super) fn take<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (field, rest) = self.bytes.split_first_chunk::<LENGTH>()?;
        self.bytes = rest;
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> RecordHeader {
        RecordHeader {
            is_batches: true,
            length: 700,
            inline_length: 600,
            end_before: Offset(5),
            end_after: Offset(9),
            durable_end: Offset(4),
            checksum: 77,
            ..RecordHeader::new(RecordKind::Extent, [7; 16], Offset(3), 4096)
        }
    }

    #[test]
    fn headers_come_back_as_they_were() {
        let header = sample();
        assert_eq!(RecordHeader::decode(&header.encode()), Some(header));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = sample().encode();
        for place in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[place / 8] ^= 1 << (place % 8);
            assert_eq!(RecordHeader::decode(&flipped), None, "bit {place}");
        }
        assert_eq!(RecordHeader::decode(&bytes[..79]), None);
    }
}
