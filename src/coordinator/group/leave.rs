//! LeaveGroup.

use super::core::{Core, Now};
use super::operation::{Leave, LeavingMember};
use super::response::{LeaveResponse, LeftMember};
use super::roster::Group;
use super::state::GroupState;
use crate::base::error_code::ErrorCode;

impl Group {
    /// Lets members go; one rebalance follows for all of them.
    pub(super) fn leave(&mut self, core: &mut Core, now: Now, leave: Leave) -> LeaveResponse {
        let members = leave.members.into_iter();
        let members: Vec<LeftMember> = members
            .map(|leaving| LeftMember {
                error_code: match self.let_go(core, &leaving) {
                    Ok(()) => ErrorCode::NONE,
                    Err(code) => code,
                },
                member_id: leaving.member_id,
                instance_id: leaving.instance_id,
            })
            .collect();
        if members.iter().any(|member| member.error_code.is_none()) {
            match self.state {
                GroupState::Stable | GroupState::CompletingRebalance => {
                    self.rebalance_or_complete(core, now);
                }
                _ => self.maybe_complete_joins(core, now),
            }
        }
        LeaveResponse {
            error_code: ErrorCode::NONE,
            members,
        }
    }

    /// A static member may be named without its member id.
    fn let_go(&mut self, core: &mut Core, leaving: &LeavingMember) -> Result<(), ErrorCode> {
        let member_id = if leaving.member_id.is_empty() {
            let instance_id = leaving.instance_id.as_ref();
            let known = instance_id.and_then(|id| self.static_members.get(id));
            known.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?.clone()
        } else {
            if !self.is_pending(&leaving.member_id) {
                self.validate(&leaving.member_id, leaving.instance_id.as_ref())?;
            }
            leaving.member_id.clone()
        };
        self.remove(core, &member_id);
        Ok(())
    }
}
