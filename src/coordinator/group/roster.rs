//! A group and who is of it. Counts and tables are kept here, and only here.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::config::PENDING_MEMBERS_MAX;
use super::core::{Core, Now, Ticket};
use super::ids::{GroupId, InstanceId, MemberId};
use super::member::{Member, distinct, duration_ms};
use super::memory::{GROUP_BYTES, PENDING_MEMBER_BYTES};
use super::operation::Join;
use super::record::{GroupValue, Record};
use super::response::{JoinResponse, Response, SyncResponse};
use super::state::GroupState;
use super::timers::Timer;
use crate::base::error_code::ErrorCode;
use crate::base::ids::GenerationId;
use crate::base::time::{MonotonicNs, TimestampMs};

/// A group (`ClassicGroup`).
#[derive(Debug)]
pub struct Group {
    pub(super) id: GroupId,
    pub(super) state: GroupState,
    pub(super) previous_state: GroupState,
    pub(super) state_since: Option<TimestampMs>,
    pub(super) generation_id: GenerationId,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol_name: Option<String>,
    pub(super) leader: Option<MemberId>,
    pub(super) members: BTreeMap<MemberId, Member>,
    pub(super) static_members: BTreeMap<InstanceId, MemberId>,
    pub(super) pending_syncs: BTreeSet<MemberId>,
    pub(super) subscribed: Option<BTreeSet<String>>,
    /// Members came while the first rebalance waited for more.
    pub(super) is_member_added: bool,
    /// While the first rebalance waits: the wait, and how much more there may be.
    pub(super) initial_wait: Option<(Duration, Duration)>,
    /// While it rebalances: since when it has not been stable.
    pub(super) rebalance_since: Option<MonotonicNs>,
    /// Rebalances that it has completed since it was loaded.
    pub(super) rebalances: u64,
    /// How many members support each protocol.
    pub(super) supporters: HashMap<String, usize>,
    pending_joins: BTreeSet<MemberId>,
    pub(super) pending_order: VecDeque<MemberId>,
    awaiting_joins: usize,
}

impl Group {
    pub(super) fn new(id: GroupId, since: TimestampMs) -> Self {
        Self {
            id,
            state: GroupState::Empty,
            previous_state: GroupState::Dead,
            state_since: Some(since),
            generation_id: GenerationId(0),
            protocol_type: None,
            protocol_name: None,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_syncs: BTreeSet::new(),
            subscribed: None,
            is_member_added: false,
            initial_wait: None,
            rebalance_since: None,
            rebalances: 0,
            supporters: HashMap::new(),
            pending_joins: BTreeSet::new(),
            pending_order: VecDeque::new(),
            awaiting_joins: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state == GroupState::Empty
    }

    /// It never had a member, nor has one that is to come.
    pub(super) fn is_void(&self) -> bool {
        self.is_empty() && self.protocol_type.is_none() && self.pending_joins.is_empty()
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    pub(super) fn is_pending(&self, member_id: &str) -> bool {
        self.pending_joins.contains(member_id)
    }

    pub(super) fn pending_len(&self) -> usize {
        self.pending_joins.len()
    }

    pub(super) fn awaiting_joins(&self) -> usize {
        self.awaiting_joins
    }

    pub(super) fn have_all_joined(&self) -> bool {
        self.members.len() == self.awaiting_joins && self.pending_joins.is_empty()
    }

    /// The longest of its members.
    pub(super) fn rebalance_timeout(&self) -> Duration {
        let timeouts = self.members.values().map(|one| one.rebalance_timeout_ms);
        duration_ms(timeouts.max().unwrap_or(0))
    }

    pub(super) fn transition(&mut self, now: Now, next: GroupState) {
        debug_assert!(self.state.may_become(next), "{} -> {next}", self.state);
        self.previous_state = self.state;
        self.state = next;
        self.state_since = Some(now.wall);
    }

    /// Adds a member; who was told to come back with an id has done so.
    pub(super) fn add(&mut self, core: &mut Core, member: Member, protocol_type: &str) {
        if let Some(instance_id) = &member.instance_id {
            self.static_members
                .insert(instance_id.clone(), member.id.clone());
        }
        if self.members.is_empty() {
            core.charge.give_back(self.own_bytes());
            self.protocol_type = Some(protocol_type.to_owned());
            core.charge.add(self.own_bytes());
        }
        self.leader.get_or_insert_with(|| member.id.clone());
        self.count_protocols(&member, true);
        core.charge.add(member.bytes());
        self.awaiting_joins += usize::from(member.awaiting_join.is_some());
        self.forget_pending(core, &member.id);
        self.members.insert(member.id.clone(), member);
    }

    /// Removes a member or one that was given an id. Whatever of it waits is told that it is not
    /// known.
    pub(super) fn remove(&mut self, core: &mut Core, member_id: &str) {
        self.complete_join(
            core,
            member_id,
            JoinResponse::refused("", ErrorCode::UNKNOWN_MEMBER_ID),
        );
        self.complete_sync(
            core,
            member_id,
            SyncResponse::refused(ErrorCode::UNKNOWN_MEMBER_ID),
        );
        if let Some(member) = self.members.remove(member_id) {
            self.count_protocols(&member, false);
            core.charge.give_back(member.bytes());
            if let Some(instance_id) = &member.instance_id {
                self.static_members.remove(instance_id);
            }
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        self.forget_pending(core, member_id);
        self.pending_syncs.remove(member_id);
        core.timers
            .cancel(&Timer::Session(self.id.clone(), member_id.into()));
    }

    /// Puts another member id in the place of a static member's; whatever waited is fenced.
    pub(super) fn replace(&mut self, core: &mut Core, old: &MemberId, new: &MemberId) {
        let fenced = ErrorCode::FENCED_INSTANCE_ID;
        let response = JoinResponse::refused(old, fenced);
        self.complete_join(core, old, response);
        self.complete_sync(core, old, SyncResponse::refused(fenced));
        let Some(mut member) = self.members.remove(old) else {
            return;
        };
        core.charge.give_back(member.bytes());
        member.id = new.clone();
        member.is_new = false;
        core.charge.add(member.bytes());
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        if self.pending_syncs.remove(old) {
            self.pending_syncs.insert(new.clone());
        }
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), new.clone());
        }
        self.members.insert(new.clone(), member);
        core.timers
            .cancel(&Timer::Session(self.id.clone(), old.clone()));
    }

