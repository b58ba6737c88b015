//! Records within a batch (`DefaultRecord`), read without copying: a record borrows from the
//! uncompressed bytes that follow the batch's header.
//!
//! Whoever only needs to know that records are sound, and what keys and timestamps they have, walks
//! them over a stream instead: [`crate::wire::record_walk`].

use thiserror::Error;

use super::varint::{read_varint, read_varlong};

/// Smallest record: its length and a body of attributes, two deltas, null key, null value, no
/// headers.
pub const RECORD_BYTES_MIN: usize = 7;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The bytes end within a record.
    #[error("a record reaches past the end of its batch")]
    Truncated,
    /// A variable-length integer is longer than its width allows, or ends past its record.
    #[error("a record holds a malformed variable-length integer")]
    Varint,
    /// A length or count is negative and does not mean null there.
    #[error("a record holds a length of {0}")]
    Length(i32),
    /// The fields end before or after the record's own length.
    #[error("a record's fields do not end where its length says")]
    LengthMismatch,
    /// Bytes follow the last record that the batch declares.
    #[error("bytes follow the last of the declared records")]
    Trailing,
    /// The batch declares a negative number of records.
    #[error("a batch declares {0} records")]
    Count(i32),
}

/// One record; its fields borrow from the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Unused by Kafka: 0.
    pub attributes: i8,
    /// Milliseconds from the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Offset from the batch's base offset.
    pub offset_delta: i32,
    /// `None`: null.
    pub key: Option<&'a [u8]>,
    /// `None`: null, a tombstone on compacted topics.
    pub value: Option<&'a [u8]>,
    /// The headers, duplicates and order kept.
    pub headers: RecordHeaders<'a>,
}

/// The headers of one record, already checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordHeaders<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> RecordHeaders<'a> {
    /// How many headers there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The headers in order: key (UTF-8 by convention, not checked, as in Kafka's broker), value.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let mut cursor = Cursor { rest: self.bytes };
        (0..self.count).map_while(move |_| cursor.header().ok())
    }
}

/// Reads the records of one batch from their uncompressed bytes. After the last declared record,
/// bytes left over show as [`RecordError::Trailing`]; after a fault it ends.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    cursor: Cursor<'a>,
    left: i32,
    failed: bool,
}

impl<'a> RecordIter<'a> {
    /// Iterates over `count` records in `records`, the uncompressed bytes after a batch's header.
    #[must_use]
    pub const fn new(records: &'a [u8], count: i32) -> Self {
        Self {
            cursor: Cursor { rest: records },
            left: count,
            failed: false,
        }
    }

    fn next_record(&mut self) -> Result<Option<Record<'a>>, RecordError> {
        if self.left < 0 {
            return Err(RecordError::Count(self.left));
        }
        if self.left == 0 {
            return if self.cursor.rest.is_empty() {
                Ok(None)
            } else {
                Err(RecordError::Trailing)
            };
        }
        self.left -= 1;
        let len = self.cursor.varint()?;
        let len = usize::try_from(len).map_err(|_| RecordError::Length(len))?;
        let mut body = Cursor {
            rest: self.cursor.take(len)?,
        };
        body.record().map(Some)
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.next_record();
        self.failed = record.is_err();
        record.transpose()
    }
}

#[derive(Clone, Debug)]
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(RecordError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<i32, RecordError> {
        let (value, len) = read_varint(self.rest).ok_or(RecordError::Varint)?;
        self.take(len)?;
        Ok(value)
    }

    fn varlong(&mut self) -> Result<i64, RecordError> {
        let (value, len) = read_varlong(self.rest).ok_or(RecordError::Varint)?;
        self.take(len)?;
        Ok(value)
    }

    /// Bytes with a length before them; -1 is null. Kafka takes any negative length for null; a
    /// batch with -2 there is unreadable for some clients, so it is refused.
    fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, RecordError> {
        match self.varint()? {
            -1 => Ok(None),
            len => {
                let len = usize::try_from(len).map_err(|_| RecordError::Length(len))?;
                self.take(len).map(Some)
            }
        }
    }

    fn header(&mut self) -> Result<(&'a [u8], Option<&'a [u8]>), RecordError> {
        let key = self.nullable_bytes()?.ok_or(RecordError::Length(-1))?;
        let value = self.nullable_bytes()?;
        Ok((key, value))
    }

    fn record(&mut self) -> Result<Record<'a>, RecordError> {
        let attributes = self
            .take(1)?
            .first()
            .copied()
            .unwrap_or_default()
            .cast_signed();
        let timestamp_delta = self.varlong()?;
        let offset_delta = self.varint()?;
        let key = self.nullable_bytes()?;
        let value = self.nullable_bytes()?;
        let header_count = self.varint()?;
        let count = u32::try_from(header_count).map_err(|_| RecordError::Length(header_count))?;
        let bytes = self.rest;
        for _ in 0..count {
            self.header()?;
        }
        if !self.rest.is_empty() {
            return Err(RecordError::LengthMismatch);
        }
        let headers = RecordHeaders { count, bytes };
        Ok(Record {
            attributes,
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers,
        })
    }
}
