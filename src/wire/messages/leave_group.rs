//! LeaveGroup (13), versions 0 to 5: members leave a group, of their own or by an operator's hand.
//!
//! - Version 1 adds the throttle time, 3 lets several leave, static ones by their instance id
//!   (KIP-345), 4 is flexible, 5 gives a reason (KIP-800).

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// Who leaves.
    pub struct LeaveGroupRequest(api_key 13, versions 0..=5, flexible 4) {
        group_id: String => 0..;
        /// The one member, below version 3.
        member_id: String => 0..=2;
        /// The members, from version 3 on.
        members: Vec<MemberIdentity> => 3..;
    }

    /// One member: by its id, or, with an empty id, by its instance.
    pub struct MemberIdentity {
        member_id: String => 3..;
        group_instance_id: Option<String> => 3.., nullable 3..;
        reason: Option<String> => 5.., nullable 5.., ignorable;
    }

    /// What became of it.
    pub struct LeaveGroupResponse(api_key 13, versions 0..=5, flexible 4) {
        throttle_time_ms: i32 => 1.., ignorable;
        error_code: ErrorCode => 0..;
        members: Vec<MemberResponse> => 3..;
    }

    /// What became of one member.
    pub struct MemberResponse {
        member_id: String => 3..;
        group_instance_id: Option<String> => 3.., nullable 3.., default Some(String::new());
        error_code: ErrorCode => 3..;
    }
}

impl LeaveGroupResponse {
    /// This response as a client of `version` may see it: below 3 there is one member, and its
    /// error is the response's (`LeaveGroupResponse`).
    #[must_use]
    pub fn for_version(mut self, version: i16) -> Self {
        if version < 3 {
            let of_member = self.members.first().map(|member| member.error_code);
            if let (ErrorCode::NONE, Some(error_code)) = (self.error_code, of_member) {
                self.error_code = error_code;
            }
            self.members.clear();
        }
        self
    }
}
