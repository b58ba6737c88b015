//! What groups tell of themselves to those who watch them.

use std::ops::Bound;

use super::coordinator::GroupCoordinator;
use super::ids::GroupId;
use super::roster::Group;
use super::state::GroupState;
use crate::base::ids::{Offset, PartitionIndex};

/// A topic's committed offsets.
pub type TopicOffsetsReport = (String, Vec<(PartitionIndex, Offset)>);

/// One group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupReport {
    /// Its name.
    pub group_id: GroupId,
    /// Where it stands.
    pub state: GroupState,
    /// How many members it has.
    pub members: usize,
    /// Rebalances that it has completed since it was loaded.
    pub rebalances: u64,
    /// Its offsets by topic, as they are stored.
    pub offsets: Vec<TopicOffsetsReport>,
    /// How many of those there are.
    pub offsets_len: usize,
}

impl GroupCoordinator {
    /// Some groups in their order, those after `from`: `groups_max` at most.
    #[must_use]
    pub fn report(&self, from: Option<&GroupId>, groups_max: usize) -> Vec<GroupReport> {
        let from = from.map_or(Bound::Unbounded, Bound::Excluded);
        let groups = self.groups.range::<GroupId, _>((from, Bound::Unbounded));
        let groups = groups.take(groups_max);
        groups.map(|(_, group)| self.report_of(group)).collect()
    }

    fn report_of(&self, group: &Group) -> GroupReport {
        let of_group = self.offsets.of_group(&group.id).into_iter().flatten();
        let of_topic = of_group.map(|(topic, known)| {
            let stored = known.iter();
            let stored = stored.filter_map(|(index, entry)| {
                let committed = entry.committed()?;
                Some((*index, committed.offset))
            });
            (topic.clone(), stored.collect::<Vec<_>>())
        });
        let offsets: Vec<TopicOffsetsReport> =
            of_topic.filter(|(_, stored)| !stored.is_empty()).collect();
        GroupReport {
            group_id: group.id.clone(),
            state: group.state,
            members: group.members.len(),
            rebalances: group.rebalances,
            offsets_len: offsets.iter().map(|(_, stored)| stored.len()).sum(),
            offsets,
        }
    }
}
