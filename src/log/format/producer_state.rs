//! What a partition knows of its producers (`ProducerStateManager`, `ProducerStateEntry`,
//! `ProducerAppendInfo`): epochs that fence, the last batches that tell a retry from a new batch,
//! open transactions (KIP-98, KIP-360, KIP-890).
//!
//! Two steps: [`ProducerStates::check`] decides without changing anything, before a batch has its
//! offset; [`ProducerStates::apply`] notes a batch that was appended, and is all that replay needs.
//!
//! Of a transaction:
//!
//! ```text
//! none -> open (first transactional batch) -> decided (marker) -> none (marker below the HW)
//! ```

use std::collections::{BTreeMap, HashMap, VecDeque};

use thiserror::Error;

use super::transaction_index::AbortedTransaction;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::limits::PRODUCER_BATCHES_MAX;
use crate::base::time::TimestampMs;
use crate::log::config::AppendOrigin;
use crate::wire::record_batch::{BatchHeader, EndTransactionMarker, MarkerKind};

/// Why a batch of an idempotent or transactional producer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProducerStateError {
    /// The sequence does not follow the last one.
    #[error("sequence {incoming} of producer {producer_id} does not follow {last}")]
    OutOfOrderSequence {
        /// The producer.
        producer_id: ProducerId,
        /// The batch's first sequence.
        incoming: Sequence,
        /// The last sequence known, or -1.
        last: Sequence,
    },
    /// The epoch is older than the latest one: a zombie.
    #[error("epoch {incoming} of producer {producer_id} is older than {current}")]
    InvalidProducerEpoch {
        /// The producer.
        producer_id: ProducerId,
        /// The batch's epoch.
        incoming: ProducerEpoch,
        /// The latest epoch.
        current: ProducerEpoch,
    },
    /// A batch outside a transaction while one of the same producer is open.
    #[error("producer {producer_id} writes outside its open transaction")]
    InvalidTransactionState {
        /// The producer.
        producer_id: ProducerId,
    },
    /// A marker of an older coordinator.
    #[error("coordinator epoch {incoming} is older than {current}")]
    CoordinatorFenced {
        /// The marker's epoch.
        incoming: i32,
        /// The latest epoch.
        current: i32,
    },
}

impl ProducerStateError {
    /// Kafka's code for it in a Produce answer.
    #[must_use]
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            Self::OutOfOrderSequence { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
            Self::InvalidProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
            Self::InvalidTransactionState { .. } => ErrorCode::INVALID_TXN_STATE,
            Self::CoordinatorFenced { .. } => ErrorCode::TRANSACTION_COORDINATOR_FENCED,
        }
    }
}

/// One of the last batches of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMetadata {
    /// Sequence of its last record.
    pub last_sequence: Sequence,
    /// Offset of its last record.
    pub last_offset: Offset,
    /// Its last offset less its first.
    pub offset_delta: i32,
    /// Its largest timestamp.
    pub timestamp: TimestampMs,
}

impl BatchMetadata {
    /// Sequence of its first record.
    #[must_use]
    pub const fn first_sequence(&self) -> Sequence {
        // `DefaultRecordBatch.decrementSequence`: wraps from 0 to i32::MAX.
        let (last, delta) = (self.last_sequence.0, self.offset_delta);
        if last < delta {
            Sequence(i32::MAX - (delta - last) + 1)
        } else {
            Sequence(last - delta)
        }
    }

    /// Offset of its first record.
    #[must_use]
    pub const fn first_offset(&self) -> Offset {
        Offset(self.last_offset.0.saturating_sub(self.offset_delta as i64))
    }
}

/// What is known of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// Its latest epoch; -1 before the first batch.
    pub producer_epoch: ProducerEpoch,
    /// Epoch of the coordinator that last ended a transaction of it, or -1.
    pub coordinator_epoch: i32,
    /// Largest timestamp of its last batch, or its last marker's: what expiry counts from.
    pub last_timestamp: TimestampMs,
    /// Where its open transaction began here.
    pub transaction_first_offset: Option<Offset>,
    batches: VecDeque<BatchMetadata>,
}

impl Default for ProducerEntry {
    fn default() -> Self {
        Self {
            producer_epoch: ProducerEpoch::NONE,
            coordinator_epoch: -1,
            last_timestamp: TimestampMs::NONE,
            transaction_first_offset: None,
            batches: VecDeque::new(),
        }
    }
}

impl ProducerEntry {
    /// Its last batches, oldest first; at most [`PRODUCER_BATCHES_MAX`].
    pub fn batches(&self) -> impl DoubleEndedIterator<Item = &BatchMetadata> + ExactSizeIterator {
        self.batches.iter()
    }

    pub(super) fn push(&mut self, batch: BatchMetadata) {
        if self.batches.len() == PRODUCER_BATCHES_MAX {
            self.batches.pop_front();
        }
        self.batches.push_back(batch);
    }

