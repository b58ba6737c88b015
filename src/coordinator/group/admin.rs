//! DescribeGroups, ListGroups and DeleteGroups.

use super::coordinator::GroupCoordinator;
use super::core::{AfterWrite, Ticket};
use super::ids::GroupId;
use super::operation::ListGroups;
use super::record::Record;
use super::response::{DescribedGroup, ListedGroup, Response};
use super::roster::Group;
use super::state::GroupState;
use crate::base::error_code::ErrorCode;

/// The type of groups of this protocol, in lower case.
const CLASSIC: &str = "classic";

impl GroupCoordinator {
    pub(super) fn describe_groups(&mut self, ticket: Ticket, groups: Vec<GroupId>) {
        let described = groups.into_iter().map(|id| match self.groups.get(&id) {
            Some(group) => group.described(),
            None => DescribedGroup {
                group_id: id,
                state: GroupState::Dead,
                protocol_type: String::new(),
                protocol: String::new(),
                members: Vec::new(),
            },
        });
        let response = Response::DescribeGroups(described.collect());
        self.core.answer(ticket, response);
    }

    pub(super) fn list_groups(&mut self, ticket: Ticket, list: ListGroups) {
        let is_wanted = |group: &Group| {
            let wanted = list.states.get(group.state as usize);
            wanted.copied().unwrap_or(false)
        };
        let groups = self.groups.values().filter(|group| is_wanted(group));
        let listed = groups.map(|group| ListedGroup {
            group_id: group.id.clone(),
            protocol_type: group.protocol_type.clone().unwrap_or_default(),
            state: group.state,
        });
        let response = Response::ListGroups(listed.collect());
        self.core.answer(ticket, response);
    }

    /// Deletes groups that have no members, with their offsets.
    pub(super) fn delete_groups(&mut self, ticket: Ticket, groups: Vec<GroupId>) {
        let (mut records, mut removed) = (Vec::new(), Vec::new());
        let mut codes = Vec::with_capacity(groups.len());
        for id in groups {
            let code = match self.groups.get(&id) {
                None => ErrorCode::GROUP_ID_NOT_FOUND,
                Some(group) if !group.is_empty() => ErrorCode::NON_EMPTY_GROUP,
                Some(group) => {
                    self.tombstones_of(&id, &mut records);
                    records.push(group.tombstone());
                    removed.extend(self.take_group(&id));
                    ErrorCode::NONE
                }
            };
            codes.push((id, code));
        }
        let response = Response::DeleteGroups(codes);
        let after = AfterWrite::DeleteGroups {
            answer: Some((ticket, response)),
            removed,
        };
        self.write_in_parts(records, after);
    }

    fn tombstones_of(&self, group_id: &GroupId, records: &mut Vec<Record>) {
        let of_group = self.offsets.of_group(group_id).into_iter().flatten();
        for (topic, known) in of_group {
            for (index, _) in known.iter().filter(|(_, one)| one.latest().is_some()) {
                records.push(Record::Offset {
                    group_id: group_id.clone(),
                    topic: topic.clone(),
                    partition: *index,
                    value: None,
                });
            }
        }
    }
}

impl ListGroups {
    /// By filters as clients write them: in any case, an empty one lets all pass. A filter may name
    /// very much, so that it is looked at once and not for every group.
    #[must_use]
    pub fn filtered(states: &[String], types: &[String]) -> Self {
        let is_of_type = types.is_empty() || types.iter().any(|name| is_named(name, CLASSIC));
        let is_in = |state: GroupState| {
            let mut names = states.iter();
            states.is_empty() || names.any(|name| is_named(name, state.name()))
        };
        Self {
            states: GroupState::OF_KNOWN.map(|state| is_of_type && is_in(state)),
        }
    }
}

fn is_named(name: &str, wanted: &str) -> bool {
    name.trim().eq_ignore_ascii_case(wanted)
}

impl Group {
    /// The members' metadata and the protocol are told of a stable group only.
    fn described(&self) -> DescribedGroup {
        let is_stable = self.state == GroupState::Stable;
        let protocol = self.protocol_name.as_deref().filter(|_| is_stable);
        DescribedGroup {
            group_id: self.id.clone(),
            state: self.state,
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol: protocol.unwrap_or_default().to_owned(),
            members: (self.members.values())
                .map(|one| one.described(protocol))
                .collect(),
        }
    }
}
