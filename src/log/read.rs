//! Reading: the tail from memory, older bytes through the offset index by aligned direct reads.

use std::rc::Rc;

use bytes::Bytes;

use super::config::{ReadLimit, ReadResult};
use super::damage::describe;
use super::error::{LogError, ReadError};
use super::format::offset_index::OffsetPosition;
use super::partition_log::Log;
use super::read_ahead::{AHEAD_BATCH_BYTES_MAX, ReadEnd};
use super::segment::{Segment, floor_to_block};
use crate::base::ids::Offset;
use crate::base::limits::{BLOCK_BYTES, KIB, MIB};
use crate::io::{AlignedBuffer, File};
use crate::metrics::{Counter, touched};
use crate::wire::record_batch::{BatchHeader, HEADER_BYTES, verify_crc};

/// Largest single read but for one batch that is larger.
const READ_BYTES_MAX: usize = MIB;
/// Smallest read: an index entry stands every 4 KiB, and a batch or two follow it.
const READ_BYTES_MIN: usize = 16 * KIB;

/// Bytes of a segment from `position` on.
pub(crate) struct Window {
    position: u64,
    pub(crate) bytes: Bytes,
}

impl Log {
    /// Whole batches from the one that holds `from` on. Empty at the log's end and where `limit`
    /// allows nothing.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] outside `log_start_offset..=log_end_offset`.
    pub async fn read(
        self: &Rc<Self>,
        from: Offset,
        limit: ReadLimit,
    ) -> Result<ReadResult, ReadError> {
        self.shard.health.check()?;
        let (start, end) = (self.log_start_offset(), self.log_end_offset());
        self.check_undamaged(from)?;
        if from < start {
            return Err(ReadError::OutOfRange { from, start, end });
        }
        self.read_stored(from, limit).await
    }

    /// The same, also below the log's start as far as there are segments.
    pub(crate) async fn read_stored(
        self: &Rc<Self>,
        from: Offset,
        limit: ReadLimit,
    ) -> Result<ReadResult, ReadError> {
        self.shard.health.check()?;
        let (start, end) = (self.log_start_offset(), self.log_end_offset());
        let limit = self.below_damage(from, limit)?;
        if from > end {
            return Err(ReadError::OutOfRange { from, start, end });
        }
        if from >= end || from >= limit.end {
            return Ok(ReadResult::default());
        }
        let metrics = &self.shard.metrics;
        if let Some(result) = self.tail.borrow().read(from, &limit) {
            metrics.add(Counter::BytesFetchedFromCache, result.bytes as u64);
            return Ok(result);
        }
        let read = match self.read_from_windows(from, &limit).await? {
            Some(result) => Ok(result),
            None => self.read_segments(from, &limit).await,
        };
        if let Ok(result) = &read {
            metrics.add(Counter::BytesFetchedFromDisk, result.bytes as u64);
        }
        if let Err(ReadError::Log(error)) = &read {
            let start = self.log_start_offset();
            if from < start {
                // Its segment has gone since.
                return Err(ReadError::OutOfRange { from, start, end });
            }
            self.tell_once(error);
            self.shard.health.judge(error);
        }
        read
    }

    /// Apache Kafka may have compacted the log once, so that this is no proof of damage. Where our
    /// own cleaner leaves holes is known.
    fn tell_of_gap(&self, segment: &Segment, next_base: Offset) {
        let what = format!(
            "no records between those of {} and offset {next_base}: skipped. Unless the topic was \
             compacted once, a segment's file is missing or was cut short there",
            segment.path().display()
        );
        if self.read_failure_told.borrow().as_ref() != Some(&what) {
            tracing::warn!("{what}");
            *self.read_failure_told.borrow_mut() = Some(what);
        }
    }

    /// A client may ask for the same bad place again and again: one line tells of it.
    fn tell_once(&self, error: &LogError) {
        let what = error.to_string();
        if self.read_failure_told.borrow().as_ref() != Some(&what) {
            tracing::error!("a read failed: {what}");
            *self.read_failure_told.borrow_mut() = Some(what);
        }
    }

