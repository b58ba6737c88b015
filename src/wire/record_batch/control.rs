//! Control batches: records that brokers write for each other and consumers never see
//! (`ControlRecordType`): the markers that end transactions (KIP-98) and the records that KRaft
//! keeps in the metadata log (KIP-595, KIP-630, KIP-853).

use bytes::BytesMut;

use super::builder::{BatchBuilder, NewRecord};
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Uuid};
use crate::base::time::TimestampMs;
use crate::wire::compression::CompressError;

/// Bytes of a batch that ends a transaction.
pub const CONTROL_MARKER_BYTES: usize = 78;

/// The kind of a control record: the second field of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecordType {
    /// A transaction was aborted.
    Abort,
    /// A transaction was committed.
    Commit,
    /// A KRaft leader begins its epoch.
    LeaderChange,
    /// Begins a snapshot.
    SnapshotHeader,
    /// Ends a snapshot.
    SnapshotFooter,
    /// The level of KRaft's own protocol.
    KraftVersion,
    /// The voters.
    KraftVoters,
    /// A kind of a later Kafka, which readers skip.
    Unknown(i16),
}

impl ControlRecordType {
    const fn id(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::LeaderChange => 2,
            Self::SnapshotHeader => 3,
            Self::SnapshotFooter => 4,
            Self::KraftVersion => 5,
            Self::KraftVoters => 6,
            Self::Unknown(id) => id,
        }
    }

    const fn from_id(id: i16) -> Self {
        match id {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KraftVersion,
            6 => Self::KraftVoters,
            _ => Self::Unknown(id),
        }
    }

    /// The key of such a record: schema version 0, kind.
    #[must_use]
    pub fn key(self) -> [u8; 4] {
        let mut key = [0; 4];
        if let Some(kind) = key.get_mut(2..) {
            kind.copy_from_slice(&self.id().to_be_bytes());
        }
        key
    }
}

/// Reads the kind from a control record's key; later schema versions may be longer. `None` when it
/// is too short or its version is negative (`ControlRecordType.parse`).
#[must_use]
pub fn parse_control_key(key: &[u8]) -> Option<ControlRecordType> {
    let (version, kind) = key.get(..4)?.split_at_checked(2)?;
    let version = i16::from_be_bytes(version.try_into().ok()?);
    let kind = i16::from_be_bytes(kind.try_into().ok()?);
    (version >= 0).then(|| ControlRecordType::from_id(kind))
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerKind {
    /// Its records do not count.
    Abort,
    /// Its records count.
    Commit,
}

/// The marker that ends a transaction in one partition (`EndTransactionMarker`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTransactionMarker {
    /// Commit or abort.
    pub kind: MarkerKind,
    /// The epoch of the transaction coordinator's partition, which fences older coordinators.
    pub coordinator_epoch: i32,
}

impl EndTransactionMarker {
    /// Reads key and value of a control record; `None` when it is no such marker or malformed.
    #[must_use]
    pub fn parse(key: &[u8], value: &[u8]) -> Option<Self> {
        let kind = match parse_control_key(key)? {
            ControlRecordType::Abort => MarkerKind::Abort,
            ControlRecordType::Commit => MarkerKind::Commit,
            _ => return None,
        };
        let (version, rest) = value.split_first_chunk::<2>()?;
        let coordinator_epoch = i32::from_be_bytes(*rest.first_chunk::<4>()?);
        (i16::from_be_bytes(*version) >= 0).then_some(Self {
            kind,
            coordinator_epoch,
        })
    }

