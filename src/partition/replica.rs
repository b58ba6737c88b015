//! A partition as its shard holds it: the log, the role that the metadata log gives it, its ends,
//! and who waits on them.
//!
//! ```text
//! log start ≤ last stable offset ≤ high watermark ≤ durable end ≤ log end
//! ```
//!
//! The high watermark is the least durable end of the in-sync replicas; a partition that leads
//! alone has its own. It never goes back while the partition is hosted.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use super::append::{PendingAnswer, QueuedAppend};
use super::append_times::AppendTimes;
use super::error::PartitionError;
use super::leadership::Leadership;
use super::moving::Moving;
use super::parked::{Waiter, Waiters};
use super::pending::PendingAppends;
use super::read::Isolation;
use super::state::PartitionCounts;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, TopicPartition};
use crate::base::time::MonotonicNs;
use crate::log::{Log, LogError, LogEvent};
use crate::metrics::ShardMetrics;

/// How a partition's waiters hear of its ends; given by the shard.
pub type WakeSink = Rc<dyn Fn(&[Waiter])>;

/// One hosted partition. Lives on its shard; all methods run there.
pub struct Partition {
    id: TopicPartition,
    pub(super) local: BrokerId,
    pub(super) log: RefCell<Rc<Log>>,
    /// A copy on its way into another directory, and who may change the log meanwhile.
    pub(super) moving: Moving,
    pub(super) leadership: RefCell<Leadership>,
    pub(super) min_insync_replicas: Cell<usize>,
    /// The log's end when the leadership began.
    pub(super) epoch_start: Cell<Offset>,
    high_watermark: Cell<Offset>,
    pub(super) appends: RefCell<VecDeque<QueuedAppend>>,
    pub(super) is_appending: Cell<bool>,
    /// When the last append was in order.
    pub(super) appended_at: Cell<MonotonicNs>,
    pub(super) pending_leader: RefCell<PendingAppends<PendingAnswer>>,
    pub(super) pending_all: RefCell<PendingAppends<PendingAnswer>>,
    on_high_watermark: RefCell<Waiters>,
    on_stable: RefCell<Waiters>,
    on_durable: RefCell<Waiters>,
    wake: WakeSink,
    pub(super) metrics: Rc<ShardMetrics>,
    pub(super) counts: Cell<PartitionCounts>,
    departure: Cell<Option<Departure>>,
}

impl fmt::Debug for Partition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Partition")
            .field("id", &self.id)
            .field("high_watermark", &self.high_watermark.get())
            .finish_non_exhaustive()
    }
}

/// Why a partition is given up, which decides what its clients do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Its topic is deleted.
    Deleted,
    /// The broker stops, or serves it no longer: it is still there, and clients look for it again.
    Released,
}

impl Departure {
    fn error(self) -> PartitionError {
        match self {
            Self::Deleted => PartitionError::Unknown,
            Self::Released => PartitionError::NotLeader,
        }
    }
}

/// What a partition is made from.
pub struct PartitionOptions {
    /// Its identity.
    pub id: TopicPartition,
    /// This broker.
    pub local: BrokerId,
    /// Its open log.
    pub log: Rc<Log>,
    /// `min.insync.replicas`.
    pub min_insync_replicas: usize,
    /// How waiters are woken.
    pub wake: WakeSink,
    /// Where appends are counted.
    pub metrics: Rc<ShardMetrics>,
}

impl Partition {
    /// Hosts a partition whose log is open, under the leadership that the metadata log tells.
    #[must_use]
    pub fn new(options: PartitionOptions, leadership: Leadership) -> Rc<Self> {
        let PartitionOptions {
            id,
            local,
            log,
            min_insync_replicas,
            wake,
            metrics,
        } = options;
        let partition = Rc::new(Self {
            id,
            local,
            min_insync_replicas: Cell::new(min_insync_replicas),
            epoch_start: Cell::new(log.log_end_offset()),
            high_watermark: Cell::new(log.durable_end()),
            leadership: RefCell::new(Leadership {
                leader: BrokerId(-1),
                leader_epoch: LeaderEpoch::NONE,
                ..leadership.clone()
            }),
            log: RefCell::new(log),
            moving: Moving::default(),
            appends: RefCell::default(),
            is_appending: Cell::new(false),
            appended_at: Cell::default(),
            pending_leader: RefCell::default(),
            pending_all: RefCell::default(),
            on_high_watermark: RefCell::default(),
            on_stable: RefCell::default(),
            on_durable: RefCell::default(),
            wake,
            metrics,
            counts: Cell::default(),
            departure: Cell::new(None),
        });
        partition.observe_log();
        partition.set_leadership(leadership);
        partition
    }

    /// Which partition this is.
    #[must_use]
    pub fn id(&self) -> TopicPartition {
        self.id
    }

    /// Its log: the one that serves now.
    #[must_use]
    pub fn log(&self) -> Rc<Log> {
        Rc::clone(&self.log.borrow())
    }

    /// Hears of the moves of the log's durable end.
    pub(super) fn observe_log(self: &Rc<Self>) {
        let observed = Rc::downgrade(self);
        self.log().observe(move |event| {
            if let Some(partition) = observed.upgrade() {
                partition.on_log_event(event);
            }
        });
    }