    /// Takes over what a join says of a member that is known, and waits for it.
    pub(super) fn update(&mut self, core: &mut Core, member_id: &str, join: &Join) {
        let Some(mut member) = self.members.remove(member_id) else {
            return;
        };
        self.count_protocols(&member, false);
        core.charge.give_back(member.bytes());
        member.protocols = distinct(&join.protocols);
        member.rebalance_timeout_ms = join.rebalance_timeout_ms;
        member.session_timeout_ms = join.session_timeout_ms;
        core.charge.add(member.bytes());
        self.count_protocols(&member, true);
        self.members.insert(member.id.clone(), member);
    }

    /// The member's join waits. One that waited before gives way.
    pub(super) fn await_join(&mut self, core: &mut Core, member_id: &str, ticket: Ticket) {
        let superseded = JoinResponse::refused(member_id, ErrorCode::REBALANCE_IN_PROGRESS);
        self.complete_join(core, member_id, superseded);
        if let Some(member) = self.members.get_mut(member_id) {
            member.awaiting_join = Some(ticket);
            self.awaiting_joins += 1;
        }
    }

    /// Answers a member's join, if one waits.
    pub(super) fn complete_join(
        &mut self,
        core: &mut Core,
        member_id: &str,
        response: JoinResponse,
    ) {
        let member = self.members.get_mut(member_id);
        if let Some(ticket) = member.and_then(|member| member.awaiting_join.take()) {
            self.awaiting_joins = self.awaiting_joins.saturating_sub(1);
            core.answer_join(ticket, response);
        }
    }

    /// The member's sync waits. One that waited before gives way.
    pub(super) fn await_sync(&mut self, core: &mut Core, member_id: &str, ticket: Ticket) {
        let superseded = SyncResponse::refused(ErrorCode::REBALANCE_IN_PROGRESS);
        self.complete_sync(core, member_id, superseded);
        if let Some(member) = self.members.get_mut(member_id) {
            member.awaiting_sync = Some(ticket);
        }
    }

    /// Answers a member's sync, if one waits; tells whether one did.
    pub(super) fn complete_sync(
        &mut self,
        core: &mut Core,
        member_id: &str,
        response: SyncResponse,
    ) -> bool {
        let member = self.members.get_mut(member_id);
        let ticket = member.and_then(|member| member.awaiting_sync.take());
        if let Some(ticket) = ticket {
            core.answer(ticket, Response::Sync(response));
        }
        ticket.is_some()
    }

