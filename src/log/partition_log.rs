//! One partition's log, as the partition layer sees it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::{Bytes, BytesMut};

use super::config::{
    AppendContext, Appended, LogConfig, LogIdentity, ReadLimit, ReadResult, TimestampedOffset,
};
use super::error::{AppendError, LogError, ReadError};
use super::wait::Waiters;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{LeaderEpoch, Offset};
use crate::base::time::TimestampMs;

/// What an observer of a log is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// The durable end moved to this offset.
    DurableEnd(Offset),
    /// Nothing will be acknowledged any more.
    Offline,
}

type Observer = Rc<dyn Fn(LogEvent)>;

/// A partition's log. Lives on its shard; all methods run there.
pub struct Log {
    identity: LogIdentity,
    config: RefCell<LogConfig>,
    log_start: Cell<Offset>,
    log_end: Cell<Offset>,
    durable_end: Cell<Offset>,
    latest_epoch: Cell<LeaderEpoch>,
    epochs: RefCell<Vec<(LeaderEpoch, Offset)>>,
    tail: RefCell<Vec<(Offset, Offset, TimestampMs, Bytes)>>,
    closed: Cell<bool>,
    waiters: Waiters,
    observer: RefCell<Option<Observer>>,
}

impl Log {
    pub(super) fn new(identity: LogIdentity, config: LogConfig) -> Self {
        Self {
            identity,
            config: RefCell::new(config),
            log_start: Cell::default(),
            log_end: Cell::default(),
            durable_end: Cell::default(),
            latest_epoch: Cell::new(LeaderEpoch::NONE),
            epochs: RefCell::default(),
            tail: RefCell::default(),
            closed: Cell::new(false),
            waiters: Waiters::default(),
            observer: RefCell::new(None),
        }
    }

    /// Which partition this is.
    #[must_use]
    pub fn identity(&self) -> &LogIdentity {
        &self.identity
    }

    /// The first offset that can be read.
    #[must_use]
    pub fn log_start_offset(&self) -> Offset {
        self.log_start.get()
    }

    /// The next offset to be assigned (LEO).
    #[must_use]
    pub fn log_end_offset(&self) -> Offset {
        self.log_end.get()
    }

    /// Everything below it is on stable storage (under `write.caching`: its write has completed).
    #[must_use]
    pub fn durable_end(&self) -> Offset {
        self.durable_end.get()
    }

    /// The first offset of an open transaction, else the log end; the caller takes the minimum
    /// with its high watermark.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        self.log_end.get()
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> LogConfig {
        self.config.borrow().clone()
    }

    /// Puts new settings in force for what comes.
    pub fn update_config(&self, config: LogConfig) {
        *self.config.borrow_mut() = config;
    }

    /// Installs the one observer that learns of every move of the durable end. It is called
    /// between tasks, must not call back into the log's appends, and is expected to wake its own
    /// waiting requests.
    pub fn observe(&self, observer: impl Fn(LogEvent) + 'static) {
        *self.observer.borrow_mut() = Some(Rc::new(observer));
    }

    /// Records the start of a leadership: (epoch, log end) enters the epoch cache even when no
    /// record follows. Older epochs are ignored.
    pub fn make_leader(&self, leader_epoch: LeaderEpoch) {
        if leader_epoch > self.latest_epoch.get() {
            self.latest_epoch.set(leader_epoch);
            self.epochs
                .borrow_mut()
                .push((leader_epoch, self.log_end.get()));
        }
    }

    /// The highest epoch known.
    #[must_use]
    pub fn latest_epoch(&self) -> LeaderEpoch {
        self.latest_epoch.get()
    }

    /// The largest known epoch ≤ `leader_epoch` and its end: the start of the next one, or the log
    /// end (`LeaderEpochFileCache.endOffsetFor`). `None` when no such epoch is known.
    #[must_use]
    pub fn epoch_end_offset(&self, leader_epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        let epochs = self.epochs.borrow();
        let place = epochs
            .iter()
            .rposition(|(epoch, _)| *epoch <= leader_epoch)?;
        let (epoch, _) = epochs.get(place)?;
        let end = epochs
            .get(place + 1)
            .map_or(self.log_end.get(), |(_, start)| *start);
        Some((*epoch, end))
    }

