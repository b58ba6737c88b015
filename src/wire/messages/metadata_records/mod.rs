//! Records of the cluster's metadata log (KIP-631), as Kafka's controllers write them: those that
//! a broker's image is made of. Each stands behind a frame of three unsigned varints: the frame's
//! version (1), the record's type, the record's version.
//!
//! Absent: ACLs, SCRAM credentials, delegation tokens, controllers' registrations, and
//! what remains of the migration from ZooKeeper.

mod brokers;
mod cluster;
mod topics;

pub use brokers::{
    BrokerEndpoint, BrokerFeature, BrokerRegistrationChangeRecord, FenceBrokerRecord,
    RegisterBrokerRecord, UnfenceBrokerRecord, UnregisterBrokerRecord,
};
pub use cluster::{
    AbortTransactionRecord, BeginTransactionRecord, ClientQuotaRecord, ConfigRecord,
    EndTransactionRecord, FeatureLevelRecord, NoOpRecord, ProducerIdsRecord, QuotaEntityData,
};
pub use topics::{
    ClearElrRecord, PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord,
};

use bytes::Bytes;

use crate::wire::codec::RecordMessage;
use crate::wire::primitives::{DecodeError, EncodeError, Reader, Writer};

/// The one version of the frame (`AbstractApiMessageSerde`).
const FRAME_VERSION: u32 = 1;

/// What stands before a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFrame {
    /// Kafka's number of the record's kind.
    pub record_type: u32,
    /// The version of its schema.
    pub version: i16,
}

impl RecordFrame {
    /// Reads the frame and leaves the reader at the record.
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        let frame_version = reader.unsigned_varint()?;
        if frame_version != FRAME_VERSION {
            let shown = i16::try_from(frame_version).unwrap_or(i16::MAX);
            return Err(DecodeError::UnsupportedVersion(shown));
        }
        let record_type = reader.unsigned_varint()?;
        let version = reader.unsigned_varint()?;
        let version =
            i16::try_from(version).map_err(|_| DecodeError::UnsupportedVersion(i16::MAX))?;
        Ok(Self {
            record_type,
            version,
        })
    }
}

/// A record behind its frame, as it is a value in the log.
pub fn encode_framed<R: RecordMessage>(record: &R, version: i16) -> Result<Bytes, EncodeError> {
    let number = u32::try_from(version).map_err(|_| EncodeError::UnsupportedVersion(version))?;
    let mut writer = Writer::default();
    writer.put_unsigned_varint(FRAME_VERSION);
    writer.put_unsigned_varint(R::TYPE);
    writer.put_unsigned_varint(number);
    record.encode(&mut writer, version)?;
    Ok(writer.into_bytes())
}