    pub(super) fn assign(&mut self, core: &mut Core, member_id: &str, assignment: Bytes) {
        if let Some(member) = self.members.get_mut(member_id) {
            core.charge.give_back(member.assignment.len());
            core.charge.add(assignment.len());
            member.assignment = assignment;
        }
    }

    /// Someone was given an id and is to come back with it.
    pub(super) fn add_pending(&mut self, core: &mut Core, member_id: MemberId) {
        while self.pending_joins.len() >= PENDING_MEMBERS_MAX {
            let Some(oldest) = self.pending_order.pop_front() else {
                break;
            };
            if self.pending_joins.remove(&oldest) {
                core.charge.give_back(pending_bytes(&oldest));
                let session = Timer::Session(self.id.clone(), oldest);
                core.timers.cancel(&session);
            }
        }
        core.charge.add(pending_bytes(&member_id));
        self.pending_order.push_back(member_id.clone());
        self.pending_joins.insert(member_id);
    }

    fn forget_pending(&mut self, core: &mut Core, member_id: &str) {
        if self.pending_joins.remove(member_id) {
            core.charge.give_back(pending_bytes(member_id));
        }
        // Ids that have come back since need no place in the order.
        if self.pending_order.len() > 2 * self.pending_joins.len() {
            let Self {
                pending_joins,
                pending_order,
                ..
            } = self;
            pending_order.retain(|known| pending_joins.contains(known));
        }
    }

    /// Nobody who was given an id may come back with it.
    pub(super) fn forget_all_pending(&mut self, core: &mut Core) {
        self.pending_order.clear();
        for member_id in std::mem::take(&mut self.pending_joins) {
            core.charge.give_back(pending_bytes(&member_id));
            let session = Timer::Session(self.id.clone(), member_id);
            core.timers.cancel(&session);
        }
    }

    fn count_protocols(&mut self, member: &Member, is_added: bool) {
        for protocol in &member.protocols {
            let count = self.supporters.entry(protocol.name.clone()).or_default();
            *count = match is_added {
                true => *count + 1,
                false => count.saturating_sub(1),
            };
            if *count == 0 {
                self.supporters.remove(&protocol.name);
            }
        }
    }

    /// Memory that is charged for the group as a whole.
    pub(super) fn bytes(&self) -> usize {
        let members: usize = self.members.values().map(Member::bytes).sum();
        let pending = self.pending_joins.iter();
        let pending: usize = pending.map(|member_id| pending_bytes(member_id)).sum();
        self.own_bytes() + members + pending
    }

    /// Memory that is charged for it without who is of it: its offsets have its name too.
    pub(super) fn own_bytes(&self) -> usize {
        let protocol_type = self.protocol_type.as_ref().map_or(0, String::len);
        GROUP_BYTES + 2 * self.id.len() + protocol_type
    }

    /// Whether this is who it says (`ClassicGroup.validateMember`).
    pub(super) fn validate(
        &self,
        member_id: &str,
        instance_id: Option<&InstanceId>,
    ) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            let known = self.static_members.get(instance_id);
            let known = known.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
            if &**known != member_id {
                return Err(ErrorCode::FENCED_INSTANCE_ID);
            }
        }
        match self.members.contains_key(member_id) {
            true => Ok(()),
            false => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    /// The group as it is stored, with these assignments.
    pub(super) fn to_record(&self, assignment_of: impl Fn(&Member) -> Bytes) -> Record {
        let protocol = self.protocol_name.as_deref();
        let members = self.members.values();
        let value = GroupValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation_id: self.generation_id,
            protocol: self.protocol_name.clone(),
            leader: self.leader.clone(),
            state_since: self.state_since.unwrap_or(TimestampMs::NONE),
            members: members
                .map(|one| one.to_value(protocol, assignment_of(one)))
                .collect(),
        };
        Record::Group {
            group_id: self.id.clone(),
            value: Some(value),
        }
    }

    /// Says that the group is gone.
    pub(super) fn tombstone(&self) -> Record {
        Record::Group {
            group_id: self.id.clone(),
            value: None,
        }
    }
}

fn pending_bytes(member_id: &str) -> usize {
    PENDING_MEMBER_BYTES + member_id.len()
}
