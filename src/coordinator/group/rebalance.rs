//! The course of a rebalance: wait for joins, name the next generation, wait for syncs.

use std::time::Duration;

use bytes::Bytes;

use super::core::{AfterWrite, Core, Now};
use super::ids::MemberId;
use super::response::{JoinResponse, SyncResponse};
use super::roster::Group;
use super::state::GroupState;
use super::timers::Timer;
use crate::base::error_code::ErrorCode;

/// Static members that have not come are waited for again, so long at least: their rebalance
/// timeout may be nothing at all, and would be over at once, time and again.
const MISSING_WAIT_MIN: Duration = Duration::from_millis(100);

impl Group {
    /// A member came, changed or went.
    pub(super) fn rebalance_or_complete(&mut self, core: &mut Core, now: Now) {
        match self.state.can_rebalance() {
            true => self.prepare_rebalance(core, now),
            false => self.maybe_complete_joins(core, now),
        }
    }

    /// Ends the wait for joins when everyone has come. The first rebalance of a group waits for
    /// its timer all the same.
    pub(super) fn maybe_complete_joins(&mut self, core: &mut Core, now: Now) {
        let is_first = self.previous_state == GroupState::Empty;
        if self.state == GroupState::PreparingRebalance && !is_first && self.have_all_joined() {
            self.complete_joins(core, now);
        }
    }

