//! How each Rust type of a schema stands on the wire.

use bytes::{Buf, Bytes, BytesMut};

use super::{DecodeError, EncodeError, Reader, Writer};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{
    ApiKey, ApiVersion, BrokerEpoch, BrokerId, CorrelationId, GenerationId, LeaderEpoch, Offset,
    PartitionIndex, ProducerEpoch, ProducerId, Sequence, Uuid,
};
use crate::base::time::TimestampMs;

/// The version a message is read or written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The number in the request's header.
    pub number: i16,
    /// Whether it uses compact lengths and tagged fields (KIP-482).
    pub flexible: bool,
}

/// A type that a schema's field may have.
pub trait WireType: Sized {
    /// The least a value takes on the wire; bounds how many elements an array can hold.
    fn bytes_min(version: Version) -> usize;
    /// Takes a value off the reader's front.
    fn read(reader: &mut Reader, version: Version) -> Result<Self, DecodeError>;
    /// Appends the value.
    fn write(&self, writer: &mut Writer, version: Version) -> Result<(), EncodeError>;
    /// For how long a response says that its client is throttled, if it can say so.
    fn throttle_time_ms(&mut self) -> Option<&mut i32> {
        None
    }
}

/// A type that a schema may declare nullable; the Rust field is an `Option` of it.
pub trait NullableWireType: WireType {
    /// The least a nullable value takes on the wire.
    fn nullable_bytes_min(version: Version) -> usize {
        Self::bytes_min(version)
    }
    /// Takes a value or a null off the reader's front.
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, DecodeError>;
    /// Appends a value or a null.
    fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        version: Version,
    ) -> Result<(), EncodeError>;
}

macro_rules! fixed_integers {
    ($($type:ty),*) => {$(
        impl WireType for $type {
            fn bytes_min(_version: Version) -> usize {
                size_of::<Self>()
            }
            fn read(reader: &mut Reader, _version: Version) -> Result<Self, DecodeError> {
                Ok(Self::from_be_bytes(reader.array()?))
            }
            fn write(&self, writer: &mut Writer, _version: Version) -> Result<(), EncodeError> {
                writer.put(&self.to_be_bytes());
                Ok(())
            }
        }
    )*};
}

fixed_integers!(i8, u8, i16, u16, i32, u32, i64);

macro_rules! newtypes {
    ($($type:ident),*) => {$(
        impl WireType for $type {
            fn bytes_min(_version: Version) -> usize {
                size_of::<Self>()
            }
            fn read(reader: &mut Reader, version: Version) -> Result<Self, DecodeError> {
                Ok(Self(WireType::read(reader, version)?))
            }
            fn write(&self, writer: &mut Writer, version: Version) -> Result<(), EncodeError> {
                self.0.write(writer, version)
            }
        }
    )*};
}

newtypes!(
    ApiKey,
    ApiVersion,
    BrokerEpoch,
    BrokerId,
    CorrelationId,
    ErrorCode,
    GenerationId,
    LeaderEpoch,
    Offset,
    PartitionIndex,
    ProducerEpoch,
    ProducerId,
    Sequence,
    TimestampMs
);

/// A floating-point number. Two are equal when their bits are, so that what was read, even if it is
/// no number, is what is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Float64(pub f64);

