//! Committed offsets, with the commits and deletions that are on their way to the log.

use std::collections::{BTreeMap, VecDeque};

use super::core::WriteId;
use super::ids::GroupId;
use super::memory::{Charge, OFFSET_BYTES};
use super::record::CommittedOffset;
use crate::base::ids::PartitionIndex;

/// A partition's offset: as it is stored, and as it will be.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OffsetEntry {
    committed: Option<CommittedOffset>,
    /// By the order of their writes.
    pending: VecDeque<(WriteId, Option<CommittedOffset>)>,
    /// Of all values: one request may set one offset thousands of times.
    bytes: usize,
}

impl OffsetEntry {
    /// What is stored.
    pub fn committed(&self) -> Option<&CommittedOffset> {
        self.committed.as_ref()
    }

    /// What will be stored when all writes are.
    pub fn latest(&self) -> Option<&CommittedOffset> {
        match self.pending.back() {
            Some((_, value)) => value.as_ref(),
            None => self.committed.as_ref(),
        }
    }

    /// What is stored, and what is on its way.
    pub fn values(&self) -> impl Iterator<Item = &CommittedOffset> {
        let pending = self.pending.iter().filter_map(|(_, value)| value.as_ref());
        self.committed.iter().chain(pending)
    }

    /// Memory that is charged for it.
    pub fn bytes(&self) -> usize {
        self.bytes.max(OFFSET_BYTES)
    }

    fn is_void(&self) -> bool {
        self.committed.is_none() && self.pending.is_empty()
    }

    fn push(&mut self, write: WriteId, value: Option<CommittedOffset>) {
        self.bytes += bytes_of(value.as_ref());
        self.pending.push_back((write, value));
    }

    fn set(&mut self, value: Option<CommittedOffset>) {
        self.bytes += bytes_of(value.as_ref());
        self.bytes -= bytes_of(self.committed.as_ref());
        self.committed = value;
    }

    /// `write` is in the log, and those before it, or they are not at all.
    fn store(&mut self, write: WriteId) {
        let upto = self.pending.partition_point(|one| one.0 <= write);
        let mut last = None;
        for (of, value) in self.pending.drain(..upto) {
            self.bytes -= bytes_of(value.as_ref());
            last = Some((of, value));
        }
        if let Some((of, value)) = last
            && of == write
        {
            self.set(value);
        }
    }

    fn give_up(&mut self, write: WriteId) {
        let from = self.pending.partition_point(|one| one.0 < write);
        let upto = self.pending.partition_point(|one| one.0 <= write);
        for (_, value) in self.pending.drain(from..upto) {
            self.bytes -= bytes_of(value.as_ref());
        }
    }

    fn forget(&mut self) {
        self.committed = None;
        for (_, value) in &mut self.pending {
            *value = None;
        }
        self.bytes = 0;
    }
}

fn bytes_of(value: Option<&CommittedOffset>) -> usize {
    value.map_or(0, |value| OFFSET_BYTES + value.metadata.len())
}

/// Which offset.
type Key<'a> = (&'a GroupId, &'a str, PartitionIndex);

/// One topic's offsets.
pub type TopicOffsets = BTreeMap<PartitionIndex, OffsetEntry>;
/// One group's offsets by topic.
pub type GroupOffsets = BTreeMap<String, TopicOffsets>;

/// The offsets of all groups. Nothing stands here that has neither a value nor one on its way.
#[derive(Debug, Default)]
pub struct Offsets {
    groups: BTreeMap<GroupId, GroupOffsets>,
    len: usize,
}

impl Offsets {
    /// One group's.
    pub fn of_group(&self, group_id: &str) -> Option<&GroupOffsets> {
        self.groups.get(group_id)
    }

    /// All groups'.
    pub fn groups(&self) -> impl Iterator<Item = (&GroupId, &GroupOffsets)> {
        self.groups.iter()
    }

    /// How many there are, those on their way included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// One partition's.
    pub fn get(&self, group_id: &str, topic: &str, index: PartitionIndex) -> Option<&OffsetEntry> {
        self.groups.get(group_id)?.get(topic)?.get(&index)
    }

