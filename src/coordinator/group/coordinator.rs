//! The coordinator of the groups of one partition: dispatch, writes, time.

use std::collections::BTreeMap;

use super::config::{GroupConfig, WRITE_RECORDS_MAX};
use super::core::{AfterWrite, Core, Effects, Now, OffsetKey, Ticket, WriteId};
use super::ids::GroupId;
use super::member::Member;
use super::memory::{GROUP_BYTES, GroupMemory};
use super::offsets::Offsets;
use super::operation::{Heartbeat, Join, Leave, Operation, Sync};
use super::record::Record;
use super::response::{JoinResponse, LeaveResponse, LeftMember, Response, SyncResponse};
use super::roster::Group;
use super::state::GroupState;
use super::timers::Timer;
use crate::base::error_code::ErrorCode;
use crate::base::ids::GenerationId;
use crate::base::time::MonotonicNs;
use crate::metrics::DurationCounts;
use crate::wire::primitives::STRING_BYTES_MAX;

/// How many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Groups in each state, in the order of [`GroupState`].
    pub groups: [usize; 4],
    /// Offsets.
    pub offsets: usize,
    /// Rebalances that were completed since the partition was loaded.
    pub rebalances: DurationCounts,
}

impl GroupCounts {
    /// Adds what another coordinator has.
    pub fn merge(&mut self, more: &Self) {
        for (sum, count) in self.groups.iter_mut().zip(more.groups) {
            *sum += count;
        }
        self.offsets += more.offsets;
        self.rebalances.merge(&more.rebalances);
    }
}

/// The groups whose ids belong to one partition.
#[derive(Debug)]
pub struct GroupCoordinator {
    pub(super) core: Core,
    pub(super) groups: BTreeMap<GroupId, Group>,
    pub(super) offsets: Offsets,
    pub(super) expiry_cursor: Option<GroupId>,
}

impl GroupCoordinator {
    /// Without a group; replay the partition, then say [`Self::loaded`].
    #[must_use]
    pub fn new(config: GroupConfig, memory: &GroupMemory) -> Self {
        Self {
            core: Core::new(config, memory),
            groups: BTreeMap::new(),
            offsets: Offsets::default(),
            expiry_cursor: None,
        }
    }

    /// Takes an operation. Its answer is among the effects of this call or of a later one.
    #[must_use]
    pub fn handle(&mut self, now: Now, ticket: Ticket, operation: Operation) -> Effects {
        match operation {
            Operation::Join(join) => self.join(now, ticket, &join),
            Operation::Sync(sync) => self.sync(ticket, *sync),
            Operation::Heartbeat(heartbeat) => self.heartbeat(now, ticket, &heartbeat),
            Operation::Leave(leave) => self.leave(now, ticket, leave),
            Operation::CommitOffsets(commit) => self.commit_offsets(now, ticket, commit),
            Operation::FetchOffsets(fetch) => self.fetch_offsets(ticket, fetch),
            Operation::DeleteOffsets(delete) => self.delete_offsets(ticket, delete),
            Operation::DescribeGroups(groups) => self.describe_groups(ticket, groups),
            Operation::ListGroups(list) => self.list_groups(ticket, list),
            Operation::DeleteGroups(groups) => self.delete_groups(ticket, groups),
            Operation::ForgetTopics(topics) => self.forget_topics(ticket, topics),
        }
        self.take_effects()
    }

