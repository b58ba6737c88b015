//! Cutting a log, emptying it, moving its start: the journal knows first, then the files change,
//! then something may be written past the point (JOURNAL §6).

use std::rc::Rc;

use bytes::Bytes;

use super::error::LogError;
use super::format::file_names::LogFileKind;
use super::journal::record::{RecordHeader, RecordKind};
use super::journal::{Done, Entry, Result, Signal};
use super::open::{derive, list_folder, read_head_block};
use super::partition_log::{Log, LogStatus};
use super::roll::RETRY_DELAY;
use super::scan::{ScanEnd, Scanner};
use super::seeded::{SeededBug, is_seeded};
use super::segment::{Segment, SegmentIndex, floor_to_block, segment_path};
use crate::base::ids::Offset;
use crate::io;

/// Where a log is cut.
struct Cut {
    segment: Rc<Segment>,
    position: u64,
    end: Offset,
}

impl Log {
    /// Drops all batches from the one that holds `offset` on, durably; answers the new end, that of
    /// the last batch left. The log's start is never past it.
    ///
    /// # Errors
    /// [`LogError`] when the log does not take changes or its files cannot be changed. A full disk
    /// is told at once, and then nothing has changed.
    pub async fn truncate_to(self: &Rc<Self>, offset: Offset) -> Result<Offset> {
        let _shape = self.shape.take().await;
        let _turn = self.order.take().await;
        self.check_writable()?;
        if offset >= self.log_end_offset() {
            return Ok(self.log_end_offset());
        }
        self.bring_to_rest().await?;
        // The cut lies in this segment.
        let held = self
            .segments
            .borrow()
            .range(..=offset.0)
            .next_back()
            .map(|(base, _)| *base);
        self.note_cut_ahead(held.map_or(offset, Offset)).await?;
        self.is_truncating.set(true);
        let outcome = self
            .truncate_at_rest(offset.max(self.log_start_offset()))
            .await;
        self.leave_change(&outcome);
        outcome
    }

    /// A shard that closes on a full disk leaves the rest of a change to the next start.
    fn leave_change<T>(&self, outcome: &Result<T>) {
        let is_open = outcome.as_ref().is_err_and(LogError::is_full_disk);
        self.is_truncating.set(is_open);
        self.waiters.wake_all();
    }

    /// Drops everything; the log goes on at `offset`, under a new id.
    ///
    /// # Errors
    /// As [`Self::truncate_to`].
    pub async fn reset(self: &Rc<Self>, offset: Offset) -> Result<()> {
        let _shape = self.shape.take().await;
        let _turn = self.order.take().await;
        self.check_writable()?;
        self.bring_to_rest().await?;
        self.note_cut_ahead(Offset(0)).await?;
        self.is_truncating.set(true);
        let outcome = self.reset_at_rest(offset).await;
        self.leave_change(&outcome);
        outcome
    }

    /// Moves the log's start to `offset`, at most to the durable end; never back.
    ///
    /// # Errors
    /// [`LogError`] when the log does not take changes.
    pub async fn advance_log_start(self: &Rc<Self>, offset: Offset) -> Result<Offset> {
        let _turn = self.order.take().await;
        self.check_writable()?;
        let offset = offset.min(self.durable_end());
        if offset > self.log_start_offset() {
            if self.log_id().is_none() {
                self.begin_life().await?;
            }
            self.move_log_start(offset).await?;
        }
        Ok(self.log_start_offset())
    }

