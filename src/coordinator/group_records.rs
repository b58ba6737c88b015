//! Records of groups as `__consumer_offsets` holds them: in Kafka's schemas, one batch a write.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use super::group::{CommittedOffset, GroupValue, MemberValue, Record};
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::wire::codec::DataMessage;
use crate::wire::compression::{Codec, CompressError};
use crate::wire::messages::group_records::{
    GroupMetadataKey, GroupMetadataValue, GroupRecordKey, MemberMetadata, OffsetCommitKey,
    OffsetCommitValue, encode_key,
};
use crate::wire::primitives::{DecodeError, EncodeError};
use crate::wire::record_batch::{BatchBuilder, NewRecord};

/// `GroupMetadataValue` as Kafka writes it (`MetadataVersion.groupMetadataValueVersion`).
const GROUP_VERSION: i16 = 3;
/// `OffsetCommitValue` with the topic's id, and where the client names an end
/// (`GroupCoordinatorRecordHelpers.offsetCommitValueVersion`), which leaves no room for an id.
const OFFSET_VERSION: i16 = 4;
const EXPIRING_OFFSET_VERSION: i16 = 1;

/// Why records are no batch.
#[derive(Debug, Error)]
pub enum WriteFault {
    /// A record does not fit its schema.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The codec failed.
    #[error(transparent)]
    Compress(#[from] CompressError),
}

/// One batch of `records`.
///
/// # Errors
/// A record that does not fit its schema, such as a name of more than 32 KiB.
pub fn batch(records: &[Record], codec: Codec, now: TimestampMs) -> Result<BytesMut, WriteFault> {
    let mut builder = BatchBuilder::new(Offset(0)).compressed(codec, None);
    for record in records {
        let (key, value) = encode(record)?;
        builder.append(NewRecord {
            timestamp: now,
            key: Some(&key),
            value: value.as_deref(),
            headers: &[],
        });
    }
    Ok(builder.build()?)
}

/// Key and value of a record.
fn encode(record: &Record) -> Result<(Bytes, Option<Bytes>), EncodeError> {
    Ok(match record {
        Record::Group { group_id, value } => {
            let key = GroupMetadataKey {
                group: group_id.to_string(),
            };
            let value = value.as_ref().map(of_group);
            let value = value.map(|value| value.encode_prefixed(GROUP_VERSION));
            (encode_key(&key)?, value.transpose()?)
        }
        Record::Offset {
            group_id,
            topic,
            partition,
            value,
        } => {
            let key = OffsetCommitKey {
                group: group_id.to_string(),
                topic: topic.clone(),
                partition: *partition,
            };
            let value = value.as_ref().map(|offset| {
                let version = match offset.expires_at {
                    TimestampMs::NONE => OFFSET_VERSION,
                    _ => EXPIRING_OFFSET_VERSION,
                };
                of_offset(offset).encode_prefixed(version)
            });
            (encode_key(&key)?, value.transpose()?)
        }
    })
}

/// The record of a key and a value; `None` for one of a kind that is not known here, which is
/// left alone as Kafka leaves it.
///
/// # Errors
/// Bytes that are no such record.
pub fn decode(key: Bytes, value: Option<Bytes>) -> Result<Option<Record>, DecodeError> {
    Ok(Some(match GroupRecordKey::decode(key)? {
        GroupRecordKey::Offset(key) => Record::Offset {
            group_id: key.group.into(),
            topic: key.topic,
            partition: key.partition,
            value: match value {
                Some(value) => Some(to_offset(OffsetCommitValue::decode_prefixed(value)?)),
                None => None,
            },
        },
        GroupRecordKey::Group(key) => Record::Group {
            group_id: key.group.into(),
            value: match value {
                Some(value) => Some(to_group(GroupMetadataValue::decode_prefixed(value)?)),
                None => None,
            },
        },
        GroupRecordKey::Unknown(_) => return Ok(None),
    }))
}

fn of_group(value: &GroupValue) -> GroupMetadataValue {
    let member = |member: &MemberValue| MemberMetadata {
        member_id: member.member_id.to_string(),
        group_instance_id: member.instance_id.as_ref().map(ToString::to_string),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout: member.rebalance_timeout_ms,
        session_timeout: member.session_timeout_ms,
        subscription: member.subscription.clone(),
        assignment: member.assignment.clone(),
    };
    GroupMetadataValue {
        protocol_type: value.protocol_type.clone(),
        generation: value.generation_id,
        protocol: value.protocol.clone(),
        leader: value.leader.as_ref().map(ToString::to_string),
        current_state_timestamp: value.state_since,
        members: value.members.iter().map(member).collect(),
    }
}

fn to_group(value: GroupMetadataValue) -> GroupValue {
    // Values are copied: else one member would keep the whole batch that it was read from.
    let member = |member: MemberMetadata| MemberValue {
        member_id: member.member_id.into(),
        instance_id: member.group_instance_id.map(Into::into),
        client_id: member.client_id,
        client_host: member.client_host,
        rebalance_timeout_ms: member.rebalance_timeout,
        session_timeout_ms: member.session_timeout,
        subscription: Bytes::copy_from_slice(&member.subscription),
        assignment: Bytes::copy_from_slice(&member.assignment),
    };
    GroupValue {
        protocol_type: value.protocol_type,
        generation_id: value.generation,
        protocol: value.protocol,
        leader: value.leader.map(Into::into),
        state_since: value.current_state_timestamp,
        members: value.members.into_iter().map(member).collect(),
    }
}

fn of_offset(offset: &CommittedOffset) -> OffsetCommitValue {
    OffsetCommitValue {
        offset: offset.offset,
        leader_epoch: offset.leader_epoch,
        metadata: offset.metadata.clone(),
        commit_timestamp: offset.committed_at,
        expire_timestamp: offset.expires_at,
        topic_id: offset.topic_id,
    }
}

fn to_offset(value: OffsetCommitValue) -> CommittedOffset {
    CommittedOffset {
        offset: value.offset,
        leader_epoch: value.leader_epoch,
        metadata: value.metadata,
        committed_at: value.commit_timestamp,
        expires_at: value.expire_timestamp,
        topic_id: value.topic_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{GenerationId, LeaderEpoch, PartitionIndex, Uuid};
    use crate::wire::record::RecordIter;
    use crate::wire::record_batch::{BatchHeader, HEADER_BYTES};

    fn offset(expires_at: i64) -> Record {
        Record::Offset {
            group_id: "g".into(),
            topic: "t".into(),
            partition: PartitionIndex(3),
            value: Some(CommittedOffset {
                offset: Offset(7),
                // An old record that names an end has no room for an epoch, nor for an id.
                leader_epoch: LeaderEpoch(if expires_at < 0 { 2 } else { -1 }),
                metadata: "m".into(),
                committed_at: TimestampMs(5),
                expires_at: TimestampMs(expires_at),
                topic_id: Uuid([if expires_at < 0 { 5 } else { 0 }; 16]),
            }),
        }
    }

    #[test]
    fn records_come_back_from_their_batch() {
        let member = MemberValue {
            member_id: "m-1".into(),
            instance_id: Some("i".into()),
            client_id: "c".into(),
            client_host: "/h".into(),
            rebalance_timeout_ms: 1,
            session_timeout_ms: 2,
            subscription: Bytes::from_static(b"s"),
            assignment: Bytes::from_static(b"a"),
        };
        let group = Record::Group {
            group_id: "g".into(),
            value: Some(GroupValue {
                protocol_type: "consumer".into(),
                generation_id: GenerationId(4),
                protocol: Some("range".into()),
                leader: Some("m-1".into()),
                state_since: TimestampMs(9),
                members: vec![member],
            }),
        };
        let gone = Record::Group {
            group_id: "h".into(),
            value: None,
        };
        let records = [group, gone, offset(-1), offset(99)];
        let batch = batch(&records, Codec::None, TimestampMs(1))
            .unwrap()
            .freeze();
        let header = BatchHeader::parse(&batch).unwrap();
        let read: Vec<_> = RecordIter::new(&batch[HEADER_BYTES..], header.record_count)
            .map(|record| {
                let record = record.unwrap();
                let key = Bytes::copy_from_slice(record.key.unwrap());
                let value = record.value.map(Bytes::copy_from_slice);
                decode(key, value).unwrap().unwrap()
            })
            .collect();
        assert_eq!(read, records);
    }

    #[test]
    fn other_kinds_are_passed_over_and_garbage_is_refused() {
        let unknown = Bytes::from_static(&[0, 3, 0, 1, b'g']);
        assert_eq!(decode(unknown, None).unwrap(), None);
        assert!(decode(Bytes::from_static(&[0, 2, 0, 9]), None).is_err());
        assert!(decode(Bytes::new(), None).is_err());
    }
}