    /// The next point in time at which [`Self::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<MonotonicNs> {
        self.core.timers.next()
    }

    /// Time has passed.
    #[must_use]
    pub fn expire(&mut self, now: Now) -> Effects {
        while let Some(timer) = self.core.timers.pop_due(now.monotonic) {
            let core = &mut self.core;
            match timer {
                Timer::Session(group_id, member_id) => {
                    if let Some(group) = self.groups.get_mut(&group_id) {
                        group.on_session_timer(core, now, &member_id);
                    }
                }
                Timer::Join(group_id) => {
                    if let Some(group) = self.groups.get_mut(&group_id) {
                        group.on_join_timer(core, now);
                    }
                }
                Timer::Sync(group_id) => {
                    if let Some(group) = self.groups.get_mut(&group_id) {
                        group.on_sync_timer(core, now);
                    }
                }
                Timer::Expiry => self.on_expiry_timer(now),
            }
        }
        self.take_effects()
    }

    /// A write is as durable as it is to be.
    #[must_use]
    pub fn committed(&mut self, now: Now, write: WriteId) -> Effects {
        self.settle(now, write, Ok(()))
    }

    /// A write is not in the log; `code` as [`super::code_of_failed_append`] gives it.
    #[must_use]
    pub fn failed(&mut self, now: Now, write: WriteId, code: ErrorCode) -> Effects {
        self.settle(now, write, Err(code))
    }

    /// How many groups and offsets there are.
    #[must_use]
    pub fn counts(&self) -> GroupCounts {
        let mut counts = GroupCounts {
            offsets: self.offsets.len(),
            rebalances: self.core.rebalances,
            ..GroupCounts::default()
        };
        for group in self.groups.values() {
            if let Some(count) = counts.groups.get_mut(group.state as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// Makes a group known.
    pub(super) fn insert_group(&mut self, group: Group) {
        self.core.charge.add(group.bytes());
        if let Some(before) = self.groups.insert(group.id.clone(), group) {
            self.core.charge.give_back(before.bytes());
        }
    }

    /// Forgets a group.
    pub(super) fn take_group(&mut self, group_id: &GroupId) -> Option<Group> {
        let mut group = self.groups.remove(group_id)?;
        // Who waits for it by its old name waits for nothing.
        group.forget_all_pending(&mut self.core);
        self.core.charge.give_back(group.bytes());
        Some(group)
    }

    pub(super) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.core.effects)
    }

    /// Has records appended, some at a time where there are many, and their offsets known to later
    /// operations. `after` fails when some of them do.
    pub(super) fn write_in_parts(&mut self, records: Vec<Record>, after: AfterWrite) {
        let parts = records.len().div_ceil(WRITE_RECORDS_MAX) as u64;
        let last = WriteId(self.core.next_write().0 + parts.saturating_sub(1));
        let mut records = records.into_iter();
        while records.len() > WRITE_RECORDS_MAX {
            let some = records.by_ref().take(WRITE_RECORDS_MAX).collect();
            self.write(some, AfterWrite::PartOf(last));
        }
        self.write(records.collect(), after);
    }

    /// Has records appended, all or none. Without records `after` happens at once.
    pub(super) fn write(&mut self, records: Vec<Record>, after: AfterWrite) {
        if records.is_empty() {
            let (AfterWrite::Answer(ticket, response)
            | AfterWrite::DeleteGroups {
                answer: Some((ticket, response)),
                ..
            }) = after
            else {
                return;
            };
            self.core.answer(ticket, response);
            return;
        }
        let write = self.core.next_write();
        for record in &records {
            if let Record::Offset {
                group_id,
                topic,
                partition,
                value,
            } = record
            {
                let key = (group_id, topic.as_str(), *partition);
                let charge = &mut self.core.charge;
                self.offsets.begin(charge, key, (write, value.clone()));
            }
        }
        self.core.write(records, after);
    }

    fn settle(&mut self, now: Now, write: WriteId, result: Result<(), ErrorCode>) -> Effects {
        let Some(in_flight) = self.core.in_flight.remove(&write) else {
            return Effects::default();
        };
        for (group_id, topic, index) in &in_flight.offsets {
            let key = (group_id, topic.as_str(), *index);
            let settled = (write, result.is_ok());
            self.offsets.settle(&mut self.core.charge, key, settled);
        }
        match result.and(in_flight.parts) {
            Ok(()) => self.after_commit(now, in_flight.after),
            Err(code) => {
                self.after_failure(now, in_flight.after, code);
                self.forget_void_groups(&in_flight.offsets);
            }
        }
        for (ticket, fetch) in in_flight.fetches {
            let response = self.fetched(&fetch);
            self.core.answer(ticket, Response::FetchOffsets(response));
        }
        self.take_effects()
    }

    fn after_commit(&mut self, now: Now, after: AfterWrite) {
        match after {
            AfterWrite::Nothing | AfterWrite::NewGroup(_) | AfterWrite::PartOf(_) => {}
            AfterWrite::Answer(ticket, response) => self.core.answer(ticket, response),
            AfterWrite::StoreAssignment {
                group_id,
                generation_id,
                assignments,
            } => {
                if let Some(group) = self.groups.get_mut(&group_id) {
                    group.assignment_stored(&mut self.core, now, generation_id, Ok(assignments));
                }
            }
            AfterWrite::ReplaceStatic(replaced) => {
                if let Some(group) = self.groups.get_mut(&replaced.group_id) {
                    group.static_replaced(&mut self.core, &replaced);
                }
            }
            AfterWrite::DeleteGroups { answer, .. } => {
                if let Some((ticket, response)) = answer {
                    self.core.answer(ticket, response);
                }
            }
        }
    }

    fn after_failure(&mut self, now: Now, after: AfterWrite, code: ErrorCode) {
        match after {
            AfterWrite::Nothing => {}
            AfterWrite::NewGroup(group_id) => self.refuse_joins(&group_id, code),
            AfterWrite::PartOf(last) => {
                if let Some(whole) = self.core.in_flight.get_mut(&last) {
                    whole.parts = Err(code);
                }
            }
            AfterWrite::Answer(ticket, response) => {
                self.core.answer(ticket, response.refused(code));
            }
            AfterWrite::StoreAssignment {
                group_id,
                generation_id,
                ..
            } => {
                if let Some(group) = self.groups.get_mut(&group_id) {
                    group.assignment_stored(&mut self.core, now, generation_id, Err(code));
                }
            }
            AfterWrite::ReplaceStatic(replaced) => {
                if let Some(group) = self.groups.get_mut(&replaced.group_id) {
                    group.static_not_replaced(&mut self.core, now, *replaced, code);
                }
            }
            AfterWrite::DeleteGroups { answer, removed } => {
                for group in removed {
                    if !self.groups.contains_key(&group.id) {
                        self.insert_group(group);
                    }
                }
                if let Some((ticket, response)) = answer {
                    self.core.answer(ticket, response.refused(code));
                }
            }
        }
    }

    /// A group that was made known by nothing but a commit that failed is not known.
    fn forget_void_groups(&mut self, offsets: &[OffsetKey]) {
        for (group_id, ..) in offsets {
            let group = self.groups.get(group_id);
            if group.is_some_and(Group::is_void) && self.offsets.of_group(group_id).is_none() {
                self.take_group(group_id);
            }
        }
    }

    fn refuse_joins(&mut self, group_id: &GroupId, code: ErrorCode) {
        let Some(group) = self.groups.get_mut(group_id) else {
            return;
        };
        let members: Vec<_> = group.members.keys().cloned().collect();
        for member_id in members {
            let refused = JoinResponse::refused(&member_id, code);
            group.complete_join(&mut self.core, &member_id, refused);
        }
    }

    fn join(&mut self, now: Now, ticket: Ticket, join: &Join) {
        if let Err(code) = self.check_join(join) {
            let refused = JoinResponse::refused(&join.member_id, code);
            self.core.answer_join(ticket, refused);
            return;
        }
        let is_new = !self.groups.contains_key(&join.group_id);
        if is_new {
            self.insert_group(Group::new(join.group_id.clone(), now.wall));
        }
        let Some(group) = self.groups.get_mut(&join.group_id) else {
            return;
        };
        let writes = self.core.effects.writes.len();
        group.join(&mut self.core, now, ticket, join);
        if is_new && self.core.effects.writes.len() == writes {
            let empty = Group::new(group.id.clone(), now.wall);
            let record = empty.to_record(|_| bytes::Bytes::new());
            let after = AfterWrite::NewGroup(join.group_id.clone());
            self.core.write(vec![record], after);
        }
    }

    fn check_join(&self, join: &Join) -> Result<(), ErrorCode> {
        if join.group_id.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        let config = &self.core.config;
        let session_ms = i128::from(join.session_timeout_ms);
        let ms =
            |limit: std::time::Duration| i128::try_from(limit.as_millis()).unwrap_or(i128::MAX);
        if session_ms < ms(config.session_timeout_min)
            || session_ms > ms(config.session_timeout_max)
        {
            return Err(ErrorCode::INVALID_SESSION_TIMEOUT);
        }
        if join.member_id.is_empty() && join.fresh_id_bytes() > STRING_BYTES_MAX {
            return Err(ErrorCode::UNKNOWN_SERVER_ERROR);
        }
        if !join.member_id.is_empty() && !self.groups.contains_key(&join.group_id) {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        match self.core.charge.has_room(self.growth(join)) {
            true => Ok(()),
            false => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        }
    }

    /// How much more memory a join takes: little or none where the member is known, and where a
    /// static one comes back under a new id.
    fn growth(&self, join: &Join) -> usize {
        let member = join.member_bytes();
        let Some(group) = self.groups.get(&join.group_id) else {
            return GROUP_BYTES + 2 * join.group_id.len() + member;
        };
        let known = match &join.instance_id {
            Some(instance_id) if join.member_id.is_empty() => group
                .static_members
                .get(instance_id)
                .unwrap_or(&join.member_id),
            _ => &join.member_id,
        };
        let known = group.members.get(known).map_or(0, Member::bytes);
        let protocol_type = group.protocol_type.as_ref().map_or(0, String::len);
        member.saturating_sub(known + protocol_type)
    }

    fn sync(&mut self, ticket: Ticket, sync: Sync) {
        let refusal = match self.groups.get_mut(&sync.group_id) {
            // There may be such a group: who is no member may commit under this name.
            _ if sync.group_id.is_empty() => ErrorCode::INVALID_GROUP_ID,
            Some(group) => return group.sync(&mut self.core, ticket, sync),
            None => ErrorCode::UNKNOWN_MEMBER_ID,
        };
        let refused = Response::Sync(SyncResponse::refused(refusal));
        self.core.answer(ticket, refused);
    }

    fn heartbeat(&mut self, now: Now, ticket: Ticket, heartbeat: &Heartbeat) {
        let result = match self.groups.get(&heartbeat.group_id) {
            _ if heartbeat.group_id.is_empty() => Err(ErrorCode::INVALID_GROUP_ID),
            Some(group) => group.heartbeat(&mut self.core, now, heartbeat),
            None => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        };
        let code = result.err().unwrap_or(ErrorCode::NONE);
        self.core.answer(ticket, Response::Heartbeat(code));
    }

    /// Of a group that is not known no member is (`GroupCoordinatorService.leaveGroup`).
    fn leave(&mut self, now: Now, ticket: Ticket, leave: Leave) {
        let writes = self.core.next_write();
        let response = if leave.group_id.is_empty() {
            LeaveResponse {
                error_code: ErrorCode::INVALID_GROUP_ID,
                members: Vec::new(),
            }
        } else if let Some(group) = self.groups.get_mut(&leave.group_id) {
            group.leave(&mut self.core, now, leave)
        } else {
            let members = leave.members.into_iter();
            let unknown = members.map(|one| LeftMember {
                member_id: one.member_id,
                instance_id: one.instance_id,
                error_code: ErrorCode::UNKNOWN_MEMBER_ID,
            });
            LeaveResponse {
                error_code: ErrorCode::NONE,
                members: unknown.collect(),
            }
        };
        let response = Response::Leave(response);
        // A group that is empty now is stored as such before its last member hears of it.
        match self.core.in_flight.get_mut(&writes) {
            Some(in_flight) => in_flight.after = AfterWrite::Answer(ticket, response),
            None => self.core.answer(ticket, response),
        }
    }
}

const _: () = assert!(GroupState::Stable as usize == 3);
const _: () = assert!(GenerationId::NONE.0 < 0);
