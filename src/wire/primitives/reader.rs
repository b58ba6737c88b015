//! Reads primitives off the front of one received message, without copying record bytes.

use bytes::{Buf, Bytes, BytesMut};

use super::{ARRAY_LEN_MAX, DecodeError, STRING_BYTES_MAX, decoded_bytes_max};

/// The bytes of one message and how much memory its decoded form may still take.
///
/// Made from `BytesMut`, byte fields split off as parts of that buffer and may be written in
/// place; made from `Bytes`, they are shared parts of it.
#[derive(Debug)]
pub struct Reader {
    source: Source,
    /// Bytes of `source` that were read; parts taken out of it are no longer in it.
    position: usize,
    decoded_bytes_left: usize,
}

#[derive(Debug)]
enum Source {
    Shared(Bytes),
    Owned(BytesMut),
}

impl From<Bytes> for Reader {
    fn from(bytes: Bytes) -> Self {
        let decoded_bytes_left = decoded_bytes_max(bytes.len());
        Self {
            source: Source::Shared(bytes),
            position: 0,
            decoded_bytes_left,
        }
    }
}

impl From<BytesMut> for Reader {
    fn from(bytes: BytesMut) -> Self {
        let decoded_bytes_left = decoded_bytes_max(bytes.len());
        Self {
            source: Source::Owned(bytes),
            position: 0,
            decoded_bytes_left,
        }
    }
}

impl Reader {
    /// Reads `bytes` from their front.
    pub fn new(bytes: impl Into<Self>) -> Self {
        bytes.into()
    }

    /// What has not been read yet.
    #[must_use]
    #[inline]
    pub fn rest(&self) -> &[u8] {
        let bytes: &[u8] = match &self.source {
            Source::Shared(bytes) => bytes,
            Source::Owned(bytes) => bytes,
        };
        bytes.get(self.position..).unwrap_or_default()
    }

    /// What has not been read yet, without a copy.
    #[must_use]
    pub fn into_rest(mut self) -> Bytes {
        match self.source_from_here() {
            Source::Shared(bytes) => std::mem::take(bytes),
            Source::Owned(bytes) => std::mem::take(bytes).freeze(),
        }
    }

