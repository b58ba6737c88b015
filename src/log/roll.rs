//! Rolling: a new segment begins, the old one is finished in the background (JOURNAL §4, §6).

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::checked_batch::CheckedBatch;
use super::config::LogConfig;
use super::format::file_names::LEADER_EPOCH_CHECKPOINT;
use super::journal::record::{RecordHeader, RecordKind};
use super::journal::{Done, Entry, Result};
use super::partition_log::{Log, LogStatus};
use super::seeded::{SeededBug, is_seeded};
use super::segment::{Segment, SegmentIndex, floor_to_block};
use super::snapshots::Snapshot;
use crate::base::ids::Offset;
use crate::base::limits::BLOCK_BYTES;
use crate::base::time::TimestampMs;
use crate::io::flush_group::NewFile;
use crate::io::{self, TaskClass};

/// Between two tries to write a derived file for which the disk has no room.
pub(crate) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// What decides whether a segment must roll before a batch (`LogSegment.shouldRoll`). Pure.
pub(crate) struct RollQuestion<'a> {
    pub(crate) config: &'a LogConfig,
    pub(crate) size: u64,
    pub(crate) batch_bytes: u64,
    pub(crate) first_timestamp: Option<TimestampMs>,
    pub(crate) batch_timestamp: TimestampMs,
    pub(crate) now: TimestampMs,
    pub(crate) jitter_ms: u64,
    pub(crate) is_index_full: bool,
    /// The batch's last offset less the segment's base offset.
    pub(crate) relative_offset: i64,
}

impl RollQuestion<'_> {
    /// The answer.
    pub(crate) fn must_roll(&self) -> bool {
        if self.size == 0 {
            return false;
        }
        let is_too_old = self.first_timestamp.is_some_and(|first| {
            let latest = if first.0 >= 0 {
                self.batch_timestamp
            } else {
                self.now
            };
            let waited = latest.0.saturating_sub(first.0.max(0));
            let limit = self.config.segment_ms_max().saturating_sub(self.jitter_ms);
            u64::try_from(waited).is_ok_and(|waited| waited > limit)
        });
        self.size + self.batch_bytes > self.config.segment_bytes
            || is_too_old
            || self.is_index_full
            || self.relative_offset > i64::from(i32::MAX)
    }
}

impl Log {
    /// Whether the batch belongs into a new segment.
    pub(crate) fn must_roll(&self, checked: &CheckedBatch) -> bool {
        let segment = self.active_segment();
        let config = self.config();
        let is_index_full = segment
            .index
            .borrow()
            .as_ref()
            .is_some_and(|index| index.is_full(config.segment_index_bytes));
        let last_offset = self
            .log_end_offset()
            .plus(checked.header.last_offset_delta.into());
        let question = RollQuestion {
            config: &config,
            size: segment.size.get(),
            batch_bytes: checked.batch.len() as u64,
            first_timestamp: segment.first_timestamp.get(),
            batch_timestamp: checked.header.max_timestamp,
            now: io::wall_clock(),
            jitter_ms: segment.jitter_ms.get(),
            is_index_full,
            relative_offset: last_offset.0 - segment.base_offset.0,
        };
        question.must_roll()
    }

    /// Begins a new segment at the log's end; the caller has the log's turn. ENOSPC leaves
    /// everything as it was.
    pub(crate) async fn roll(self: &Rc<Self>) -> Result<()> {
        let old = self.active_segment();
        let base_offset = self.log_end_offset();
        // At most one segment has a file without its name.
        old.wait_until_named().await?;
        let new = self.next_segment(&old, base_offset).await?;
        *new.index.borrow_mut() = Some(SegmentIndex::new(base_offset));
        new.jitter_ms.set(self.draw_jitter());
        old.is_sealed.set(true);
        if let Some(index) = old.index.borrow_mut().as_mut() {
            index.seal();
        }
        let snapshot = Snapshot::of(base_offset, &self.producers.borrow());
        self.bytes_since_snapshot.set(0);
        self.set_active(&new);
        self.queue_roll(&new);
        if !new.is_named.get() {
            self.name_in_background(&new);
        }
        let log = Rc::clone(self);
        io::spawn(TaskClass::Background, async move {
            if let Err(error) = log.finish_segment(&old, snapshot).await {
                tracing::debug!(%error, "a sealed segment is left to recovery");
            }
        });
        Ok(())
    }

    fn queue_roll(self: &Rc<Self>, new: &Segment) {
        let Some(log_id) = self.log_id() else { return };
        let header = RecordHeader {
            end_before: new.base_offset,
            end_after: new.base_offset,
            ..RecordHeader::new(RecordKind::Roll, log_id, new.base_offset, 0)
        };
        self.shard
            .journal
            .enqueue(self, Entry::control(header, Bytes::new(), Done::Nothing));
    }

