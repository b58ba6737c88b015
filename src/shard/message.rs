//! What a shard may be asked. Requests carry their buffers by ownership and a slot for the reply.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use bytes::BytesMut;

use super::core::Shard;
use crate::base::few::Few;
use crate::base::ids::{LeaderEpoch, Offset, ShardId, TopicPartition};
use crate::base::time::MonotonicNs;
use crate::io::reply::ReplySender;
use crate::log::{AppendOrigin, BufferBytes, TimestampedOffset};
use crate::metrics::Visit;
use crate::partition::{
    AppendReply, Isolation, KnownProducer, OffsetQuery, ParkedFetch, PartitionError, PartitionRead,
    ReadSpec, RequiredAcks,
};

/// One message to a shard.
pub enum ShardMessage {
    /// Batches for partitions that the shard owns.
    Append(AppendMessage),
    /// Reads of partitions that the shard owns.
    Read(ReadMessage),
    /// ListOffsets for partitions that the shard owns.
    ListOffsets(OffsetsMessage),
    /// OffsetForLeaderEpoch for partitions that the shard owns.
    EpochEnds(EpochEndsMessage),
    /// DescribeProducers for partitions that the shard owns.
    Producers(ProducersMessage),
    /// DeleteRecords for partitions that the shard owns.
    DeleteRecords(DeleteRecordsMessage),
    /// The sizes of logs that the shard owns.
    LogSizes(LogSizesMessage),
    /// A parked fetch is over: its waiters are forgotten.
    Unpark(UnparkMessage),
    /// Partitions on which a fetch of this shard is parked have moved.
    Wake(WakeMessage),
    /// Work of the control plane, on the shard's thread.
    Run(Work),
}

/// Work of the control plane, run once on the shard's thread.
pub type Work = Box<dyn FnOnce(&Rc<Shard>) + Send>;

/// A batch for one partition.
#[derive(Debug)]
pub struct AppendEntry {
    /// The partition.
    pub partition: TopicPartition,
    /// The batch, to be stamped in place.
    pub batch: BytesMut,
    /// What it keeps alive.
    pub buffer_bytes: BufferBytes,
}

/// The batches of one produce request that one shard owns.
#[derive(Debug)]
pub struct AppendMessage {
    /// The batches.
    pub entries: Few<AppendEntry>,
    /// When they are answered.
    pub required_acks: RequiredAcks,
    /// Who appends.
    pub origin: AppendOrigin,
    /// Until when they may wait for room.
    pub deadline: MonotonicNs,
    /// Who sent it, and when.
    pub from: ShardId,
    /// Its stations so far.
    pub visit: Visit,
    /// Where the outcomes go.
    pub reply: ReplySender<AppendReply>,
}

/// The partitions of one fetch that one shard owns.
#[derive(Debug)]
pub struct ReadMessage {
    /// The partitions, in the order in which they may fill `max_bytes`.
    pub specs: Vec<ReadSpec>,
    /// Up to where the reader sees.
    pub isolation: Isolation,
    /// Most bytes of all of them.
    pub max_bytes: usize,
    /// Most memory that the batches may keep alive.
    pub memory_max: usize,
    /// With how much memory the first batch is given even above `max_bytes`.
    pub first_batch_max: usize,
    /// Park on every partition when fewer bytes than this were found and nothing is urgent.
    pub park_below: usize,
    /// Who is to be woken.
    pub fetch: ParkedFetch,
    /// Who sent it, and when.
    pub from: ShardId,
    /// Its stations so far.
    pub visit: Visit,
    /// Whether it is to be told how long the thread was at it.
    pub is_timed: bool,
    /// One answer a partition, in their order.
    pub reply: ReplySender<(Vec<PartitionRead>, Visit)>,
}

