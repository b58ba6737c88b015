//! One session: its partitions in order, and what the client was last told of each.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::base::error_code::ErrorCode;
use crate::base::ids::{LeaderEpoch, Offset, PartitionIndex, TopicId};
use crate::base::time::MonotonicNs;

/// A topic as the request names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicKey {
    /// By name, up to version 12.
    Name(Rc<str>),
    /// By id, from version 13.
    Id(TopicId),
}

/// One partition that a client fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchTarget {
    /// The topic as named.
    pub topic: TopicKey,
    /// The partition.
    pub partition: PartitionIndex,
    /// First offset wanted.
    pub fetch_offset: Offset,
    /// The leader epoch that the client knows, -1 for none (KIP-320).
    pub current_leader_epoch: LeaderEpoch,
    /// Epoch of the last record fetched, -1 for none (KIP-595).
    pub last_fetched_epoch: LeaderEpoch,
    /// Most bytes of this partition.
    pub max_bytes: i32,
}

/// What a response says of one partition, as far as sessions care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionSummary {
    /// The partition's error.
    pub error: ErrorCode,
    /// High watermark answered.
    pub high_watermark: Offset,
    /// Log start offset answered.
    pub log_start_offset: Offset,
    /// Bytes of records.
    pub bytes: usize,
    /// Whether the answer names a diverging epoch.
    pub diverging: bool,
}

#[derive(Debug)]
struct Cached {
    target: FetchTarget,
    high_watermark: Offset,
    log_start_offset: Offset,
}

/// One client's partitions.
#[derive(Debug)]
pub struct Session {
    pub(super) epoch: i32,
    pub(super) uses_topic_ids: bool,
    pub(super) created_at: MonotonicNs,
    pub(super) last_used_at: MonotonicNs,
    by_place: BTreeMap<u64, Cached>,
    places: HashMap<(TopicKey, PartitionIndex), u64>,
    next_place: u64,
}

impl Session {
    pub(super) fn new(uses_topic_ids: bool, now: MonotonicNs) -> Self {
        Self {
            epoch: super::next_epoch(super::INITIAL_EPOCH),
            uses_topic_ids,
            created_at: now,
            last_used_at: now,
            by_place: BTreeMap::new(),
            places: HashMap::new(),
            next_place: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Adds a partition at the end, or changes what is asked of a known one in place.
    pub(super) fn name(&mut self, target: &FetchTarget) {
        let key = (target.topic.clone(), target.partition);
        let known = self.places.get(&key).copied();
        if let Some(cached) = known.and_then(|place| self.by_place.get_mut(&place)) {
            cached.target = target.clone();
            return;
        }
        let place = self.take_place();
        self.places.insert(key, place);
        let cached = Cached {
            target: target.clone(),
            // Nothing has been told yet, so that the first answer is one.
            high_watermark: Offset(-1),
            log_start_offset: Offset(-1),
        };
        self.by_place.insert(place, cached);
    }

    pub(super) fn forget(&mut self, topic: &TopicKey, partition: PartitionIndex) {
        if let Some(place) = self.places.remove(&(topic.clone(), partition)) {
            self.by_place.remove(&place);
        }
    }

    pub(super) fn targets(&self) -> Vec<FetchTarget> {
        let cached = self.by_place.values();
        cached.map(|cached| cached.target.clone()).collect()
    }

    /// Whether the client must hear of this partition, given what it was told before; remembers
    /// what it is told now (`CachedPartition.maybeUpdateResponseData`).
    pub(super) fn settle(&mut self, target: &FetchTarget, summary: &PartitionSummary) -> bool {
        let key = (target.topic.clone(), target.partition);
        let Some(place) = self.places.get(&key).copied() else {
            return false;
        };
        let Some(cached) = self.by_place.get_mut(&place) else {
            return false;
        };
        let mut tell = summary.bytes > 0 || summary.diverging;
        tell |= cached.high_watermark != summary.high_watermark;
        tell |= cached.log_start_offset != summary.log_start_offset;
        cached.high_watermark = summary.high_watermark;
        cached.log_start_offset = summary.log_start_offset;
        if !summary.error.is_none() {
            // The mark is spoilt, so that the partition is sent again once the error is gone.
            cached.high_watermark = Offset(-1);
            tell = true;
        }
        if summary.bytes > 0 {
            self.move_to_end(key, place);
        }
        tell
    }

    fn move_to_end(&mut self, key: (TopicKey, PartitionIndex), place: u64) {
        if let Some(cached) = self.by_place.remove(&place) {
            let last = self.take_place();
            self.by_place.insert(last, cached);
            self.places.insert(key, last);
        }
    }

    fn take_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }
}
