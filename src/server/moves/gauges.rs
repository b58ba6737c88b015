//! Where the moves of a shard stand.

use super::Moves;
use crate::base::ids::TopicPartition;
use crate::server::node::Node;

/// Where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveGauges {
    /// Partitions on their way.
    pub moving: usize,
    /// Offsets that the copy furthest behind lacks.
    pub lag_max: i64,
    /// Partitions whose last move was given up for a failure.
    pub failed: usize,
}

impl Moves {
    /// A move ends for a failure; the next one of the partition makes up for it.
    pub(super) fn count_failed(&self, id: TopicPartition) {
        self.failed.borrow_mut().insert(id);
    }

    /// Where they stand; those of deleted topics count no more.
    #[must_use]
    pub fn gauges(&self, node: &Node) -> MoveGauges {
        let mut failed = self.failed.borrow_mut();
        if !failed.is_empty() {
            let image = node.image_ref();
            failed.retain(|id| image.topics().partition(*id).is_some());
        }
        let all = self.all.borrow();
        let lags = all
            .values()
            .map(|one| one.partition.future_lag(&one.future));
        MoveGauges {
            moving: all.len(),
            lag_max: lags.max().unwrap_or(0),
            failed: failed.len(),
        }
    }
}
