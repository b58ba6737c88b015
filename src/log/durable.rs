//! From appended to durable: an append counts when its cycle, and for a direct write its segment's
//! flush too, is on stable storage, and all appends before it are.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::error::LogError;
use super::journal::record::{RecordHeader, RecordKind};
use super::journal::{Done, Entry};
use super::partition_log::{Log, LogEvent, LogStatus};
use super::seeded::{SeededBug, is_seeded};
use crate::base::ids::Offset;
use crate::io::{self, Durability, TaskClass};
use crate::metrics::Counter;

/// An append on its way.
#[derive(Clone, Copy, Debug)]
struct Mark {
    end_offset: Offset,
    segment_base: i64,
    end_position: u64,
    /// Operations that must end: its cycle, and the segment's write if it went direct.
    waits: u8,
}

/// The appends of one log that are not durable, in order, numbered without gaps.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    queue: VecDeque<Mark>,
    first: u64,
}

impl Marks {
    /// Numbers an append that ends there.
    pub(crate) fn push(&mut self, end_offset: Offset, place: (i64, u64)) -> u64 {
        let (segment_base, end_position) = place;
        self.queue.push_back(Mark {
            end_offset,
            segment_base,
            end_position,
            waits: 1,
        });
        self.first + self.queue.len() as u64 - 1
    }

    /// Whether all appends are durable.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn range(&mut self, first: u64, last: u64) -> impl Iterator<Item = &mut Mark> {
        let skip = usize::try_from(first - self.first).unwrap_or(usize::MAX);
        let count = usize::try_from(last - first + 1).unwrap_or(usize::MAX);
        self.queue.iter_mut().skip(skip).take(count)
    }

    fn add_wait(&mut self, first: u64, last: u64) {
        self.range(first, last).for_each(|mark| mark.waits += 1);
    }

    /// One operation of these appends has ended; answers the last one that is durable now.
    fn end_wait(&mut self, first: u64, last: u64) -> Option<Mark> {
        for mark in self.range(first, last) {
            assert!(mark.waits > 0, "an append became durable twice");
            mark.waits -= 1;
        }
        let mut durable = None;
        while self.queue.front().is_some_and(|mark| mark.waits == 0) {
            durable = self.queue.pop_front();
            self.first += 1;
        }
        durable
    }
}

impl Log {
    /// The cycle (or direct write) of these appends is on stable storage.
    pub(crate) fn cycle_durable(self: &Rc<Self>, first: u64, last: u64, is_stable: bool) {
        let ended = self.marks.borrow_mut().end_wait(first, last);
        let Some(mark) = ended else { return };
        assert!(
            mark.end_offset > self.durable_end(),
            "the durable end never goes back"
        );
        assert!(
            mark.end_offset <= self.log_end_offset(),
            "durable end past the appended end"
        );
        self.ends.durable_end.set(mark.end_offset);
        if is_stable {
            self.ends.stable_end.set(mark.end_offset);
        } else {
            self.flush_in_time();
        }
        self.ends
            .durable_place
            .set((mark.segment_base, mark.end_position));
        self.waiters.wake_all();
        self.notify(LogEvent::DurableEnd(mark.end_offset));
        if self.has_gathered() {
            self.request_write_back();
        } else if self.has_whole_block() {
            self.shard.note_whole_block(self);
        }
    }

    /// The end that is on stable storage, as records name it.
    pub(crate) fn stable_end(&self) -> Offset {
        self.ends.stable_end.get()
    }

    /// All cycles of the log that have completed are flushed now.
    pub(crate) fn raise_stable_end(&self) {
        self.ends.stable_end.set(self.ends.durable_end.get());
    }

    /// Whether a cycle with records of this log may go without a flush: `write.caching`, and
    /// `flush.messages` does not ask for one.
    pub(crate) fn allows_plain_cycle(&self) -> bool {
        let config = self.config();
        let unflushed = self.log_end_offset().0 - self.stable_end().0;
        let is_due = u64::try_from(unflushed).is_ok_and(|count| count >= config.flush_messages);
        config.write_caching && !is_due
    }

