//! Read-ahead for whoever reads old bytes in order (DESIGN §4.3).
//!
//! A read that begins where another ended is sequential: the next bytes of its segment are read
//! while it is being sent. One window of [`WINDOW_BYTES`] is ahead of each such reader: one direct
//! read of 1 MiB keeps the device as busy as 16 of 64 KiB. A window holds whole batches, is checked
//! by their checksums when it is served, and is gone when its last batch was.
//!
//! Its memory is a share of the tail cache's own ([`share_of`]), taken off it at the start: a cold
//! reader can neither evict the tail nor make an append wait. A window is charged as long as any
//! answer keeps it alive, so that clients that take none hold no more than the share. Windows that
//! nobody has touched for [`IDLE`] make room for others; where there is none, the reader reads for
//! itself, as before.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::config::{ReadLimit, ReadResult};
use super::error::ReadError;
use super::partition_log::Log;
use super::read::{read_window, whole_batches};
use super::wait::Waiters;
use crate::base::ids::Offset;
use crate::base::limits::{BLOCK_BYTES, MIB};
use crate::base::time::MonotonicNs;
use crate::io::{self, TaskClass};
use crate::wire::record_batch::BatchHeader;

/// Bytes of one window's buffer.
const WINDOW_BYTES: usize = MIB;
/// A window of less than two batches saves nothing.
pub(crate) const AHEAD_BATCH_BYTES_MAX: usize = WINDOW_BYTES / 2;
/// This part of the tail cache is for windows, up to a maximum.
const CACHE_DIVISOR: usize = 16;
const SHARE_BYTES_MAX: usize = 64 * MIB;
/// Windows being read at the same time, on one shard.
const READS_IN_FLIGHT_MAX: usize = 16;
/// Ends of reads that a log remembers, by which the next ones are seen to be sequential.
const ENDS_MAX: usize = 8;
/// A window untouched for so long makes room for others.
const IDLE: Duration = Duration::from_secs(2);

/// What is taken off a tail cache of `cache_bytes` for windows; 0 where not one fits.
pub(crate) fn share_of(cache_bytes: usize) -> usize {
    let share = (cache_bytes / CACHE_DIVISOR).min(SHARE_BYTES_MAX);
    if share < WINDOW_BYTES { 0 } else { share }
}

/// The memory and the reads of one shard's windows.
pub(crate) struct AheadBudget {
    bytes_max: usize,
    /// Answers are dropped by the shards that send them.
    used: Arc<AtomicUsize>,
    in_flight: Cell<usize>,
    windows: RefCell<Vec<(Weak<Log>, Weak<Window>)>>,
}

/// Gives its bytes back when the window, and every answer that shares its memory, is dropped.
struct Charge(Arc<AtomicUsize>);

impl Drop for Charge {
    fn drop(&mut self) {
        self.0.fetch_sub(WINDOW_BYTES, Ordering::Relaxed);
    }
}

/// A window's memory.
struct Charged(
    Bytes,
    #[expect(dead_code, reason = "held for its drop")] Charge,
);

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AheadBudget {
    /// A budget of so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            used: Arc::default(),
            in_flight: Cell::new(0),
            windows: RefCell::default(),
        }
    }

    /// Bytes of all windows.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn has_room(&self) -> bool {
        self.used() + WINDOW_BYTES <= self.bytes_max
    }

    /// Room for one window, if there is any or can be made.
    fn take(&self) -> Option<Charge> {
        if self.in_flight.get() >= READS_IN_FLIGHT_MAX {
            return None;
        }
        if !self.has_room() {
            self.drop_idle();
        }
        self.has_room().then(|| {
            self.used.fetch_add(WINDOW_BYTES, Ordering::Relaxed);
            Charge(Arc::clone(&self.used))
        })
    }

    fn list(&self, window: (Weak<Log>, Weak<Window>)) {
        let mut windows = self.windows.borrow_mut();
        if windows.len() > 2 * self.bytes_max / WINDOW_BYTES {
            windows.retain(|(_, window)| window.strong_count() > 0);
        }
        windows.push(window);
    }

    fn drop_idle(&self) {
        let now = io::now();
        let mut windows = self.windows.borrow_mut();
        windows.retain(|(log, window)| {
            let (Some(log), Some(window)) = (log.upgrade(), window.upgrade()) else {
                return false;
            };
            let is_kept = window.touched.get().after(IDLE) > now;
            if !is_kept {
                log.read_ahead.forget(&window);
            }
            is_kept
        });
    }
}

