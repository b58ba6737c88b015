//! The log's records, in order, become the image. A metadata transaction counts whole once it has
//! ended (KIP-868).

use bytes::Bytes;

use super::batch::Entry;
use super::error::MetadataLogError;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset};
use crate::base::time::TimestampMs;
use crate::cluster::image::Image;
use crate::cluster::records::MetadataRecord;
use crate::wire::codec::DataMessage;
use crate::wire::messages::control_records::{KRaftVersionRecord, LeaderChangeMessage};
use crate::wire::messages::voters_record::VotersRecord;
use crate::wire::primitives::Reader;
use crate::wire::record_batch::{BatchHeader, ControlRecordType};

/// What has been read so far.
#[derive(Debug)]
pub struct Replay {
    /// The state that the records add up to.
    pub image: Image,
    /// The offset after the last record.
    pub next_offset: Offset,
    /// The epoch of the last batch.
    pub epoch: LeaderEpoch,
    /// Level of KRaft's own protocol: from 1 on the log itself names its voters (KIP-853).
    pub kraft_version: i16,
    /// Who may vote, as the log last said; none when it never did.
    pub voters: Vec<BrokerId>,
    /// When the last record was appended.
    pub last_timestamp: TimestampMs,
    /// Bytes of the batches read past the snapshot.
    pub bytes_since_snapshot: u64,
    /// Where each epoch begins.
    pub epoch_starts: Vec<(LeaderEpoch, Offset)>,
    /// Records of a transaction that has not ended.
    transaction: Option<Vec<(Offset, MetadataRecord)>>,
}

impl Replay {
    /// Nothing read yet; `image` is empty.
    #[must_use]
    pub fn new(image: Image) -> Self {
        Self {
            image,
            next_offset: Offset(0),
            epoch: LeaderEpoch(0),
            kraft_version: 0,
            voters: Vec::new(),
            last_timestamp: TimestampMs::NONE,
            bytes_since_snapshot: 0,
            epoch_starts: Vec::new(),
            transaction: None,
        }
    }

    /// Whether the log ends inside a transaction, which its writer did not live to end.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Applies a batch that follows on what has been read.
    pub fn apply(
        &mut self,
        header: &BatchHeader,
        entries: Vec<Entry>,
    ) -> Result<(), MetadataLogError> {
        if header.leader_epoch > self.epoch || self.epoch_starts.is_empty() {
            self.epoch = header.leader_epoch;
            self.epoch_starts
                .push((header.leader_epoch, header.base_offset));
        }
        for entry in entries {
            self.apply_entry(entry)?;
        }
        self.next_offset = header.next_offset();
        self.last_timestamp = header.max_timestamp;
        self.bytes_since_snapshot += header.total_bytes() as u64;
        self.image.advance_to(self.next_offset, self.epoch);
        Ok(())
    }

    /// Applies one record, whatever its offset.
    pub fn apply_entry(&mut self, entry: Entry) -> Result<(), MetadataLogError> {
        match entry {
            Entry::Control(offset, kind, value) => self.control(offset, kind, value),
            Entry::Data(offset, record) => self.data(offset, record),
        }
    }

    fn data(&mut self, offset: Offset, record: MetadataRecord) -> Result<(), MetadataLogError> {
        match record {
            MetadataRecord::BeginTransaction(_) => self.transaction = Some(Vec::new()),
            MetadataRecord::AbortTransaction(_) => self.transaction = None,
            MetadataRecord::EndTransaction(_) => {
                for (offset, record) in self.transaction.take().unwrap_or_default() {
                    self.apply_record(offset, &record)?;
                }
            }
            record => match &mut self.transaction {
                Some(records) => records.push((offset, record)),
                None => self.apply_record(offset, &record)?,
            },
        }
        Ok(())
    }

    fn apply_record(
        &mut self,
        offset: Offset,
        record: &MetadataRecord,
    ) -> Result<(), MetadataLogError> {
        self.image
            .apply(record)
            .map_err(|source| MetadataLogError::Image { offset, source })
    }

    fn control(
        &mut self,
        offset: Offset,
        kind: ControlRecordType,
        value: Bytes,
    ) -> Result<(), MetadataLogError> {
        let mut reader = Reader::new(value);
        let fault = |source: crate::wire::primitives::DecodeError| MetadataLogError::Record {
            offset,
            source: source.into(),
        };
        match kind {
            ControlRecordType::KraftVersion => {
                let record = KRaftVersionRecord::decode(&mut reader, 0).map_err(fault)?;
                self.kraft_version = record.kraft_version;
            }
            ControlRecordType::KraftVoters => {
                let record = VotersRecord::decode(&mut reader, 0).map_err(fault)?;
                self.voters = record.voters.iter().map(|voter| voter.voter_id).collect();
            }
            ControlRecordType::LeaderChange if self.kraft_version == 0 => {
                // The value's first field is its version, so that both have the same first bytes.
                let version = reader.rest().get(1).copied().map_or(0, i16::from).min(1);
                let message = LeaderChangeMessage::decode(&mut reader, version).map_err(fault)?;
                self.voters = message.voters.iter().map(|voter| voter.voter_id).collect();
            }
            _ => {}
        }
        Ok(())
    }
}
