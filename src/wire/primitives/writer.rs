//! Writes primitives into one buffer, and puts large record slices beside it uncopied.

use bytes::{BufMut, Bytes, BytesMut};

use super::{EncodeError, RecordSlices, SHARED_BYTES_MIN, STRING_BYTES_MAX};

/// The pieces of one message in the making.
#[derive(Debug, Default)]
pub struct Writer {
    /// Finished pieces; the first is kept apart in `head`, since a length may be put into it last.
    pieces: Vec<Bytes>,
    head: Option<BytesMut>,
    tail: BytesMut,
    /// Bytes in `head` and `pieces`.
    closed_bytes: usize,
}

impl Writer {
    /// A writer whose first buffer has room for `bytes`.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            tail: BytesMut::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Bytes written so far, shared slices included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.closed_bytes + self.tail.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes by copying.
    pub fn put(&mut self, bytes: &[u8]) {
        self.tail.put_slice(bytes);
    }

    /// Appends bytes: by reference from `SHARED_BYTES_MIN` on, else by copying.
    pub fn put_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            self.put(bytes);
            return;
        }
        let written = self.tail.split();
        self.closed_bytes += written.len() + bytes.len();
        if self.head.is_none() {
            self.head = Some(written);
        } else if !written.is_empty() {
            self.pieces.push(written.freeze());
        }
        self.pieces.push(bytes.clone());
    }

    /// Appends an unsigned varint.
    pub fn put_unsigned_varint(&mut self, mut value: u32) {
        while value > 0x7f {
            self.tail.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.tail.put_u8(value as u8);
    }

    /// Appends the length of a byte field or the count of an array; `None` for null.
    pub(super) fn put_length(
        &mut self,
        length: Option<usize>,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        let number = match length {
            None => -1,
            Some(length) => i32::try_from(length).map_err(|_| EncodeError::TooLong(length))?,
        };
        if flexible {
            // From -1 to i32::MAX, plus one: within u32.
            self.put_unsigned_varint(number.wrapping_add(1) as u32);
        } else {
            self.tail.put_i32(number);
        }
        Ok(())
    }

    /// Appends a string; `None` for null.
    pub fn put_string(&mut self, text: Option<&str>, flexible: bool) -> Result<(), EncodeError> {
        let len = text.map_or(0, str::len);
        if len > STRING_BYTES_MAX {
            return Err(EncodeError::TooLong(len));
        }
        if flexible {
            self.put_unsigned_varint(text.map_or(0, |_| len as u32 + 1));
        } else {
            self.tail.put_i16(text.map_or(-1, |_| len as i16));
        }
        self.put(text.unwrap_or_default().as_bytes());
        Ok(())
    }

    /// Appends a byte field by copying; `None` for null.
    pub fn put_bytes(&mut self, bytes: Option<&[u8]>, flexible: bool) -> Result<(), EncodeError> {
        self.put_length(bytes.map(<[u8]>::len), flexible)?;
        self.put(bytes.unwrap_or_default());
        Ok(())
    }

    /// Appends record slices as one byte field; `None` for null.
    pub fn put_records(
        &mut self,
        records: Option<&RecordSlices>,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        self.put_length(records.map(RecordSlices::len), flexible)?;
        for slice in records.iter().flat_map(|records| &records.slices) {
            self.put_shared(slice);
        }
        Ok(())
    }

    /// Appends one tagged field, whose value `write` writes. The value goes through a buffer of
    /// its own, since its size stands before it; tagged fields are small and rare.
    pub fn put_tagged(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let mut value = Self::default();
        write(&mut value)?;
        let len = value.len();
        let size = u32::try_from(len).map_err(|_| EncodeError::TooLong(len))?;
        self.put_unsigned_varint(tag);
        self.put_unsigned_varint(size);
        for piece in value.into_pieces() {
            self.put_shared(&piece);
        }
        Ok(())
    }

    /// What was written, in pieces for one vectored write; none of them empty.
    #[must_use]
    pub fn into_pieces(self) -> Vec<Bytes> {
        let mut found = Vec::with_capacity(self.pieces.len() + 2);
        found.extend(self.head.map(BytesMut::freeze));
        found.extend(self.pieces);
        found.push(self.tail.freeze());
        found.retain(|piece| !piece.is_empty());
        found
    }

    /// What was written, in one buffer; copies when there were shared slices.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        let len = self.len();
        let mut pieces = self.into_pieces();
        match pieces.len() {
            0 | 1 => pieces.pop().unwrap_or_default(),
            _ => {
                let mut whole = BytesMut::with_capacity(len);
                for piece in pieces {
                    whole.put_slice(&piece);
                }
                whole.freeze()
            }
        }
    }

    /// Puts `bytes` over the first ones written; whether there were that many in the first piece.
    pub(crate) fn replace_start(&mut self, bytes: &[u8]) -> bool {
        let first = self.head.as_mut().unwrap_or(&mut self.tail);
        match first.get_mut(..bytes.len()) {
            Some(start) => {
                start.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}
