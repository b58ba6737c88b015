//! SyncGroup.

use std::collections::HashMap;

use bytes::Bytes;

use super::core::{AfterWrite, Core, Now, Ticket};
use super::ids::MemberId;
use super::operation::Sync;
use super::response::{Response, SyncResponse};
use super::roster::Group;
use super::state::GroupState;
use super::timers::Timer;
use crate::base::error_code::ErrorCode;
use crate::base::ids::GenerationId;

impl Group {
    /// Takes a sync; the answer may wait for the leader's, and that until it is stored.
    pub(super) fn sync(&mut self, core: &mut Core, ticket: Ticket, sync: Sync) {
        let checked = self.check_sync(&sync);
        let response = match (checked, self.state) {
            (Err(code), _) => SyncResponse::refused(code),
            (Ok(()), GroupState::CompletingRebalance) if !self.has_room_for(core, &sync) => {
                SyncResponse::refused(ErrorCode::COORDINATOR_NOT_AVAILABLE)
            }
            (Ok(()), GroupState::CompletingRebalance) => {
                self.await_sync(core, &sync.member_id, ticket);
                self.has_synced(core, &sync.member_id);
                if self.is_leader(&sync.member_id) {
                    self.store_assignment(core, sync);
                }
                return;
            }
            (Ok(()), GroupState::Stable) => {
                self.has_synced(core, &sync.member_id);
                self.synced(&sync.member_id)
            }
            (Ok(()), _) => SyncResponse::refused(ErrorCode::REBALANCE_IN_PROGRESS),
        };
        core.answer(ticket, Response::Sync(response));
    }

    fn check_sync(&self, sync: &Sync) -> Result<(), ErrorCode> {
        if self.is_empty() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.validate(&sync.member_id, sync.instance_id.as_ref())?;
        if sync.generation_id != self.generation_id {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let differs = |told: &Option<String>, own: &Option<String>| {
            told.is_some() && own.is_some() && told != own
        };
        let is_inconsistent = differs(&sync.protocol_type, &self.protocol_type)
            || differs(&sync.protocol_name, &self.protocol_name);
        match is_inconsistent {
            true => Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL),
            false => Ok(()),
        }
    }

    /// Whether what a leader assigns fits into memory, beside what goes for it.
    fn has_room_for(&self, core: &Core, sync: &Sync) -> bool {
        if !self.is_leader(&sync.member_id) {
            return true;
        }
        let given = sync.assignments.iter().map(|one| one.assignment.len());
        let known = self.members.values().map(|one| one.assignment.len());
        let growth = given.sum::<usize>().saturating_sub(known.sum());
        growth == 0 || core.charge.has_room(growth)
    }

    fn has_synced(&mut self, core: &mut Core, member_id: &str) {
        self.pending_syncs.remove(member_id);
        if self.pending_syncs.is_empty() {
            core.timers.cancel(&Timer::Sync(self.id.clone()));
        }
    }

    /// A member for whom the leader has nothing gets an empty assignment.
    fn store_assignment(&mut self, core: &mut Core, sync: Sync) {
        let given = sync.assignments.into_iter();
        let assignments: HashMap<MemberId, Bytes> = given
            .filter(|one| self.members.contains_key(&one.member_id))
            .map(|one| (one.member_id, one.assignment))
            .collect();
        let record = self.to_record(|member| {
            let assignment = assignments.get(&member.id);
            assignment.cloned().unwrap_or_default()
        });
        let after = AfterWrite::StoreAssignment {
            group_id: self.id.clone(),
            generation_id: self.generation_id,
            assignments,
        };
        core.write(vec![record], after);
    }

    /// The assignment is stored, or could not be. It counts only if the group still waits for it.
    pub(super) fn assignment_stored(
        &mut self,
        core: &mut Core,
        now: Now,
        generation_id: GenerationId,
        result: Result<HashMap<MemberId, Bytes>, ErrorCode>,
    ) {
        let awaits = self.state == GroupState::CompletingRebalance;
        if !awaits || self.generation_id != generation_id {
            return;
        }
        match result {
            Ok(mut assignments) => {
                self.assign_to_all(core, |id| assignments.remove(id).unwrap_or_default());
                self.answer_syncs(core, now, ErrorCode::NONE);
                self.transition(now, GroupState::Stable);
                self.note_rebalance(core, now);
            }
            Err(code) => {
                self.assign_to_all(core, |_| Bytes::new());
                self.answer_syncs(core, now, code);
                self.rebalance_or_complete(core, now);
            }
        }
    }
}
