//! The offset index of a segment (`OffsetIndex`): where in the segment a batch stands, one entry
//! whenever more than `index.interval.bytes` were appended since the last.
//!
//! An entry is 8 bytes: i32 the batch's **last** offset less the segment's base offset, i32 the
//! batch's position. Both grow strictly. A tail of zeros, as a preallocated file has after a crash,
//! is no entry: no batch is indexed at position 0, since an entry needs bytes before it.

use super::FormatError;
use crate::base::ids::Offset;

/// Bytes of an entry.
pub const OFFSET_ENTRY_BYTES: usize = 8;

/// A batch's last offset and its position in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetPosition {
    /// The batch's last offset.
    pub offset: Offset,
    /// Bytes from the segment's start.
    pub position: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    relative: u32,
    position: u32,
}

/// The index of one segment, whole in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetIndex {
    base_offset: Offset,
    entries: Vec<Entry>,
}

impl OffsetIndex {
    /// An empty index of the segment at `base_offset`.
    #[must_use]
    pub const fn new(base_offset: Offset) -> Self {
        Self {
            base_offset,
            entries: Vec::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`FormatError`] where a length is no multiple of an entry's or entries do not grow.
    pub fn decode(base_offset: Offset, bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = without_zero_tail(bytes, OFFSET_ENTRY_BYTES)?;
        let mut index = Self::new(base_offset);
        index
            .entries
            .reserve_exact(bytes.len() / OFFSET_ENTRY_BYTES);
        for (number, chunk) in bytes.chunks_exact(OFFSET_ENTRY_BYTES).enumerate() {
            let at = number * OFFSET_ENTRY_BYTES;
            let entry = Entry {
                relative: int_at(chunk, 0),
                position: int_at(chunk, 4),
            };
            let is_signed =
                i32::try_from(entry.relative).is_err() || i32::try_from(entry.position).is_err();
            if is_signed || entry.position == 0 {
                return Err(FormatError::new(
                    at,
                    "an index entry holds no offset or position",
                ));
            }
            if !index.follows_last(entry) {
                return Err(FormatError::new(at, "index entries do not grow"));
            }
            index.entries.push(entry);
        }
        Ok(index)
    }

    /// What its entries take in memory.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
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
        let mut out = Vec::with_capacity(entries.len() * OFFSET_ENTRY_BYTES);
        for entry in entries {
            out.extend_from_slice(&entry.relative.to_be_bytes());
            out.extend_from_slice(&entry.position.to_be_bytes());
        }
        out
    }

    /// Appends an entry. False, and nothing is appended, when it does not follow the last one or
    /// its offset does not fit (then the segment must roll).
    pub fn append(&mut self, last_offset: Offset, position: u32) -> bool {
        let relative = last_offset.0.checked_sub(self.base_offset.0);
        let Some(relative) = relative.and_then(|relative| i32::try_from(relative).ok()) else {
            return false;
        };
        let Ok(relative) = u32::try_from(relative) else {
            return false;
        };
        let entry = Entry { relative, position };
        let follows = position > 0 && position <= i32::MAX as u32 && self.follows_last(entry);
        if follows {
            self.entries.push(entry);
        }
        follows
    }

    /// The segment's.
    #[must_use]
    pub const fn base_offset(&self) -> Offset {
        self.base_offset
    }

    /// Where to begin reading for `offset`: the last entry at or below it, or the segment's start.
    #[must_use]
    pub fn lookup(&self, offset: Offset) -> OffsetPosition {
        let relative = offset.0.saturating_sub(self.base_offset.0);
        let after = self
            .entries
            .partition_point(|entry| i64::from(entry.relative) <= relative);
        let found = after
            .checked_sub(1)
            .and_then(|place| self.entries.get(place));
        found.map_or(
            OffsetPosition {
                offset: self.base_offset,
                position: 0,
            },
            |entry| self.absolute(*entry),
        )
    }

    /// Drops the entries at or past `offset`.
    pub fn truncate_to(&mut self, offset: Offset) {
        let relative = offset.0.saturating_sub(self.base_offset.0);
        self.entries.truncate(
            self.entries
                .partition_point(|entry| i64::from(entry.relative) < relative),
        );
    }

    /// The last entry.
    #[must_use]
    pub fn last(&self) -> Option<OffsetPosition> {
        self.entries.last().map(|entry| self.absolute(*entry))
    }

    /// The entry at a place, from 0 on.
    #[must_use]
    pub fn entry(&self, place: usize) -> Option<OffsetPosition> {
        self.entries.get(place).map(|entry| self.absolute(*entry))
    }

    /// The entries in order.
    pub fn entries(&self) -> impl Iterator<Item = OffsetPosition> {
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
        self.entries.len() * OFFSET_ENTRY_BYTES
    }

    /// Whether `segment.index.bytes` leaves no room for one entry more: the segment must roll.
    #[must_use]
    pub const fn is_full(&self, index_bytes_max: usize) -> bool {
        self.encoded_bytes() + OFFSET_ENTRY_BYTES > index_bytes_max
    }

    fn follows_last(&self, entry: Entry) -> bool {
        self.entries
            .last()
            .is_none_or(|last| entry.relative > last.relative && entry.position > last.position)
    }

    fn absolute(&self, entry: Entry) -> OffsetPosition {
        OffsetPosition {
            offset: self.base_offset.plus(i64::from(entry.relative)),
            position: entry.position,
        }
    }
}

/// The entries of a file, whose tail may be preallocated zeros.
pub(super) fn without_zero_tail(bytes: &[u8], entry_bytes: usize) -> Result<&[u8], FormatError> {
    let used = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    // The last entry may itself end in zero bytes.
    let used = used.next_multiple_of(entry_bytes);
    bytes
        .get(..used)
        .ok_or_else(|| FormatError::new(bytes.len(), "an index ends within an entry"))
}

pub(super) fn int_at(chunk: &[u8], at: usize) -> u32 {
    let bytes = chunk
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(bytes.unwrap_or_default())
}

pub(super) fn long_at(chunk: &[u8], at: usize) -> i64 {
    let bytes = chunk
        .get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok());
    i64::from_be_bytes(bytes.unwrap_or_default())
}