    /// Waits for every write in flight and brings all bytes to the files, so that the log can be
    /// changed there. The caller has the log's turn. The log is as whole afterwards as before.
    async fn bring_to_rest(self: &Rc<Self>) -> Result<()> {
        if self.log_id().is_none() {
            self.begin_life().await?;
        }
        self.wait_all_durable().await?;
        // A snapshot of what is cut off must not appear afterwards.
        let idle = || (!self.is_snapshot_under_way.get()).then_some(());
        self.shard.health.race(&self.waiters, idle).await?;
        self.wait_until_named().await?;
        let segments: Vec<Rc<Segment>> = self.segments.borrow().values().cloned().collect();
        for segment in segments {
            if segment.is_sealed.get() {
                self.wait_until_finished(&segment).await?;
            } else {
                let block = self.write_to_the_byte(&segment).await?;
                let size = segment.size.get();
                segment.reopen_at(size, block);
                self.needs_prefix.set(true);
                self.unpin_written();
            }
        }
        Ok(())
    }

    pub(crate) async fn record_change(
        self: &Rc<Self>,
        kind: RecordKind,
        place: (Offset, u64),
        end_after: Offset,
    ) -> Result<()> {
        let Some(log_id) = self.log_id() else {
            return Err(LogError::Closed);
        };
        let header = RecordHeader {
            end_before: self.log_end_offset(),
            end_after,
            ..RecordHeader::new(kind, log_id, place.0, place.1)
        };
        if kind == RecordKind::Truncate && is_seeded(SeededBug::TruncateAfterRewrite) {
            let late = Entry::control(header, Bytes::new(), Done::Nothing);
            *self.late_truncate.borrow_mut() = Some(late);
            return Ok(());
        }
        let signal = Signal::new(&self.shard.health);
        let entry = Entry::control(header, Bytes::new(), signal.add());
        self.shard.journal.enqueue(self, entry);
        signal.wait(&self.shard.health).await
    }

    async fn truncate_at_rest(self: &Rc<Self>, offset: Offset) -> Result<Offset> {
        self.wait_until_left().await?;
        let cut = self.find_cut(offset).await?;
        let place = (cut.segment.base_offset, cut.position);
        self.record_change(RecordKind::Truncate, place, cut.end)
            .await?;
        let done = self.carry_out_cut(&cut).await;
        done.map_err(|error| self.left_half_done(error))?;
        Ok(cut.end)
    }

    /// The journal says what the files do not: only a start brings them together.
    pub(crate) fn left_half_done(&self, error: LogError) -> LogError {
        if error.is_full_disk() || matches!(error, LogError::Closed) {
            return error;
        }
        let reason = format!("a change of {} failed: {error}", self.folder.display());
        self.shard.health.fail(reason.clone());
        LogError::Offline(reason)
    }

    async fn carry_out_cut(self: &Rc<Self>, cut: &Cut) -> Result<()> {
        let end = cut.end;
        self.remove_segments_past(cut.segment.base_offset.0).await?;
        self.forget_past(end);
        cut.segment.size.set(cut.position);
        cut.segment.cut_and_sync(&self.shard.flushes).await?;
        self.reopen_at(cut).await?;
        // The segment's indexes and the snapshots past its beginning went with the cut.
        let base = cut.segment.base_offset;
        self.recovery_point.set(self.recovery_point.get().min(base));
        match self.store_epochs().await {
            // The file is written again at the next roll; recovery knows the log's end without it.
            Err(error) if !error.is_full_disk() => return Err(error),
            _ => {}
        }
        self.needs_prefix.set(true);
        let log_start = self.log_start_offset().min(end);
        self.ends.log_start.set(log_start);
        self.set_ends(end, (cut.segment.base_offset.0, cut.position));
        // The record goes when the journal comes round. What the log's life began with may lie
        // past the cut, and would then hide what is appended from here on.
        let Some(log_id) = self.log_id() else {
            return Err(LogError::Closed);
        };
        self.in_time(async || self.write_life_at_rest(log_id).await)
            .await
    }

    fn set_ends(&self, end: Offset, place: (i64, u64)) {
        let ends = &self.ends;
        for position in [&ends.log_end, &ends.durable_end, &ends.stable_end] {
            position.set(end);
        }
        ends.durable_place.set(place);
    }

