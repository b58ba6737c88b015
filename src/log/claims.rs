//! What a log does when a journal file that names it is to be reused (JOURNAL §5).

use std::rc::Rc;

use bytes::{Bytes, BytesMut};

use super::error::LogError;
use super::journal::record::{RecordHeader, RecordKind};
use super::journal::{Claim, Copied, Done, Entry, Result, Signal};
use super::partition_log::{Log, LogStatus};
use super::segment::{Segment, floor_to_block};
use crate::base::ids::Offset;
use crate::base::limits::BLOCK_BYTES;
use crate::metrics::touched;

/// A segment and how far it was written when a flush of the whole file system began.
pub(crate) struct FlushSnapshot {
    segment: Rc<Segment>,
    written: u64,
    cuts: u32,
}

/// Up to where the claim names bytes of `segment`.
fn claimed_end(claim: &Claim, segment: &Segment) -> u64 {
    if segment.base_offset.0 < claim.segment_base {
        segment.size.get()
    } else {
        claim.end_position.min(segment.size.get())
    }
}

impl Log {
    /// Segments up to the claimed one that are not durable to the byte yet, oldest first.
    fn unfinished_up_to(&self, segment_base: i64) -> Vec<Rc<Segment>> {
        let segments = self.segments.borrow();
        let all = segments.range(..=segment_base).map(|(_, segment)| segment);
        all.filter(|segment| !segment.is_finished.get())
            .cloned()
            .collect()
    }

    /// Waits while the log is being deleted or cut. True when it is gone.
    pub(crate) async fn wait_until_settled(&self) -> Result<bool> {
        let settled = || {
            let is_gone = self.status.get() == LogStatus::Gone;
            let is_changing = self.is_truncating.get() || self.status.get() == LogStatus::Deleting;
            (is_gone || !is_changing).then_some(is_gone)
        };
        self.shard.health.race(&self.waiters, settled).await
    }

    /// Brings the whole blocks that the claim names to their segments; waits for what changes the
    /// log meanwhile.
    pub(crate) async fn write_back_claim(self: &Rc<Self>, claim: &Claim) -> Result<()> {
        if self.wait_until_settled().await? {
            return Ok(());
        }
        for segment in self.unfinished_up_to(claim.segment_base) {
            segment.wait_until_named().await?;
            if segment.is_sealed.get() {
                // Its end is being written by the task that the roll has started.
                let finished =
                    || (segment.is_finished.get() || !segment.is_sealed.get()).then_some(());
                self.shard.health.race(&segment.waiters, finished).await?;
                continue;
            }
            let end = claimed_end(claim, &segment);
            let place = (segment.base_offset.0, end);
            let durable = || {
                let is_durable = self.ends.durable_place.get() >= place;
                (is_durable || self.marks.borrow().is_empty()).then_some(())
            };
            self.shard.health.race(&self.waiters, durable).await?;
            let target = floor_to_block(end);
            let cuts = segment.cuts.get();
            self.write_blocks(&segment, target).await?;
            let written = || {
                let is_cut = segment.cuts.get() != cuts;
                (is_cut || segment.written.get() >= target).then_some(())
            };
            self.shard.health.race(&segment.waiters, written).await?;
        }
        Ok(())
    }

    fn open_claim(&self, claim: &Claim) -> Option<Rc<Segment>> {
        if matches!(self.status.get(), LogStatus::Gone) {
            return None;
        }
        // After a cut the last segment before the claimed one holds what is left of the claim.
        let segments = self.segments.borrow();
        let (_, segment) = segments.range(..=claim.segment_base).next_back()?;
        (!segment.is_finished.get()).then(|| Rc::clone(segment))
    }

    /// Whether bytes that the claim names are written but not flushed.
    pub(crate) fn needs_flush(&self, claim: &Claim) -> bool {
        self.open_claim(claim).is_some_and(|segment| {
            let end = floor_to_block(claimed_end(claim, &segment));
            segment.flushed.get() < end
        })
    }

    /// Flushes the claimed segment.
    pub(crate) async fn flush_claim(&self, claim: &Claim) -> Result<()> {
        if self.wait_until_settled().await? {
            return Ok(());
        }
        match self.open_claim(claim) {
            Some(segment) => segment.flush().await,
            None => Ok(()),
        }
    }

    /// How far the claimed segment is written, before someone flushes the whole file system.
    pub(crate) fn flush_snapshot(&self, claim: &Claim) -> Option<FlushSnapshot> {
        let segment = self.open_claim(claim)?;
        let written = segment.written.get();
        let cuts = segment.cuts.get();
        Some(FlushSnapshot {
            segment,
            written,
            cuts,
        })
    }