    /// The batch that says so for one producer: [`CONTROL_MARKER_BYTES`] long, at offset 0.
    ///
    /// # Errors
    /// Never in practice: nothing is compressed.
    pub fn batch(
        self,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        timestamp: TimestampMs,
    ) -> Result<BytesMut, CompressError> {
        let kind = match self.kind {
            MarkerKind::Abort => ControlRecordType::Abort,
            MarkerKind::Commit => ControlRecordType::Commit,
        };
        let mut value = Vec::with_capacity(6);
        value.extend_from_slice(&0i16.to_be_bytes());
        value.extend_from_slice(&self.coordinator_epoch.to_be_bytes());
        let key = kind.key();
        let record = NewRecord {
            timestamp,
            key: Some(&key),
            value: Some(&value),
            headers: &[],
        };
        let mut batch = BatchBuilder::new(Offset(0))
            .producer(producer_id, producer_epoch, Sequence::NONE)
            .transactional()
            .control();
        batch.append(record);
        batch.build()
    }
}

/// One control record of the metadata log: kind and encoded value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRecord {
    /// Its kind.
    pub kind: ControlRecordType,
    /// Its value, as the kind's schema says.
    pub value: Vec<u8>,
}

impl ControlRecord {
    /// `LeaderChangeMessage` in version 1 (with the voters' directory ids) or, where a voter has
    /// none, in version 0.
    #[must_use]
    pub fn leader_change(leader: BrokerId, voters: &[(BrokerId, Uuid)]) -> Self {
        let version = i16::from(voters.iter().all(|(_, directory)| *directory != Uuid::ZERO));
        let mut value = version.to_be_bytes().to_vec();
        value.extend_from_slice(&leader.0.to_be_bytes());
        // All voters granted the vote: the only case that a single voter knows.
        for _ in 0..2 {
            write_voters(&mut value, version, voters);
        }
        value.push(0);
        Self {
            kind: ControlRecordType::LeaderChange,
            value,
        }
    }

    /// `SnapshotHeaderRecord`: when the last record that the snapshot contains was appended.
    #[must_use]
    pub fn snapshot_header(last_contained: TimestampMs) -> Self {
        let mut value = 0i16.to_be_bytes().to_vec();
        value.extend_from_slice(&last_contained.0.to_be_bytes());
        value.push(0);
        Self {
            kind: ControlRecordType::SnapshotHeader,
            value,
        }
    }

    /// `SnapshotFooterRecord`.
    #[must_use]
    pub fn snapshot_footer() -> Self {
        Self {
            kind: ControlRecordType::SnapshotFooter,
            value: vec![0, 0, 0],
        }
    }

    /// `KRaftVersionRecord`: the level of KRaft's own protocol.
    #[must_use]
    pub fn kraft_version(level: i16) -> Self {
        let mut value = 0i16.to_be_bytes().to_vec();
        value.extend_from_slice(&level.to_be_bytes());
        value.push(0);
        Self {
            kind: ControlRecordType::KraftVersion,
            value,
        }
    }
}

fn write_voters(value: &mut Vec<u8>, version: i16, voters: &[(BrokerId, Uuid)]) {
    // A compact array's length is one more than its count, as an unsigned varint.
    let mut rest = voters.len() as u64 + 1;
    while rest >= 0x80 {
        value.push((rest as u8 & 0x7f) | 0x80);
        rest >>= 7;
    }
    value.push(rest as u8);
    for (voter, directory) in voters {
        value.extend_from_slice(&voter.0.to_be_bytes());
        if version >= 1 {
            value.extend_from_slice(&directory.0);
        }
        value.push(0);
    }
}

/// A control batch of the metadata log: no producer, not transactional.
///
/// # Errors
/// Never in practice: nothing is compressed.
pub fn kraft_control_batch(
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    timestamp: TimestampMs,
    records: &[ControlRecord],
) -> Result<BytesMut, CompressError> {
    let mut batch = BatchBuilder::new(base_offset)
        .leader_epoch(leader_epoch)
        .control();
    for record in records {
        let key = record.kind.key();
        let value = Some(record.value.as_slice());
        batch.append(NewRecord {
            timestamp,
            key: Some(&key),
            value,
            headers: &[],
        });
    }
    batch.build()
}
