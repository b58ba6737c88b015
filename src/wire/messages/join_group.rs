//! JoinGroup (11), versions 0 to 9: a client becomes, or stays, a member of a classic group.
//!
//! - Version 1 has a rebalance timeout of its own (KIP-62), 2 the throttle time, 4 sends a new
//!   member away with its id first (KIP-394), 5 names static members (KIP-345), 6 is flexible, 7
//!   answers with the protocol type (KIP-559), 8 gives a reason (KIP-800), 9 may tell the leader to
//!   keep the assignment (KIP-814).
//! - A member's metadata is a part of the received frame: whoever keeps it keeps the frame, and
//!   copies it where that is dearer.

use bytes::Bytes;

use crate::base::error_code::ErrorCode;
use crate::base::ids::GenerationId;
use crate::wire::codec::message;

message! {
    /// Who joins, and what it can do.
    pub struct JoinGroupRequest(api_key 11, versions 0..=9, flexible 6) {
        group_id: String => 0..;
        session_timeout_ms: i32 => 0..;
        /// -1 where version 0 cannot say; the session timeout counts then.
        rebalance_timeout_ms: i32 => 1.., ignorable, default -1;
        /// Empty for a member that has no id yet.
        member_id: String => 0..;
        group_instance_id: Option<String> => 5.., nullable 5..;
        /// "consumer", "connect", ...; all members of a group have the same.
        protocol_type: String => 0..;
        /// In the order of preference.
        protocols: Vec<JoinGroupRequestProtocol> => 0..;
        reason: Option<String> => 8.., nullable 8.., ignorable;
    }

    /// One way to assign that the member knows.
    pub struct JoinGroupRequestProtocol {
        name: String => 0..;
        /// Opaque: passed on to the leader.
        metadata: Bytes => 0..;
    }

    /// The generation that came of it.
    pub struct JoinGroupResponse(api_key 11, versions 0..=9, flexible 6) {
        throttle_time_ms: i32 => 2.., ignorable;
        error_code: ErrorCode => 0..;
        generation_id: GenerationId => 0.., default GenerationId::NONE;
        protocol_type: Option<String> => 7.., nullable 7.., ignorable;
        /// Null from version 7 on when there is none, empty before.
        protocol_name: Option<String> => 0.., nullable 7.., default Some(String::new());
        leader: String => 0..;
        /// The leader is to sync without assignments.
        skip_assignment: bool => 9..;
        member_id: String => 0..;
        /// All members for the leader, none for the others.
        members: Vec<JoinGroupResponseMember> => 0..;
    }

    /// A member as the leader sees it.
    pub struct JoinGroupResponseMember {
        member_id: String => 0..;
        group_instance_id: Option<String> => 5.., nullable 5.., ignorable;
        /// For the protocol that was chosen.
        metadata: Bytes => 0..;
    }
}

impl JoinGroupResponse {
    /// This response as a client of `version` may see it: below 7 a protocol that is not there has
    /// an empty name, not a null one (`JoinGroupResponse`).
    #[must_use]
    pub fn for_version(mut self, version: i16) -> Self {
        if version < 7 {
            self.protocol_name.get_or_insert_default();
        }
        self
    }
}
