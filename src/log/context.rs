//! What all logs of a shard share.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::time::Duration;

use super::cache::CacheBudget;
use super::config::LogIdentity;
use super::format::closed_segments::{ClosedKey, SegmentSizes};
use super::full_disk::{DiskRoom, FullDisk};
use super::health::Health;
use super::index_check::IndexChecks;
use super::journal::{Claim, Journal};
use super::partition_log::Log;
use super::read_ahead::{AheadBudget, share_of};
use super::segment::{STEP_BYTES_MIN, Segment};
use super::wait::Turns;
use super::write_back::{WRITERS_MAX, WriteBack};
use crate::base::ids::{Offset, PartitionIndex, ShardId, Uuid};
use crate::base::limits::{BLOCK_BYTES, KIB, MIB};
use crate::base::random::Random;
use crate::io::{self, AlignedBuffer, FlushGroup, TaskClass};
use crate::metrics::ShardMetrics;

/// Write buffers kept for the next writes, and the largest that is kept.
const BUFFERS_KEPT_MAX: usize = 8;
/// Largest single write of write-back, whose buffers are a quarter of all; and the least that is
/// made of it.
const WRITE_BYTES_MAX: usize = MIB;
const WRITE_BYTES_LEAST: usize = 64 * KIB;
/// Reading descriptors of closed segments that stay open.
const READERS_OPEN_MAX: usize = 256;
/// After so many read indexes those of deleted segments are forgotten.
const LOADED_LOOKED_AT: usize = 64;
/// Between two rounds of writing partial blocks for the sake of memory.
const RELIEF_INTERVAL: Duration = Duration::from_millis(1);

/// One a shard.
pub(crate) struct ShardContext {
    pub(crate) directory: PathBuf,
    pub(crate) incarnation: Uuid,
    pub(crate) shard: ShardId,
    pub(crate) health: Rc<Health>,
    /// Files of many logs are made durable together.
    pub(crate) flushes: Rc<FlushGroup>,
    pub(crate) journal: Rc<Journal>,
    pub(crate) cache: CacheBudget,
    pub(crate) read_ahead: AheadBudget,
    pub(crate) write_back: WriteBack,
    pub(crate) metrics: Rc<ShardMetrics>,
    /// One takes blocks from files of many at a time, see [`super::removal`].
    pub(crate) removals: Turns,
    /// Appends that wait for room go on in the order in which they came.
    pub(crate) admission: Turns,
    /// Largest step by which a segment reserves blocks, while the disk has enough.
    reserve_step_max: u64,
    /// What is known of the disk's room, and whom it was refused to.
    pub(crate) full_disk: FullDisk,
    /// Where logs begin, by the checkpoint file that recovery wrote.
    pub(crate) log_starts: BTreeMap<(String, PartitionIndex), Offset>,
    /// What was durable in segments when recovery ended: no log ends before.
    pub(crate) recovery_points: BTreeMap<(String, PartitionIndex), Offset>,
    /// Segments as the last clean shutdown left them; each log's are compared once.
    pub(crate) closed: RefCell<BTreeMap<ClosedKey, SegmentSizes>>,
    /// Largest single write of write-back; larger buffers are not kept.
    pub(crate) write_bytes_max: usize,
    random: RefCell<Random>,
    buffers: RefCell<Vec<AlignedBuffer>>,
    readers: RefCell<VecDeque<Weak<Segment>>>,
    /// Closed segments whose indexes were read, oldest first.
    indexes_loaded: RefCell<VecDeque<Weak<Segment>>>,
    /// All open logs.
    pub(crate) logs: RefCell<BTreeMap<LogIdentity, Rc<Log>>>,
    /// No more appends: the shard is closing.
    pub(crate) is_closing: Cell<bool>,
    /// Logs with whole blocks that are durable and perhaps not written.
    relief: RefCell<Vec<Weak<Log>>>,
    is_writing_partial_blocks: Cell<bool>,
    /// Closed segments whose indexes are looked at.
    pub(crate) index_checks: IndexChecks,
    /// Derived files for which the disk has no room now.
    files_without_room: Cell<usize>,
}