    /// Count of bytes not read yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest().len()
    }

    /// Steps over `len` bytes.
    pub fn skip(&mut self, len: usize) -> Result<(), DecodeError> {
        if len > self.remaining() {
            return Err(DecodeError::Truncated);
        }
        self.advance(len);
        Ok(())
    }

    /// The caller has checked that `len` bytes remain.
    #[inline]
    fn advance(&mut self, len: usize) {
        self.position += len;
    }

    /// The buffer from here on, for a part to be taken off its front.
    fn source_from_here(&mut self) -> &mut Source {
        let read = std::mem::take(&mut self.position);
        match &mut self.source {
            Source::Shared(bytes) => bytes.advance(read),
            Source::Owned(bytes) => bytes.advance(read),
        }
        &mut self.source
    }

    /// The next `N` bytes, for fixed-size integers.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let found = *self
            .rest()
            .first_chunk::<N>()
            .ok_or(DecodeError::Truncated)?;
        self.advance(N);
        Ok(found)
    }

    /// An unsigned varint of 32 bits: at most 5 bytes, the last with no bit beyond the 32nd.
    #[inline]
    pub fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        match self.rest().first() {
            Some(byte) if *byte < 0x80 => {
                let value = u32::from(*byte);
                self.advance(1);
                Ok(value)
            }
            _ => self.long_unsigned_varint(),
        }
    }

    fn long_unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u32;
        for (place, byte) in self.rest().iter().take(5).enumerate() {
            if place == 4 && *byte > 0x0f {
                return Err(DecodeError::VarintTooLong);
            }
            value |= u32::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.advance(place + 1);
                return Ok(value);
            }
        }
        Err(DecodeError::Truncated)
    }

    /// The length of a string or byte field, or the count of an array; `None` for null. Compact
    /// ones are one more than the length, 0 for null.
    pub(super) fn length(&mut self, form: LengthForm) -> Result<Option<usize>, DecodeError> {
        let length = match form {
            LengthForm::Compact => i64::from(self.unsigned_varint()?) - 1,
            LengthForm::Short => i64::from(i16::from_be_bytes(self.array()?)),
            LengthForm::Long => i64::from(i32::from_be_bytes(self.array()?)),
        };
        match length {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => Ok(Some(length)),
                Err(_) => Err(DecodeError::NegativeLength(length)),
            },
        }
    }

    /// A string; `None` for null.
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<String>, DecodeError> {
        let form = if flexible {
            LengthForm::Compact
        } else {
            LengthForm::Short
        };
        let Some(len) = self.length(form)? else {
            return Ok(None);
        };
        if len > STRING_BYTES_MAX {
            return Err(DecodeError::StringTooLong(len));
        }
        self.charge(len)?;
        let bytes = self.rest().get(..len).ok_or(DecodeError::Truncated)?;
        let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidUtf8)?;
        let text = text.to_owned();
        self.advance(len);
        Ok(Some(text))
    }

    /// Steps over a string that may be null.
    pub(in crate::wire) fn skip_string(&mut self, flexible: bool) -> Result<(), DecodeError> {
        let form = if flexible {
            LengthForm::Compact
        } else {
            LengthForm::Short
        };
        let len = self.length(form)?.unwrap_or_default();
        if len > STRING_BYTES_MAX {
            return Err(DecodeError::StringTooLong(len));
        }
        self.skip(len)
    }

    /// A byte field as a part of the message's buffer; `None` for null.
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>, DecodeError> {
        let Some(len) = self.bytes_length(flexible)? else {
            return Ok(None);
        };
        Ok(Some(match self.source_from_here() {
            Source::Shared(bytes) => bytes.split_to(len),
            Source::Owned(bytes) => bytes.split_to(len).freeze(),
        }))
    }

    /// A byte field to be written in place; `None` for null. Not copied when the reader was made
    /// from `BytesMut`.
    pub fn nullable_bytes_mut(&mut self, flexible: bool) -> Result<Option<BytesMut>, DecodeError> {
        let Some(len) = self.bytes_length(flexible)? else {
            return Ok(None);
        };
        Ok(Some(match self.source_from_here() {
            Source::Shared(bytes) => {
                let part = bytes.split_to(len);
                BytesMut::from(part.as_ref())
            }
            Source::Owned(bytes) => bytes.split_to(len),
        }))
    }

    fn bytes_length(&mut self, flexible: bool) -> Result<Option<usize>, DecodeError> {
        let form = if flexible {
            LengthForm::Compact
        } else {
            LengthForm::Long
        };
        let length = self.length(form)?;
        if length.is_some_and(|len| len > self.remaining()) {
            return Err(DecodeError::Truncated);
        }
        Ok(length)
    }

    /// Count of an array whose elements take `element_bytes_min` on the wire and `element_memory`
    /// when decoded; `None` for null. What comes back may be allocated at once.
    pub(in crate::wire) fn array_count(
        &mut self,
        flexible: bool,
        element_bytes_min: usize,
        element_memory: usize,
    ) -> Result<Option<usize>, DecodeError> {
        let form = if flexible {
            LengthForm::Compact
        } else {
            LengthForm::Long
        };
        let Some(count) = self.length(form)? else {
            return Ok(None);
        };
        if count > ARRAY_LEN_MAX {
            return Err(DecodeError::ArrayTooLong(count));
        }
        if count > self.remaining() / element_bytes_min.max(1) {
            return Err(DecodeError::Truncated);
        }
        self.charge(count.saturating_mul(element_memory))?;
        Ok(Some(count))
    }

    /// Takes `bytes` from what the decoded message may still allocate.
    fn charge(&mut self, bytes: usize) -> Result<(), DecodeError> {
        self.decoded_bytes_left = self
            .decoded_bytes_left
            .checked_sub(bytes)
            .ok_or(DecodeError::DecodedTooLarge)?;
        Ok(())
    }

    /// Reads a tagged section (KIP-482). `read` gets each tag and answers whether it knew and read
    /// it; unknown ones are stepped over.
    pub fn tagged_fields(
        &mut self,
        mut read: impl FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let count = self.unsigned_varint()?;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()? as usize;
            let after = self
                .remaining()
                .checked_sub(size)
                .ok_or(DecodeError::Truncated)?;
            if !read(self, tag)? {
                self.advance(size);
            }
            if self.remaining() != after {
                return Err(DecodeError::TaggedFieldSize(tag));
            }
        }
        Ok(())
    }

    /// Refuses bytes after the last field.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(DecodeError::TrailingBytes(left)),
        }
    }
}

/// How a length stands on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum LengthForm {
    /// Unsigned varint of length + 1, 0 for null.
    Compact,
    /// 2 bytes, -1 for null.
    Short,
    /// 4 bytes, -1 for null.
    Long,
}
