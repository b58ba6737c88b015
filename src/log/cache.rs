//! The memory of a shard's tail caches: one budget, the oldest batches leave first, and what is
//! not in its segment yet is pinned (JOURNAL §5).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use super::partition_log::Log;
use super::wait::Waiters;
use crate::base::limits::{BLOCK_BYTES, KIB, WRITE_BACK_BYTES, WRITE_BACK_BYTES_MAX};
use crate::io::memory::left_of;

/// What an open log takes with its partition, whatever is in it: 5.6 KiB were measured with 2,000.
const LOG_BYTES: usize = 6 * KIB;
/// Open logs, with the indexes in memory, leave the cache all but this part of the budget.
const LOGS_SHARE: usize = 2;
/// Indexes of closed segments are dropped while all indexes take more than this part.
const INDEXES_DIVISOR: usize = 8;
/// What a cached batch takes beside its bytes: its entry in a queue that may be half empty, its
/// share of the shard's order, the allocations' own heads.
pub(crate) const TAIL_ENTRY_BYTES: usize = 192;
/// Pinned bytes may take this part of the cache before appends wait.
const PINNED_SHARE: usize = 2;
/// Write-back is asked for from this part of the pinned budget on.
const PRESSURE_NUMERATOR: usize = 3;
const PRESSURE_DENOMINATOR: usize = 4;
/// What one log gathers before it is written back, as a part of the pinned budget: many logs gather
/// at the same time.
const GATHER_DIVISOR: usize = 1_024;
/// Pinned entries that one eviction steps over.
const PINNED_STEPS_MAX: usize = 64;

/// The budget of one shard.
pub(crate) struct CacheBudget {
    bytes_max: usize,
    /// Bytes of the indexes in memory: those of active segments, and of closed ones that were read.
    indexes: Rc<Cell<usize>>,
    /// Logs that are open; each takes [`LOG_BYTES`] of the budget.
    logs: Cell<usize>,
    used: Cell<usize>,
    pinned: Cell<usize>,
    /// One item for each cached batch, oldest first; it stands for the oldest batch of its log.
    order: RefCell<VecDeque<Weak<Log>>>,
    /// Woken when pinned bytes were written.
    pub(crate) room: Rc<Waiters>,
}

impl CacheBudget {
    /// A budget of `bytes_max`.
    pub(crate) fn new(bytes_max: usize, room: Rc<Waiters>) -> Self {
        Self {
            bytes_max,
            indexes: Rc::default(),
            logs: Cell::new(0),
            used: Cell::new(0),
            pinned: Cell::new(0),
            order: RefCell::default(),
            room,
        }
    }

    fn pinned_max(&self) -> usize {
        self.bytes_max() / PINNED_SHARE
    }

    /// What one log gathers before it is written back: the larger the cache the more, since fewer
    /// and larger writes cost less.
    pub(crate) fn write_back_bytes(&self) -> usize {
        let part = self.pinned_max() / GATHER_DIVISOR / BLOCK_BYTES * BLOCK_BYTES;
        part.clamp(WRITE_BACK_BYTES, WRITE_BACK_BYTES_MAX)
    }

    /// Whether `charge` more may be pinned. One append is always let in, however large.
    pub(crate) fn has_room(&self, charge: usize) -> bool {
        self.pinned.get() == 0 || self.pinned.get() + charge <= self.pinned_max()
    }

    /// Whether write-back should start although no log has gathered enough.
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.pinned.get() > self.pinned_max() / PRESSURE_DENOMINATOR * PRESSURE_NUMERATOR
    }

    /// A batch of `log` was appended: cached and pinned.
    pub(crate) fn add(&self, log: &Rc<Log>, charge: usize) {
        self.used.set(self.used.get() + charge);
        self.pinned.set(self.pinned.get() + charge);
        self.order.borrow_mut().push_back(Rc::downgrade(log));
        if self.used.get() > self.bytes_max() {
            self.evict();
        }
    }

    /// Pinned bytes went to their segment; they stay cached.
    pub(crate) fn unpin(&self, charge: usize) {
        self.pinned.set(self.pinned.get() - charge);
        if self.used.get() > self.bytes_max() {
            self.evict();
        }
        self.room.wake_all();
    }

    /// Cached bytes were dropped by truncation or deletion.
    pub(crate) fn drop_cached(&self, charge: usize, pinned: usize) {
        self.used.set(self.used.get() - charge);
        self.pinned.set(self.pinned.get() - pinned);
        self.room.wake_all();
    }

    /// Bytes that may be charged.
    pub(crate) fn bytes_max(&self) -> usize {
        let logs = self.logs.get().saturating_mul(LOG_BYTES);
        let logs = logs.saturating_add(self.indexes.get());
        left_of(self.bytes_max - logs.min(self.bytes_max / LOGS_SHARE))
    }

    /// Where indexes are charged what they take.
    pub(crate) fn indexes(&self) -> &Rc<Cell<usize>> {
        &self.indexes
    }

    /// Whether those of closed segments should go.
    pub(crate) fn has_too_many_indexes(&self) -> bool {
        self.indexes.get() > left_of(self.bytes_max / INDEXES_DIVISOR)
    }

    /// So many logs are open now.
    pub(crate) fn note_logs(&self, count: usize) {
        self.logs.set(count);
    }

    /// Bytes charged now.
    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }

    fn evict(&self) {
        let mut steps_left = PINNED_STEPS_MAX;
        while self.used.get() > self.bytes_max() && steps_left > 0 {
            let Some(oldest) = self.order.borrow_mut().pop_front() else {
                return;
            };
            let Some(log) = oldest.upgrade() else {
                continue;
            };
            match log.evict_oldest() {
                Evicted::Freed(charge) => self.used.set(self.used.get() - charge),
                Evicted::Empty => {}
                Evicted::Pinned => {
                    steps_left -= 1;
                    self.order.borrow_mut().push_back(oldest);
                }
            }
        }
    }
}

/// What became of a log's oldest cached batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// It is gone; so much was charged for it.
    Freed(usize),
    /// It is not in its segment yet.
    Pinned,
    /// Nothing is cached.
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits::MIB;

    #[test]
    fn a_larger_cache_gathers_more_within_limits() {
        let gathers = |bytes_max| CacheBudget::new(bytes_max, Rc::default()).write_back_bytes();
        assert_eq!(gathers(MIB), WRITE_BACK_BYTES);
        assert_eq!(gathers(256 * MIB), WRITE_BACK_BYTES);
        assert_eq!(gathers(512 * MIB + 10), 256 * KIB);
        assert_eq!(gathers(2_048 * MIB), WRITE_BACK_BYTES_MAX);
        assert_eq!(gathers(usize::MAX), WRITE_BACK_BYTES_MAX);
    }

    #[test]
    fn open_logs_take_their_part_and_leave_half() {
        let cache = CacheBudget::new(MIB, Rc::default());
        cache.note_logs(10);
        assert_eq!(cache.bytes_max(), MIB - 10 * LOG_BYTES);
        cache.indexes().set(1_000);
        assert_eq!(cache.bytes_max(), MIB - 10 * LOG_BYTES - 1_000);
        cache.note_logs(MIB / LOG_BYTES);
        assert_eq!(cache.bytes_max(), MIB / 2);
    }
}
