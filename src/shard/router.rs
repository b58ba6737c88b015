//! Which shard owns a partition. A table, replaced whole when metadata changes.

use std::collections::{HashMap, HashSet};

use crate::base::ids::{ShardId, TopicPartition};

/// The owners of all partitions that this broker hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Router {
    owners: HashMap<TopicPartition, ShardId>,
    offline: HashSet<TopicPartition>,
}

impl Router {
    /// The owner of `partition`; `None` when this broker does not host it.
    #[must_use]
    pub fn owner(&self, partition: TopicPartition) -> Option<ShardId> {
        self.owners.get(&partition).copied()
    }

    /// Routes to `partition` no more: its log does not open.
    pub fn take_offline(&mut self, partition: TopicPartition) {
        self.owners.remove(&partition);
        self.offline.insert(partition);
    }

    /// Whether the log of `partition` belongs here and does not open (`HostedPartition.Offline`).
    #[must_use]
    pub fn is_offline(&self, partition: TopicPartition) -> bool {
        self.offline.contains(&partition)
    }

    /// Partitions whose logs do not open.
    #[must_use]
    pub fn offline_len(&self) -> usize {
        self.offline.len()
    }

    /// Partitions in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether this broker hosts nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// All partitions with their owners, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (TopicPartition, ShardId)> + '_ {
        self.owners.iter().map(|(key, owner)| (*key, *owner))
    }
}

/// Deals partitions out to shards: a new one goes to the shard with the fewest, the lowest number
/// first among equals. The table lives as long as the process; the next start deals out anew.
#[derive(Clone, Debug)]
pub struct Placement {
    router: Router,
    counts: Vec<usize>,
}

impl Placement {
    /// No partitions on `shards` shards (at least one).
    #[must_use]
    pub fn new(shards: u16) -> Self {
        Self {
            router: Router::default(),
            counts: vec![0; usize::from(shards.max(1))],
        }
    }

    /// The shard of `partition`, chosen now if it has none yet.
    pub fn place(&mut self, partition: TopicPartition) -> ShardId {
        if let Some(owner) = self.router.owner(partition) {
            return owner;
        }
        let fewest = self
            .counts
            .iter_mut()
            .enumerate()
            .min_by_key(|(shard, count)| (**count, *shard));
        let Some((shard, count)) = fewest else {
            return ShardId(0);
        };
        *count += 1;
        let owner = ShardId(u16::try_from(shard).unwrap_or(0));
        self.router.owners.insert(partition, owner);
        owner
    }

    /// Forgets `partition`; answers its owner if it had one.
    pub fn remove(&mut self, partition: TopicPartition) -> Option<ShardId> {
        let owner = self.router.owners.remove(&partition)?;
        if let Some(count) = self.counts.get_mut(usize::from(owner.0)) {
            *count = count.saturating_sub(1);
        }
        Some(owner)
    }

    /// The table as it stands.
    #[must_use]
    pub fn router(&self) -> &Router {
        &self.router
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{PartitionIndex, Uuid};
    use crate::base::random::Random;

    fn partition(number: i32) -> TopicPartition {
        TopicPartition {
            topic_id: Uuid([7; 16]),
            partition: PartitionIndex(number),
        }
    }

    #[test]
    fn a_new_partition_goes_to_the_shard_with_the_fewest() {
        let mut placement = Placement::new(3);
        let owners: Vec<_> = (0..6)
            .map(|number| placement.place(partition(number)).0)
            .collect();
        assert_eq!(owners, [0, 1, 2, 0, 1, 2]);
        assert_eq!(placement.place(partition(4)), ShardId(1), "placed once");
        placement.remove(partition(2));
        assert_eq!(placement.place(partition(9)), ShardId(2));
        assert_eq!(placement.router().owner(partition(2)), None);
        let mut router = placement.router().clone();
        router.take_offline(partition(1));
        assert!(router.is_offline(partition(1)) && !router.is_offline(partition(0)));
        assert_eq!(router.owner(partition(1)), None);
    }

    #[test]
    fn counts_differ_by_at_most_one_while_nothing_is_removed() {
        let mut random = Random::new(3);
        let mut placement = Placement::new(4);
        for _ in 0..500 {
            placement.place(partition(random.below(1_000) as i32));
        }
        let most = placement.counts.iter().max();
        let least = placement.counts.iter().min();
        assert!(
            most.zip(least)
                .is_some_and(|(most, least)| most - least <= 1)
        );
        assert_eq!(
            placement.counts.iter().sum::<usize>(),
            placement.router.len()
        );
    }
}
