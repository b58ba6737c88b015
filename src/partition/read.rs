//! The fetch path of one partition: fences, bounds by isolation, epoch divergence, slices.

use bytes::Bytes;

use super::error::PartitionError;
use super::leadership::LeaderOnly;
use super::replica::Partition;
use crate::base::ids::{LeaderEpoch, Offset, TopicPartition};
use crate::base::time::TimestampMs;
use crate::log::{ReadError, ReadLimit, ReadResult, TimestampedOffset};
use crate::metrics::Counter;

/// Up to where a reader sees (`FetchIsolation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A consumer at read_uncommitted: below the high watermark.
    HighWatermark,
    /// A consumer at read_committed: below the last stable offset.
    Committed,
    /// A follower: all that is durable here. Its fetch offset claims everything below.
    LogEnd,
}

impl Isolation {
    /// What a consumer's isolation level means; `None` for one that there is not.
    #[must_use]
    pub fn of_consumer(level: i8) -> Option<Self> {
        match level {
            0 => Some(Self::HighWatermark),
            1 => Some(Self::Committed),
            _ => None,
        }
    }
}

/// What one fetch asks of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadSpec {
    /// The partition.
    pub partition: TopicPartition,
    /// Its place within the fetch.
    pub place: u32,
    /// First offset wanted.
    pub fetch_offset: Offset,
    /// The leader epoch that the client knows, -1 for none.
    pub current_leader_epoch: LeaderEpoch,
    /// Epoch of the last record that the client has, -1 for none.
    pub last_fetched_epoch: LeaderEpoch,
    /// Most bytes of this partition.
    pub max_bytes: usize,
}

/// What the whole fetch leaves for one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBounds {
    /// Up to where the reader sees.
    pub isolation: Isolation,
    /// Most bytes.
    pub max_bytes: usize,
    /// Most memory that they may keep alive.
    pub memory_max: usize,
    /// With how much memory the first batch is given even above `max_bytes` (KIP-74).
    pub first_batch_max: usize,
}

/// What one partition answers to a fetch.
#[derive(Debug)]
pub struct PartitionRead {
    /// Its place within the fetch.
    pub place: u32,
    /// Whole batches, or why there are none.
    pub records: Result<Vec<Bytes>, PartitionError>,
    /// Bytes of the batches.
    pub bytes: usize,
    /// Memory that they keep alive.
    pub memory: usize,
    /// Memory for the next batch where more than the bounds allow was needed for it.
    pub needed: usize,
    /// HW, -1 with an error.
    pub high_watermark: Offset,
    /// LSO, -1 with an error.
    pub last_stable_offset: Offset,
    /// First offset, -1 with an error.
    pub log_start_offset: Offset,
    /// Where the client's log leaves this one (KIP-595): epoch and its end here.
    pub diverging: Option<(LeaderEpoch, Offset)>,
    /// The end that the reader saw; a fetch parks until it is passed.
    pub visible_end: Offset,
}

impl PartitionRead {
    /// An answer that is an error alone.
    #[must_use]
    pub fn failed(place: u32, error: PartitionError) -> Self {
        Self {
            place,
            records: Err(error),
            bytes: 0,
            memory: 0,
            needed: 0,
            high_watermark: Offset(-1),
            last_stable_offset: Offset(-1),
            log_start_offset: Offset(-1),
            diverging: None,
            visible_end: Offset(-1),
        }
    }

    /// Leaves the records for another fetch.
    pub fn drop_records(&mut self) {
        (self.bytes, self.memory) = (0, 0);
        if let Ok(records) = &mut self.records {
            records.clear();
        }
    }

    /// Whether this answers the fetch whatever `min_bytes` says.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.records.is_err() || self.diverging.is_some()
    }
}

/// A special timestamp of ListOffsets, or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetQuery {
    /// -1.
    Latest,
    /// -2, and -4 (earliest local) while nothing is tiered.
    Earliest,
    /// -3.
    MaxTimestamp,
    /// -5 and -6: what only tiered storage has.
    Tiered,
    /// The first record at or after.
    At(TimestampMs),
}