    /// `write` will set an offset, or delete it.
    pub fn begin(
        &mut self,
        charge: &mut Charge,
        key: Key<'_>,
        (write, value): (WriteId, Option<CommittedOffset>),
    ) {
        self.change(charge, key, |entry| entry.push(write, value));
    }

    /// `write` is committed, or has failed.
    pub fn settle(
        &mut self,
        charge: &mut Charge,
        key: Key<'_>,
        (write, is_committed): (WriteId, bool),
    ) {
        self.change(charge, key, |entry| match is_committed {
            true => entry.store(write),
            false => entry.give_up(write),
        });
    }

    /// An offset as the log has it.
    pub fn replay(&mut self, charge: &mut Charge, key: Key<'_>, value: Option<CommittedOffset>) {
        self.change(charge, key, |entry| entry.set(value));
    }

    /// Nobody is told an offset from now on, whatever comes of the writes under way.
    pub fn forget(&mut self, charge: &mut Charge, key: Key<'_>) {
        self.change(charge, key, OffsetEntry::forget);
    }

    fn change(
        &mut self,
        charge: &mut Charge,
        (group_id, topic, index): Key<'_>,
        change: impl FnOnce(&mut OffsetEntry),
    ) {
        let entry = self
            .groups
            .get_mut(group_id)
            .and_then(|topics| topics.get_mut(topic))
            .and_then(|partitions| partitions.get_mut(&index));
        if let Some(entry) = entry {
            charge.give_back(entry.bytes());
            change(entry);
            if !entry.is_void() {
                charge.add(entry.bytes());
            } else {
                self.remove(group_id, topic, index);
            }
            return;
        }
        let mut entry = OffsetEntry::default();
        change(&mut entry);
        if !entry.is_void() {
            charge.add(entry.bytes());
            let topics = self.groups.entry(group_id.clone()).or_default();
            let partitions = topics.entry(topic.to_owned()).or_default();
            partitions.insert(index, entry);
            self.len += 1;
        }
    }

    fn remove(&mut self, group_id: &GroupId, topic: &str, index: PartitionIndex) {
        let Some(topics) = self.groups.get_mut(group_id) else {
            return;
        };
        if let Some(partitions) = topics.get_mut(topic) {
            self.len -= usize::from(partitions.remove(&index).is_some());
            if partitions.is_empty() {
                topics.remove(topic);
            }
        }
        if topics.is_empty() {
            self.groups.remove(group_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{LeaderEpoch, Offset, TopicId};
    use crate::base::random::Random;
    use crate::base::time::TimestampMs;

    fn value(metadata: usize) -> Option<CommittedOffset> {
        Some(CommittedOffset {
            offset: Offset(1),
            leader_epoch: LeaderEpoch(1),
            metadata: "m".repeat(metadata),
            committed_at: TimestampMs(1),
            expires_at: TimestampMs::NONE,
            topic_id: TopicId::ZERO,
        })
    }

    /// What an entry says that it takes is what its values take, whatever has come of them.
    #[test]
    fn bytes_are_those_of_all_values() {
        let mut random = Random::new(7);
        let mut entry = OffsetEntry::default();
        let mut last = 0_u64;
        for _ in 0..20_000 {
            let metadata = random.below(40) as usize;
            let write = WriteId(last.saturating_sub(random.below(6)));
            match random.below(9) {
                0..=3 => {
                    last += random.below(2);
                    entry.push(WriteId(last), value(metadata).filter(|_| metadata > 9));
                }
                4..=5 => entry.store(write),
                6 => entry.give_up(write),
                7 => entry.set(value(metadata).filter(|_| metadata > 9)),
                _ if metadata == 0 => entry.forget(),
                _ => {}
            }
            let each = entry.values().map(|one| OFFSET_BYTES + one.metadata.len());
            assert_eq!(entry.bytes, each.sum::<usize>());
        }
    }
}
