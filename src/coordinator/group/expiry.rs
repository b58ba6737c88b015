//! Offsets that nobody has used for long, and groups that have nothing left (KIP-211).

use std::ops::Bound;

use super::config::{EXPIRY_GROUPS_MAX, EXPIRY_PAUSE};
use super::coordinator::GroupCoordinator;
use super::core::{AfterWrite, Now};
use super::ids::GroupId;
use super::record::{CommittedOffset, Record};
use super::roster::Group;
use super::state::GroupState;
use super::timers::Timer;
use crate::base::time::TimestampMs;

/// From when on a group's offsets age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    /// They do not: they are in use, or cannot be told from those in use.
    Never,
    /// From their commit.
    SinceCommit,
    /// From when the group became empty.
    Since(TimestampMs),
}

impl Group {
    fn age_of_offsets(&self) -> Age {
        match (&self.protocol_type, self.state) {
            (None, _) => Age::SinceCommit,
            (Some(_), GroupState::Empty) => self.state_since.map_or(Age::SinceCommit, Age::Since),
            (Some(_), GroupState::Stable)
                if self.is_of_consumers() && self.subscribed.is_some() =>
            {
                Age::SinceCommit
            }
            _ => Age::Never,
        }
    }
}

impl GroupCoordinator {
    /// Goes through some groups; the next look follows soon where there are more.
    pub(super) fn on_expiry_timer(&mut self, now: Now) {
        let from = match self.expiry_cursor.take() {
            Some(last) => Bound::Excluded(last),
            None => Bound::Unbounded,
        };
        let groups = self.groups.range::<GroupId, _>((from, Bound::Unbounded));
        let groups: Vec<GroupId> = groups
            .take(EXPIRY_GROUPS_MAX)
            .map(|(id, _)| id.clone())
            .collect();
        for group_id in &groups {
            self.expire_offsets(now, group_id);
        }
        let delay = match groups.len() < EXPIRY_GROUPS_MAX {
            true => self.core.config.retention_check_interval,
            false => {
                self.expiry_cursor = groups.last().cloned();
                EXPIRY_PAUSE
            }
        };
        self.core
            .timers
            .schedule(Timer::Expiry, now.monotonic, delay);
    }

    fn expire_offsets(&mut self, now: Now, group_id: &GroupId) {
        let Some(group) = self.groups.get(group_id) else {
            return;
        };
        let (mut records, is_all) = self.expired(now, group);
        let mut removed = Vec::new();
        if is_all && group.is_empty() && group.pending_len() == 0 {
            records.push(group.tombstone());
            removed.extend(self.take_group(group_id));
        }
        if !records.is_empty() {
            let after = AfterWrite::DeleteGroups {
                answer: None,
                removed,
            };
            self.write_in_parts(records, after);
        }
    }

    /// Tombstones for what has expired, and whether nothing else is left.
    fn expired(&self, now: Now, group: &Group) -> (Vec<Record>, bool) {
        let mut records = Vec::new();
        let Some(of_group) = self.offsets.of_group(&group.id) else {
            return (records, true);
        };
        let age = group.age_of_offsets();
        let mut is_all = true;
        for (topic, known) in of_group {
            let is_used = age == Age::Never || group.is_subscribed(topic);
            for (index, entry) in known {
                let Some(offset) = entry.latest() else {
                    continue;
                };
                if is_used || !self.has_expired(now, age, offset) {
                    is_all = false;
                    continue;
                }
                records.push(Record::Offset {
                    group_id: group.id.clone(),
                    topic: topic.clone(),
                    partition: *index,
                    value: None,
                });
            }
        }
        (records, is_all)
    }

    fn has_expired(&self, now: Now, age: Age, offset: &CommittedOffset) -> bool {
        if offset.expires_at != TimestampMs::NONE {
            return now.wall >= offset.expires_at;
        }
        let since = match age {
            Age::Never => return false,
            Age::SinceCommit => offset.committed_at,
            Age::Since(since) => since,
        };
        let retention = self.core.config.offsets_retention.as_millis();
        let age = now.wall.0.saturating_sub(since.0);
        u128::try_from(age).is_ok_and(|age| age >= retention)
    }
}
