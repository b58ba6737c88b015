//! Kafka's metadata records (`metadata/src/main/resources/common/metadata` in Kafka's tree): those
//! that a broker's image is made of. A record of another kind becomes
//! [`MetadataRecord::Foreign`] and is kept as it came, so that a log written by Apache Kafka can be
//! read and carried on.
//!
//! In the log each record stands behind three unsigned varints: version 1 of this framing, the
//! record's kind, the version of its schema (`MetadataRecordSerde`).

use bytes::Bytes;
use thiserror::Error;

use crate::wire::codec::RecordMessage;
use crate::wire::primitives::{DecodeError, EncodeError, Reader, Writer};

pub use crate::wire::messages::metadata_records::{
    AbortTransactionRecord, BeginTransactionRecord, BrokerEndpoint, BrokerFeature,
    BrokerRegistrationChangeRecord, ClearElrRecord, ClientQuotaRecord, ConfigRecord,
    EndTransactionRecord, FeatureLevelRecord, FenceBrokerRecord, NoOpRecord, PartitionChangeRecord,
    PartitionRecord, ProducerIdsRecord, QuotaEntityData, RegisterBrokerRecord, RemoveTopicRecord,
    TopicRecord, UnfenceBrokerRecord, UnregisterBrokerRecord,
};

/// Version of the framing, the only one there is.
const FRAME_VERSION: u32 = 1;

/// Why bytes are no record that this node can follow.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The framing is of a version that does not exist yet.
    #[error("a metadata record has frame version {0}; 1 is the only one known")]
    FrameVersion(u32),
    /// A version of a known kind that this node does not know.
    #[error("a metadata record of kind {kind} has version {version}, which is not known")]
    Version {
        /// The record's API key.
        kind: u32,
        /// Its version.
        version: u32,
    },
    /// The fields do not fit the schema.
    #[error("a metadata record does not decode: {0}")]
    Decode(#[from] DecodeError),
}

/// A record of a kind that this node makes no use of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignRecord {
    /// Its API key.
    pub kind: u32,
    /// All of it, with its framing.
    pub bytes: Bytes,
}

macro_rules! metadata_records {
    ($($(#[$doc:meta])* $variant:ident($record:ident);)*) => {
        /// One record of the metadata log.
        #[derive(Clone, Debug, PartialEq)]
        pub enum MetadataRecord {
            $($(#[$doc])* $variant($record),)*
            /// A kind that this node makes no use of.
            Foreign(ForeignRecord),
        }

        impl MetadataRecord {
            fn decode_body(
                reader: &mut Reader,
                (kind, version): (u32, u32),
                framed: &Bytes,
            ) -> Result<Self, RecordError> {
                let number = i16::try_from(version).unwrap_or(i16::MAX);
                match kind {
                    $($record::TYPE => {
                        if !$record::VERSIONS.contains(&number) {
                            return Err(RecordError::Version { kind, version });
                        }
                        Ok(Self::$variant($record::decode(reader, number)?))
                    })*
                    // A copy: the batch that it came in is not to stay in memory for it.
                    _ => Ok(Self::Foreign(ForeignRecord {
                        kind,
                        bytes: Bytes::copy_from_slice(framed),
                    })),
                }
            }

            fn encode_framed(&self, writer: &mut Writer) -> Result<(), EncodeError> {
                match self {
                    $(Self::$variant(record) => {
                        let version = self.version();
                        writer.put_unsigned_varint(FRAME_VERSION);
                        writer.put_unsigned_varint($record::TYPE);
                        writer.put_unsigned_varint(version.unsigned_abs().into());
                        record.encode(writer, version)
                    })*
                    Self::Foreign(record) => {
                        writer.put(&record.bytes);
                        Ok(())
                    }
                }
            }
        }
    };
}

metadata_records! {
    /// A broker registers, anew or again.
    RegisterBroker(RegisterBrokerRecord);
    /// A broker's registration is removed.
    UnregisterBroker(UnregisterBrokerRecord);
    /// A topic comes to be, without partitions yet.
    Topic(TopicRecord);
    /// A partition comes to be.
    Partition(PartitionRecord);
    /// A setting is made or removed.
    Config(ConfigRecord);
    /// A partition changes.
    PartitionChange(PartitionChangeRecord);
    /// A broker is fenced (logs of metadata versions before 3.3).
    FenceBroker(FenceBrokerRecord);
    /// A broker is unfenced (logs of metadata versions before 3.3).
    UnfenceBroker(UnfenceBrokerRecord);
    /// A topic is removed with its partitions and settings.
    RemoveTopic(RemoveTopicRecord);
    /// A feature's finalized level.
    FeatureLevel(FeatureLevelRecord);
    /// A limit of a user, client or address is set or removed.
    ClientQuota(ClientQuotaRecord);
    /// A block of producer ids has been handed out.
    ProducerIds(ProducerIdsRecord);
    /// A registration changes.
    BrokerRegistrationChange(BrokerRegistrationChangeRecord);
    /// Replicas outside the ISR may lead no more.
    ClearElr(ClearElrRecord);
    /// Keeps the log moving.
    NoOp(NoOpRecord);
    /// What follows counts only once the transaction has ended.
    BeginTransaction(BeginTransactionRecord);
    /// The transaction's records count.
    EndTransaction(EndTransactionRecord);
    /// The transaction's records do not count.
    AbortTransaction(AbortTransactionRecord);
}

impl MetadataRecord {
    /// Reads one record with its framing.
    pub fn decode(bytes: Bytes) -> Result<Self, RecordError> {
        let mut reader = Reader::new(bytes.clone());
        let frame_version = reader.unsigned_varint()?;
        if frame_version != FRAME_VERSION {
            return Err(RecordError::FrameVersion(frame_version));
        }
        let kind = reader.unsigned_varint()?;
        let version = reader.unsigned_varint()?;
        Self::decode_body(&mut reader, (kind, version), &bytes)
    }

    /// The record with its framing.
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        let mut writer = Writer::default();
        self.encode_framed(&mut writer)?;
        Ok(writer.into_bytes())
    }

    /// The lowest version that carries all that the record says, so that every Kafka of the log's
    /// metadata version can read it.
    fn version(&self) -> i16 {
        match self {
            Self::RegisterBroker(record) => match record {
                _ if record.cordoned_log_dirs.is_some() => 4,
                _ if !record.log_dirs.is_empty() => 3,
                _ if record.is_migrating_zk_broker => 2,
                _ => 1,
            },
            Self::Partition(record) => {
                if record.eligible_leader_replicas.is_some() || record.last_known_elr.is_some() {
                    2
                } else {
                    i16::from(!record.directories.is_empty())
                }
            }
            Self::PartitionChange(record) => {
                if record.eligible_leader_replicas.is_some() || record.last_known_elr.is_some() {
                    2
                } else {
                    i16::from(record.directories.is_some())
                }
            }
            Self::BrokerRegistrationChange(record) => match record {
                _ if record.cordoned_log_dirs.is_some() => 3,
                _ if !record.log_dirs.is_empty() => 2,
                _ => i16::from(record.in_controlled_shutdown != 0),
            },
            _ => 0,
        }
    }
}

#[cfg(test)]
mod records_test;