/// As long as this lives, whoever would wait for ring or memory is refused instead: what is to make
/// room there waits for the disk.
pub(crate) struct ShortOfDisk(Rc<ShardContext>);

impl Drop for ShortOfDisk {
    fn drop(&mut self) {
        let files = &self.0.files_without_room;
        files.set(files.get() - 1);
    }
}

/// What was read of the directory when the shard opened.
pub(crate) struct FoundAtOpen {
    pub(crate) reserve_step_max: u64,
    pub(crate) log_starts: BTreeMap<(String, PartitionIndex), Offset>,
    pub(crate) recovery_points: BTreeMap<(String, PartitionIndex), Offset>,
    pub(crate) closed: BTreeMap<ClosedKey, SegmentSizes>,
}

impl ShardContext {
    pub(crate) fn new(
        options: &super::ShardLogsOptions,
        health: Rc<Health>,
        journal: Rc<Journal>,
        found: FoundAtOpen,
    ) -> Self {
        let write_bytes =
            options.write_buffer_bytes() / 4 / WRITERS_MAX / BLOCK_BYTES * BLOCK_BYTES;
        let ahead_bytes = share_of(options.cache_bytes);
        let cache_bytes = options.cache_bytes - ahead_bytes;
        Self {
            directory: options.directory.clone(),
            write_bytes_max: write_bytes.clamp(WRITE_BYTES_LEAST, WRITE_BYTES_MAX),
            incarnation: options.incarnation,
            shard: options.shard,
            flushes: Rc::clone(&journal.options.flushes),
            cache: CacheBudget::new(cache_bytes, Rc::clone(&journal.room)),
            read_ahead: AheadBudget::new(ahead_bytes),
            metrics: Rc::clone(&journal.options.metrics),
            journal,
            health,
            write_back: WriteBack::default(),
            removals: Turns::default(),
            admission: Turns::default(),
            reserve_step_max: found.reserve_step_max,
            full_disk: FullDisk::default(),
            log_starts: found.log_starts,
            recovery_points: found.recovery_points,
            closed: RefCell::new(found.closed),
            random: RefCell::new(Random::new(options.random_seed)),
            buffers: RefCell::default(),
            readers: RefCell::default(),
            indexes_loaded: RefCell::default(),
            logs: RefCell::default(),
            is_closing: Cell::new(false),
            relief: RefCell::default(),
            is_writing_partial_blocks: Cell::new(false),
            index_checks: IndexChecks::default(),
            files_without_room: Cell::new(0),
        }
    }

    /// Largest step by which a segment reserves blocks now.
    pub(crate) fn reserve_step_max(&self) -> u64 {
        match self.full_disk.room() {
            DiskRoom::Enough => self.reserve_step_max,
            DiskRoom::Little | DiskRoom::Reserve => STEP_BYTES_MIN,
        }
    }

    /// A derived file has no room on the disk.
    pub(crate) fn note_short_of_disk(self: &Rc<Self>) -> ShortOfDisk {
        self.files_without_room
            .set(self.files_without_room.get() + 1);
        self.journal.room.wake_all();
        ShortOfDisk(Rc::clone(self))
    }

    /// Whether a derived file waits for room on the disk.
    pub(crate) fn is_short_of_disk(&self) -> bool {
        self.files_without_room.get() > 0
    }

    /// A random id.
    pub(crate) fn next_uuid(&self) -> Uuid {
        self.random.borrow_mut().next_uuid()
    }

    /// A random number below `bound`.
    pub(crate) fn random_below(&self, bound: u64) -> u64 {
        self.random.borrow_mut().below(bound)
    }

    /// A log has whole blocks that memory may ask for.
    pub(crate) fn note_whole_block(&self, log: &Rc<Log>) {
        if !log.is_relief_noted.replace(true) {
            self.relief.borrow_mut().push(Rc::downgrade(log));
        }
    }

