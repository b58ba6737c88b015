//! One partition's log, as the partition layer sees it. Lives on its shard; all methods run there.
//!
//! ```text
//! Opening ─> Open ─> Deleting ─> Gone
//!              └───> Closed
//! ```

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::cleaner::{CleanedMark, Cleaning};
use super::config::{LogConfig, LogIdentity};
use super::context::ShardContext;
use super::durable::Marks;
use super::error::LogError;
use super::folder_place::FolderPlace;
use super::format::damage_mark::DamageMark;
use super::format::epoch_cache::EpochCache;
use super::format::producer_state::{ProducerEntry, ProducerStates};
use super::journal::JournalQueue;
use super::journal::record::LogId;
use super::next_segment::NextSegment;
use super::read_ahead::ReadAhead;
use super::segment::{IndexFault, Segment};
use super::tail::Tail;
use super::wait::{Turns, Waiters};
use crate::base::ids::{LeaderEpoch, Offset, ProducerId};
use crate::base::time::MonotonicNs;

/// What an observer of a log is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// The durable end moved to this offset.
    DurableEnd(Offset),
    /// Nothing will be acknowledged any more.
    Offline,
}

type Observer = Rc<dyn Fn(LogEvent)>;

/// Where a log stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogStatus {
    Open,
    /// Its shard has closed.
    Closed,
    /// A DELETE is under way.
    Deleting,
    /// Its folder is gone, durably.
    Gone,
}

/// The log's positions.
pub(crate) struct Ends {
    pub(crate) log_start: Cell<Offset>,
    pub(crate) log_end: Cell<Offset>,
    pub(crate) durable_end: Cell<Offset>,
    /// What is on stable storage: less than the durable end under `write.caching` alone.
    pub(crate) stable_end: Cell<Offset>,
    /// Segment and position of the durable end.
    pub(crate) durable_place: Cell<(i64, u64)>,
    /// When the write was issued that made it durable, and whether that write was a flush.
    pub(crate) durable_issue: Cell<(MonotonicNs, bool)>,
}

/// A partition's log.
pub struct Log {
    pub(crate) shard: Rc<ShardContext>,
    identity: LogIdentity,
    pub(crate) folder: FolderPlace,
    pub(crate) config: RefCell<Rc<LogConfig>>,
    pub(crate) ends: Ends,
    pub(crate) recovery_point: Cell<Offset>,
    /// The last durable snapshot: segment, position and offset. The recovery point follows it.
    pub(crate) snapshot_place: Cell<Option<(Offset, u64, Offset)>>,
    pub(crate) segments: RefCell<BTreeMap<i64, Rc<Segment>>>,
    active: RefCell<Rc<Segment>>,
    pub(crate) next_segment: RefCell<NextSegment>,
    pub(crate) tail: RefCell<Tail>,
    pub(crate) read_ahead: ReadAhead,
    pub(crate) marks: RefCell<Marks>,
    pub(crate) epochs: RefCell<EpochCache>,
    pub(crate) producers: RefCell<ProducerStates>,
    log_id: Cell<Option<LogId>>,
    journal_queue: JournalQueue,
    /// Whoever changes the log's end or shape.
    pub(crate) order: Turns,
    /// Whoever takes segments out of the log or puts others in their place; taken before `order`.
    pub(crate) shape: Turns,
    pub(crate) cleaning: Cleaning,
    /// One writer of derived files at a time: each is written beside its name first.
    pub(crate) derived_order: Turns,
    pub(crate) waiters: Rc<Waiters>,
    observer: RefCell<Option<Observer>>,
    pub(crate) status: Cell<LogStatus>,
    pub(crate) damage: RefCell<Option<DamageMark>>,
    /// The last failed read that was written to the broker's log.
    pub(crate) read_failure_told: RefCell<Option<String>>,
    /// The bytes of the segment's partial block are in no live journal file: the next append puts
    /// them there first.
    pub(crate) needs_prefix: Cell<bool>,
    pub(crate) is_truncating: Cell<bool>,
    /// It is a copy on its way into its directory, see [`super::moving`].
    pub(crate) is_future: Cell<bool>,
    /// A copy of it is on its way into another directory.
    pub(crate) is_moving: Cell<bool>,
    pub(crate) is_write_back_queued: Cell<bool>,
    /// Memory knows that there are whole blocks to write.
    pub(crate) is_relief_noted: Cell<bool>,
    pub(crate) is_reserving_ahead: Cell<bool>,
    /// Bytes appended since the last producer snapshot.
    pub(crate) bytes_since_snapshot: Cell<u64>,
    pub(crate) is_snapshot_under_way: Cell<bool>,
    /// Its id file is being written, so that no record need stay in the journal.
    pub(crate) is_leaving_ring: Cell<bool>,
    /// When `flush.ms` next asks for a flush.
    pub(crate) flush_due: Cell<Option<crate::base::time::MonotonicNs>>,
    /// When expired producers are looked for again.
    pub(crate) next_expiry: Cell<crate::base::time::MonotonicNs>,
    pub(crate) last_duplicate_end: Cell<Option<Offset>>,
    /// A TRUNCATE that a seeded bug holds back.
    pub(crate) late_truncate: RefCell<Option<super::journal::Entry>>,
}

