//! The time index of a segment (`TimeIndex`): from which offset on records are newer than a
//! timestamp.
//!
//! An entry is 12 bytes: i64 the largest timestamp so far, i32 the last offset of the batch that
//! holds it less the segment's base offset. Timestamps grow strictly, offsets never shrink. A
//! segment gets a last entry when it rolls.

use super::FormatError;
use super::offset_index::{int_at, long_at, without_zero_tail};
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;

/// Bytes of an entry.
pub const TIME_ENTRY_BYTES: usize = 12;

/// The largest timestamp up to an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampOffset {
    /// The largest timestamp.
    pub timestamp: TimestampMs,
    /// The last offset of the batch that holds it.
    pub offset: Offset,
}

/// The index of one segment, whole in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeIndex {
    base_offset: Offset,
    /// Timestamp and relative offset.
    entries: Vec<(i64, u32)>,
}

impl TimeIndex {
    /// An empty index of the segment at `base_offset`.
    #[must_use]
    pub const fn new(base_offset: Offset) -> Self {
        Self {
            base_offset,
            entries: Vec::new(),
        }
    }

    /// Reads a file, whose tail may be preallocated zeros.
    ///
    /// # Errors
    /// [`FormatError`] where a length is no multiple of an entry's, timestamps do not grow or
    /// offsets shrink.
    pub fn decode(base_offset: Offset, bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = without_zero_tail(bytes, TIME_ENTRY_BYTES)?;
        let mut index = Self::new(base_offset);
        index.entries.reserve_exact(bytes.len() / TIME_ENTRY_BYTES);
        for (number, chunk) in bytes.chunks_exact(TIME_ENTRY_BYTES).enumerate() {
            let at = number * TIME_ENTRY_BYTES;
            let (timestamp, relative) = (long_at(chunk, 0), int_at(chunk, 8));
            if timestamp < 0 || i32::try_from(relative).is_err() {
                return Err(FormatError::new(
                    at,
                    "a time index entry holds no time or offset",
                ));
            }
            let follows = index.entries.last().is_none_or(|(last, last_relative)| {
                timestamp > *last && relative >= *last_relative
            });
            if !follows {
                return Err(FormatError::new(at, "time index entries do not grow"));
            }
            index.entries.push((timestamp, relative));
        }
        Ok(index)
    }

    /// What its entries take in memory.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(i64, u32)>()
    }

    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_from(0)
    }

    /// The file's bytes from an entry on, for files that grow by appending.
    #[must_use]
    pub fn encode_from(&self, first_entry: usize) -> Vec<u8> {
        let entries = self.entries.get(first_entry..).unwrap_or_default();
        let mut out = Vec::with_capacity(entries.len() * TIME_ENTRY_BYTES);
        for (timestamp, relative) in entries {
            out.extend_from_slice(&timestamp.to_be_bytes());
            out.extend_from_slice(&relative.to_be_bytes());
        }
        out
    }

    /// Appends an entry if its timestamp is larger than the last one's (`TimeIndex.maybeAppend`).
    /// True when it was appended.
    pub fn maybe_append(&mut self, timestamp: TimestampMs, offset: Offset) -> bool {
        let relative = offset.0.checked_sub(self.base_offset.0);
        let Some(relative) = relative.and_then(|relative| i32::try_from(relative).ok()) else {
            return false;
        };
        let Ok(relative) = u32::try_from(relative) else {
            return false;
        };
        let follows = match self.entries.last() {
            None => timestamp > TimestampMs::NONE,
            Some((last, last_relative)) => timestamp.0 > *last && relative >= *last_relative,
        };
        if follows {
            self.entries.push((timestamp.0, relative));
        }
        follows
    }

    /// The last entry whose timestamp is at or below `timestamp`; without one the segment's start.
    /// Records of at least that timestamp stand at or after its offset.
    #[must_use]
    pub fn lookup(&self, timestamp: TimestampMs) -> TimestampOffset {
        let after = self
            .entries
            .partition_point(|(entry, _)| *entry <= timestamp.0);
        let found = after
            .checked_sub(1)
            .and_then(|place| self.entries.get(place));
        found.map_or(
            TimestampOffset {
                timestamp: TimestampMs::NONE,
                offset: self.base_offset,
            },
            |entry| self.absolute(*entry),
        )
    }

    /// Drops the entries at or past `offset`.
    pub fn truncate_to(&mut self, offset: Offset) {
        let relative = offset.0.saturating_sub(self.base_offset.0);
        self.entries.truncate(
            self.entries
                .partition_point(|(_, entry)| i64::from(*entry) < relative),
        );
    }

    /// The last entry: the largest timestamp that is indexed.
    #[must_use]
    pub fn last(&self) -> Option<TimestampOffset> {
        self.entries.last().map(|entry| self.absolute(*entry))
    }

    /// The entry at a place, from 0 on.
    #[must_use]
    pub fn entry(&self, place: usize) -> Option<TimestampOffset> {
        self.entries.get(place).map(|entry| self.absolute(*entry))
    }

    /// The entries in order.
    pub fn entries(&self) -> impl Iterator<Item = TimestampOffset> {
        self.entries.iter().map(|entry| self.absolute(*entry))
    }

    /// Entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the file.
    #[must_use]
    pub const fn encoded_bytes(&self) -> usize {
        self.entries.len() * TIME_ENTRY_BYTES
    }

    /// Whether `segment.index.bytes` leaves no room for one entry more. Kafka keeps a last slot for
    /// the entry at roll, so the segment rolls one entry earlier.
    #[must_use]
    pub const fn is_full(&self, index_bytes_max: usize) -> bool {
        self.encoded_bytes() + 2 * TIME_ENTRY_BYTES > index_bytes_max
    }

    fn absolute(&self, (timestamp, relative): (i64, u32)) -> TimestampOffset {
        TimestampOffset {
            timestamp: TimestampMs(timestamp),
            offset: self.base_offset.plus(i64::from(relative)),
        }
    }
}