    /// The whole file system was flushed.
    pub(crate) fn flushed_by_other(&self, snapshot: &Option<FlushSnapshot>) {
        if let Some(snapshot) = snapshot
            && snapshot.cuts == snapshot.segment.cuts.get()
        {
            let flushed = &snapshot.segment.flushed;
            flushed.set(flushed.get().max(snapshot.written));
        }
    }

    /// Whether the log is being changed, or has bytes of the claim written and not flushed.
    pub(crate) fn must_settle(&self, claim: &Claim) -> bool {
        let status = self.status.get();
        if status == LogStatus::Gone {
            return false;
        }
        let is_written = |segment: Rc<Segment>| {
            let end = claimed_end(claim, &segment);
            segment.flushed.get() < end && segment.written.get() >= end
        };
        self.is_truncating.get()
            || status == LogStatus::Deleting
            || self.open_claim(claim).is_some_and(is_written)
    }

    /// Flushes what was completed and written meanwhile: it need not be copied, and is perhaps no
    /// longer in memory. True when the log is gone.
    pub(crate) async fn flush_if_written(&self, claim: &Claim) -> Result<bool> {
        loop {
            if self.wait_until_settled().await? {
                return Ok(true);
            }
            let Some(segment) = self.open_claim(claim) else {
                return Ok(false);
            };
            let end = claimed_end(claim, &segment);
            if segment.flushed.get() >= end || segment.written.get() < end {
                return Ok(false);
            }
            segment.flush().await?;
        }
    }

    /// The bytes of the segment's unfinished block, as they are now.
    fn partial_block(&self, segment: &Segment) -> Bytes {
        let from = segment.flushed.get();
        let to = segment.size.get().min(from + BLOCK_BYTES as u64);
        let mut buffer = self.shard.take_buffer(BLOCK_BYTES);
        self.tail
            .borrow()
            .copy_range(segment, from, to, &mut buffer);
        touched::note_copied(buffer.len());
        let bytes = Bytes::copy_from_slice(&buffer);
        self.shard.give_buffer(buffer);
        bytes
    }

    /// Queues the unfinished block again, if it holds claimed bytes. `None` when it does not fit
    /// into what may still be copied.
    pub(crate) fn copy_forward(
        self: &Rc<Self>,
        claim: &Claim,
        bytes_max: usize,
        signal: &Rc<Signal>,
    ) -> Option<Copied> {
        let Some(segment) = self.open_claim(claim) else {
            return Some(Copied::Nothing);
        };
        let end = claimed_end(claim, &segment);
        if end <= segment.flushed.get().max(segment.partial_end.get()) {
            return Some(Copied::Nothing);
        }
        let bytes = self.partial_block(&segment);
        if bytes.len() > bytes_max {
            return None;
        }
        let copied = Copied::Forward(bytes.len());
        self.queue_raw(&segment, segment.flushed.get(), bytes, signal.add());
        Some(copied)
    }

    /// Queues bytes of the segment by position, in the log's one order.
    pub(crate) fn queue_raw(
        self: &Rc<Self>,
        segment: &Segment,
        position: u64,
        bytes: Bytes,
        done: Done,
    ) {
        let Some(log_id) = self.log_id() else { return };
        let header = RecordHeader {
            end_before: self.log_end_offset(),
            end_after: self.log_end_offset(),
            ..RecordHeader::new(RecordKind::Data, log_id, segment.base_offset, position)
        };
        self.shard
            .journal
            .enqueue(self, Entry::control(header, bytes, done));
    }