enum Content {
    Reading,
    /// Whole batches up to an offset and a position in the segment.
    Ready(Bytes, Offset, u64),
    /// Nothing came of it.
    Nothing,
}

/// A part of a segment, in memory before it is asked for.
struct Window {
    first: Offset,
    base: i64,
    position: u64,
    content: RefCell<Content>,
    /// Where the last read of it ended, in offsets and bytes.
    served: Cell<(Offset, usize)>,
    touched: Cell<MonotonicNs>,
    waiters: Rc<Waiters>,
}

impl Window {
    fn holds(&self, offset: Offset) -> bool {
        match &*self.content.borrow() {
            Content::Reading => offset == self.first,
            Content::Ready(_, next, _) => offset >= self.first && offset < *next,
            Content::Nothing => false,
        }
    }

    /// Where the batch that holds `offset` begins.
    fn find(&self, bytes: &Bytes, offset: Offset) -> Option<usize> {
        let (served, mut at) = self.served.get();
        if offset < served {
            at = 0;
        }
        loop {
            let header = BatchHeader::parse(bytes.get(at..)?).ok()?;
            if header.last_offset() >= offset {
                return Some(at);
            }
            at += header.total_bytes();
        }
    }
}

/// Of one log: its windows, and where its last reads ended.
#[derive(Default)]
pub(crate) struct ReadAhead {
    windows: RefCell<Vec<Rc<Window>>>,
    ends: RefCell<VecDeque<Offset>>,
    /// What is being read for an earlier shape of the log is of no use.
    shape: Cell<u64>,
}

impl ReadAhead {
    fn window_of(&self, offset: Offset) -> Option<Rc<Window>> {
        let windows = self.windows.borrow();
        windows.iter().find(|window| window.holds(offset)).cloned()
    }

    fn forget(&self, window: &Rc<Window>) {
        let mut windows = self.windows.borrow_mut();
        windows.retain(|known| !Rc::ptr_eq(known, window));
    }

    /// The log is cut, emptied or deleted.
    pub(crate) fn clear(&self) {
        self.windows.borrow_mut().clear();
        self.ends.borrow_mut().clear();
        self.shape.set(self.shape.get() + 1);
    }

    /// A reader went on from one offset to another. True where it was sequential.
    fn advance(&self, from: Offset, next: Offset) -> bool {
        let mut ends = self.ends.borrow_mut();
        let place = ends.iter().position(|end| *end == from);
        if let Some(place) = place {
            ends.remove(place);
        } else if ends.len() >= ENDS_MAX {
            ends.pop_front();
        }
        ends.push_back(next);
        place.is_some()
    }
}

/// Where a read ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadEnd {
    pub(crate) next: Offset,
    pub(crate) base: i64,
    pub(crate) position: u64,
}

impl Log {
    /// A read from the segments has ended there.
    pub(crate) fn note_read(self: &Rc<Self>, from: Offset, end: ReadEnd) {
        if self.read_ahead.advance(from, end.next) {
            self.start_window(end);
        }
    }

    /// What windows hold from `from` on; `None` where they do not hold it.
    pub(crate) async fn read_from_windows(
        self: &Rc<Self>,
        from: Offset,
        limit: &ReadLimit,
    ) -> Result<Option<ReadResult>, ReadError> {
        let Some(window) = self.read_ahead.window_of(from) else {
            return Ok(None);
        };
        let read = || (!matches!(*window.content.borrow(), Content::Reading)).then_some(());
        self.shard.health.race(&window.waiters, read).await?;
        let mut result = ReadResult::default();
        let is_here = |window: &Rc<Window>| {
            let windows = self.read_ahead.windows.borrow();
            windows.iter().any(|known| Rc::ptr_eq(known, window))
        };
        let (mut at, mut left) = (from, *limit);
        left.max_bytes = left.max_bytes.min(limit.memory_max);
        while let Some(window) = self.read_ahead.window_of(at) {
            let Some((slice, next)) = self.serve(&window, at, &left) else {
                break;
            };
            at = next;
            left.max_bytes = left.max_bytes.saturating_sub(slice.len());
            left.first_batch_max = 0;
            result.bytes += slice.len();
            // The rest of the window is charged to the windows' share.
            result.memory += slice.len();
            result.slices.push(slice);
            if is_here(&window) {
                // More of it would be too much.
                break;
            }
        }
        if result.bytes == 0 {
            // Whatever is in the way is for the plain read to find and to name.
            return Ok(None);
        }
        self.read_ahead.advance(from, at);
        Ok(Some(result))
    }