/// What a log is opened with.
pub(crate) struct LogParts {
    pub(crate) identity: LogIdentity,
    pub(crate) config: LogConfig,
    pub(crate) folder: FolderPlace,
    pub(crate) segments: BTreeMap<i64, Rc<Segment>>,
    pub(crate) active: Rc<Segment>,
    pub(crate) epochs: EpochCache,
    pub(crate) producers: ProducerStates,
    pub(crate) log_start: Offset,
    pub(crate) log_end: Offset,
    pub(crate) recovery_point: Offset,
    pub(crate) damage: Option<DamageMark>,
    /// Files beside the segments were found.
    pub(crate) has_derived: bool,
    /// What cleanings have left.
    pub(crate) cleaned: CleanedMark,
    /// What was wrong with the active segment's indexes.
    pub(crate) index_fault: Option<IndexFault>,
}

impl LogParts {
    /// Base offsets of the segments and their bytes.
    pub(crate) fn sizes(&self) -> BTreeMap<i64, u64> {
        let size = |segment: &Rc<Segment>| (segment.base_offset.0, segment.size.get());
        self.segments.values().map(size).collect()
    }
}

impl Log {
    /// All below is durable in segments, and what is derived from it too.
    #[must_use]
    pub fn recovery_point(&self) -> Offset {
        self.advance_to_snapshot();
        self.recovery_point.get()
    }

    /// Base offsets of the segments and their bytes.
    pub(crate) fn segment_sizes(&self) -> Vec<(Offset, u64)> {
        let size = |segment: &Rc<Segment>| (segment.base_offset, segment.size.get());
        self.segments.borrow().values().map(size).collect()
    }

    pub(crate) fn new(shard: &Rc<ShardContext>, parts: LogParts) -> Rc<Self> {
        let place = (parts.active.base_offset.0, parts.active.size.get());
        let has_partial_block = !parts.active.head_block.borrow().is_empty();
        if let Some(index) = parts.active.index.borrow_mut().as_mut() {
            index.charge_to(shard.cache.indexes());
        }
        Rc::new(Self {
            shard: Rc::clone(shard),
            identity: parts.identity,
            folder: parts.folder,
            config: RefCell::new(Rc::new(parts.config)),
            ends: Ends {
                log_start: Cell::new(parts.log_start),
                log_end: Cell::new(parts.log_end),
                durable_end: Cell::new(parts.log_end),
                stable_end: Cell::new(parts.log_end),
                durable_place: Cell::new(place),
                durable_issue: Cell::default(),
            },
            recovery_point: Cell::new(parts.recovery_point),
            snapshot_place: Cell::default(),
            segments: RefCell::new(parts.segments),
            active: RefCell::new(parts.active),
            next_segment: RefCell::default(),
            tail: RefCell::default(),
            read_ahead: ReadAhead::default(),
            marks: RefCell::default(),
            epochs: RefCell::new(parts.epochs),
            producers: RefCell::new(parts.producers),
            log_id: Cell::new(None),
            journal_queue: JournalQueue::default(),
            order: Turns::default(),
            shape: Turns::default(),
            cleaning: Cleaning::new(parts.cleaned),
            derived_order: Turns::default(),
            waiters: shard.health.waiters(),
            observer: RefCell::new(None),
            status: Cell::new(LogStatus::Open),
            damage: RefCell::new(parts.damage),
            read_failure_told: RefCell::default(),
            needs_prefix: Cell::new(has_partial_block),
            is_truncating: Cell::new(false),
            is_future: Cell::new(false),
            is_moving: Cell::new(false),
            is_write_back_queued: Cell::new(false),
            is_relief_noted: Cell::new(false),
            is_reserving_ahead: Cell::new(false),
            bytes_since_snapshot: Cell::new(0),
            is_snapshot_under_way: Cell::new(false),
            is_leaving_ring: Cell::new(false),
            flush_due: Cell::new(None),
            next_expiry: Cell::default(),
            last_duplicate_end: Cell::new(None),
            late_truncate: RefCell::new(None),
        })
    }

    /// Which partition this is.
    #[must_use]
    pub fn identity(&self) -> &LogIdentity {
        &self.identity
    }