    /// The batch that holds `offset`, or the first one past it. The log ends after the batch before
    /// that: where a cleaning has left a hole there, a start finds no other end.
    async fn find_cut(&self, offset: Offset) -> Result<Cut> {
        let found = {
            let segments = self.segments.borrow();
            let held = segments.range(..=offset.0).next_back();
            held.or_else(|| segments.first_key_value())
                .map(|(_, segment)| Rc::clone(segment))
        };
        let segment = found.unwrap_or_else(|| self.active_segment());
        // A cut at a wrong place loses records: an index that nothing vouches for is proven first.
        let proven = match segment.is_finished.get() {
            true => self.prove_index(&segment).await,
            false => Ok(()),
        };
        let loaded = proven.and(self.load_index(&segment).await);
        let start = match loaded {
            // A batch that ends before `offset`, so that its end is known.
            Ok(()) => {
                let below = Offset(offset.0.saturating_sub(1));
                let index = segment.index.borrow();
                let index = index.as_ref();
                index.map_or(0, |index| u64::from(index.offsets.lookup(below).position))
            }
            Err(_) => 0,
        };
        let size = segment.size.get();
        let file = segment.reader().await?;
        let mut scanner = Scanner::headers(&file, start.min(size), size);
        let (mut position, mut end) = (size, segment.base_offset);
        loop {
            match scanner.next().await {
                Ok(batch) if batch.header.last_offset() >= offset => {
                    position = batch.position;
                    break;
                }
                Ok(batch) => end = batch.header.next_offset(),
                Err(ScanEnd::Complete) => break,
                Err(ScanEnd::Invalid(what)) => return Err(LogError::Damaged(what)),
                Err(ScanEnd::Failed(error)) => return Err(segment.failed("reading", error)),
            }
        }
        Ok(Cut {
            segment,
            position,
            end,
        })
    }

    /// Removes the files of later segments, from the back.
    async fn remove_segments_past(&self, base: i64) -> Result<()> {
        let gone: Vec<Rc<Segment>> = self
            .segments
            .borrow_mut()
            .split_off(&(base + 1))
            .into_values()
            .collect();
        for segment in gone.iter().rev() {
            segment.note_cut();
            segment.leave().await;
            segment.close_files();
            self.remove_files(segment.base_offset).await?;
        }
        Ok(())
    }

    async fn remove_files(&self, base: Offset) -> Result<()> {
        for kind in LogFileKind::ALL {
            self.remove_file(base, kind).await?;
        }
        Ok(())
    }

    async fn remove_indexes(&self, base: Offset) -> Result<()> {
        for kind in LogFileKind::ALL {
            if !matches!(kind, LogFileKind::Log | LogFileKind::ProducerSnapshot) {
                self.remove_file(base, kind).await?;
            }
        }
        Ok(())
    }