    /// The epoch under which `offset` was appended.
    #[must_use]
    pub fn epoch_for_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        let epochs = self.epochs.borrow();
        epochs
            .iter()
            .rev()
            .find(|(_, start)| *start <= offset)
            .map(|(epoch, _)| *epoch)
    }

    /// Validates one batch, waits until there is room for it, assigns its offsets and stamps them.
    /// Answers once it is appended; durability is [`Self::wait_durable`]'s.
    ///
    /// # Errors
    /// See [`AppendError`]; in every case nothing of the batch is in the log.
    pub async fn append(
        self: &Rc<Self>,
        mut batch: BytesMut,
        context: AppendContext,
    ) -> Result<Appended, AppendError> {
        if self.closed.get() {
            return Err(LogError::Closed.into());
        }
        let Some(count) = batch.get(23..27).and_then(|bytes| bytes.try_into().ok()) else {
            return Err(AppendError::Invalid {
                code: ErrorCode::CORRUPT_MESSAGE,
                message: "the batch is shorter than its header".into(),
            });
        };
        let base_offset = self.log_end.get();
        let last_offset = base_offset.plus(i64::from(i32::from_be_bytes(count)));
        if let Some(field) = batch.get_mut(0..8) {
            field.copy_from_slice(&base_offset.0.to_be_bytes());
        }
        if let Some(field) = batch.get_mut(12..16) {
            field.copy_from_slice(&context.leader_epoch.0.to_be_bytes());
        }
        let timestamp = batch.get(35..43).and_then(|bytes| bytes.try_into().ok());
        let timestamp = TimestampMs(timestamp.map_or(-1, i64::from_be_bytes));
        self.tail
            .borrow_mut()
            .push((base_offset, last_offset, timestamp, batch.freeze()));
        self.log_end.set(last_offset.plus(1));
        self.set_durable_end(last_offset.plus(1));
        Ok(Appended {
            base_offset,
            last_offset,
            log_append_time: TimestampMs::NONE,
            log_start_offset: self.log_start.get(),
            duplicate: false,
        })
    }

    fn set_durable_end(&self, end: Offset) {
        self.durable_end.set(end);
        self.waiters.wake_all();
        let observer = self.observer.borrow().clone();
        if let Some(observer) = observer {
            observer(LogEvent::DurableEnd(end));
        }
    }

    /// Waits until the durable end has reached `end`.
    ///
    /// # Errors
    /// [`LogError::Offline`] after a failed write or flush, [`LogError::Closed`].
    pub async fn wait_durable(&self, end: Offset) -> Result<(), LogError> {
        self.waiters
            .wait_for(|| {
                if self.durable_end.get() >= end {
                    return Some(Ok(()));
                }
                self.closed.get().then_some(Err(LogError::Closed))
            })
            .await
    }

    /// Whole batches from the one that holds `from` on. Empty at the log's end and where `limit`
    /// allows nothing.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] outside `log_start_offset..=log_end_offset`.
    pub async fn read(&self, from: Offset, limit: ReadLimit) -> Result<ReadResult, ReadError> {
        let (start, end) = (self.log_start.get(), self.log_end.get());
        if from < start || from > end {
            return Err(ReadError::OutOfRange { from, start, end });
        }
        let tail = self.tail.borrow();
        let first = tail.partition_point(|(_, last, _, _)| *last < from);
        let mut result = ReadResult::default();
        for (_, last, _, bytes) in tail.iter().skip(first) {
            let fits = result.bytes + bytes.len() <= limit.max_bytes;
            let is_forced = result.bytes == 0 && limit.min_one_batch;
            if *last >= limit.end || !(fits || is_forced) {
                break;
            }
            result.bytes += bytes.len();
            result.slices.push(bytes.clone());
        }
        Ok(result)
    }

    /// The first record at or after `timestamp`, below `end`.
    ///
    /// # Errors
    /// [`ReadError::Log`] when the log cannot be read.
    pub async fn offset_for_timestamp(
        &self,
        timestamp: TimestampMs,
        end: Offset,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        let tail = self.tail.borrow();
        let found = tail
            .iter()
            .find(|(_, last, max, _)| *max >= timestamp && *last < end);
        Ok(found.map(|(base, _, max, _)| TimestampedOffset {
            timestamp: *max,
            offset: *base,
            leader_epoch: self.epoch_for_offset(*base).unwrap_or_default(),
        }))
    }

    /// The record with the largest timestamp below `end` (ListOffsets -3).
    ///
    /// # Errors
    /// [`ReadError::Log`] when the log cannot be read.
    pub async fn offset_of_max_timestamp(
        &self,
        end: Offset,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        let tail = self.tail.borrow();
        let below = tail.iter().filter(|(_, last, _, _)| *last < end);
        let found = below.rev().max_by_key(|(_, _, max, _)| *max);
        Ok(found.map(|(base, _, max, _)| TimestampedOffset {
            timestamp: *max,
            offset: *base,
            leader_epoch: self.epoch_for_offset(*base).unwrap_or_default(),
        }))
    }

    pub(super) fn mark_closed(&self) {
        self.closed.set(true);
        self.waiters.wake_all();
    }
}
