//! Loading: the state out of the records.

use super::coordinator::GroupCoordinator;
use super::core::{Core, Now};
use super::ids::GroupId;
use super::member::Member;
use super::record::{GroupValue, Record};
use super::roster::Group;
use super::state::GroupState;
use super::timers::Timer;
use crate::base::time::TimestampMs;

impl GroupCoordinator {
    /// Takes a record that is in the log. Nobody is answered, no deadline set.
    pub fn replay(&mut self, record: Record) {
        match record {
            Record::Group { group_id, value } => {
                self.take_group(&group_id);
                if let Some(value) = value {
                    let group = Group::stored(&mut self.core, group_id.clone(), value);
                    self.groups.insert(group_id, group);
                }
            }
            Record::Offset {
                group_id,
                topic,
                partition,
                value,
            } => {
                if value.is_some() && !self.groups.contains_key(&group_id) {
                    // Its age counts from its commits: it never had a member.
                    self.insert_group(Group::new(group_id.clone(), TimestampMs::NONE));
                }
                let key = (&group_id, topic.as_str(), partition);
                self.offsets.replay(&mut self.core.charge, key, value);
            }
        }
    }

    /// All records are replayed: from here on time counts.
    pub fn loaded(&mut self, now: Now) -> super::core::Effects {
        let delay = self.core.config.retention_check_interval;
        self.core
            .timers
            .schedule(Timer::Expiry, now.monotonic, delay);
        let members_max = self.core.config.members_max;
        for group in self.groups.values_mut() {
            for member_id in group.members.keys() {
                group.restart_session(&mut self.core, now, member_id);
            }
            if group.members.len() > members_max {
                group.prepare_rebalance(&mut self.core, now);
            }
        }
        self.take_effects()
    }
}

impl Group {
    /// A group is stored when it is stable or empty.
    fn stored(core: &mut Core, id: GroupId, value: GroupValue) -> Self {
        let mut group = Self::new(id, value.state_since);
        if value.state_since == TimestampMs::NONE {
            group.state_since = None;
        }
        group.generation_id = value.generation_id;
        group.protocol_name.clone_from(&value.protocol);
        group.protocol_type = Some(value.protocol_type).filter(|name| !name.is_empty());
        group.leader = value.leader;
        // Its members are charged one by one.
        core.charge.add(group.own_bytes());
        if !value.members.is_empty() {
            group.state = GroupState::Stable;
        }
        let protocol_type = group.protocol_type.clone().unwrap_or_default();
        for member in value.members {
            let member = Member::stored(member, value.protocol.as_deref());
            group.add(core, member, &protocol_type);
        }
        group.subscribed = group.compute_subscribed();
        group
    }
}