    /// Batches of one window, and the offset after them.
    fn serve(
        self: &Rc<Self>,
        window: &Rc<Window>,
        from: Offset,
        limit: &ReadLimit,
    ) -> Option<(Bytes, Offset)> {
        let content = window.content.borrow();
        let Content::Ready(bytes, next, position) = &*content else {
            return None;
        };
        let at = window.find(bytes, from)?;
        let rest = bytes.slice(at..);
        let first = BatchHeader::parse(&rest).ok()?;
        let is_allowed = first.total_bytes() <= limit.max_bytes.max(limit.first_batch_max);
        if first.last_offset() >= limit.end || !is_allowed {
            return None;
        }
        let whole = whole_batches(&rest, limit).ok()?;
        let (taken, after) = (whole.bytes, whole.next);
        window.served.set((after, at + taken));
        window.touched.set(io::now());
        if self.read_ahead.window_of(*next).is_none() {
            let (base, next, position) = (window.base, *next, *position);
            self.start_window(ReadEnd {
                next,
                base,
                position,
            });
        }
        if at + taken == bytes.len() {
            self.read_ahead.forget(window);
        }
        Some((rest.slice(..taken), after))
    }

    /// Reads what follows, if there is room for it and it is in a file.
    fn start_window(self: &Rc<Self>, from: ReadEnd) {
        if self.read_ahead.window_of(from.next).is_some() {
            return;
        }
        let Some((base, position)) = self.place_of(from) else {
            return;
        };
        let Some(charge) = self.shard.read_ahead.take() else {
            return;
        };
        let window = Rc::new(Window {
            first: from.next,
            base,
            position,
            content: RefCell::new(Content::Reading),
            served: Cell::new((from.next, 0)),
            touched: Cell::new(io::now()),
            waiters: self.shard.health.waiters(),
        });
        self.read_ahead
            .windows
            .borrow_mut()
            .push(Rc::clone(&window));
        let budget = &self.shard.read_ahead;
        budget.list((Rc::downgrade(self), Rc::downgrade(&window)));
        budget.in_flight.set(budget.in_flight.get() + 1);
        let log = Rc::clone(self);
        io::spawn(TaskClass::Fetch, async move {
            let shape = log.read_ahead.shape.get();
            let content = log.fill(&window, charge).await.unwrap_or(Content::Nothing);
            let in_flight = &log.shard.read_ahead.in_flight;
            in_flight.set(in_flight.get() - 1);
            let is_void = matches!(content, Content::Nothing);
            if is_void || shape != log.read_ahead.shape.get() {
                log.read_ahead.forget(&window);
                *window.content.borrow_mut() = Content::Nothing;
            } else {
                *window.content.borrow_mut() = content;
            }
            window.waiters.wake_all();
        });
    }

    /// Where the bytes after a read stand: there, or at the next segment's beginning.
    fn place_of(&self, from: ReadEnd) -> Option<(i64, u64)> {
        let segments = self.segments.borrow();
        let segment = segments.get(&from.base)?;
        if from.position < self.file_end(segment) {
            return Some((from.base, from.position));
        }
        if from.position < segment.size.get() {
            return None;
        }
        let (base, next) = segments.range(from.base + 1..).next()?;
        // A gap between segments is for the plain read to name.
        (*base == from.next.0 && self.file_end(next) > 0).then_some((*base, 0))
    }

    async fn fill(&self, window: &Window, charge: Charge) -> Option<Content> {
        let segment = self.segment_at(Offset(window.base))?;
        let file = self.open_reader(&segment).await.ok()?;
        let end = self.file_end(&segment);
        if window.position >= end {
            return None;
        }
        // The block that the position stands in is read too.
        let wanted = WINDOW_BYTES - BLOCK_BYTES;
        let read = read_window(&segment, &file, window.position, end, wanted);
        let bytes = Bytes::from_owner(Charged(read.await.ok()?.bytes, charge));
        let (mut taken, mut next) = (0, window.first);
        while let Some(Ok(header)) = bytes.get(taken..).map(BatchHeader::parse) {
            if header.total_bytes() > bytes.len() - taken {
                break;
            }
            taken += header.total_bytes();
            next = header.next_offset();
        }
        let position = window.position + taken as u64;
        (taken > 0).then(|| Content::Ready(bytes.slice(..taken), next, position))
    }
}

#[cfg(test)]
#[path = "read_ahead_test.rs"]
mod read_ahead_test;
