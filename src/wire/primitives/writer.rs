//! Writes primitives into one buffer, and puts large record slices beside it uncopied.

use bytes::{Bytes, BytesMut};

use super::{EncodeError, RecordSlices, SHARED_BYTES_MIN, STRING_BYTES_MAX};

/// One message in the making: its own bytes in one buffer, and the slices that go between them.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// Slices by reference, each with the length of `bytes` when it was put.
    shared: Vec<(usize, Bytes)>,
    /// Bytes in all of `shared`.
    shared_bytes: usize,
    /// Within a tagged field, whose size goes before it, slices are copied.
    is_tagged: bool,
}

impl Writer {
    /// A writer whose buffer has room for `bytes`.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// A writer that uses the memory of `scratch`, with room for `bytes`.
    pub(crate) fn over(mut scratch: Vec<u8>, bytes: usize) -> Self {
        scratch.clear();
        scratch.reserve(bytes);
        Self {
            bytes: scratch,
            ..Self::default()
        }
    }

    /// What was written, copied, and the writer's memory, if that is at most `bytes_max` and
    /// without shared slices; else the writer.
    pub(crate) fn into_small(self, bytes_max: usize) -> Result<(Bytes, Vec<u8>), Self> {
        if self.shared.is_empty() && self.bytes.capacity() <= bytes_max {
            Ok((Bytes::copy_from_slice(&self.bytes), self.bytes))
        } else {
            Err(self)
        }
    }

    /// Bytes written so far, shared slices included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared_bytes
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes by copying.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends bytes: by reference from `SHARED_BYTES_MIN` on, else by copying.
    pub fn put_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_BYTES_MIN || self.is_tagged {
            self.put(bytes);
            return;
        }
        self.shared_bytes += bytes.len();
        self.shared.push((self.bytes.len(), bytes.clone()));
    }

    /// Appends an unsigned varint.
    #[inline]
    pub fn put_unsigned_varint(&mut self, value: u32) {
        match u8::try_from(value) {
            Ok(byte) if byte < 0x80 => self.bytes.push(byte),
            _ => self.put(UnsignedVarint::of(value).as_bytes()),
        }
    }

    /// Appends the length of a byte field or the count of an array; `None` for null.
    pub(in crate::wire) fn put_length(
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
            self.put(&number.to_be_bytes());
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
            self.put(&text.map_or(-1, |_| len as i16).to_be_bytes());
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

    /// Appends one tagged field, whose value `write` writes.
    pub fn put_tagged(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.put_unsigned_varint(tag);
        let start = self.bytes.len();
        let was_tagged = std::mem::replace(&mut self.is_tagged, true);
        let written = write(self);
        self.is_tagged = was_tagged;
        written?;
        let len = self.bytes.len() - start;
        let size = u32::try_from(len).map_err(|_| EncodeError::TooLong(len))?;
        // The size stands before the value but is known after it: the value, which is short,
        // makes room.
        let size = UnsignedVarint::of(size);
        self.put(size.as_bytes());
        if let Some(field) = self.bytes.get_mut(start..) {
            field.rotate_right(size.as_bytes().len());
        }
        Ok(())
    }

    /// What was written, in pieces for one vectored write; none of them empty.
    #[must_use]
    pub fn into_pieces(self) -> Vec<Bytes> {
        let mut rest = Bytes::from(self.bytes);
        let mut pieces = Vec::with_capacity(2 * self.shared.len() + 1);
        let mut taken = 0;
        for (end, slice) in self.shared {
            if end > taken {
                pieces.push(rest.split_to(end - taken));
                taken = end;
            }
            pieces.push(slice);
        }
        if !rest.is_empty() {
            pieces.push(rest);
        }
        pieces
    }

    /// What was written, in one buffer; copies when there were shared slices.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        if self.shared.is_empty() {
            return Bytes::from(self.bytes);
        }
        let mut whole = BytesMut::with_capacity(self.len());
        for piece in self.into_pieces() {
            whole.extend_from_slice(&piece);
        }
        whole.freeze()
    }

    /// Puts `bytes` over the first ones written; whether there were that many before any slice.
    pub(crate) fn replace_start(&mut self, bytes: &[u8]) -> bool {
        let own_bytes = self.shared.first().map_or(self.bytes.len(), |(at, _)| *at);
        match self.bytes.get_mut(..bytes.len()) {
            Some(start) if bytes.len() <= own_bytes => {
                start.copy_from_slice(bytes);
                true
            }
            _ => false,
        }
    }
}

/// Bytes of the longest unsigned varint of 32 bits.
const VARINT_BYTES_MAX: usize = 5;

/// An unsigned varint as it is written.
struct UnsignedVarint {
    bytes: [u8; VARINT_BYTES_MAX],
    len: usize,
}

impl UnsignedVarint {
    fn of(value: u32) -> Self {
        let mut varint = Self {
            bytes: [0; VARINT_BYTES_MAX],
            len: 0,
        };
        let mut rest = value;
        for byte in &mut varint.bytes {
            varint.len += 1;
            *byte = (rest & 0x7f) as u8;
            rest >>= 7;
            if rest == 0 {
                break;
            }
            *byte |= 0x80;
        }
        varint
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