    /// Whether `offset` lies below the log's damage, if it has any. At and past it nothing is
    /// known: neither what is there nor where the log ends.
    ///
    /// # Errors
    /// [`LogError::Damaged`].
    pub fn check_undamaged(&self, offset: Offset) -> Result<(), LogError> {
        match &*self.damage.borrow() {
            Some(mark) if offset >= mark.offset => {
                Err(LogError::Damaged(describe(&self.folder.path(), mark)))
            }
            _ => Ok(()),
        }
    }

    /// A damaged log is served up to the damage.
    fn below_damage(&self, from: Offset, mut limit: ReadLimit) -> Result<ReadLimit, ReadError> {
        self.check_undamaged(from)?;
        if let Some(mark) = &*self.damage.borrow() {
            limit.end = limit.end.min(mark.offset);
        }
        Ok(limit)
    }

    async fn read_segments(
        self: &Rc<Self>,
        from: Offset,
        limit: &ReadLimit,
    ) -> Result<ReadResult, ReadError> {
        let mut from = from;
        loop {
            let found = {
                let segments = self.segments.borrow();
                let held = segments.range(..=from.0).next_back();
                let held = held.or_else(|| segments.range(from.0..).next());
                let next = held.and_then(|(base, _)| segments.range(base + 1..).next());
                let next_base = next.map(|(base, _)| Offset(*base));
                held.map(|(_, segment)| (Rc::clone(segment), next_base))
            };
            let Some((segment, next_base)) = found else {
                return Ok(ReadResult::default());
            };
            let result = self.read_segment(&segment, from, limit).await?;
            // Nothing waits from here on: what is not in the file at this instant is in the tail.
            let in_tail = self.tail.borrow().first_offset_in(segment.base_offset);
            match (result, next_base) {
                (Some((result, end)), _) => {
                    if let Some(end) = end.filter(|_| !segment.is_gone()) {
                        self.note_read(from, end);
                    }
                    return Ok(result);
                }
                // A cut in a hole leaves one between what is in the file and what is not yet.
                (None, _) if in_tail.is_some() => {
                    let from = from.max(in_tail.unwrap_or_default());
                    let read = self.tail.borrow().read(from, limit);
                    return Ok(read.unwrap_or_default());
                }
                // Compaction may leave nothing at the end of a segment.
                (None, Some(next_base)) => {
                    if next_base > self.cleaning.mark.get().holes_below {
                        self.tell_of_gap(&segment, next_base);
                    }
                    from = next_base;
                }
                (None, None) => return Ok(ReadResult::default()),
            }
        }
    }

    /// Where the bytes of a segment's file end for readers: what follows is in the tail.
    pub(crate) fn file_end(&self, segment: &Segment) -> u64 {
        if segment.is_finished.get() {
            return segment.size.get();
        }
        let tail = self.tail.borrow();
        match tail.first_position_in(segment.base_offset) {
            Some(position) => position.min(segment.size.get()),
            None => segment.size.get(),
        }
    }

    async fn read_segment(
        &self,
        segment: &Rc<Segment>,
        from: Offset,
        limit: &ReadLimit,
    ) -> Result<Option<(ReadResult, Option<ReadEnd>)>, ReadError> {
        // Without indexes a read begins at the segment's start.
        let _ = self.load_index(segment).await;
        let entry = indexed_start(segment, from);
        let read = self.read_from_entry(segment, from, limit, entry).await;
        let is_doubtful = segment.is_finished.get() && !segment.indexing.is_proven.get();
        match read {
            Err(ReadError::Log(LogError::Damaged(_))) if entry.position > 0 && is_doubtful => {
                // Either the segment is damaged there, or its index leads astray.
                self.prove_index(segment).await?;
                let entry = indexed_start(segment, from);
                self.read_from_entry(segment, from, limit, entry).await
            }
            read => read,
        }
    }

