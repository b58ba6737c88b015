//! What messages have in common: a number, versions, and a body that is read and written whole.
//! Their structs come from `message!` in `schema.rs`.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::primitives::{
    DecodeError, EncodeError, NullableWireType, Reader, Version, WireType, Writer,
};
use crate::base::ids::ApiKey;

pub(crate) use super::schema::message;

/// The request or the response of one API key.
pub trait Message: WireType {
    /// The key.
    const API_KEY: ApiKey;
    /// Versions that the struct can be read and written in.
    const VERSIONS: RangeInclusive<i16>;
    /// First version with compact lengths and tagged fields.
    const FLEXIBLE_FROM: Option<i16>;

    /// Reads the whole body. Bytes after the last field are an error.
    fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        decode_body(reader, version, &Self::VERSIONS, Self::FLEXIBLE_FROM)
    }

    /// Reads a request's body. Bytes after its last field are passed over, as Kafka does: where
    /// librdkafka 2.12 asks for all topics, three of the four bytes that it kept for their number
    /// are left.
    fn decode_request(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        decode_fields(reader, version, &Self::VERSIONS, Self::FLEXIBLE_FROM)
    }

    /// Appends the body.
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {
        encode_body(
            self,
            writer,
            version,
            (&Self::VERSIONS, Self::FLEXIBLE_FROM),
        )
    }
}

/// A record of the metadata log: its type and version stand before it.
pub trait RecordMessage: WireType {
    /// The number that Kafka's schema calls `apiKey`.
    const TYPE: u32;
    /// Versions that the struct can be read and written in.
    const VERSIONS: RangeInclusive<i16>;
    /// First version with compact lengths and tagged fields.
    const FLEXIBLE_FROM: Option<i16>;

    /// Reads the whole record without its frame. Bytes after the last field are an error.
    fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        decode_body(reader, version, &Self::VERSIONS, Self::FLEXIBLE_FROM)
    }

    /// Appends the record without its frame.
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {
        encode_body(
            self,
            writer,
            version,
            (&Self::VERSIONS, Self::FLEXIBLE_FROM),
        )
    }
}

/// A message that stands alone behind a version of 2 bytes, such as a control record's value
/// (`MessageUtil.toVersionPrefixedByteBuffer`).
pub trait DataMessage: WireType {
    /// Versions that the struct can be read and written in.
    const VERSIONS: RangeInclusive<i16>;
    /// First version with compact lengths and tagged fields.
    const FLEXIBLE_FROM: Option<i16>;

    /// Reads the whole message without its version. Bytes after the last field are an error.
    fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        decode_body(reader, version, &Self::VERSIONS, Self::FLEXIBLE_FROM)
    }

    /// Appends the message without its version.
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {
        encode_body(
            self,
            writer,
            version,
            (&Self::VERSIONS, Self::FLEXIBLE_FROM),
        )
    }

    /// Reads a version and the message in it.
    fn decode_prefixed(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let version = i16::from_be_bytes(reader.array()?);
        Self::decode(&mut reader, version)
    }

    /// The message behind its version.
    fn encode_prefixed(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut writer = Writer::default();
        writer.put(&version.to_be_bytes());
        self.encode(&mut writer, version)?;
        Ok(writer.into_bytes())
    }
}

fn decode_body<T: WireType>(
    reader: &mut Reader,
    number: i16,
    versions: &RangeInclusive<i16>,
    flexible_from: Option<i16>,
) -> Result<T, DecodeError> {
    let body = decode_fields(reader, number, versions, flexible_from)?;
    reader.finish()?;
    Ok(body)
}

fn decode_fields<T: WireType>(
    reader: &mut Reader,
    number: i16,
    versions: &RangeInclusive<i16>,
    flexible_from: Option<i16>,
) -> Result<T, DecodeError> {
    if !versions.contains(&number) {
        return Err(DecodeError::UnsupportedVersion(number));
    }
    let flexible = is_flexible(number, flexible_from);
    T::read(reader, Version { number, flexible })
}

fn encode_body<T: WireType>(
    body: &T,
    writer: &mut Writer,
    number: i16,
    (versions, flexible_from): (&RangeInclusive<i16>, Option<i16>),
) -> Result<(), EncodeError> {
    if !versions.contains(&number) {
        return Err(EncodeError::UnsupportedVersion(number));
    }
    let flexible = is_flexible(number, flexible_from);
    body.write(writer, Version { number, flexible })
}

/// Whether `version` lies at or after the first flexible one.
#[must_use]
pub(super) fn is_flexible(version: i16, flexible_from: Option<i16>) -> bool {
    flexible_from.is_some_and(|first| version >= first)
}

/// An `Option` as a field's type, for `read_field!` to see the type inside it.
pub(crate) trait NullableField: Sized {
    /// The least the field takes on the wire where it may be null.
    fn bytes_min(version: Version, may_be_null: bool) -> usize;
    /// Reads the field.
    fn read(reader: &mut Reader, version: Version, may_be_null: bool) -> Result<Self, DecodeError>;
}

impl<T: NullableWireType> NullableField for Option<T> {
    fn bytes_min(version: Version, may_be_null: bool) -> usize {
        if may_be_null {
            T::nullable_bytes_min(version)
        } else {
            T::bytes_min(version)
        }
    }

    fn read(reader: &mut Reader, version: Version, may_be_null: bool) -> Result<Self, DecodeError> {
        if may_be_null {
            T::read_nullable(reader, version)
        } else {
            T::read(reader, version).map(Some)
        }
    }
}