impl PartialEq for Float64 {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Float64 {}

impl WireType for Float64 {
    fn bytes_min(_version: Version) -> usize {
        size_of::<Self>()
    }
    fn read(reader: &mut Reader, _version: Version) -> Result<Self, DecodeError> {
        Ok(Self(f64::from_be_bytes(reader.array()?)))
    }
    fn write(&self, writer: &mut Writer, _version: Version) -> Result<(), EncodeError> {
        writer.put(&self.0.to_be_bytes());
        Ok(())
    }
}

impl WireType for bool {
    fn bytes_min(_version: Version) -> usize {
        1
    }
    /// Any byte but 0 is true, as in Kafka.
    fn read(reader: &mut Reader, _version: Version) -> Result<Self, DecodeError> {
        let [byte] = reader.array()?;
        Ok(byte != 0)
    }
    fn write(&self, writer: &mut Writer, _version: Version) -> Result<(), EncodeError> {
        writer.put(&[u8::from(*self)]);
        Ok(())
    }
}

impl WireType for Uuid {
    fn bytes_min(_version: Version) -> usize {
        size_of::<Self>()
    }
    fn read(reader: &mut Reader, _version: Version) -> Result<Self, DecodeError> {
        Ok(Self(reader.array()?))
    }
    fn write(&self, writer: &mut Writer, _version: Version) -> Result<(), EncodeError> {
        writer.put(&self.0);
        Ok(())
    }
}

/// The rest of what a nullable type needs to be a plain one: null is an error.
macro_rules! plain_from_nullable {
    ($fixed_length_bytes:expr) => {
        fn bytes_min(version: Version) -> usize {
            if version.flexible {
                1
            } else {
                $fixed_length_bytes
            }
        }
        fn read(reader: &mut Reader, version: Version) -> Result<Self, DecodeError> {
            Self::read_nullable(reader, version)?.ok_or(DecodeError::UnexpectedNull)
        }
        fn write(&self, writer: &mut Writer, version: Version) -> Result<(), EncodeError> {
            Self::write_nullable(Some(self), writer, version)
        }
    };
}

impl WireType for String {
    plain_from_nullable!(2);
}

impl NullableWireType for String {
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, DecodeError> {
        reader.nullable_string(version.flexible)
    }
    fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        version: Version,
    ) -> Result<(), EncodeError> {
        writer.put_string(value.map(String::as_str), version.flexible)
    }
}

impl WireType for Bytes {
    plain_from_nullable!(4);
}

impl NullableWireType for Bytes {
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, DecodeError> {
        reader.nullable_bytes(version.flexible)
    }
    fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        version: Version,
    ) -> Result<(), EncodeError> {
        writer.put_bytes(value.map(AsRef::as_ref), version.flexible)
    }
}

impl WireType for BytesMut {
    plain_from_nullable!(4);
}

impl NullableWireType for BytesMut {
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, DecodeError> {
        reader.nullable_bytes_mut(version.flexible)
    }
    fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        version: Version,
    ) -> Result<(), EncodeError> {
        writer.put_bytes(value.map(AsRef::as_ref), version.flexible)
    }
}

impl<T: WireType> WireType for Vec<T> {
    plain_from_nullable!(4);
}

impl<T: WireType> NullableWireType for Vec<T> {
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, DecodeError> {
        let bytes_min = T::bytes_min(version);
        let Some(count) = reader.array_count(version.flexible, bytes_min, size_of::<T>())? else {
            return Ok(None);
        };
        let mut elements = Self::with_capacity(count);
        for _ in 0..count {
            elements.push(T::read(reader, version)?);
        }
        Ok(Some(elements))
    }
    fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        version: Version,
    ) -> Result<(), EncodeError> {
        writer.put_length(value.map(Vec::len), version.flexible)?;
        for element in value.into_iter().flatten() {
            element.write(writer, version)?;
        }
        Ok(())
    }
}

/// The record batches of one partition in the pieces in which they lie in memory. Written, the
/// pieces are shared, not copied; two values are equal when their bytes are.
#[derive(Clone, Debug, Default)]
pub struct RecordSlices {
    /// In order; together whole batches, or a part of the last one.
    pub slices: Vec<Bytes>,
}

impl RecordSlices {
    /// Bytes in all slices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slices.iter().map(Bytes::len).sum()
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slices.iter().all(Bytes::is_empty)
    }
}

impl From<Bytes> for RecordSlices {
    fn from(bytes: Bytes) -> Self {
        Self {
            slices: vec![bytes],
        }
    }
}

impl From<Vec<Bytes>> for RecordSlices {
    fn from(slices: Vec<Bytes>) -> Self {
        Self { slices }
    }
}

impl PartialEq for RecordSlices {
    fn eq(&self, other: &Self) -> bool {
        let (mut ours, mut theirs) = (self.slices.iter().flatten(), other.slices.iter().flatten());
        self.len() == other.len() && ours.by_ref().eq(theirs.by_ref())
    }
}

impl WireType for RecordSlices {
    plain_from_nullable!(4);
}

impl NullableWireType for RecordSlices {
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, DecodeError> {
        let bytes = reader.nullable_bytes(version.flexible)?;
        Ok(bytes.map(|bytes| Self {
            slices: if bytes.has_remaining() {
                vec![bytes]
            } else {
                Vec::new()
            },
        }))
    }
    fn write_nullable(
        value: Option<&Self>,
        writer: &mut Writer,
        version: Version,
    ) -> Result<(), EncodeError> {
        writer.put_records(value, version.flexible)
    }
}