    async fn read_from_entry(
        &self,
        segment: &Rc<Segment>,
        from: Offset,
        limit: &ReadLimit,
        entry: OffsetPosition,
    ) -> Result<Option<(ReadResult, Option<ReadEnd>)>, ReadError> {
        let file = self.open_reader(segment).await?;
        let start = u64::from(entry.position);
        let mut end = self.file_end(segment);
        let wanted = limit.max_bytes.clamp(READ_BYTES_MIN, READ_BYTES_MAX) + 2 * BLOCK_BYTES;
        let mut window = Window {
            position: start,
            bytes: Bytes::new(),
        };
        let cuts = segment.cuts.get();
        let mut skipped = None;
        // First the batch that holds `from`, then as many as fit.
        let header = loop {
            if window.position >= end {
                end = self.file_end(segment);
                window.bytes = Bytes::new();
            }
            if window.position >= end {
                return Ok(None);
            }
            if window.bytes.len() < HEADER_BYTES {
                window = read_window(segment, &file, window.position, end, wanted).await?;
            }
            let header = parse(segment, &window)?;
            if start > 0 && window.position == start && header.base_offset > entry.offset {
                let what = format!(
                    "{} has another batch at byte {start}",
                    segment.path().display()
                );
                return Err(LogError::Damaged(what).into());
            }
            self.check_place(segment, &header, (window.position, cuts))?;
            if header.last_offset() >= from {
                break header;
            }
            let length = header.total_bytes();
            skipped = Some((window.position, length));
            window.position += length as u64;
            window.bytes = window.bytes.slice(length.min(window.bytes.len())..);
        };
        if let Some((position, length)) = skipped.filter(|_| header.base_offset > from) {
            // A hole, or a batch before it whose last offset is not what was written.
            let before = read_window(segment, &file, position, end, length).await?;
            let whole = before.bytes.slice(..length.min(before.bytes.len()));
            verify_crc(&whole).map_err(|error| damaged(segment, position, &error.to_string()))?;
        }
        let length = header.total_bytes();
        if header.last_offset() >= limit.end {
            return Ok(Some((ReadResult::default(), None)));
        }
        if length > limit.max_bytes.max(limit.first_batch_max) {
            return Ok(Some((ReadResult::too_large(length), None)));
        }
        let want_here = length.max(limit.max_bytes.min(READ_BYTES_MAX));
        let in_file = usize::try_from(end - window.position).unwrap_or(usize::MAX);
        if window.bytes.len() < want_here.min(in_file) {
            window = read_window(segment, &file, window.position, end, want_here).await?;
        }
        answer(segment, &window, limit).map(Some)
    }

    /// A batch that reaches past its segment, or whose offsets go back, is not what was written.
    fn check_place(
        &self,
        segment: &Segment,
        header: &BatchHeader,
        (position, cuts): (u64, u32),
    ) -> Result<(), LogError> {
        let end = {
            let segments = self.segments.borrow();
            let next = segments.range(segment.base_offset.0 + 1..).next();
            next.map_or(self.log_end_offset(), |(base, _)| Offset(*base))
        };
        let is_changed = segment.is_gone() || segment.cuts.get() != cuts;
        let is_within = header.last_offset_delta >= 0 && header.last_offset() < end;
        match is_within || is_changed || self.is_truncating.get() {
            true => Ok(()),
            false => {
                let last = header.last_offset();
                let what = format!("a batch up to offset {last} where {end} comes next");
                Err(damaged(segment, position, &what))
            }
        }
    }

    pub(crate) async fn open_reader(&self, segment: &Rc<Segment>) -> Result<File, LogError> {
        let (file, is_new) = segment.reader_or_open().await?;
        if is_new {
            self.shard.reader_opened(segment);
        }
        Ok(file)
    }
}

/// Where the index lets a read begin; without one, at the segment's start.
fn indexed_start(segment: &Segment, from: Offset) -> OffsetPosition {
    let start = OffsetPosition {
        offset: segment.base_offset,
        position: 0,
    };
    let index = segment.index.borrow();
    index
        .as_ref()
        .map_or(start, |index| index.offsets.lookup(from))
}

