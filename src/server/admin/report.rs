//! What a shard tells, gathered on its own loop.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use crate::base::ids::{LeaderEpoch, Offset, PartitionIndex, ShardId};
use crate::base::time::MonotonicNs;
use crate::coordinator::group_service::GroupsReport;
use crate::io::{self, TaskClass};
use crate::metrics::{CleanerGauges, Recorded, SizeCounts};
use crate::partition::{Partition, PartitionState};
use crate::server::moves::MoveGauges;
use crate::server::node::Node;
use crate::shard::{OfflineDirectory, Shard, ShardMessage};

/// Partitions that are looked at before the shard's other tasks have their turn.
const PARTITIONS_PER_TURN: usize = 32;

/// What a shard has bounds for: the journal's ring, the tail caches, requests and answers in
/// flight, connections.
pub const BUDGETS: [&str; 4] = ["journal", "cache", "requests", "connections"];

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
    /// Partitions of the broker whose logs do not serve.
    pub unopened: usize,
    /// Topics of the cluster.
    pub topics: usize,
    /// Where the metadata log ends that it goes by, and the epoch there.
    pub metadata: (Offset, LeaderEpoch),
    /// What is bounded, in the order of [`BUDGETS`].
    pub budgets: [Fill; BUDGETS.len()],
    /// How large the journal's writes were, since the start.
    pub journal_writes: SizeCounts,
    /// Log directories that are offline, with the reasons.
    pub offline: Vec<OfflineDirectory>,
    /// Whether no directory serves.
    pub are_all_offline: bool,
    /// Partitions hosted whose directory is offline.
    pub stopped: usize,
    /// How long its journals have waited for a disk's answer to a write, at most.
    pub disk_silence: Duration,
    /// Where its cleaner stands.
    pub cleaner: CleanerGauges,
    /// Where its partitions' moves between log directories stand.
    pub moves: MoveGauges,
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
        gauges: Box<Gauges>,
    },
    /// All its partitions.
    Partitions {
        /// Who tells.
        shard: ShardId,
        /// Them.
        partitions: Vec<PartitionReport>,
        /// And its groups, whose offsets are to be held against the partitions' ends.
        groups: GroupsReport,
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
            gauges: Box::new(gauges(shard)),
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
            let node = shard.attachment::<Node>();
            let groups = match &node {
                Some(node) => node.groups().report().await,
                None => GroupsReport::default(),
            };
            let shard = shard.id();
            let _ = reports.send(Report::Partitions {
                shard,
                partitions,
                groups,
            });
        });
    }))
}

fn describe(partition: &Partition) -> PartitionReport {
    let log = partition.log();
    let identity = log.identity();
    PartitionReport {
        topic: identity.topic.clone(),
        partition: identity.partition,
        state: partition.state(),
    }
}

fn gauges(shard: &Rc<Shard>) -> Gauges {
    let node = shard.attachment::<Node>();
    let of_node = |read: &dyn Fn(&Node) -> usize| node.as_deref().map_or(0, read);
    let logs = shard.logs();
    let (journal, cache) = (logs.journal_fill(), logs.cache_fill());
    let offline: Vec<OfflineDirectory> = logs.offline().collect();
    let budget = shard.budget();
    let fill = |used: usize, max: usize| Fill {
        used: used as u64,
        max: max as u64,
    };
    Gauges {
        now: io::clock(),
        idle: io::idle_time(),
        connections: of_node(&|node| node.connections().len()),
        fetches: shard.fetch_count(),
        fetch_sessions: of_node(&|node| node.sessions().len()),
        partitions: shard.partition_count(),
        unopened: shard.offline_count(),
        topics: of_node(&|node| node.image_ref().topics().len()),
        metadata: node.as_deref().map_or_else(Default::default, |node| {
            let image = node.image_ref();
            (image.end_offset(), image.log_epoch())
        }),
        budgets: [
            Fill {
                used: journal.0,
                max: journal.1,
            },
            fill(cache.0, cache.1),
            fill(budget.common_bytes_used(), budget.common_bytes_max()),
            fill(
                of_node(&|node| node.connection_memory().used()),
                of_node(&|node| node.connection_memory().bytes_max()),
            ),
        ],
        journal_writes: shard.metrics().journal_writes(),
        stopped: stopped(shard, &offline),
        are_all_offline: logs.are_all_offline(),
        offline,
        disk_silence: disk_silence(shard),
        cleaner: shard.metrics().cleaner(),
        moves: (node.as_deref()).map_or_else(MoveGauges::default, |node| node.moves().gauges(node)),
    }
}

/// Partitions of this shard that its offline directories hold.
fn stopped(shard: &Shard, offline: &[OfflineDirectory]) -> usize {
    if offline.is_empty() {
        return 0;
    }
    let partitions = shard.partitions();
    let is_stopped = |partition: &&Rc<Partition>| partition.log().check_online().is_err();
    partitions.iter().filter(is_stopped).count()
}

fn disk_silence(shard: &Shard) -> Duration {
    let waits = shard.logs().iter().map(|logs| logs.disk_silence(io::now()));
    waits.max().unwrap_or_default()
}