    /// Starts to wait for joins.
    pub(super) fn prepare_rebalance(&mut self, core: &mut Core, now: Now) {
        if self.state == GroupState::CompletingRebalance {
            self.assign_to_all(core, |_| Bytes::new());
            self.answer_syncs(core, now, ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.pending_syncs.clear();
        self.rebalance_since.get_or_insert(now.monotonic);
        core.timers.cancel(&Timer::Sync(self.id.clone()));
        let is_first = self.is_empty();
        self.transition(now, GroupState::PreparingRebalance);
        if is_first {
            let delay = core.config.initial_rebalance_delay;
            let remaining = self.rebalance_timeout().saturating_sub(delay);
            self.initial_wait = Some((delay, remaining));
            let join = Timer::Join(self.id.clone());
            core.timers.schedule(join, now.monotonic, delay);
        } else if self.have_all_joined() {
            self.complete_joins(core, now);
        } else {
            self.schedule_joins_end(core, now, self.rebalance_timeout());
        }
    }

    fn schedule_joins_end(&self, core: &mut Core, now: Now, wait: Duration) {
        let join = Timer::Join(self.id.clone());
        core.timers.schedule(join, now.monotonic, wait);
    }

    /// The time for joins is over. While a group starts, every newcomer prolongs it, up to the
    /// rebalance timeout.
    pub(super) fn on_join_timer(&mut self, core: &mut Core, now: Now) {
        if self.state != GroupState::PreparingRebalance {
            return;
        }
        let wait = self.initial_wait.take();
        if let Some((delay, remaining)) = wait
            && self.is_member_added
            && !remaining.is_zero()
        {
            self.is_member_added = false;
            let next = core.config.initial_rebalance_delay.min(remaining);
            self.initial_wait = Some((next, remaining.saturating_sub(delay)));
            let join = Timer::Join(self.id.clone());
            core.timers.schedule(join, now.monotonic, next);
            return;
        }
        self.complete_joins(core, now);
    }

    /// Ends the wait for joins: who has not come is out, unless it is static.
    pub(super) fn complete_joins(&mut self, core: &mut Core, now: Now) {
        core.timers.cancel(&Timer::Join(self.id.clone()));
        self.initial_wait = None;
        let members = self.members.values();
        let missing: Vec<MemberId> = members
            .filter(|one| one.awaiting_join.is_none() && one.instance_id.is_none())
            .map(|one| one.id.clone())
            .collect();
        for member_id in missing {
            self.remove(core, &member_id);
        }
        if !self.elect_joined_leader() && !self.members.is_empty() {
            // Static members alone, of which none has come.
            let wait = self.rebalance_timeout().max(MISSING_WAIT_MIN);
            self.schedule_joins_end(core, now, wait);
            return;
        }
        self.is_member_added = false;
        self.generation_id.0 = self.generation_id.0.wrapping_add(1).max(0);
        self.pending_syncs.clear();
        if self.members.is_empty() {
            self.protocol_name = None;
            self.rebalance_since = None;
            self.subscribed = self.compute_subscribed();
            self.transition(now, GroupState::Empty);
            let record = self.to_record(|_| Bytes::new());
            core.write(vec![record], AfterWrite::Nothing);
            return;
        }
        self.protocol_name = self.select_protocol();
        self.subscribed = self.compute_subscribed();
        self.transition(now, GroupState::CompletingRebalance);
        self.tell_generation(core, now);
    }

    fn tell_generation(&mut self, core: &mut Core, now: Now) {
        let members: Vec<MemberId> = self.members.keys().cloned().collect();
        for member_id in &members {
            let response = self.joined(member_id);
            self.complete_join(core, member_id, response);
            self.restart_session(core, now, member_id);
            if let Some(member) = self.members.get_mut(member_id) {
                member.is_new = false;
            }
        }
        self.pending_syncs = members.into_iter().collect();
        let sync = Timer::Sync(self.id.clone());
        core.timers
            .schedule(sync, now.monotonic, self.rebalance_timeout());
    }

    /// What a member of the present generation is told of it; the leader hears of all members.
    pub(super) fn joined(&self, member_id: &str) -> JoinResponse {
        let protocol = self.protocol_name.as_deref();
        let members = match self.is_leader(member_id) {
            true => self.members.values(),
            false => Default::default(),
        };
        JoinResponse {
            error_code: ErrorCode::NONE,
            generation_id: self.generation_id,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.as_deref().unwrap_or_default().to_owned(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: members.map(|one| one.for_leader(protocol)).collect(),
        }
    }

    /// A leader that has not come gives way to one that has. False when there is none.
    fn elect_joined_leader(&mut self) -> bool {
        let has_come = |group: &Self, id: &str| {
            let member = group.members.get(id);
            member.is_some_and(|member| member.awaiting_join.is_some())
        };
        if (self.leader.as_deref()).is_some_and(|leader| has_come(self, leader)) {
            return true;
        }
        let mut joined = self.members.values();
        let joined = joined.find(|member| member.awaiting_join.is_some());
        let joined = joined.map(|member| member.id.clone());
        let is_elected = joined.is_some();
        self.leader = joined.or(self.leader.take());
        is_elected
    }

    /// The time for syncs is over: who has not sent one is out.
    pub(super) fn on_sync_timer(&mut self, core: &mut Core, now: Now) {
        let expects = matches!(
            self.state,
            GroupState::CompletingRebalance | GroupState::Stable
        );
        if !expects || self.pending_syncs.is_empty() {
            return;
        }
        for member_id in std::mem::take(&mut self.pending_syncs) {
            self.remove(core, &member_id);
        }
        self.prepare_rebalance(core, now);
    }

    /// The group is stable again: one rebalance more, however often it began anew.
    pub(super) fn note_rebalance(&mut self, core: &mut Core, now: Now) {
        if let Some(since) = self.rebalance_since.take() {
            core.rebalances.record(now.monotonic.since(since));
            self.rebalances += 1;
        }
    }

    pub(super) fn assign_to_all(
        &mut self,
        core: &mut Core,
        mut assignment_of: impl FnMut(&str) -> Bytes,
    ) {
        let members: Vec<MemberId> = self.members.keys().cloned().collect();
        for member_id in members {
            let assignment = assignment_of(&member_id);
            self.assign(core, &member_id, assignment);
        }
    }

    /// Answers all syncs that wait, with the members' assignments or with a code.
    pub(super) fn answer_syncs(&mut self, core: &mut Core, now: Now, code: ErrorCode) {
        let members: Vec<MemberId> = self.members.keys().cloned().collect();
        for member_id in members {
            let response = match code.is_none() {
                true => self.synced(&member_id),
                false => SyncResponse::refused(code),
            };
            if self.complete_sync(core, &member_id, response) {
                self.restart_session(core, now, &member_id);
            }
        }
    }

    /// The member's assignment.
    pub(super) fn synced(&self, member_id: &str) -> SyncResponse {
        let member = self.members.get(member_id);
        SyncResponse {
            error_code: ErrorCode::NONE,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: member.map(|one| one.assignment.clone()).unwrap_or_default(),
        }
    }

    /// The member is alive now.
    pub(super) fn restart_session(&self, core: &mut Core, now: Now, member_id: &str) {
        if let Some(member) = self.members.get(member_id) {
            let session = Timer::Session(self.id.clone(), member.id.clone());
            core.timers
                .schedule(session, now.monotonic, member.session_timeout());
        }
    }
}