    /// The segment to go on in: in the file that was made for it, else in one that is made now.
    async fn next_segment(&self, old: &Segment, base_offset: Offset) -> Result<Rc<Segment>> {
        let (folder, health) = (self.folder.clone(), &self.shard.health);
        if !is_seeded(SeededBug::RecycledSegment)
            && let Some(prepared) = self.take_next().await?
        {
            let file = (prepared.file, prepared.reserved);
            return Ok(Segment::new_prepared(base_offset, folder, health, file));
        }
        let new = Segment::new(base_offset, folder, health, 0);
        if let Err(error) = self.create_segment_file(old, &new).await {
            new.close_files();
            let _ = io::directory::remove_file(&new.path()).await;
            return Err(error);
        }
        Ok(new)
    }

    async fn create_segment_file(&self, old: &Segment, new: &Rc<Segment>) -> Result<()> {
        if is_seeded(SeededBug::RecycledSegment) && old.base_offset.0 > 0 {
            let donor = self
                .segments
                .borrow()
                .values()
                .next()
                .map(|segment| segment.path());
            if let Some(donor) = donor {
                let _ = io::directory::rename(&donor, &new.path()).await;
            }
            new.writer(false).await?;
        } else {
            new.writer(true).await?;
        }
        let (segment_bytes, step_max) =
            (self.config().segment_bytes, self.shard.reserve_step_max());
        let flushes = &self.shard.flushes;
        let reserved = new.reserve(1, segment_bytes, step_max, flushes).await;
        reserved.map_err(|error| new.failed("reserving", error))?;
        let synced = flushes.names(&self.folder.path()).await;
        synced.map_err(|error| new.fail("syncing the directory of", &error))
    }

    pub(crate) fn draw_jitter(&self) -> u64 {
        let bound = self
            .config()
            .segment_jitter_ms
            .min(self.config().segment_ms_max());
        self.shard.random_below(bound.saturating_add(1))
    }

    /// Brings a sealed segment to rest: all bytes written, cut, synced, indexes and snapshot
    /// durable; then the recovery point passes it.
    async fn finish_segment(
        self: &Rc<Self>,
        segment: &Rc<Segment>,
        snapshot: Snapshot,
    ) -> Result<()> {
        let durable = || {
            let is_durable = self.ends.durable_place.get().0 > segment.base_offset.0
                || self.ends.durable_end.get() >= snapshot.offset;
            is_durable.then_some(())
        };
        self.shard.health.race(&self.waiters, durable).await?;
        self.write_to_the_byte(segment).await?;
        self.settle_written(segment);
        self.store_derived_in_time(segment, &snapshot).await?;
        segment.is_finished.set(true);
        // It is in its files now, and read from there at need.
        segment.index.borrow_mut().take();
        segment.close_files();
        segment.waiters.wake_all();
        self.advance_recovery_point();
        self.waiters.wake_all();
        Ok(())
    }

    /// Writes everything that a segment holds, its last partial block included, cuts the file to
    /// the byte and syncs it; answers that block. Nothing may be appended meanwhile, and who wants
    /// memory or room in the journal must not write the last block once more: padded with zeros
    /// it would lengthen the file again. The caller settles the positions before it waits.
    pub(crate) async fn write_to_the_byte(self: &Rc<Self>, segment: &Rc<Segment>) -> Result<Bytes> {
        segment.is_ending.set(true);
        let block = self.write_end(segment).await;
        segment.is_ending.set(false);
        segment.waiters.wake_all();
        block
    }

    async fn write_end(self: &Rc<Self>, segment: &Rc<Segment>) -> Result<Bytes> {
        let size = segment.size.get();
        let whole = floor_to_block(size);
        self.write_blocks(segment, whole).await?;
        segment.wait_for_writes().await?;
        let mut block = Bytes::new();
        if size > whole {
            let mut buffer = self.shard.take_buffer(BLOCK_BYTES);
            self.tail
                .borrow()
                .copy_range(segment, whole, size, &mut buffer);
            block = Bytes::copy_from_slice(&buffer);
            segment.write_partial_block(&buffer).await?;
            self.shard.give_buffer(buffer);
        }
        segment.cut_and_sync(&self.shard.flushes).await?;
        Ok(block)
    }

    pub(crate) fn settle_written(&self, segment: &Segment) {
        let size = segment.size.get();
        for position in [&segment.issued, &segment.written, &segment.flushed] {
            position.set(size);
        }
        segment.waiters.wake_all();
        self.unpin_written();
    }

    /// Writes the derived files of a sealed segment, as soon as the disk has room for them. A log
    /// that is being deleted needs none.
    async fn store_derived_in_time(&self, segment: &Segment, snapshot: &Snapshot) -> Result<()> {
        let mut short_of_disk = None;
        while let Err(error) = self.store_derived(segment, snapshot).await {
            if error.is_full_disk() && short_of_disk.is_none() {
                short_of_disk = Some(self.shard.note_short_of_disk());
                // Whoever closes the shard need not wait for room.
                segment.waiters.wake_all();
            }
            tracing::warn!(%error, "trying again");
            self.shard.health.judge(&error);
            self.shard.health.check()?;
            if self.status.get() == LogStatus::Deleting {
                return Ok(());
            }
            io::sleep(RETRY_DELAY).await;
        }
        Ok(())
    }

