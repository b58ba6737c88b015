//! What all groups of a shard tell to those who watch them.

use std::rc::Rc;

use super::GroupService;
use super::hosted::Hosted;
use crate::coordinator::group::{GroupCounts, GroupReport};
use crate::io;

/// Groups that one look goes through before the shard's other tasks have their turn.
const GROUPS_PER_TURN: usize = 32;
/// Offsets of one shard that are told one by one, and groups: what is told is copied, and charged
/// to nobody.
pub const OFFSETS_TOLD_MAX: usize = 20_000;
/// See [`OFFSETS_TOLD_MAX`].
pub const GROUPS_TOLD_MAX: usize = 5_000;

/// The groups of one shard.
#[derive(Clone, Debug, Default)]
pub struct GroupsReport {
    /// How many there are.
    pub counts: GroupCounts,
    /// They themselves, by partition of `__consumer_offsets`, then by name.
    pub groups: Vec<GroupReport>,
    /// Groups that are not among them, since there are too many.
    pub groups_left_out: usize,
    /// Offsets that are not among theirs, likewise.
    pub offsets_left_out: usize,
}

impl GroupService {
    /// Looks at all groups, a few in each turn.
    pub async fn report(&self) -> GroupsReport {
        let hosted: Vec<Rc<Hosted>> = self.hosted.borrow().values().cloned().collect();
        let mut report = GroupsReport {
            counts: self.counts(),
            ..GroupsReport::default()
        };
        let mut offsets = 0;
        for one in hosted {
            let mut from = None;
            loop {
                let some = one.report(from.as_ref(), GROUPS_PER_TURN);
                let is_last = some.len() < GROUPS_PER_TURN;
                from = some.last().map(|group| group.group_id.clone());
                for group in some {
                    report.take(group, &mut offsets);
                }
                if is_last {
                    break;
                }
                io::yield_now().await;
            }
            io::yield_now().await;
        }
        report
    }
}

impl GroupsReport {
    /// Adds a group as far as there is room.
    fn take(&mut self, mut group: GroupReport, offsets: &mut usize) {
        if *offsets + group.offsets_len > OFFSETS_TOLD_MAX {
            self.offsets_left_out += group.offsets_len;
            (group.offsets, group.offsets_len) = (Vec::new(), 0);
        }
        if self.groups.len() >= GROUPS_TOLD_MAX {
            self.groups_left_out += 1;
            self.offsets_left_out += group.offsets_len;
            return;
        }
        *offsets += group.offsets_len;
        self.groups.push(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{Offset, PartitionIndex};
    use crate::coordinator::group::GroupState;

    fn group(offsets: usize) -> GroupReport {
        let one = |number| (PartitionIndex(number), Offset(7));
        GroupReport {
            group_id: "g".into(),
            state: GroupState::Empty,
            members: 0,
            rebalances: 0,
            offsets: vec![("t".to_owned(), (0..offsets as i32).map(one).collect())],
            offsets_len: offsets,
        }
    }

    #[test]
    fn as_many_offsets_and_groups_are_told_as_may_be() {
        let (mut report, mut offsets) = (GroupsReport::default(), 0);
        report.take(group(OFFSETS_TOLD_MAX - 1), &mut offsets);
        report.take(group(2), &mut offsets);
        report.take(group(1), &mut offsets);
        let told: Vec<usize> = report.groups.iter().map(|one| one.offsets_len).collect();
        assert_eq!(told, [OFFSETS_TOLD_MAX - 1, 0, 1]);
        assert_eq!((report.groups_left_out, report.offsets_left_out), (0, 2));
        for _ in 0..GROUPS_TOLD_MAX {
            report.take(group(0), &mut offsets);
        }
        assert_eq!(report.groups.len(), GROUPS_TOLD_MAX);
        assert_eq!((report.groups_left_out, report.offsets_left_out), (3, 2));
    }
}
