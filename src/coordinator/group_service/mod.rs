//! The coordinators of one shard: one over each partition of `__consumer_offsets` that the shard
//! owns.
//!
//! ```text
//! host ─▶ Loading ─▶ Active ─▶ released
//!            └─▶ Failed (the log cannot be read: not the coordinator)
//! ```
//!
//! A coordinator's records take the path of every append, as if a client had sent them with acks
//! of all; what waits for them is answered when they are durable on the in-sync replicas.

mod hosted;
mod loading;
mod watching;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::group::{
    FETCHED_BYTES_MAX, FETCHED_BYTES_MIN, GroupConfig, GroupCounts, GroupMemory, NamedTopic,
    Operation, Response,
};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{TopicId, TopicPartition};
use crate::io::reply::ReplySender;
use crate::shard::Shard;
use crate::wire::compression::Codec;
use hosted::Hosted;
pub use watching::GroupsReport;

/// What a coordinator says: an answer, or why there is none.
pub type GroupAnswer = Result<Response, ErrorCode>;

/// How coordinators work.
#[derive(Clone, Debug)]
pub struct GroupServiceOptions {
    /// The settings of groups and offsets.
    pub groups: GroupConfig,
    /// What all groups of the shard may take.
    pub memory: GroupMemory,
    /// `offsets.commit.timeout.ms`: how long records may wait for room in the log.
    pub commit_timeout: Duration,
    /// `offsets.load.buffer.size`: read at a time while a partition is loaded.
    pub load_bytes: usize,
    /// `offsets.topic.compression.codec`.
    pub codec: Codec,
    /// Whether the topic of this name is the one of this id now; with no id, whether there is one.
    pub has_topic: fn(&Rc<Shard>, &str, TopicId) -> bool,
}

/// The coordinators of one shard.
#[derive(Debug)]
pub struct GroupService {
    options: Rc<GroupServiceOptions>,
    hosted: RefCell<BTreeMap<TopicPartition, Rc<Hosted>>>,
}

impl GroupService {
    /// Without a partition.
    #[must_use]
    pub fn new(options: GroupServiceOptions) -> Self {
        Self {
            options: Rc::new(options),
            hosted: RefCell::default(),
        }
    }

    /// Loads a partition that the shard has begun to host.
    pub fn host(&self, shard: &Rc<Shard>, id: TopicPartition) {
        let hosted = Hosted::load(shard, id, &self.options);
        if let Some(before) = self.hosted.borrow_mut().insert(id, hosted) {
            before.release();
        }
    }

    /// Gives a partition up; whoever waits for an answer hears that this is not the coordinator.
    pub fn release(&self, id: TopicPartition) {
        let hosted = self.hosted.borrow_mut().remove(&id);
        if let Some(hosted) = hosted {
            hosted.release();
        }
    }

    /// Gives all up.
    pub fn release_all(&self) {
        for (_, hosted) in self.hosted.take() {
            hosted.release();
        }
    }

    /// Takes an operation on groups of one partition.
    pub fn ask(&self, id: TopicPartition, operation: Operation, reply: ReplySender<GroupAnswer>) {
        let hosted = self.hosted.borrow().get(&id).cloned();
        match hosted {
            Some(hosted) => hosted.ask(operation, reply),
            None => reply.send(Err(ErrorCode::NOT_COORDINATOR)),
        }
    }

    /// Topics are gone: so are the offsets for them.
    pub fn forget_topics(&self, topics: &[NamedTopic]) {
        let hosted: Vec<Rc<Hosted>> = self.hosted.borrow().values().cloned().collect();
        for hosted in hosted {
            hosted.forget_topics(topics);
        }
    }

    /// How much one answer may tell of offsets: as much as the groups of so many shards may have,
    /// within limits.
    #[must_use]
    pub fn fetched_bytes_max(&self, shards: usize) -> usize {
        let groups = self.options.memory.bytes_max().saturating_mul(shards);
        groups.clamp(FETCHED_BYTES_MIN, FETCHED_BYTES_MAX)
    }

    /// The partitions that are hosted.
    #[must_use]
    pub fn partitions(&self) -> Vec<TopicPartition> {
        self.hosted.borrow().keys().copied().collect()
    }

    /// How many groups and offsets the shard has.
    #[must_use]
    pub fn counts(&self) -> GroupCounts {
        let mut all = GroupCounts::default();
        for counts in self.hosted.borrow().values().filter_map(|one| one.counts()) {
            all.merge(&counts);
        }
        all
    }
}