    async fn store_derived(&self, segment: &Segment, snapshot: &Snapshot) -> Result<()> {
        self.put_in_place(self.derived_files(segment, snapshot))
            .await
    }

    /// `leader-epoch-checkpoint` as it should be now.
    pub(crate) fn epochs_file(&self) -> NewFile {
        let path = self.folder.join(LEADER_EPOCH_CHECKPOINT);
        (path, self.epochs.borrow().encode())
    }

    /// Writes `leader-epoch-checkpoint` durably.
    pub(crate) async fn store_epochs(&self) -> Result<()> {
        self.put_in_place(vec![vec![self.epochs_file()]]).await
    }

    fn advance_recovery_point(&self) {
        let segments = self.segments.borrow();
        let unfinished = segments.values().find(|segment| !segment.is_finished.get());
        if let Some(segment) = unfinished {
            let point = segment.base_offset.max(self.recovery_point.get());
            self.recovery_point.set(point);
        }
    }

    /// Waits for a sealed segment's files, but not for room on the disk: without them the shard
    /// does not close cleanly, and the next start makes them.
    pub(crate) async fn wait_until_finished(&self, segment: &Segment) -> Result<()> {
        let settled = || {
            let is_finished = segment.is_finished.get();
            (is_finished || self.shard.is_short_of_disk()).then_some(is_finished)
        };
        if self.shard.health.race(&segment.waiters, settled).await? {
            return Ok(());
        }
        let full = std::io::ErrorKind::StorageFull.into();
        Err(segment.failed("writing the indexes of", full))
    }

    /// Ends the log's life in this incarnation: everything durable in segments, derived files
    /// written. The shard takes no more appends.
    pub(crate) async fn settle(self: &Rc<Self>) -> Result<()> {
        self.wait_until_not_cleaning().await?;
        let _shape = self.shape.take().await;
        let _turn = self.order.take().await;
        if self.is_truncating.get() {
            let full = std::io::ErrorKind::StorageFull.into();
            return Err(self.active_segment().failed("emptying", full));
        }
        self.wait_all_durable().await?;
        self.drop_next().await?;
        self.wait_until_left().await?;
        self.wait_until_named().await?;
        let unfinished: Vec<Rc<Segment>> = {
            let segments = self.segments.borrow();
            segments
                .values()
                .filter(|segment| !segment.is_finished.get())
                .cloned()
                .collect()
        };
        for segment in unfinished {
            if segment.is_sealed.get() {
                self.wait_until_finished(&segment).await?;
                continue;
            }
            if self.log_id().is_some() {
                self.write_to_the_byte(&segment).await?;
                self.settle_written(&segment);
            }
            if let Some(index) = segment.index.borrow_mut().as_mut() {
                index.seal();
            }
            let snapshot = Snapshot::of(self.log_end_offset(), &self.producers.borrow());
            self.store_derived(&segment, &snapshot).await?;
            segment.close_files();
        }
        self.recovery_point.set(self.log_end_offset());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(config: &LogConfig) -> RollQuestion<'_> {
        RollQuestion {
            config,
            size: 900,
            batch_bytes: 100,
            first_timestamp: Some(TimestampMs(1_000)),
            batch_timestamp: TimestampMs(2_000),
            now: TimestampMs(9_000),
            jitter_ms: 0,
            is_index_full: false,
            relative_offset: 5,
        }
    }

    #[test]
    fn segments_roll_one_past_each_limit() {
        let config = LogConfig {
            segment_bytes: 1_000,
            segment_ms: 1_000,
            ..LogConfig::default()
        };
        assert!(!question(&config).must_roll());
        assert!(
            RollQuestion {
                batch_bytes: 101,
                ..question(&config)
            }
            .must_roll()
        );
        let late = TimestampMs(2_001);
        assert!(
            RollQuestion {
                batch_timestamp: late,
                ..question(&config)
            }
            .must_roll()
        );
        assert!(
            RollQuestion {
                jitter_ms: 1,
                ..question(&config)
            }
            .must_roll()
        );
        assert!(
            RollQuestion {
                is_index_full: true,
                ..question(&config)
            }
            .must_roll()
        );
        let far = i64::from(i32::MAX);
        assert!(
            !RollQuestion {
                relative_offset: far,
                ..question(&config)
            }
            .must_roll()
        );
        assert!(
            RollQuestion {
                relative_offset: far + 1,
                ..question(&config)
            }
            .must_roll()
        );
        let empty = RollQuestion {
            size: 0,
            batch_bytes: 5_000,
            ..question(&config)
        };
        assert!(!empty.must_roll(), "an empty segment takes any batch");
    }
}