    fn last_sequence(&self) -> Sequence {
        self.batches
            .back()
            .map_or(Sequence::NONE, |batch| batch.last_sequence)
    }

    /// A new epoch begins without batches.
    fn enter_epoch(&mut self, producer_epoch: ProducerEpoch) {
        if self.producer_epoch != producer_epoch {
            self.batches.clear();
            self.producer_epoch = producer_epoch;
        }
    }

    fn find_duplicate(&self, header: &BatchHeader) -> Option<BatchMetadata> {
        if header.producer_epoch != self.producer_epoch {
            return None;
        }
        let (first, last) = (header.base_sequence, header.last_sequence());
        self.batches
            .iter()
            .find(|batch| batch.first_sequence() == first && batch.last_sequence == last)
            .copied()
    }
}

/// A batch may be appended, or was already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProducerCheck {
    /// It is new.
    Append,
    /// An exact retry of this batch: answer with its offsets, append nothing.
    Duplicate(BatchMetadata),
}

/// A transaction that a marker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedTransaction {
    /// Its producer.
    pub producer_id: ProducerId,
    /// Its first record here.
    pub first_offset: Offset,
    /// The marker.
    pub last_offset: Offset,
    /// How it ended.
    pub kind: MarkerKind,
    /// The last stable offset once the marker is replicated, for the transaction index.
    pub last_stable_offset: Offset,
}

impl CompletedTransaction {
    /// The entry for the transaction index; none for a commit.
    #[must_use]
    pub fn index_entry(&self) -> Option<AbortedTransaction> {
        (self.kind == MarkerKind::Abort).then_some(AbortedTransaction {
            producer_id: self.producer_id,
            first_offset: self.first_offset,
            last_offset: self.last_offset,
            last_stable_offset: self.last_stable_offset,
        })
    }
}

/// The producers of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerStates {
    producers: HashMap<ProducerId, ProducerEntry>,
    /// Open transactions by their first offset.
    open: BTreeMap<Offset, ProducerId>,
    /// Decided ones whose marker may not be replicated: first offset to marker.
    decided: BTreeMap<Offset, Offset>,
}

impl ProducerStates {
    /// Judges a data batch before its append. Its header's offsets mean nothing yet. Batches
    /// without producer id always pass.
    ///
    /// # Errors
    /// [`ProducerStateError`] with Kafka's code. A replica's batches are never refused: their
    /// leader has judged them.
    pub fn check(
        &self,
        header: &BatchHeader,
        origin: AppendOrigin,
    ) -> Result<ProducerCheck, ProducerStateError> {
        if !header.has_producer_id() || origin == AppendOrigin::Replica {
            return Ok(ProducerCheck::Append);
        }
        let Some(entry) = self.producers.get(&header.producer_id) else {
            // An unknown producer may begin anywhere: its records may have been deleted. Its epoch
            // is judged against none, as in Kafka (`ProducerAppendInfo.checkProducerEpoch`).
            let unknown = ProducerEntry::default();
            check_producer_epoch(&unknown, header.producer_id, header.producer_epoch)?;
            return Ok(ProducerCheck::Append);
        };
        if origin == AppendOrigin::Client
            && let Some(duplicate) = entry.find_duplicate(header)
        {
            return Ok(ProducerCheck::Duplicate(duplicate));
        }
        check_producer_epoch(entry, header.producer_id, header.producer_epoch)?;
        if origin == AppendOrigin::Client {
            check_sequence(entry, header)?;
        }
        if entry.transaction_first_offset.is_some() && !header.attributes.is_transactional() {
            return Err(ProducerStateError::InvalidTransactionState {
                producer_id: header.producer_id,
            });
        }
        Ok(ProducerCheck::Append)
    }

    /// Judges a transaction marker before its append (transaction version 1: the marker carries
    /// the epoch of the transaction or a later one).
    ///
    /// # Errors
    /// [`ProducerStateError`] for an older producer epoch or coordinator epoch.
    pub fn check_marker(
        &self,
        header: &BatchHeader,
        marker: EndTransactionMarker,
    ) -> Result<(), ProducerStateError> {
        let Some(entry) = self.producers.get(&header.producer_id) else {
            return Ok(());
        };
        check_producer_epoch(entry, header.producer_id, header.producer_epoch)?;
        if marker.coordinator_epoch < entry.coordinator_epoch {
            return Err(ProducerStateError::CoordinatorFenced {
                incoming: marker.coordinator_epoch,
                current: entry.coordinator_epoch,
            });
        }
        Ok(())
    }