    /// `flush.ms` after the first unflushed cycle a flush follows, through the journal.
    fn flush_in_time(self: &Rc<Self>) {
        let flush_ms = self.config().flush_ms;
        if flush_ms == u64::MAX {
            return;
        }
        let delay = Duration::from_millis(flush_ms);
        let due = io::now().after(delay);
        if self.flush_due.get().is_some_and(|earlier| earlier <= due) {
            return;
        }
        self.flush_due.set(Some(due));
        // A log that goes away is not kept for a flush that is far off.
        let log = Rc::downgrade(self);
        io::spawn_detached(TaskClass::Background, async move {
            io::sleep(delay).await;
            let Some(log) = log.upgrade() else { return };
            // Another flush, of a lower limit that came since, may have been earlier.
            if log.flush_due.get() == Some(due) {
                log.flush_due.set(None);
                // A failure has taken the directory offline already.
                let _ = log.shard.journal.confirm().await;
            }
        });
    }

    /// New limits hold for what is not flushed yet, too.
    pub(crate) fn heed_flush_limits(self: &Rc<Self>) {
        if self.stable_end() < self.durable_end() {
            self.flush_in_time();
        }
    }

    /// A note of the durable end for the closing cycle.
    pub(crate) fn durable_note(&self) -> Option<Entry> {
        if self.is_truncating.get() {
            // The ends are those from before the TRUNCATE, which stands in the queue already.
            return None;
        }
        if self.status.get() != LogStatus::Open {
            // Nothing may name a log after its DELETE: that record may leave the ring before.
            return None;
        }
        let (segment_base, position) = self.ends.durable_place.get();
        let base = Offset(segment_base);
        let header = RecordHeader {
            end_before: self.durable_end(),
            end_after: self.durable_end(),
            ..RecordHeader::new(RecordKind::Data, self.log_id()?, base, position)
        };
        Some(Entry::control(header, bytes::Bytes::new(), Done::Nothing))
    }

    /// These appends go direct: they await their segment's write too.
    pub(crate) fn begin_direct(&self, first: u64, last: u64) {
        self.marks.borrow_mut().add_wait(first, last);
    }

    /// Writes whole blocks up to `end_position` to the segment and makes them durable.
    pub(crate) async fn write_direct(
        self: &Rc<Self>,
        segment_base: Offset,
        end_position: u64,
        (first, last): (u64, u64),
    ) {
        let Some(segment) = self.segment_at(segment_base) else {
            return;
        };
        if segment.wait_for_partial_block().await.is_err() {
            return;
        }
        let from = segment.issue(end_position);
        let mut buffer = self.shard.take_buffer((end_position - from) as usize);
        self.tail
            .borrow()
            .copy_range(&segment, from, end_position, &mut buffer);
        let issued_at = io::now();
        match segment.write_issued(from, buffer, Durability::Stable).await {
            Ok(buffer) => self.shard.give_buffer(buffer),
            Err(_) => return,
        }
        let metrics = &self.shard.metrics;
        metrics.add(Counter::Flushes, 1);
        metrics.add(Counter::SegmentWrites, 1);
        metrics.add(Counter::SegmentBytes, end_position - from);
        self.unpin_written();
        let is_stable = !self.config().write_caching;
        self.ends.durable_issue.set((issued_at, true));
        self.cycle_durable(first, last, is_stable);
    }

    /// Waits until the durable end has reached `end`.
    ///
    /// # Errors
    /// [`LogError::Offline`] after a failed write or flush, [`LogError::Closed`].
    pub async fn wait_durable(&self, end: Offset) -> Result<(), LogError> {
        let reached = || {
            let is_early = is_seeded(SeededBug::DuplicateAnsweredEarly)
                && self.last_duplicate_end.get() == Some(end);
            if self.durable_end() >= end || is_early {
                return Some(Ok(()));
            }
            let is_gone = self.is_closed() || end > self.log_end_offset();
            is_gone.then_some(Err(LogError::Closed))
        };
        self.shard.health.race(&self.waiters, reached).await?
    }

    /// Waits until every append so far is durable.
    pub(crate) async fn wait_all_durable(&self) -> Result<(), LogError> {
        let empty = || self.marks.borrow().is_empty().then_some(());
        self.shard.health.race(&self.waiters, empty).await
    }
}