/// The partitions of one ListOffsets request that one shard owns.
#[derive(Debug)]
pub struct OffsetsMessage {
    /// Partition, query and the leader epoch that the client knows.
    pub queries: Vec<(TopicPartition, OffsetQuery, LeaderEpoch)>,
    /// `None` for a debugging reader.
    pub isolation: Option<Isolation>,
    /// One answer a query, in their order.
    pub reply: ReplySender<Vec<Result<Option<TimestampedOffset>, PartitionError>>>,
}

/// What OffsetForLeaderEpoch answers for one partition.
pub type EpochEnd = Result<Option<(LeaderEpoch, Offset)>, PartitionError>;

/// The partitions of one OffsetForLeaderEpoch request that one shard owns.
#[derive(Debug)]
pub struct EpochEndsMessage {
    /// Partition, the leader epoch that the client knows, the epoch that it asks for.
    pub queries: Vec<(TopicPartition, LeaderEpoch, LeaderEpoch)>,
    /// One answer a query, in their order.
    pub reply: ReplySender<Vec<EpochEnd>>,
}

/// What a partition knows of its producers.
pub type KnownProducers = Result<Vec<KnownProducer>, PartitionError>;

/// The partitions of one DescribeProducers request that one shard owns.
#[derive(Debug)]
pub struct ProducersMessage {
    /// Which.
    pub partitions: Vec<TopicPartition>,
    /// One answer a partition, in their order.
    pub reply: ReplySender<Vec<KnownProducers>>,
}

/// The partitions of one DeleteRecords request that one shard owns.
#[derive(Debug)]
pub struct DeleteRecordsMessage {
    /// Each partition once, with the offset that is to be its first, or -1.
    pub deletions: Vec<(TopicPartition, Offset)>,
    /// Where each starts now, in their order.
    pub reply: ReplySender<Vec<Result<Offset, PartitionError>>>,
}

/// The logs of one DescribeLogDirs request that one shard owns.
#[derive(Debug)]
pub struct LogSizesMessage {
    /// Which; `None` for all.
    pub partitions: Option<Vec<TopicPartition>>,
    /// What the shard has of every directory that opened.
    pub reply: ReplySender<Vec<DirectorySizes>>,
}

/// What a shard tells of its logs in one directory.
#[derive(Debug, Default)]
pub struct DirectorySizes {
    /// The directory.
    pub path: PathBuf,
    /// Whether it is offline.
    pub is_offline: bool,
    /// Those that are hosted, in no order.
    pub sizes: Vec<LogSize>,
}

/// The size of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSize {
    /// The partition.
    pub id: TopicPartition,
    /// Bytes of its segments.
    pub bytes: u64,
    /// Of a copy that is on its way into the directory: how many offsets it is behind.
    pub future_lag: Option<i64>,
}

/// Where a fetch is parked on one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParkedAt {
    /// The partition.
    pub partition: TopicPartition,
    /// Its place within the fetch.
    pub place: u32,
    /// The end that is to be passed.
    pub known_end: Offset,
}

/// Ends the waiting of one fetch on one shard.
#[derive(Debug)]
pub struct UnparkMessage {
    /// The fetch.
    pub fetch: ParkedFetch,
    /// What it sees.
    pub isolation: Isolation,
    /// Where it is parked.
    pub places: Vec<ParkedAt>,
}

/// Places of one fetch whose partitions have moved.
#[derive(Debug)]
pub struct WakeMessage {
    /// The fetch's number on its shard.
    pub number: u64,
    /// The partition's place within the fetch.
    pub place: u32,
    /// When it had moved.
    pub sent_at: MonotonicNs,
}

impl fmt::Debug for ShardMessage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Append(_) => "Append",
            Self::Read(_) => "Read",
            Self::ListOffsets(_) => "ListOffsets",
            Self::EpochEnds(_) => "EpochEnds",
            Self::Producers(_) => "Producers",
            Self::DeleteRecords(_) => "DeleteRecords",
            Self::LogSizes(_) => "LogSizes",
            Self::Unpark(_) => "Unpark",
            Self::Wake(_) => "Wake",
            Self::Run(_) => "Run",
        })
    }
}
