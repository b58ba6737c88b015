//! What one shard records while it works: a few adds, no lock, no allocation after the first
//! request of its kind.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::snapshot::MetricsSnapshot;
use crate::base::ids::ApiKey;

/// The longest latency that is told apart; longer ones count as this.
pub const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// Latencies are told apart from this one on.
const LATENCY_NS_MIN: u64 = 1_000;
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl $type {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name in tables and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

named! {
    /// A part of a request's way.
    Stage {
        /// From the first byte of a frame to its last.
        Read = "read",
        /// From the whole frame to the decoded message.
        Decode = "decode",
        /// From the send to the owner's inbox to its turn there.
        Queue = "queue",
        /// Validation and the append in memory.
        Append = "append",
        /// A write of the journal or of a segment.
        Write = "write",
        /// A flush of the disk.
        Flush = "flush",
        /// Waiting for the replicas.
        Replicate = "replicate",
        /// A fetch's wait for records.
        Park = "park",
        /// From the ready answer to its last byte sent.
        Respond = "respond",
    }
}

named! {
    /// Something that is counted.
    Counter {
        /// Connections accepted.
        ConnectionsOpened = "connections opened",
        /// Connections closed, by either side.
        ConnectionsClosed = "connections closed",
        /// Connections closed for what they sent.
        ConnectionsRefused = "connections refused",
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
    }
}

/// The set of one shard. Lives on its thread; shared there by `Rc`.
#[derive(Debug)]
pub struct ShardMetrics {
    requests: RefCell<BTreeMap<ApiKey, Histogram<u64>>>,
    stages: RefCell<BTreeMap<Stage, Histogram<u64>>>,
    counters: Vec<Cell<u64>>,
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
            requests: RefCell::default(),
            stages: RefCell::default(),
            counters: Counter::ALL.iter().map(|_| Cell::new(0)).collect(),
        }
    }

    /// One answered request: from its last byte received to its answer handed to the socket.
    pub fn record_request(&self, key: ApiKey, latency: Duration) {
        record(&mut self.requests.borrow_mut(), key, latency);
    }

    /// One pass through a stage.
    pub fn record_stage(&self, stage: Stage, latency: Duration) {
        record(&mut self.stages.borrow_mut(), stage, latency);
    }

    /// Adds to a counter.
    pub fn add(&self, counter: Counter, count: u64) {
        if let Some(cell) = self.counters.get(counter as usize) {
            cell.set(cell.get().wrapping_add(count));
        }
    }

    /// A counter's value.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).map_or(0, Cell::get)
    }

    /// A copy of everything, to be sent to whoever asked.
    #[must_use]
    pub fn snapshot(&self) -> MetricsSnapshot {
        MetricsSnapshot {
            requests: self.requests.borrow().clone(),
            stages: self.stages.borrow().clone(),
            counters: self.counters.iter().map(Cell::get).collect(),
        }
    }
}

fn record<K: Ord>(histograms: &mut BTreeMap<K, Histogram<u64>>, key: K, latency: Duration) {
    let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
    if let Some(histogram) = histograms.get_mut(&key) {
        return histogram.saturating_record(ns);
    }
    // The bounds are constants that the library accepts; were they not, the latency is not kept.
    if let Ok(mut histogram) = Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, DIGITS) {
        histogram.saturating_record(ns);
        histograms.insert(key, histogram);
    }
}