impl Partition {
    /// Reads for a fetch. `fetch_offset` may lie anywhere in the log; above the visible end the
    /// answer is empty.
    pub async fn read(&self, spec: &ReadSpec, bounds: ReadBounds) -> PartitionRead {
        match self.read_records(spec, bounds).await {
            Ok(read) => {
                self.metrics.add(Counter::BytesFetched, read.bytes as u64);
                self.note(|counts| {
                    counts.reads += 1;
                    counts.bytes_out += read.bytes as u64;
                });
                read
            }
            Err(error) => {
                self.metrics.add(Counter::ReadsFailed, 1);
                self.note(|counts| {
                    counts.reads += 1;
                    counts.reads_failed += 1;
                });
                PartitionRead::failed(spec.place, error)
            }
        }
    }

    async fn read_records(
        &self,
        spec: &ReadSpec,
        bounds: ReadBounds,
    ) -> Result<PartitionRead, PartitionError> {
        self.check_reader(spec.current_leader_epoch, LeaderOnly::Yes)?;
        self.log().check_online()?;
        // Before the epochs, which a damaged log knows no better than its end.
        self.log().check_undamaged(spec.fetch_offset)?;
        let visible_end = self.visible_end(bounds.isolation);
        let mut read = PartitionRead {
            place: spec.place,
            records: Ok(Vec::new()),
            bytes: 0,
            memory: 0,
            needed: 0,
            high_watermark: self.high_watermark(),
            last_stable_offset: self.last_stable_offset(),
            log_start_offset: self.log().log_start_offset(),
            diverging: None,
            visible_end,
        };
        if let Some(diverging) = self.diverging_epoch(spec)? {
            read.diverging = Some(diverging);
            return Ok(read);
        }
        let (start, end) = (self.log().log_start_offset(), self.log().log_end_offset());
        if spec.fetch_offset < start || spec.fetch_offset > end {
            return Err(PartitionError::OffsetOutOfRange);
        }
        let has_room = bounds.max_bytes > 0 || bounds.first_batch_max > 0;
        if spec.fetch_offset >= visible_end || !has_room {
            return Ok(read);
        }
        let limit = ReadLimit {
            max_bytes: bounds.max_bytes.min(spec.max_bytes),
            memory_max: bounds.memory_max,
            first_batch_max: bounds.first_batch_max,
            end: visible_end,
        };
        let result = self.read_log(spec.fetch_offset, limit).await;
        let result = result.map_err(|error| match error {
            ReadError::OutOfRange { .. } => PartitionError::OffsetOutOfRange,
            other => other.into(),
        })?;
        read.bytes = result.bytes;
        (read.memory, read.needed) = (result.memory, result.needed);
        read.records = Ok(result.slices);
        Ok(read)
    }

    /// Reads the log; another one where that has taken over meanwhile, for then the files of the
    /// first may be gone.
    async fn read_log(&self, from: Offset, limit: ReadLimit) -> Result<ReadResult, ReadError> {
        loop {
            let log = self.log();
            let read = log.read(from, limit).await;
            let is_found = read.as_ref().is_ok_and(|read| read.bytes > 0);
            if is_found || self.has_log(&log) {
                return read;
            }
        }
    }

    /// Where the client's log and this one part, if they do (`Partition.readRecords`).
    fn diverging_epoch(
        &self,
        spec: &ReadSpec,
    ) -> Result<Option<(LeaderEpoch, Offset)>, PartitionError> {
        if spec.last_fetched_epoch.0 < 0 {
            return Ok(None);
        }
        let Some((epoch, end)) = self.log().epoch_end_offset(spec.last_fetched_epoch) else {
            return Err(PartitionError::OffsetOutOfRange);
        };
        let diverges = epoch < spec.last_fetched_epoch || end < spec.fetch_offset;
        Ok(diverges.then_some((epoch, end)))
    }

