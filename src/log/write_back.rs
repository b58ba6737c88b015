//! Moving journalled bytes to their segments in large writes (JOURNAL §5): when enough
//! has gathered, when a journal file falls due, or when memory asks.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::journal::Result;
use super::partition_log::{Log, LogStatus};
use super::segment::{Segment, floor_to_block};
use crate::io::{self, Durability, TaskClass};
use crate::metrics::{Counter, Stage};

/// Logs written back at the same time.
pub(crate) const WRITERS_MAX: usize = 4;

/// Which logs are to be written back.
#[derive(Default)]
pub(crate) struct WriteBack {
    queue: RefCell<VecDeque<Rc<Log>>>,
    writers: Cell<usize>,
}

impl Log {
    /// Whether enough whole blocks are durable and not issued.
    pub(crate) fn has_gathered(&self) -> bool {
        let active = self.active_segment();
        self.write_back_target(&active)
            .saturating_sub(active.issued.get())
            >= self.shard.cache.write_back_bytes() as u64
    }

    /// Whether a whole block is durable and not issued.
    pub(crate) fn has_whole_block(&self) -> bool {
        let active = self.active_segment();
        self.write_back_target(&active) > active.issued.get()
    }

    /// Up to where a segment's whole blocks may be written: its durable part.
    pub(crate) fn write_back_target(&self, segment: &Segment) -> u64 {
        let (durable_base, durable_position) = self.ends.durable_place.get();
        if segment.base_offset.0 < durable_base {
            floor_to_block(segment.size.get())
        } else if segment.base_offset.0 == durable_base {
            floor_to_block(durable_position.min(segment.size.get()))
        } else {
            0
        }
    }

    /// Asks for this log's whole blocks to be written, soon.
    pub(crate) fn request_write_back(self: &Rc<Self>) {
        if self.is_write_back_queued.replace(true) {
            return;
        }
        let scheduler = &self.shard.write_back;
        scheduler.queue.borrow_mut().push_back(Rc::clone(self));
        if scheduler.writers.get() < WRITERS_MAX {
            scheduler.writers.set(scheduler.writers.get() + 1);
            let shard = Rc::clone(&self.shard);
            io::spawn(TaskClass::Background, async move {
                loop {
                    let next = shard.write_back.queue.borrow_mut().pop_front();
                    let Some(log) = next else { break };
                    log.is_write_back_queued.set(false);
                    let active = log.active_segment();
                    let target = log.write_back_target(&active);
                    // A failed write has taken the directory offline already.
                    if let Err(error) = log.write_blocks(&active, target).await {
                        tracing::debug!(%error, "not written back");
                    }
                }
                shard
                    .write_back
                    .writers
                    .set(shard.write_back.writers.get() - 1);
            });
        }
    }

    /// Writes the segment's whole blocks up to `target`, as far as nobody else has issued them.
    pub(crate) async fn write_blocks(
        self: &Rc<Self>,
        segment: &Rc<Segment>,
        target: u64,
    ) -> Result<()> {
        loop {
            segment.wait_for_partial_block().await?;
            if self.is_truncating.get() || self.status.get() == LogStatus::Gone {
                return Ok(());
            }
            let from = segment.issued.get();
            if from >= target {
                return Ok(());
            }
            let to = target.min(from + self.shard.write_bytes_max as u64);
            let issued_from = segment.issue(to);
            debug_assert_eq!(issued_from, from);
            let mut buffer = self.shard.take_buffer((to - from) as usize);
            self.tail
                .borrow()
                .copy_range(segment, from, to, &mut buffer);
            let issued_at = io::now();
            let buffer = segment
                .write_issued(from, buffer, Durability::Written)
                .await?;
            let metrics = &self.shard.metrics;
            metrics.record_stage(Stage::WriteBack, io::now().since(issued_at));
            metrics.add(Counter::SegmentWrites, 1);
            metrics.add(Counter::SegmentBytes, to - from);
            self.shard.give_buffer(buffer);
            self.unpin_written();
        }
    }

    /// What went to a segment need no longer stay in memory.
    pub(crate) fn unpin_written(&self) {
        let charge = self.tail.borrow_mut().unpin();
        if charge > 0 {
            self.shard.cache.unpin(charge);
        }
        self.waiters.wake_all();
    }

    /// The budget wants the oldest batch gone.
    pub(crate) fn evict_oldest(&self) -> super::cache::Evicted {
        self.tail.borrow_mut().evict_oldest()
    }
}
