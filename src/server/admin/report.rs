//! What a shard tells, gathered on its own loop.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use crate::base::ids::{PartitionIndex, ShardId};
use crate::base::time::MonotonicNs;
use crate::io::{self, TaskClass};
use crate::metrics::Recorded;
use crate::partition::{Partition, PartitionState};
use crate::server::node::Node;
use crate::shard::{Shard, ShardMessage};

/// Partitions that are looked at before the shard's other tasks have their turn.
const PARTITIONS_PER_TURN: usize = 32;

/// How full a bounded thing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Bytes in use.
    pub used: u64,
    /// Bytes that may be in use.
    pub max: u64,
}

/// Where a shard stands.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Its clock, and how long it has waited for events by it.
    pub now: MonotonicNs,
    /// See `now`.
    pub idle: Duration,
    /// Clients' connections.
    pub connections: usize,
    /// Fetches under way, parked ones included.
    pub fetches: usize,
    /// Fetch sessions.
    pub fetch_sessions: usize,
    /// Partitions hosted.
    pub partitions: usize,
    /// The journal's ring.
    pub journal: Fill,
    /// The tail caches.
    pub cache: Fill,
    /// Memory for requests and answers.
    pub requests: Fill,
    /// Whether a failed write has taken its directory offline.
    pub is_offline: bool,
}

/// What one partition tells.
#[derive(Clone, Debug)]
pub struct PartitionReport {
    /// The topic's name.
    pub topic: String,
    /// Its number.
    pub partition: PartitionIndex,
    /// Its ends, sizes and counts.
    pub state: PartitionState,
}

/// What a shard sends to the admin thread.
#[derive(Debug)]
pub enum Report {
    /// What was recorded since the last such report, and where it stands now.
    Interval {
        /// Who tells.
        shard: ShardId,
        /// Latencies since the last report.
        recorded: Recorded,
        /// Counters since the start.
        counters: Vec<u64>,
        /// Now.
        gauges: Gauges,
    },
    /// All its partitions.
    Partitions {
        /// Who tells.
        shard: ShardId,
        /// Them.
        partitions: Vec<PartitionReport>,
    },
}

/// Asks a shard for what it has recorded; it goes on with `fresh`.
pub fn ask_interval(fresh: Recorded, reports: UnboundedSender<Report>) -> ShardMessage {
    ShardMessage::Run(Box::new(move |shard| {
        let metrics = shard.metrics();
        let report = Report::Interval {
            shard: shard.id(),
            recorded: metrics.exchange(fresh),
            counters: metrics.counters(),
            gauges: gauges(shard),
        };
        let _ = reports.send(report);
    }))
}

/// Asks a shard for all its partitions. It looks at a few in each turn, so that its requests do not
/// wait.
pub fn ask_partitions(reports: UnboundedSender<Report>) -> ShardMessage {
    ShardMessage::Run(Box::new(move |shard| {
        let shard = Rc::clone(shard);
        io::spawn(TaskClass::Background, async move {
            let hosted = shard.partitions();
            let mut partitions = Vec::with_capacity(hosted.len());
            for some in hosted.chunks(PARTITIONS_PER_TURN) {
                partitions.extend(some.iter().map(|partition| describe(partition)));
                io::yield_now().await;
            }
            let shard = shard.id();
            let _ = reports.send(Report::Partitions { shard, partitions });
        });
    }))
}

fn describe(partition: &Partition) -> PartitionReport {
    let identity = partition.log().identity();
    PartitionReport {
        topic: identity.topic.clone(),
        partition: identity.partition,
        state: partition.state(),
    }
}

fn gauges(shard: &Rc<Shard>) -> Gauges {
    let node = shard.attachment::<Node>();
    let logs = shard.logs();
    let (journal_used, journal_max) = logs.journal_fill();
    let (cache_used, cache_max) = logs.cache_fill();
    let budget = shard.budget();
    Gauges {
        now: io::clock(),
        idle: io::idle_time(),
        connections: node.as_ref().map_or(0, |node| node.connections().len()),
        fetches: shard.fetch_count(),
        fetch_sessions: node.as_ref().map_or(0, |node| node.sessions().len()),
        partitions: shard.partition_count(),
        journal: Fill {
            used: journal_used,
            max: journal_max,
        },
        cache: Fill {
            used: cache_used as u64,
            max: cache_max as u64,
        },
        requests: Fill {
            used: budget.common_bytes_used() as u64,
            max: budget.common_bytes_max() as u64,
        },
        is_offline: logs.is_offline(),
    }
}