    /// Notes a data batch that was appended with these offsets. Batches without producer id and
    /// control batches change nothing.
    pub fn apply(&mut self, header: &BatchHeader) {
        if !header.has_producer_id() || header.attributes.is_control() {
            return;
        }
        let entry = self.producers.entry(header.producer_id).or_default();
        entry.enter_epoch(header.producer_epoch);
        entry.push(BatchMetadata {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
        entry.last_timestamp = header.max_timestamp;
        if header.attributes.is_transactional() && entry.transaction_first_offset.is_none() {
            entry.transaction_first_offset = Some(header.base_offset);
            self.open.insert(header.base_offset, header.producer_id);
        }
    }

    /// Notes a transaction marker that was appended at the header's base offset. Gives the
    /// transaction that it ended, where the producer had one open here.
    pub fn apply_marker(
        &mut self,
        header: &BatchHeader,
        marker: EndTransactionMarker,
    ) -> Option<CompletedTransaction> {
        let producer_id = header.producer_id;
        let entry = self.producers.entry(producer_id).or_default();
        entry.enter_epoch(header.producer_epoch);
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.last_timestamp = header.max_timestamp;
        let first_offset = entry.transaction_first_offset.take()?;
        self.open.remove(&first_offset);
        let last_offset = header.base_offset;
        self.decided.insert(first_offset, last_offset);
        let next_open = self.open.keys().next().copied();
        let last_stable_offset = next_open.unwrap_or(last_offset.plus(1));
        let kind = marker.kind;
        Some(CompletedTransaction {
            producer_id,
            first_offset,
            last_offset,
            kind,
            last_stable_offset,
        })
    }

    /// The first offset whose fate is not settled: of an open transaction, or of a decided one
    /// whose marker the high watermark has not passed. The last stable offset is the smaller of
    /// this and the high watermark.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<Offset> {
        let open = self.open.keys().next().copied();
        let decided = self.decided.keys().next().copied();
        match (open, decided) {
            (Some(open), Some(decided)) => Some(open.min(decided)),
            (open, decided) => open.or(decided),
        }
    }

    /// Settles decided transactions whose marker lies below the high watermark.
    pub fn on_high_watermark(&mut self, high_watermark: Offset) {
        self.decided.retain(|_, marker| *marker >= high_watermark);
    }

    /// Settles decided transactions below the log's start, which was moved.
    pub fn on_log_start(&mut self, log_start_offset: Offset) {
        self.decided.retain(|_, marker| *marker >= log_start_offset);
    }

    /// Forgets producers without an open transaction whose last timestamp is at least
    /// `producer.id.expiration.ms` old. Gives how many.
    pub fn expire(&mut self, now: TimestampMs, expiration_ms: u64) -> usize {
        let before = self.producers.len();
        let expiration_ms = i64::try_from(expiration_ms).unwrap_or(i64::MAX);
        self.producers.retain(|_, entry| {
            let age = now.0.saturating_sub(entry.last_timestamp.0);
            entry.transaction_first_offset.is_some() || age < expiration_ms
        });
        before - self.producers.len()
    }

    /// Puts back an entry that a snapshot kept. A later entry of the same producer takes the place
    /// of the earlier one, whose batches stand before its own if they are of the same epoch.
    pub fn load(&mut self, producer_id: ProducerId, mut entry: ProducerEntry) {
        if let Some(mut earlier) = self.producers.remove(&producer_id) {
            if let Some(first_offset) = earlier.transaction_first_offset {
                self.open.remove(&first_offset);
            }
            if earlier.producer_epoch == entry.producer_epoch {
                entry
                    .batches
                    .drain(..)
                    .for_each(|batch| earlier.push(batch));
                entry.batches = earlier.batches;
            }
        }
        if let Some(first_offset) = entry.transaction_first_offset {
            self.open.insert(first_offset, producer_id);
        }
        self.producers.insert(producer_id, entry);
    }

    /// Forgets everything: a truncation reloads a snapshot and replays.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// What is known of a producer.
    #[must_use]
    pub fn get(&self, producer_id: ProducerId) -> Option<&ProducerEntry> {
        self.producers.get(&producer_id)
    }

    /// All producers, in no order.
    pub fn producers(&self) -> impl Iterator<Item = (&ProducerId, &ProducerEntry)> {
        self.producers.iter()
    }

    /// Producers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }
}

fn check_producer_epoch(
    entry: &ProducerEntry,
    producer_id: ProducerId,
    incoming: ProducerEpoch,
) -> Result<(), ProducerStateError> {
    let current = entry.producer_epoch;
    if incoming < current {
        return Err(ProducerStateError::InvalidProducerEpoch {
            producer_id,
            incoming,
            current,
        });
    }
    Ok(())
}

fn check_sequence(entry: &ProducerEntry, header: &BatchHeader) -> Result<(), ProducerStateError> {
    if entry.producer_epoch == ProducerEpoch::NONE {
        return Ok(());
    }
    let incoming = header.base_sequence;
    let last = entry.last_sequence();
    let follows = if header.producer_epoch != entry.producer_epoch {
        // A new epoch begins anew.
        incoming == Sequence(0)
    } else {
        i64::from(incoming.0) == i64::from(last.0) + 1
            || (incoming == Sequence(0) && last == Sequence(i32::MAX))
    };
    if follows {
        Ok(())
    } else {
        let producer_id = header.producer_id;
        Err(ProducerStateError::OutOfOrderSequence {
            producer_id,
            incoming,
            last,
        })
    }
}
