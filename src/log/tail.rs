//! The newest batches of one log, in memory: what tail readers get and what write-back writes.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

use super::cache::Evicted;
use super::config::{ReadLimit, ReadResult};
use super::segment::Segment;
use crate::base::ids::Offset;
use crate::base::limits::FRAME_BYTES_RESERVED;
use crate::io::AlignedBuffer;
use crate::metrics::touched;

/// Smaller batches are less than a quarter of the buffer that connections receive them in.
const COPIED_OUT_MAX: usize = FRAME_BYTES_RESERVED / 4;
/// So many entries a queue always has room for.
const ENTRIES_KEPT: usize = 64;

/// One batch.
pub(crate) struct TailEntry {
    pub(crate) segment: Rc<Segment>,
    pub(crate) position: u64,
    pub(crate) base_offset: Offset,
    pub(crate) last_offset: Offset,
    pub(crate) bytes: Bytes,
    /// What the budget holds against it: the whole buffer that it keeps alive.
    pub(crate) charge: usize,
}

impl TailEntry {
    fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64
    }
}

/// Batches in offset order, without gaps.
#[derive(Default)]
pub(crate) struct Tail {
    entries: VecDeque<TailEntry>,
    /// Entries at the front that are in their segments.
    unpinned: usize,
    /// Entries at the front that keep no buffer alive which is much larger than they are.
    compact: usize,
}

impl Tail {
    /// Where the oldest batch's bytes are (tests).
    #[cfg(test)]
    pub(crate) fn oldest_bytes(&self) -> Option<&Bytes> {
        self.entries.front().map(|entry| &entry.bytes)
    }

    /// Adds the newest batch, pinned.
    pub(crate) fn push(&mut self, entry: TailEntry) {
        self.entries.push_back(entry);
    }

    /// Entries at the front that are now in their segments; answers what they were charged.
    pub(crate) fn unpin(&mut self) -> usize {
        let mut charge = 0;
        while let Some(entry) = self.entries.get(self.unpinned) {
            let segment = &entry.segment;
            if segment.written.get().max(segment.partial_end.get()) < entry.end() {
                break;
            }
            charge += entry.charge;
            self.unpinned += 1;
        }
        charge
    }

    /// What is charged for the batches that are not in their segments.
    pub(crate) fn pinned(&self) -> usize {
        let pinned = self.entries.iter().skip(self.unpinned);
        pinned.map(|entry| entry.charge).sum()
    }

    /// Drops the oldest batch if it is in its segment.
    pub(crate) fn evict_oldest(&mut self) -> Evicted {
        if self.entries.is_empty() {
            return Evicted::Empty;
        }
        if self.unpinned == 0 {
            self.copy_out_pinned();
            return Evicted::Pinned;
        }
        self.unpinned -= 1;
        self.compact = self.compact.saturating_sub(1);
        let oldest = self.entries.pop_front();
        self.shrink();
        oldest.map_or(Evicted::Empty, |entry| Evicted::Freed(entry.charge))
    }

    /// A batch that outlives those it came with, since the partial block that it lies in is not
    /// full, must not keep their common buffer alive: what that takes is charged to them, and they
    /// have gone. The oldest that was not looked at yet is copied out.
    fn copy_out_pinned(&mut self) {
        while let Some(entry) = self.entries.get_mut(self.compact) {
            self.compact += 1;
            if entry.bytes.len() < COPIED_OUT_MAX {
                touched::note_copied(entry.bytes.len());
                entry.bytes = Bytes::copy_from_slice(&entry.bytes);
                break;
            }
        }
    }

    /// The queue of a log that was busy once is not kept for one that is not.
    fn shrink(&mut self) {
        let (length, capacity) = (self.entries.len(), self.entries.capacity());
        if capacity > ENTRIES_KEPT && length < capacity / 4 {
            self.entries.shrink_to(capacity / 2);
        }
    }

    /// Drops the batches of the segments up to the one at `base`, which are in their files; answers
    /// what they were charged.
    pub(crate) fn drop_up_to(&mut self, base: Offset) -> usize {
        let mut charge = 0;
        while self.unpinned > 0
            && let Some(front) = self.entries.front()
            && front.segment.base_offset <= base
        {
            charge += front.charge;
            self.entries.pop_front();
            self.unpinned -= 1;
        }
        charge
    }