    /// No room to copy: the partial block goes to the segment. Whoever completes that block later
    /// first puts its bytes into the journal again.
    pub(crate) async fn write_partial_block(self: &Rc<Self>, claim: &Claim) -> Result<()> {
        // Not in the log's turn: an append that has it may be waiting for the very room that this
        // makes. So the log may be cut or deleted at every step.
        let segment = loop {
            if self.wait_until_settled().await? {
                return Ok(());
            }
            let Some(segment) = self.open_claim(claim) else {
                return Ok(());
            };
            let is_in_file = || segment.flushed.get() >= claimed_end(claim, &segment);
            if is_in_file() {
                return Ok(());
            }
            let cuts = segment.cuts.get();
            // Whoever brings the segment to its end writes that block, and then cuts the file.
            let is_ended_by_other = || segment.is_sealed.get() || segment.is_ending.get();
            if is_ended_by_other() {
                let ended = || {
                    let is_over = segment.is_finished.get() || is_in_file();
                    let is_changed = segment.cuts.get() != cuts || !is_ended_by_other();
                    (is_over || is_changed).then_some(())
                };
                self.shard.health.race(&segment.waiters, ended).await?;
                continue;
            }
            self.wait_all_durable().await?;
            let target = floor_to_block(segment.size.get());
            self.write_blocks(&segment, target).await?;
            segment.wait_for_writes().await?;
            let is_whole = !self.is_truncating.get() && segment.cuts.get() == cuts;
            if is_whole
                && !is_ended_by_other()
                && self.marks.borrow().is_empty()
                && segment.issued.get() == floor_to_block(segment.size.get())
            {
                break segment;
            }
        };
        // From here to the write nothing waits. Whatever is appended from now on first puts the
        // block's bytes into the journal again.
        self.needs_prefix.set(true);
        let (from, to) = (segment.issued.get(), segment.size.get());
        if from == to {
            return segment.flush().await;
        }
        let mut buffer = self.shard.take_buffer(BLOCK_BYTES);
        self.tail
            .borrow()
            .copy_range(&segment, from, to, &mut buffer);
        touched::note_copied(buffer.len());
        let block = Bytes::copy_from_slice(&buffer);
        segment.write_partial_block(&buffer).await?;
        self.shard.give_buffer(buffer);
        segment.flush_partial_block(to, block).await?;
        self.unpin_written();
        Ok(())
    }

    /// Queues a WATERMARK: all below the first segment that is not finished, and what of that is
    /// flushed, is durable in segments.
    pub(crate) fn queue_watermark(self: &Rc<Self>, signal: &Rc<Signal>) {
        if matches!(self.status.get(), LogStatus::Gone | LogStatus::Deleting) {
            return;
        }
        if let Some(mut entry) = self.watermark() {
            entry.done = signal.add();
            self.shard.journal.enqueue(self, entry);
        }
    }

    /// Where all below is durable in segments.
    fn place_in_segments(&self) -> Option<(Offset, u64)> {
        let segments = self.segments.borrow();
        let segment = segments
            .values()
            .find(|segment| !segment.is_finished.get())?;
        // Before its name is durable its records alone say that the segment exists.
        let position = match segment.is_named.get() {
            true => segment.flushed.get().max(segment.partial_end.get()),
            false => 0,
        };
        Some((segment.base_offset, position))
    }

    /// Lets the log's files say what its WATERMARK would: its id file names the place below which
    /// all is durable in segments, as it does when the log gets its id. No record of the claim is
    /// needed then.
    pub(crate) async fn leave_ring(self: &Rc<Self>, claim: &Claim) -> Result<()> {
        loop {
            self.write_partial_block(claim).await?;
            if self.wait_until_settled().await? {
                return Ok(());
            }
            if !self.must_settle(claim) {
                break;
            }
            self.flush_if_written(claim).await?;
        }
        let (Some(log_id), Some(_)) = (self.log_id(), self.place_in_segments()) else {
            return Ok(());
        };
        // Whoever changes or deletes the log from here on waits for the file.
        self.is_leaving_ring.set(true);
        let written = self
            .in_time(async || match self.place_in_segments() {
                Some(place) => self.write_life(log_id, place, self.stable_end()).await,
                None => Ok(()),
            })
            .await;
        self.is_leaving_ring.set(false);
        self.waiters.wake_all();
        match written {
            // It is being deleted.
            Err(LogError::Closed) => self.wait_until_settled().await.map(drop),
            written => written,
        }
    }

    /// Waits until nobody writes the log's id file.
    pub(crate) async fn wait_until_left(&self) -> Result<()> {
        let left = || (!self.is_leaving_ring.get()).then_some(());
        self.shard.health.race(&self.waiters, left).await
    }

    fn watermark(&self) -> Option<Entry> {
        let log_id = self.log_id()?;
        let (segment_base, position) = self.place_in_segments()?;
        let mut inline = BytesMut::with_capacity(16);
        inline.extend_from_slice(&self.log_start_offset().0.to_be_bytes());
        inline.extend_from_slice(&self.recovery_point().0.to_be_bytes());
        let header = RecordHeader {
            end_before: self.log_end_offset(),
            end_after: self.log_end_offset(),
            ..RecordHeader::new(RecordKind::Watermark, log_id, segment_base, position)
        };
        Some(Entry::control(header, inline.freeze(), Done::Nothing))
    }
}

#[cfg(test)]
#[path = "claims_test.rs"]
mod claims_test;