    async fn remove_file(&self, base: Offset, kind: LogFileKind) -> Result<()> {
        let path = segment_path(&self.folder.path(), base, kind);
        match io::directory::remove_file(&path).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(LogError::io(format!("removing {}", path.display()), error))
            }
            _ => Ok(()),
        }
    }

    /// Drops what memory holds at or past `end`.
    fn forget_past(&self, end: Offset) {
        let (charge, pinned) = self.tail.borrow_mut().truncate(end);
        self.shard.cache.drop_cached(charge, pinned);
        self.read_ahead.clear();
        self.snapshot_place.set(None);
        self.cleaning.is_outdated.set(true);
        self.epochs.borrow_mut().truncate_from_end(end);
    }

    /// Makes the segment the active one, as if it had just been opened with that size.
    async fn reopen_at(self: &Rc<Self>, cut: &Cut) -> Result<()> {
        let segment = &cut.segment;
        for snapshot in list_folder(&self.folder.path()).await?.snapshots {
            if snapshot > cut.end {
                let kind = LogFileKind::ProducerSnapshot;
                let path = segment_path(&self.folder.path(), snapshot, kind);
                let removed = io::directory::remove_file(&path).await;
                removed
                    .map_err(|error| LogError::io(format!("removing {}", path.display()), error))?;
            }
        }
        let synced = io::directory::sync(&self.folder.path()).await;
        synced.map_err(|error| segment.fail("syncing the directory of", &error))?;
        let block = read_head_block(segment).await?;
        segment.reopen_at(cut.position, block);
        let listing = list_folder(&self.folder.path()).await?;
        let interval = self.config().index_interval_bytes;
        let derived = derive(segment, &listing, cut.position, interval).await?;
        // What the files of the index say past the cut is no longer so.
        self.remove_indexes(segment.base_offset).await?;
        *segment.index.borrow_mut() = Some(derived.index);
        segment.first_timestamp.set(derived.first_timestamp);
        *self.producers.borrow_mut() = derived.producers;
        self.set_active(segment);
        Ok(())
    }

    async fn reset_at_rest(self: &Rc<Self>, offset: Offset) -> Result<()> {
        self.wait_until_left().await?;
        self.record_change(RecordKind::Reset, (offset, 0), offset)
            .await?;
        let done = self.carry_out_reset(offset).await;
        done.map_err(|error| self.left_half_done(error))
    }

    async fn carry_out_reset(self: &Rc<Self>, offset: Offset) -> Result<()> {
        self.forget_past(Offset(i64::MIN));
        let gone = std::mem::take(&mut *self.segments.borrow_mut());
        for segment in gone.values().rev() {
            segment.note_cut();
            segment.leave().await;
            segment.close_files();
            self.remove_files(segment.base_offset).await?;
        }
        for snapshot in list_folder(&self.folder.path()).await?.snapshots {
            self.remove_file(snapshot, LogFileKind::ProducerSnapshot)
                .await?;
        }
        let new = Segment::new(offset, self.folder.clone(), &self.shard.health, 0);
        self.in_time(async || new.writer(true).await.map(drop))
            .await?;
        *new.index.borrow_mut() = Some(SegmentIndex::new(offset));
        let synced = io::directory::sync(&self.folder.path()).await;
        synced.map_err(|error| new.fail("syncing the directory of", &error))?;
        self.producers.borrow_mut().clear();
        *self.epochs.borrow_mut() = Default::default();
        self.in_time(async || self.store_epochs().await).await?;
        self.set_active(&new);
        self.recovery_point.set(offset);
        self.needs_prefix.set(false);
        self.ends.log_start.set(offset);
        self.set_ends(offset, (offset.0, 0));
        self.in_time(async || self.begin_life().await).await
    }

    /// Tries a step of a change that the journal knows until the disk has room for it. Meanwhile
    /// whoever would wait for this log's part of the ring is refused.
    pub(crate) async fn in_time(&self, mut step: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        let mut short_of_disk = None;
        loop {
            let error = match step().await {
                Err(error) if error.is_full_disk() => error,
                outcome => return outcome,
            };
            if self.shard.is_closing.get() {
                return Err(error);
            }
            if self.status.get() != LogStatus::Open {
                return Err(LogError::Closed);
            }
            tracing::warn!(%error, "trying again");
            short_of_disk.get_or_insert_with(|| self.shard.note_short_of_disk());
            io::sleep(RETRY_DELAY).await;
        }
    }
}

impl Segment {
    /// The positions of a segment that was just opened with `size` bytes, all durable; `block` are
    /// those past its last whole block.
    fn reopen_at(&self, size: u64, block: Bytes) {
        let at_block = floor_to_block(size);
        self.size.set(size);
        for position in [&self.issued, &self.written, &self.flushed] {
            position.set(at_block);
        }
        self.partial_end.set(size);
        self.head_start.set(size);
        *self.head_block.borrow_mut() = block;
        self.is_sealed.set(false);
        self.is_finished.set(false);
        self.note_cut();
    }
}

#[cfg(test)]
#[path = "truncate_test.rs"]
mod truncate_test;
