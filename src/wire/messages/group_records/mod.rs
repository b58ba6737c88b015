//! Records of `__consumer_offsets` in Kafka's schemas: the offsets that groups commit, and the
//! groups themselves. A record's key stands behind its kind, a number of 2 bytes; its value behind
//! the version of its schema, or is null where the record takes back what was there.
//!
//! Kinds 0 (before Kafka 0.9) and 1 are offsets and have the same key; kind 2 is a classic group.
//!
//! Absent: the kinds of KIP-848's consumer groups, of share groups and of streams groups (3 and
//! above), which [`GroupRecordKey::decode`] gives back as unknown.

mod classic_group;
mod committed_offset;

pub use classic_group::{GroupMetadataKey, GroupMetadataValue, MemberMetadata};
pub use committed_offset::{OffsetCommitKey, OffsetCommitValue};

use bytes::Bytes;

use crate::wire::codec::RecordMessage;
use crate::wire::primitives::{DecodeError, EncodeError, Reader, Writer};

/// The one version of every key's schema.
const KEY_VERSION: i16 = 0;
/// The kind of an offset's key before Kafka 0.9.
const LEGACY_OFFSET_KIND: i16 = 0;

/// What a record is about.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupRecordKey {
    /// An offset of a group.
    Offset(OffsetCommitKey),
    /// A classic group.
    Group(GroupMetadataKey),
    /// A kind unknown here, which a reader passes over.
    Unknown(i16),
}

impl GroupRecordKey {
    /// Reads a record's key. Bytes after a known one are an error.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let kind = i16::from_be_bytes(reader.array()?);
        match kind {
            LEGACY_OFFSET_KIND | 1 => {
                OffsetCommitKey::decode(&mut reader, KEY_VERSION).map(Self::Offset)
            }
            2 => GroupMetadataKey::decode(&mut reader, KEY_VERSION).map(Self::Group),
            unknown => Ok(Self::Unknown(unknown)),
        }
    }
}

/// A record's key behind its kind.
pub fn encode_key<K: RecordMessage>(key: &K) -> Result<Bytes, EncodeError> {
    let kind = i16::try_from(K::TYPE).map_err(|_| EncodeError::UnsupportedVersion(i16::MAX))?;
    let mut writer = Writer::default();
    writer.put(&kind.to_be_bytes());
    key.encode(&mut writer, KEY_VERSION)?;
    Ok(writer.into_bytes())
}