/// The batches at the front of a window that the limit allows, and where they end, for the next
/// read to be seen as sequential.
fn answer(
    segment: &Segment,
    window: &Window,
    limit: &ReadLimit,
) -> Result<(ReadResult, Option<ReadEnd>), ReadError> {
    let batches = whole_batches(&window.bytes, limit).map_err(|what| {
        let (path, position) = (segment.path(), window.position);
        LogError::Damaged(format!("{} at byte {position}: {what}", path.display()))
    })?;
    let mut slice = window.bytes.slice(..batches.bytes);
    let mut memory = window.bytes.len() + 2 * BLOCK_BYTES;
    if batches.bytes < memory / 2 || memory > limit.memory_max {
        touched::note_copied(slice.len());
        slice = Bytes::copy_from_slice(&slice);
        memory = batches.bytes;
    }
    let end = ReadEnd {
        next: batches.next,
        base: segment.base_offset.0,
        position: window.position + batches.bytes as u64,
    };
    let result = ReadResult {
        slices: vec![slice],
        bytes: batches.bytes,
        memory,
        needed: 0,
    };
    Ok((
        result,
        (batches.largest <= AHEAD_BATCH_BYTES_MAX).then_some(end),
    ))
}

/// Whole batches at the front of some bytes.
pub(crate) struct WholeBatches {
    pub(crate) bytes: usize,
    /// The offset after them.
    pub(crate) next: Offset,
    /// Bytes of the largest.
    largest: usize,
}

/// The whole batches at the front that the limit allows; the first is allowed already. Each is
/// checked by its checksum, as what comes from a disk may not be what was written; the error says
/// what is wrong with the first.
pub(crate) fn whole_batches(bytes: &[u8], limit: &ReadLimit) -> Result<WholeBatches, String> {
    let mut whole = WholeBatches {
        bytes: 0,
        next: Offset(0),
        largest: 0,
    };
    while let Some(rest) = bytes.get(whole.bytes..) {
        let Ok(header) = BatchHeader::parse(rest) else {
            break;
        };
        let length = header.total_bytes();
        let fits = whole.bytes == 0 || whole.bytes + length <= limit.max_bytes;
        if length > rest.len() || header.last_offset() >= limit.end || !fits {
            break;
        }
        match rest.get(..length).map(verify_crc) {
            Some(Ok(())) => {
                whole.bytes += length;
                whole.next = header.next_offset();
                whole.largest = whole.largest.max(length);
            }
            Some(Err(error)) if whole.bytes == 0 => return Err(error.to_string()),
            _ => break,
        }
    }
    if whole.bytes == 0 {
        return Err("the file ends within a batch".to_owned());
    }
    Ok(whole)
}

fn parse(segment: &Segment, window: &Window) -> Result<BatchHeader, ReadError> {
    let parsed = BatchHeader::parse(&window.bytes);
    Ok(parsed.map_err(|error| damaged(segment, window.position, &error.to_string()))?)
}

fn damaged(segment: &Segment, position: u64, what: &str) -> LogError {
    LogError::Damaged(format!(
        "{} at byte {position}: {what}",
        segment.path().display()
    ))
}

pub(crate) async fn read_window(
    segment: &Segment,
    file: &File,
    position: u64,
    end: u64,
    wanted: usize,
) -> Result<Window, ReadError> {
    let from = floor_to_block(position);
    let skip = (position - from) as usize;
    let left = usize::try_from(end - position).unwrap_or(usize::MAX);
    let length = skip + wanted.min(left);
    let buffer = AlignedBuffer::zeroed(length.next_multiple_of(BLOCK_BYTES));
    let (result, mut buffer) = file.read_at(from, buffer).await;
    let read = result.map_err(|error| segment.failed("reading", error))?;
    buffer.resize_within_capacity(read.min(length).max(skip.min(read)));
    let bytes = buffer.freeze();
    let skip = skip.min(bytes.len());
    Ok(Window {
        position,
        bytes: bytes.slice(skip..),
    })
}