    /// Memory asks: every log with a whole block to write writes it.
    pub(crate) fn relieve_memory(&self) {
        let noted = std::mem::take(&mut *self.relief.borrow_mut());
        for log in noted.iter().filter_map(Weak::upgrade) {
            log.is_relief_noted.set(false);
            if log.has_whole_block() {
                log.request_write_back();
            }
        }
    }

    /// Batches that end in a partial block stay pinned, as large as they are. With no whole block
    /// left to write, the partial ones are written, those first that hold the most memory, until
    /// `charge` bytes have room.
    pub(crate) fn write_partial_blocks(self: &Rc<Self>, charge: usize) {
        if self.is_writing_partial_blocks.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        io::spawn(TaskClass::Background, async move {
            let pinned = |log: &Rc<Log>| (log.tail.borrow().pinned(), Rc::clone(log));
            let mut logs: Vec<_> = shard.logs.borrow().values().map(pinned).collect();
            logs.retain(|(pinned, _)| *pinned > 0);
            logs.sort_by_key(|(pinned, _)| std::cmp::Reverse(*pinned));
            for (_, log) in logs {
                if shard.cache.has_room(charge) {
                    break;
                }
                if log.is_closed() {
                    // What a deletion frees comes with its end.
                    continue;
                }
                let active = log.active_segment();
                let claim = Claim {
                    segment_base: active.base_offset.0,
                    end_position: active.size.get(),
                    log,
                };
                // A failed write has taken the directory offline already.
                if let Err(error) = claim.log.write_partial_block(&claim).await {
                    tracing::debug!(%error, "no memory was freed");
                }
            }
            // What was appended meanwhile may be what is in the way now.
            io::sleep(RELIEF_INTERVAL).await;
            shard.is_writing_partial_blocks.set(false);
            shard.cache.room.wake_all();
        });
    }

    /// An empty write buffer for `bytes`.
    pub(crate) fn take_buffer(&self, bytes: usize) -> AlignedBuffer {
        let mut buffers = self.buffers.borrow_mut();
        let place = buffers.iter().position(|buffer| buffer.capacity() >= bytes);
        let kept = place.map(|place| buffers.swap_remove(place));
        drop(buffers);
        kept.map_or_else(
            || AlignedBuffer::with_capacity(bytes),
            |mut buffer| {
                buffer.clear();
                buffer
            },
        )
    }

    /// Keeps a buffer for the next write.
    pub(crate) fn give_buffer(&self, buffer: AlignedBuffer) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() < BUFFERS_KEPT_MAX && buffer.capacity() <= self.write_bytes_max {
            buffers.push(buffer);
        }
    }

    /// A closed segment's indexes were read: the oldest beyond the cache's share for indexes are
    /// dropped, to be read again at their next use.
    pub(crate) fn index_loaded(&self, segment: &Rc<Segment>) {
        let mut loaded = self.indexes_loaded.borrow_mut();
        loaded.push_back(Rc::downgrade(segment));
        if loaded.len().is_multiple_of(LOADED_LOOKED_AT) {
            loaded.retain(|segment| segment.strong_count() > 0);
        }
        while self.cache.has_too_many_indexes() && loaded.len() > 1 {
            if let Some(oldest) = loaded.pop_front().and_then(|oldest| oldest.upgrade()) {
                oldest.drop_index();
            }
        }
    }

    /// A closed segment's reading descriptor was opened: the oldest beyond the limit closes.
    pub(crate) fn reader_opened(&self, segment: &Rc<Segment>) {
        let mut readers = self.readers.borrow_mut();
        readers.push_back(Rc::downgrade(segment));
        if readers.len() > READERS_OPEN_MAX
            && let Some(oldest) = readers.pop_front().and_then(|oldest| oldest.upgrade())
        {
            oldest.close_reader();
        }
    }
}