    /// Up to where a reader sees now.
    #[must_use]
    pub fn visible_end(&self, isolation: Isolation) -> Offset {
        match isolation {
            Isolation::HighWatermark => self.high_watermark(),
            Isolation::Committed => self.last_stable_offset(),
            Isolation::LogEnd => self.log().durable_end(),
        }
    }

    pub(super) fn check_reader(
        &self,
        seen: LeaderEpoch,
        leader_only: LeaderOnly,
    ) -> Result<(), PartitionError> {
        self.check_open()?;
        self.leadership
            .borrow()
            .check(self.local, seen, leader_only)
    }

    /// Answers ListOffsets (`Partition.fetchOffsetForTimestamp`). `isolation` is `None` for a
    /// debugging reader, who sees to the log's end and may ask any replica.
    pub async fn list_offset(
        &self,
        query: OffsetQuery,
        seen: LeaderEpoch,
        isolation: Option<Isolation>,
    ) -> Result<Option<TimestampedOffset>, PartitionError> {
        let only = if isolation.is_some() {
            LeaderOnly::Yes
        } else {
            LeaderOnly::No
        };
        self.check_reader(seen, only)?;
        self.log().check_online()?;
        let end = isolation.map_or(self.log().log_end_offset(), |isolation| {
            self.visible_end(isolation)
        });
        if query != OffsetQuery::Earliest {
            // The true end, and what a time finds, may lie past the damage.
            self.log().check_undamaged(Offset(i64::MAX))?;
        }
        let lags = isolation.is_some() && self.epoch_start.get() > end;
        match query {
            OffsetQuery::Latest if lags => Err(PartitionError::OffsetNotAvailable),
            OffsetQuery::Latest => Ok(Some(TimestampedOffset {
                timestamp: TimestampMs::NONE,
                offset: end,
                leader_epoch: self.leader_epoch(),
            })),
            OffsetQuery::Earliest => {
                let start = self.log().log_start_offset();
                self.log().check_undamaged(start)?;
                Ok(Some(TimestampedOffset {
                    timestamp: TimestampMs::NONE,
                    offset: start,
                    leader_epoch: self
                        .log()
                        .epoch_for_offset(start)
                        .unwrap_or(LeaderEpoch::NONE),
                }))
            }
            OffsetQuery::Tiered => Ok(None),
            OffsetQuery::MaxTimestamp | OffsetQuery::At(_) => {
                Self::settle(self.search(query, end).await?, lags)
            }
        }
    }

    /// Searches the log by time; the one that has taken over, as in [`Self::read_log`].
    async fn search(
        &self,
        query: OffsetQuery,
        end: Offset,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        loop {
            let log = self.log();
            let found = match query {
                OffsetQuery::At(timestamp) => log.offset_for_timestamp(timestamp, end).await,
                _ => log.offset_of_max_timestamp(end).await,
            };
            if self.has_log(&log) {
                return found;
            }
        }
    }

    /// Nothing found below the end says nothing while the high watermark still lags.
    fn settle(
        found: Option<TimestampedOffset>,
        lags: bool,
    ) -> Result<Option<TimestampedOffset>, PartitionError> {
        if found.is_none() && lags {
            return Err(PartitionError::OffsetNotAvailable);
        }
        Ok(found)
    }

    /// Answers OffsetForLeaderEpoch: the largest known epoch ≤ `requested` and its end
    /// (`Partition.lastOffsetForLeaderEpoch`).
    pub fn epoch_end_offset(
        &self,
        seen: LeaderEpoch,
        requested: LeaderEpoch,
    ) -> Result<Option<(LeaderEpoch, Offset)>, PartitionError> {
        self.check_reader(seen, LeaderOnly::Yes)?;
        self.log().check_online()?;
        let found = self.log().epoch_end_offset(requested);
        if let Some((_, end)) = found {
            self.log().check_undamaged(end)?;
        }
        Ok(found)
    }
}
