//! Heartbeat, and sessions that end without one.

use super::core::{Core, Now};
use super::operation::Heartbeat;
use super::roster::Group;
use super::state::GroupState;
use crate::base::error_code::ErrorCode;

impl Group {
    /// Takes a heartbeat.
    pub(super) fn heartbeat(
        &self,
        core: &mut Core,
        now: Now,
        heartbeat: &Heartbeat,
    ) -> Result<(), ErrorCode> {
        self.validate(&heartbeat.member_id, heartbeat.instance_id.as_ref())?;
        if heartbeat.generation_id != self.generation_id {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.is_empty() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.restart_session(core, now, &heartbeat.member_id);
        match self.state {
            GroupState::PreparingRebalance => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            _ => Ok(()),
        }
    }

    /// A session has ended without a sign of life, or the wait for one that was given an id.
    pub(super) fn on_session_timer(&mut self, core: &mut Core, now: Now, member_id: &str) {
        if self.is_pending(member_id) {
            self.remove(core, member_id);
            self.complete_if_all_joined(core, now);
            return;
        }
        let member = self.members.get(member_id);
        if member.is_none_or(|member| member.has_satisfied_heartbeat()) {
            return;
        }
        self.remove(core, member_id);
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => {
                self.rebalance_or_complete(core, now);
            }
            _ => self.complete_if_all_joined(core, now),
        }
    }

    /// Also in the first rebalance, as in Kafka.
    fn complete_if_all_joined(&mut self, core: &mut Core, now: Now) {
        if self.state == GroupState::PreparingRebalance && self.have_all_joined() {
            self.complete_joins(core, now);
        }
    }
}