    /// The log directory that it is in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.shard.directory
    }

    /// Whether its directory serves.
    ///
    /// # Errors
    /// [`LogError::Offline`].
    pub fn check_online(&self) -> Result<(), LogError> {
        self.shard.health.check()
    }

    /// What `told` says of each producer that is known, in no order.
    pub fn producers<T>(&self, told: impl Fn(ProducerId, &ProducerEntry) -> T) -> Vec<T> {
        let producers = self.producers.borrow();
        let all = producers.producers();
        all.map(|(id, entry)| told(*id, entry)).collect()
    }

    /// The first offset that can be read.
    #[must_use]
    pub fn log_start_offset(&self) -> Offset {
        self.ends.log_start.get()
    }

    /// The next offset to be assigned (LEO).
    #[must_use]
    pub fn log_end_offset(&self) -> Offset {
        self.ends.log_end.get()
    }

    /// Everything below it is on stable storage (under `write.caching`: its write has completed).
    #[must_use]
    pub fn durable_end(&self) -> Offset {
        self.ends.durable_end.get()
    }

    /// Bytes of all its segments.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let segments = self.segments.borrow();
        segments.values().map(|segment| segment.size.get()).sum()
    }

    /// When the write was issued that last moved the durable end, and whether it was a flush.
    #[must_use]
    pub fn durable_issue(&self) -> (MonotonicNs, bool) {
        self.ends.durable_issue.get()
    }

    /// The first offset of an open transaction, else the log end; the caller takes the minimum
    /// with its high watermark.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        let first_open = self.producers.borrow().first_unstable_offset();
        first_open
            .unwrap_or(self.log_end_offset())
            .min(self.log_end_offset())
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> Rc<LogConfig> {
        Rc::clone(&self.config.borrow())
    }

    /// Puts new settings in force for what comes.
    pub fn update_config(self: &Rc<Self>, config: LogConfig) {
        *self.config.borrow_mut() = Rc::new(config);
        self.heed_flush_limits();
    }

    /// Installs the one observer that learns of every move of the durable end. It is called
    /// between tasks, must not call back into the log's appends, and is expected to wake its own
    /// waiting requests.
    pub fn observe(&self, observer: impl Fn(LogEvent) + 'static) {
        *self.observer.borrow_mut() = Some(Rc::new(observer));
    }

    pub(crate) fn notify(&self, event: LogEvent) {
        let observer = self.observer.borrow().clone();
        if let Some(observer) = observer {
            observer(event);
        }
    }

    /// Records the start of a leadership: (epoch, log end) enters the epoch cache even when no
    /// record follows. Older epochs are ignored.
    pub fn make_leader(&self, leader_epoch: LeaderEpoch) {
        if leader_epoch > self.latest_epoch() {
            self.epochs
                .borrow_mut()
                .assign(leader_epoch, self.log_end_offset());
        }
    }

    /// The highest epoch known.
    #[must_use]
    pub fn latest_epoch(&self) -> LeaderEpoch {
        self.epochs
            .borrow()
            .latest()
            .map_or(LeaderEpoch::NONE, |entry| entry.leader_epoch)
    }

    /// The largest known epoch at or below `leader_epoch` and its end: the start of the next one,
    /// or the log end (`LeaderEpochFileCache.endOffsetFor`). `None` when none is known.
    #[must_use]
    pub fn epoch_end_offset(&self, leader_epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        let found = self
            .epochs
            .borrow()
            .end_offset_for(leader_epoch, self.log_end_offset());
        let (epoch, end) = found;
        (epoch != LeaderEpoch::NONE).then_some((epoch, end))
    }

    /// The epoch under which `offset` was appended.
    #[must_use]
    pub fn epoch_for_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.epochs.borrow().epoch_for_offset(offset)
    }

    /// Whether it is a copy that has not taken over.
    #[must_use]
    pub fn is_future(&self) -> bool {
        self.is_future.get()
    }

    /// Whether a copy of it is on its way into another directory: it is not cleaned meanwhile.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        self.is_moving.get()
    }

    /// Where and why the log is damaged, if it is.
    #[must_use]
    pub fn damage(&self) -> Option<DamageMark> {
        self.damage.borrow().clone()
    }

    pub(crate) fn log_id(&self) -> Option<LogId> {
        self.log_id.get()
    }

    pub(crate) fn set_log_id(&self, log_id: LogId) {
        self.log_id.set(Some(log_id));
    }

    pub(crate) fn journal_queue(&self) -> &JournalQueue {
        &self.journal_queue
    }

    pub(crate) fn active_segment(&self) -> Rc<Segment> {
        Rc::clone(&self.active.borrow())
    }

    pub(crate) fn set_active(&self, segment: &Rc<Segment>) {
        self.segments
            .borrow_mut()
            .insert(segment.base_offset.0, Rc::clone(segment));
        *self.active.borrow_mut() = Rc::clone(segment);
    }

    pub(crate) fn segment_at(&self, base_offset: Offset) -> Option<Rc<Segment>> {
        self.segments.borrow().get(&base_offset.0).cloned()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.status.get() != LogStatus::Open
    }

    /// Whether the log takes appends.
    pub(crate) fn check_writable(&self) -> Result<(), LogError> {
        self.shard.health.check()?;
        if self.is_closed() || self.shard.is_closing.get() {
            return Err(LogError::Closed);
        }
        match &*self.damage.borrow() {
            Some(mark) => Err(LogError::Damaged(format!(
                "{} is damaged at byte {}: {}",
                self.folder.join(&mark.file).display(),
                mark.position,
                mark.cause
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn set_status(&self, status: LogStatus) {
        self.status.set(status);
        self.waiters.wake_all();
    }
}
