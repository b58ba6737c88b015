//! JoinGroup.

use super::config::NEW_MEMBER_JOIN_TIMEOUT;
use super::core::{Core, Now, Ticket};
use super::ids::MemberId;
use super::member::{Member, bytes_of, duration_ms};
use super::memory::MEMBER_BYTES;
use super::operation::Join;
use super::response::JoinResponse;
use super::roster::Group;
use super::state::GroupState;
use super::timers::Timer;
use crate::base::error_code::ErrorCode;
use crate::base::ids::Uuid;

/// A `java.util.UUID` as text, after a dash.
const UUID_TEXT_BYTES: usize = 37;

impl Group {
    /// Takes a join; the answer may wait for the rebalance.
    pub(super) fn join(&mut self, core: &mut Core, now: Now, ticket: Ticket, join: &Join) {
        if !self.has_room(core, &join.member_id) {
            self.remove(core, &join.member_id);
            let refused = JoinResponse::refused("", ErrorCode::GROUP_MAX_SIZE_REACHED);
            core.answer_join(ticket, refused);
        } else if !self.supports(&join.protocol_type, &join.protocols) {
            let code = ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
            core.answer_join(ticket, JoinResponse::refused(&join.member_id, code));
        } else if join.member_id.is_empty() {
            self.join_unknown(core, now, ticket, join);
        } else if self.is_pending(&join.member_id) && join.instance_id.is_none() {
            self.join_new(core, now, (ticket, join.member_id.clone()), join);
        } else {
            self.join_known(core, now, ticket, join);
        }
    }

    /// `group.max.size`: while joins are awaited those that have come count, else all members.
    fn has_room(&self, core: &Core, member_id: &str) -> bool {
        let member = self.members.get(member_id);
        let max = core.config.members_max;
        match self.state {
            GroupState::Empty | GroupState::Dead => true,
            GroupState::PreparingRebalance => {
                let has_come = member.is_some_and(|member| member.awaiting_join.is_some());
                has_come || self.awaiting_joins() < max
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                member.is_some() || self.members.len() < max
            }
        }
    }

    fn join_unknown(&mut self, core: &mut Core, now: Now, ticket: Ticket, join: &Join) {
        let stem = join.instance_id.as_deref().unwrap_or(&join.client_id);
        let member_id = MemberId::from(format!("{stem}-{}", java_text(join.fresh_id)));
        let known = join.instance_id.as_ref();
        let known = known.and_then(|instance_id| self.static_members.get(instance_id));
        if let Some(known) = known.cloned() {
            self.join_static_again(core, now, (ticket, known, member_id), join);
        } else if join.instance_id.is_some() || !join.requires_known_member_id {
            self.join_new(core, now, (ticket, member_id), join);
        } else {
            let session = Timer::Session(self.id.clone(), member_id.clone());
            let timeout = duration_ms(join.session_timeout_ms);
            core.timers.schedule(session, now.monotonic, timeout);
            let refused = JoinResponse::refused(&member_id, ErrorCode::MEMBER_ID_REQUIRED);
            core.answer_join(ticket, refused);
            self.add_pending(core, member_id);
        }
    }

    /// A new member, which has its id now.
    fn join_new(
        &mut self,
        core: &mut Core,
        now: Now,
        (ticket, member_id): (Ticket, MemberId),
        join: &Join,
    ) {
        if self.state == GroupState::PreparingRebalance && self.previous_state == GroupState::Empty
        {
            self.is_member_added = true;
        }
        let member = Member::joining(member_id.clone(), join);
        self.add(core, member, &join.protocol_type);
        self.await_join(core, &member_id, ticket);
        let session = Timer::Session(self.id.clone(), member_id);
        core.timers
            .schedule(session, now.monotonic, NEW_MEMBER_JOIN_TIMEOUT);
        self.rebalance_or_complete(core, now);
    }

    fn join_known(&mut self, core: &mut Core, now: Now, ticket: Ticket, join: &Join) {
        let member_id = &join.member_id;
        if let Err(code) = self.validate(member_id, join.instance_id.as_ref()) {
            core.answer_join(ticket, JoinResponse::refused(member_id, code));
            return;
        }
        let member = self.members.get(member_id);
        let is_same = member.is_some_and(|member| member.matches(&join.protocols));
        let is_told_again = match self.state {
            GroupState::CompletingRebalance => is_same,
            GroupState::Stable => is_same && !self.is_leader(member_id),
            _ => false,
        };
        if is_told_again {
            core.answer_join(ticket, self.joined(member_id));
        } else {
            self.update(core, member_id, join);
            self.await_join(core, member_id, ticket);
            self.rebalance_or_complete(core, now);
        }
    }
}

impl Join {
    /// Length of the member id that it would be given: too long a one can neither be told nor
    /// stored.
    pub(super) fn fresh_id_bytes(&self) -> usize {
        let stem = self.instance_id.as_deref().unwrap_or(&self.client_id);
        stem.len() + UUID_TEXT_BYTES
    }

    /// Memory that its member is charged for, at most.
    pub(super) fn member_bytes(&self) -> usize {
        let instance_id = self.instance_id.as_deref().unwrap_or_default();
        let id = match self.member_id.is_empty() {
            true => self.fresh_id_bytes(),
            false => self.member_id.len(),
        };
        let names = id + instance_id.len() + self.client_id.len() + self.protocol_type.len();
        MEMBER_BYTES + names + bytes_of(&self.protocols)
    }
}

/// The text of a `java.util.UUID`.
fn java_text(id: Uuid) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(id.0));
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let parts = [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ];
    parts.join("-")
}
