//! The transaction index of a segment (`TransactionIndex`): the transactions that were aborted by a
//! marker in this segment. There is no file without one.
//!
//! An entry is 34 bytes (`AbortedTxn`): i16 version 0, i64 producer id, i64 first offset, i64 the
//! marker's offset, i64 the last stable offset then. The markers' offsets grow.

use super::FormatError;
use super::offset_index::long_at;
use crate::base::ids::{Offset, ProducerId};

/// Bytes of an entry.
pub const ABORTED_TRANSACTION_BYTES: usize = 34;
const VERSION: i16 = 0;

/// One aborted transaction in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Its producer.
    pub producer_id: ProducerId,
    /// Its first record.
    pub first_offset: Offset,
    /// The marker that aborted it.
    pub last_offset: Offset,
    /// The last stable offset when the marker was appended.
    pub last_stable_offset: Offset,
}

/// The index of one segment, whole in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionIndex {
    entries: Vec<AbortedTransaction>,
}

impl TransactionIndex {
    /// Reads a file of the segment at `base_offset`.
    ///
    /// # Errors
    /// [`FormatError`] where an entry is cut short, of an unknown version, below the segment or not
    /// behind the one before it.
    pub fn decode(base_offset: Offset, bytes: &[u8]) -> Result<Self, FormatError> {
        let mut index = Self::default();
        index
            .entries
            .reserve_exact(bytes.len() / ABORTED_TRANSACTION_BYTES);
        for (number, chunk) in bytes.chunks(ABORTED_TRANSACTION_BYTES).enumerate() {
            let at = number * ABORTED_TRANSACTION_BYTES;
            if chunk.len() < ABORTED_TRANSACTION_BYTES {
                return Err(FormatError::new(
                    at,
                    "the index ends within an aborted transaction",
                ));
            }
            let version = chunk
                .first_chunk::<2>()
                .map(|bytes| i16::from_be_bytes(*bytes));
            if version != Some(VERSION) {
                return Err(FormatError::new(
                    at,
                    "an aborted transaction of unknown version",
                ));
            }
            let entry = AbortedTransaction {
                producer_id: ProducerId(long_at(chunk, 2)),
                first_offset: Offset(long_at(chunk, 10)),
                last_offset: Offset(long_at(chunk, 18)),
                last_stable_offset: Offset(long_at(chunk, 26)),
            };
            if entry.last_offset < base_offset || !index.append(entry) {
                return Err(FormatError::new(at, "an aborted transaction out of order"));
            }
        }
        Ok(index)
    }

    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.len() * ABORTED_TRANSACTION_BYTES);
        for entry in &self.entries {
            out.extend_from_slice(&VERSION.to_be_bytes());
            out.extend_from_slice(&entry.producer_id.0.to_be_bytes());
            out.extend_from_slice(&entry.first_offset.0.to_be_bytes());
            out.extend_from_slice(&entry.last_offset.0.to_be_bytes());
            out.extend_from_slice(&entry.last_stable_offset.0.to_be_bytes());
        }
        out
    }

    /// Appends; false, and nothing is appended, when the marker is not behind the last one.
    pub fn append(&mut self, entry: AbortedTransaction) -> bool {
        let follows = self
            .entries
            .last()
            .is_none_or(|last| entry.last_offset > last.last_offset);
        if follows {
            self.entries.push(entry);
        }
        follows
    }

    /// Adds to `found` the aborted transactions that overlap a fetch of `from` up to `end`
    /// (exclusive). True when no later segment can hold another one.
    pub fn collect(&self, from: Offset, end: Offset, found: &mut Vec<AbortedTransaction>) -> bool {
        for entry in &self.entries {
            if entry.last_offset >= from && entry.first_offset < end {
                found.push(*entry);
            }
            if entry.last_stable_offset >= end {
                return true;
            }
        }
        false
    }

    /// Drops the transactions whose marker stands at or past `offset`.
    pub fn truncate_to(&mut self, offset: Offset) {
        self.entries.retain(|entry| entry.last_offset < offset);
    }

    /// The transactions in order of their markers.
    #[must_use]
    pub fn entries(&self) -> &[AbortedTransaction] {
        &self.entries
    }
}