    /// Drops all batches at or past `offset`; answers what they and the pinned ones of them were
    /// charged.
    pub(crate) fn truncate(&mut self, offset: Offset) -> (usize, usize) {
        let (mut charge, mut pinned) = (0, 0);
        while self
            .entries
            .back()
            .is_some_and(|entry| entry.last_offset >= offset)
        {
            let Some(entry) = self.entries.pop_back() else {
                break;
            };
            charge += entry.charge;
            if self.entries.len() < self.unpinned {
                self.unpinned = self.entries.len();
            } else {
                pinned += entry.charge;
            }
        }
        self.compact = self.compact.min(self.entries.len());
        (charge, pinned)
    }

    /// Whole batches from the one that holds `from` on; `None` when it is older than the cache.
    pub(crate) fn read(&self, from: Offset, limit: &ReadLimit) -> Option<ReadResult> {
        if self
            .entries
            .front()
            .is_none_or(|front| from < front.base_offset)
        {
            return None;
        }
        let first = self
            .entries
            .partition_point(|entry| entry.last_offset < from);
        let mut result = ReadResult::default();
        for entry in self.entries.range(first..) {
            if entry.last_offset >= limit.end {
                break;
            }
            let is_first = result.bytes == 0;
            let is_forced = is_first && entry.charge <= limit.first_batch_max;
            if !is_forced {
                if result.bytes + entry.bytes.len() > limit.max_bytes {
                    result.needed = if is_first { entry.charge } else { 0 };
                    break;
                }
                if result.memory + entry.charge > limit.memory_max {
                    result.needed = entry.charge;
                    break;
                }
            }
            result.bytes += entry.bytes.len();
            result.memory += entry.charge;
            result.slices.push(entry.bytes.clone());
        }
        Some(result)
    }

    /// Where the first cached batch of a segment stands.
    pub(crate) fn first_position_in(&self, segment_base: Offset) -> Option<u64> {
        Some(self.first_in(segment_base)?.position)
    }

    /// The first offset that the tail holds of a segment.
    pub(crate) fn first_offset_in(&self, segment_base: Offset) -> Option<Offset> {
        Some(self.first_in(segment_base)?.base_offset)
    }

    fn first_in(&self, segment_base: Offset) -> Option<&TailEntry> {
        let base = |entry: &TailEntry| entry.segment.base_offset;
        let first = self
            .entries
            .partition_point(|entry| base(entry) < segment_base);
        let entry = self.entries.get(first)?;
        (base(entry) == segment_base).then_some(entry)
    }

    /// Copies the segment's bytes `[from, to)` to the end of `buffer`. They are all here or in the
    /// segment's head block: what is not in a segment yet is pinned.
    pub(crate) fn copy_range(
        &self,
        segment: &Segment,
        from: u64,
        to: u64,
        buffer: &mut AlignedBuffer,
    ) {
        touched::note_copied((to - from) as usize);
        let mut at = from;
        let head = segment.head_block.borrow();
        let start = super::segment::floor_to_block(segment.head_start.get());
        if at >= start && at < start + head.len() as u64 {
            let end = to.min(start + head.len() as u64);
            let range = (at - start) as usize..(end - start) as usize;
            buffer.extend_from_slice(head.get(range).unwrap_or_default());
            at = end;
        }
        let base = segment.base_offset;
        let first = self
            .entries
            .partition_point(|entry| (entry.segment.base_offset, entry.end()) <= (base, at));
        for entry in self.entries.range(first..) {
            if at >= to || entry.segment.base_offset != base {
                break;
            }
            assert!(entry.position <= at, "the tail has no gaps");
            let skip = (at - entry.position) as usize;
            let end = entry.end().min(to);
            let range = skip..(end - entry.position) as usize;
            buffer.extend_from_slice(entry.bytes.get(range).unwrap_or_default());
            at = end;
        }
        assert_eq!(
            at, to,
            "bytes that are not in their segment are in the tail"
        );
    }
}
