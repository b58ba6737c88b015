//! A static member that comes back under a new member id (KIP-345, KIP-814).

use super::core::{AfterWrite, Core, Now, Ticket};
use super::ids::{GroupId, MemberId};
use super::operation::{Join, Protocol};
use super::response::JoinResponse;
use super::roster::Group;
use super::state::GroupState;
use crate::base::error_code::ErrorCode;
use crate::base::ids::GenerationId;

/// A static member's return while its new id is being stored, and how it was before.
#[derive(Debug)]
pub struct ReplacedMember {
    pub(super) group_id: GroupId,
    generation_id: GenerationId,
    old_id: MemberId,
    new_id: MemberId,
    old_leader: Option<MemberId>,
    old_protocols: Vec<Protocol>,
    old_timeouts_ms: (i32, i32),
    tells_skipping: bool,
}

impl Group {
    /// The member known by this name gives way. In a stable group whose protocol stays there is no
    /// rebalance: the new id is stored with the old assignment.
    pub(super) fn join_static_again(
        &mut self,
        core: &mut Core,
        now: Now,
        (ticket, old_id, new_id): (Ticket, MemberId, MemberId),
        join: &Join,
    ) {
        let old_leader = self.leader.clone();
        self.replace(core, &old_id, &new_id);
        self.restart_session(core, now, &new_id);
        let Some(member) = self.members.get(&new_id) else {
            return;
        };
        let replaced = ReplacedMember {
            group_id: self.id.clone(),
            generation_id: self.generation_id,
            old_id,
            new_id: new_id.clone(),
            old_leader,
            old_protocols: member.protocols.clone(),
            old_timeouts_ms: (member.rebalance_timeout_ms, member.session_timeout_ms),
            tells_skipping: join.supports_skipping_assignment,
        };
        self.update(core, &new_id, join);
        self.await_join(core, &new_id, ticket);
        match self.state {
            GroupState::Stable if self.select_protocol() == self.protocol_name => {
                let record = self.to_record(|member| member.assignment.clone());
                core.write(vec![record], AfterWrite::ReplaceStatic(Box::new(replaced)));
            }
            GroupState::Stable => self.rebalance_or_complete(core, now),
            GroupState::CompletingRebalance => self.prepare_rebalance(core, now),
            _ => self.maybe_complete_joins(core, now),
        }
    }

    /// The new id is stored. If a rebalance has begun meanwhile, the join is part of that.
    pub(super) fn static_replaced(&mut self, core: &mut Core, replaced: &ReplacedMember) {
        let is_as_it_was = self.state == GroupState::Stable
            && self.generation_id == replaced.generation_id
            && self.members.contains_key(&replaced.new_id);
        if !is_as_it_was {
            return;
        }
        let mut response = self.joined(&replaced.new_id);
        if replaced.tells_skipping {
            response.skip_assignment = self.is_leader(&replaced.new_id);
        } else {
            // Told of a leader that it is not, an old client does not assign anew.
            response.members = Vec::new();
            let old_leader = replaced.old_leader.as_deref();
            response.leader = old_leader.unwrap_or_default().to_owned();
        }
        self.complete_join(core, &replaced.new_id, response);
    }

    /// The new id could not be stored: the old member is back.
    pub(super) fn static_not_replaced(
        &mut self,
        core: &mut Core,
        now: Now,
        replaced: ReplacedMember,
        code: ErrorCode,
    ) {
        let response = JoinResponse {
            generation_id: self.generation_id,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: replaced
                .old_leader
                .as_deref()
                .unwrap_or_default()
                .to_owned(),
            ..JoinResponse::refused("", code)
        };
        self.complete_join(core, &replaced.new_id, response);
        if self.state != GroupState::Stable || self.generation_id != replaced.generation_id {
            return;
        }
        self.replace(core, &replaced.new_id, &replaced.old_id);
        self.restore(core, &replaced);
        self.restart_session(core, now, &replaced.old_id);
    }

    fn restore(&mut self, core: &mut Core, replaced: &ReplacedMember) {
        let Some(member) = self.members.get(&replaced.old_id) else {
            return;
        };
        let join = Join {
            group_id: self.id.clone(),
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            session_timeout_ms: replaced.old_timeouts_ms.1,
            rebalance_timeout_ms: replaced.old_timeouts_ms.0,
            protocol_type: String::new(),
            protocols: replaced.old_protocols.clone(),
            client_id: String::new(),
            client_host: String::new(),
            requires_known_member_id: false,
            supports_skipping_assignment: false,
            fresh_id: crate::base::ids::Uuid::ZERO,
        };
        self.update(core, &replaced.old_id, &join);
    }
}
