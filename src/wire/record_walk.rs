//! Walking the records of a batch as a stream: structure, offset deltas, timestamps and the
//! presence of keys, without holding keys or values. Memory stays bounded whatever the records
//! claim, so this is how compressed batches of clients are judged.

use thiserror::Error;

use super::compression::{ByteSource, DecompressError};
use super::record::{Record, RecordError};
use super::varint::{VARLONG_BYTES_MAX, read_varint, read_varlong};

/// What a broker looks at in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSummary {
    /// Milliseconds from the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Offset from the batch's base offset.
    pub offset_delta: i32,
    /// Whether the key is not null.
    pub has_key: bool,
}

impl From<&Record<'_>> for RecordSummary {
    fn from(record: &Record<'_>) -> Self {
        Self {
            timestamp_delta: record.timestamp_delta,
            offset_delta: record.offset_delta,
            has_key: record.key.is_some(),
        }
    }
}

/// Why the walk ended early.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WalkError {
    /// The bytes are no records.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// They do not even decompress.
    #[error(transparent)]
    Decompress(#[from] DecompressError),
}

/// Yields a summary of each record; after the last declared one, bytes left over show as
/// [`RecordError::Trailing`]; after a fault it ends.
#[derive(Debug)]
pub struct RecordWalker<S> {
    source: S,
    left: i32,
    is_over: bool,
    /// Bytes left in the record under the cursor.
    body_left: usize,
}

impl<S: ByteSource> RecordWalker<S> {
    /// Walks `count` records.
    pub const fn new(source: S, count: i32) -> Self {
        Self {
            source,
            left: count,
            is_over: false,
            body_left: 0,
        }
    }

    fn next_record(&mut self) -> Result<Option<RecordSummary>, WalkError> {
        if self.left < 0 {
            return Err(RecordError::Count(self.left).into());
        }
        if self.left == 0 {
            let is_at_end = self.source.fill()?.is_empty();
            return if is_at_end {
                Ok(None)
            } else {
                Err(RecordError::Trailing.into())
            };
        }
        self.left -= 1;
        // The length itself stands outside the body.
        self.body_left = VARLONG_BYTES_MAX;
        let len = self.varint()?;
        self.body_left = usize::try_from(len).map_err(|_| RecordError::Length(len))?;
        self.skip(1)?;
        let timestamp_delta = self.varlong()?;
        let offset_delta = self.varint()?;
        let has_key = self.skip_nullable()?;
        self.skip_nullable()?;
        let header_count = self.varint()?;
        if header_count < 0 {
            return Err(RecordError::Length(header_count).into());
        }
        for _ in 0..header_count {
            if !self.skip_nullable()? {
                return Err(RecordError::Length(-1).into());
            }
            self.skip_nullable()?;
        }
        if self.body_left != 0 {
            return Err(RecordError::LengthMismatch.into());
        }
        Ok(Some(RecordSummary {
            timestamp_delta,
            offset_delta,
            has_key,
        }))
    }

    /// Skips bytes with a length before them; false for null.
    fn skip_nullable(&mut self) -> Result<bool, WalkError> {
        match self.varint()? {
            -1 => Ok(false),
            len => {
                let len = usize::try_from(len).map_err(|_| RecordError::Length(len))?;
                self.skip(len)?;
                Ok(true)
            }
        }
    }

    fn skip(&mut self, len: usize) -> Result<(), WalkError> {
        self.body_left = self
            .body_left
            .checked_sub(len)
            .ok_or(RecordError::Truncated)?;
        let mut left = len;
        while left > 0 {
            let here = self.source.fill()?.len().min(left);
            if here == 0 {
                return Err(RecordError::Truncated.into());
            }
            self.source.consume(here);
            left -= here;
        }
        Ok(())
    }

    fn varint(&mut self) -> Result<i32, WalkError> {
        self.number(read_varint)
    }

    fn varlong(&mut self) -> Result<i64, WalkError> {
        self.number(read_varlong)
    }

    fn number<T>(&mut self, read: fn(&[u8]) -> Option<(T, usize)>) -> Result<T, WalkError> {
        let chunk = self.source.fill()?;
        if chunk.is_empty() {
            return Err(RecordError::Truncated.into());
        }
        let here = chunk
            .get(..self.body_left.min(chunk.len()))
            .unwrap_or_default();
        if let Some((value, len)) = read(here) {
            self.source.consume(len);
            self.body_left -= len;
            return Ok(value);
        }
        if here.len() >= VARLONG_BYTES_MAX || here.len() == self.body_left {
            return Err(RecordError::Varint.into());
        }
        self.number_across_chunks(read)
    }

    /// A number that the end of a chunk cuts in two: gathered byte by byte.
    fn number_across_chunks<T>(
        &mut self,
        read: fn(&[u8]) -> Option<(T, usize)>,
    ) -> Result<T, WalkError> {
        let mut bytes = [0; VARLONG_BYTES_MAX];
        for end in 1..=VARLONG_BYTES_MAX.min(self.body_left) {
            let byte = self
                .source
                .fill()?
                .first()
                .copied()
                .ok_or(RecordError::Truncated)?;
            self.source.consume(1);
            self.body_left -= 1;
            if let Some(place) = bytes.get_mut(end - 1) {
                *place = byte;
            }
            if byte & 0x80 == 0 {
                let gathered = bytes.get(..end).unwrap_or_default();
                return read(gathered)
                    .map(|(value, _)| value)
                    .ok_or(RecordError::Varint.into());
            }
        }
        Err(RecordError::Varint.into())
    }
}

impl<S: ByteSource> Iterator for RecordWalker<S> {
    type Item = Result<RecordSummary, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let record = self.next_record();
        self.is_over = !matches!(record, Ok(Some(_)));
        record.transpose()
    }
}
