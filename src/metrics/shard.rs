//! What one shard records while it works: a few adds, no lock, no allocation after the first
//! request of its kind.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::cleaner::CleanerGauges;
use super::recorded::Recorded;
use super::sizes::{SizeCounts, Sizes};
use super::snapshot::MetricsSnapshot;
use super::stage::{Stage, StageTimes, named};
use super::touched::Touched;
use crate::base::ids::ApiKey;

named! {
    /// Something that is counted.
    Counter {
        /// Connections accepted.
        ConnectionsOpened = "connections opened",
        /// Connections closed, by either side.
        ConnectionsClosed = "connections closed",
        /// Connections closed for what they sent.
        ConnectionsRefused = "connections refused",
        /// Answers that told a client for how long it is throttled.
        RequestsThrottled = "requests throttled",
        /// Milliseconds that those told in all.
        ThrottleMs = "ms of throttling",
        /// Bytes received from clients.
        BytesReceived = "bytes received",
        /// Bytes sent to clients.
        BytesSent = "bytes sent",
        /// Batches appended for clients.
        BatchesAppended = "batches appended",
        /// Records appended for clients.
        RecordsAppended = "records appended",
        /// Bytes of batches appended for clients.
        BytesAppended = "bytes appended",
        /// Batches that were duplicates of idempotent producers.
        BatchesDuplicate = "batches duplicate",
        /// Bytes of records served from memory.
        BytesFetchedFromCache = "bytes fetched from cache",
        /// Bytes of records served from disk.
        BytesFetchedFromDisk = "bytes fetched from disk",
        /// Appends of batches that were refused.
        AppendsFailed = "appends refused",
        /// Bytes of those.
        BytesRefused = "bytes of appends refused",
        /// Appends that were refused because the disk has no room.
        AppendsWithoutRoom = "appends refused for want of disk",
        /// Bytes of records found for fetches.
        BytesFetched = "bytes fetched",
        /// Reads of a partition for a fetch that failed.
        ReadsFailed = "reads failed",
        /// Messages to other shards.
        Hops = "hops to other shards",
        /// Writes of the journal.
        JournalWrites = "journal writes",
        /// Bytes of those.
        JournalBytes = "journal bytes",
        /// Writes of segments.
        SegmentWrites = "segment writes",
        /// Bytes of those.
        SegmentBytes = "segment bytes",
        /// Flushes of the disk.
        Flushes = "flushes",
        /// Logs cleaned.
        Cleanings = "cleanings",
        /// Buffers read by cleanings.
        CleanerReads = "buffers read by cleanings",
        /// Bytes that cleanings went through.
        CleanedBytesRead = "bytes read by cleanings",
        /// Bytes of those that stayed.
        CleanedBytesWritten = "bytes written by cleanings",
        /// Records that cleanings went through.
        CleanedRecordsRead = "records read by cleanings",
        /// Records of those that stayed.
        CleanedRecordsKept = "records kept by cleanings",
        /// Bytes of batches over which a checksum went, see [`super::touched`].
        BytesChecked = "batch bytes checksummed",
        /// Bytes of batches that were copied in memory.
        BytesCopied = "batch bytes copied",
    }
}

/// The set of one shard. Lives on its thread; shared there by `Rc`.
#[derive(Debug)]
pub struct ShardMetrics {
    recorded: RefCell<Recorded>,
    counters: Vec<Cell<u64>>,
    journal_writes: Sizes,
    cleaner: RefCell<CleanerGauges>,
    /// What the thread had touched when the set was made.
    touched_before: Touched,
}

impl Default for ShardMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl ShardMetrics {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            recorded: RefCell::default(),
            counters: Counter::ALL.iter().map(|_| Cell::new(0)).collect(),
            journal_writes: Sizes::default(),
            cleaner: RefCell::default(),
            touched_before: Touched::now(),
        }
    }

    /// One answered request: from its whole frame to its answer given to the socket, without what
    /// the client asked to wait for.
    pub fn record_request(&self, key: ApiKey, latency: Duration, times: &StageTimes) {
        let mut recorded = self.recorded.borrow_mut();
        recorded.record_request(key, latency, times);
    }

    /// One pass through a stage.
    pub fn record_stage(&self, stage: Stage, latency: Duration) {
        self.recorded.borrow_mut().record_stage(stage, latency);
    }

    /// Adds to a counter.
    pub fn add(&self, counter: Counter, count: u64) {
        if let Some(cell) = self.counters.get(counter as usize) {
            cell.set(cell.get().wrapping_add(count));
        }
    }

    /// Where the shard's cleaner stands.
    pub fn cleaner(&self) -> CleanerGauges {
        self.cleaner.borrow().clone()
    }

    /// The shard's cleaner tells where it stands.
    pub fn change_cleaner(&self, change: impl FnOnce(&mut CleanerGauges)) {
        change(&mut self.cleaner.borrow_mut());
    }

    /// One write of the journal.
    pub fn record_journal_write(&self, bytes: u64) {
        self.add(Counter::JournalWrites, 1);
        self.add(Counter::JournalBytes, bytes);
        self.journal_writes.record(bytes);
    }

    /// How large the journal's writes were.
    #[must_use]
    pub fn journal_writes(&self) -> SizeCounts {
        self.journal_writes.counts()
    }

    /// A counter's value.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        let (now, before) = (Touched::now(), self.touched_before);
        match counter {
            Counter::BytesChecked => return now.checked.wrapping_sub(before.checked),
            Counter::BytesCopied => return now.copied.wrapping_sub(before.copied),
            _ => {}
        }
        self.counters.get(counter as usize).map_or(0, Cell::get)
    }

    /// All counters' values.
    #[must_use]
    pub fn counters(&self) -> Vec<u64> {
        Counter::ALL.iter().map(|one| self.get(*one)).collect()
    }

    /// What was recorded since the last exchange. The shard goes on with `fresh`, which should be
    /// empty: nothing is copied, however much was recorded.
    pub fn exchange(&self, fresh: Recorded) -> Recorded {
        self.recorded.replace(fresh)
    }

    /// A copy of everything.
    #[must_use]
    pub fn snapshot(&self) -> MetricsSnapshot {
        MetricsSnapshot {
            recorded: self.recorded.borrow().clone(),
            counters: self.counters(),
        }
    }
}
