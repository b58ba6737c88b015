//! What a partition tells of its producers (`ProducerStateManager.activeProducers`).

use super::error::PartitionError;
use super::leadership::LeaderOnly;
use super::replica::Partition;
use crate::base::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::time::TimestampMs;

/// One idempotent or transactional producer that has not expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownProducer {
    /// Its id.
    pub producer_id: ProducerId,
    /// Its latest epoch.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of its last record, or -1.
    pub last_sequence: Sequence,
    /// Time of its last batch or marker.
    pub last_timestamp: TimestampMs,
    /// Epoch of the coordinator that last ended a transaction of it, or -1.
    pub coordinator_epoch: i32,
    /// Where its open transaction began here.
    pub transaction_first_offset: Option<Offset>,
}

impl Partition {
    /// The producers that it knows, by id.
    ///
    /// # Errors
    /// [`PartitionError`] when this broker does not lead.
    pub fn producers(&self) -> Result<Vec<KnownProducer>, PartitionError> {
        self.check_reader(LeaderEpoch::NONE, LeaderOnly::Yes)?;
        let mut known = self.log().producers(|producer_id, entry| KnownProducer {
            producer_id,
            producer_epoch: entry.producer_epoch,
            last_sequence: entry
                .batches()
                .next_back()
                .map_or(Sequence::NONE, |batch| batch.last_sequence),
            last_timestamp: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            transaction_first_offset: entry.transaction_first_offset,
        });
        known.sort_unstable_by_key(|producer| producer.producer_id);
        Ok(known)
    }
}