    /// Exclusive end of what is durable on every in-sync replica.
    #[must_use]
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark.get()
    }

    /// Exclusive end of what no open transaction can take back; at most the high watermark.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        self.log().last_stable_offset().min(self.high_watermark())
    }

    /// The epoch in force.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leadership.borrow().leader_epoch
    }

    /// Whether the partition has been given up.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.departure.get().is_some()
    }

    /// Refuses what comes after the partition has been given up.
    pub(super) fn check_open(&self) -> Result<(), PartitionError> {
        match self.departure.get() {
            None => Ok(()),
            Some(departure) => Err(departure.error()),
        }
    }

    /// Sets `min.insync.replicas`.
    pub fn set_min_insync_replicas(&self, min_insync_replicas: usize) {
        self.min_insync_replicas.set(min_insync_replicas);
    }

    /// Takes over what the metadata log says. A new epoch starts the leadership anew: the epoch
    /// cache learns of it, and whoever is parked looks again.
    pub fn set_leadership(&self, leadership: Leadership) {
        let known = self.leader_epoch();
        let is_leader = leadership.is_led_by(self.local);
        let leader_epoch = leadership.leader_epoch;
        *self.leadership.borrow_mut() = leadership;
        if leader_epoch > known {
            if is_leader {
                self.log().make_leader(leader_epoch);
                self.epoch_start.set(self.log().log_end_offset());
                self.advance();
            } else {
                self.fail_pending(|| PartitionError::NotLeader);
            }
            self.wake_everyone();
        }
    }

    /// Gives the partition up: what waits is answered, what comes is refused.
    pub fn close(&self, departure: Departure) {
        self.departure.set(Some(departure));
        self.moving.wake_all();
        let queued = std::mem::take(&mut *self.appends.borrow_mut());
        for append in queued {
            let times = AppendTimes {
                visit: append.visit,
                ..AppendTimes::default()
            };
            append.answer.complete(Err(departure.error().into()), times);
        }
        self.fail_pending(|| PartitionError::NotLeader);
        self.wake_everyone();
    }

    /// Parks a fetch until the end that its isolation sees has passed `known_end`. False when it
    /// has passed already, or the partition no longer serves: the fetch looks again at once.
    #[must_use]
    pub fn park(&self, isolation: Isolation, known_end: Offset, waiter: Waiter) -> bool {
        let serves = !self.is_closed() && self.log().check_online().is_ok();
        if !serves || self.visible_end(isolation) > known_end {
            return false;
        }
        self.waiters(isolation).borrow_mut().park(known_end, waiter);
        true
    }

    /// Forgets a parked fetch.
    pub fn forget(&self, isolation: Isolation, known_end: Offset, waiter: Waiter) {
        self.waiters(isolation)
            .borrow_mut()
            .forget(known_end, waiter);
    }

    fn waiters(&self, isolation: Isolation) -> &RefCell<Waiters> {
        match isolation {
            Isolation::HighWatermark => &self.on_high_watermark,
            Isolation::Committed => &self.on_stable,
            Isolation::LogEnd => &self.on_durable,
        }
    }

    pub(super) fn on_log_event(&self, event: LogEvent) {
        match event {
            LogEvent::DurableEnd(_) => self.advance(),
            LogEvent::Offline => {
                self.fail_pending(|| LogError::Offline("a write failed".into()).into());
                self.wake_everyone();
            }
        }
    }

    /// Moves the ends after the durable end has moved: answers what they satisfy, wakes who waits.
    fn advance(&self) {
        let durable_end = self.log().durable_end();
        self.answer(&self.pending_leader, durable_end);
        let alone = self.leadership.borrow().isr.len() <= 1;
        if alone && durable_end > self.high_watermark.get() {
            self.high_watermark.set(durable_end);
        }
        let high_watermark = self.high_watermark.get();
        self.answer(&self.pending_all, high_watermark);
        let mut woken = Vec::new();
        let stable = self.last_stable_offset();
        self.on_durable
            .borrow_mut()
            .take_passed(durable_end, &mut woken);
        self.on_high_watermark
            .borrow_mut()
            .take_passed(high_watermark, &mut woken);
        self.on_stable.borrow_mut().take_passed(stable, &mut woken);
        if !woken.is_empty() {
            (self.wake)(&woken);
        }
    }

    fn answer(&self, queue: &RefCell<PendingAppends<PendingAnswer>>, end: Offset) {
        loop {
            let next = queue.borrow_mut().pop_satisfied(end);
            let Some(pending) = next else { break };
            pending.succeed(&self.log(), &self.metrics);
        }
    }

    fn fail_pending(&self, reason: impl Fn() -> PartitionError) {
        for queue in [&self.pending_leader, &self.pending_all] {
            loop {
                let next = queue.borrow_mut().pop_any();
                let Some(pending) = next else { break };
                pending.fail(reason());
            }
        }
    }

    pub(super) fn wake_everyone(&self) {
        let mut woken = Vec::new();
        for waiters in [&self.on_durable, &self.on_high_watermark, &self.on_stable] {
            waiters.borrow_mut().take_all(&mut woken);
        }
        if !woken.is_empty() {
            (self.wake)(&woken);
        }
    }
}
