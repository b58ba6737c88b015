//! SyncGroup (14), versions 0 to 5: the leader hands in the assignment, and every member takes its
//! own.
//!
//! - Version 1 adds the throttle time, 3 names static members (KIP-345), 4 is flexible, 5 states
//!   protocol type and name, which must be the group's (KIP-559).
//! - Assignments are opaque parts of the received frame.

use bytes::Bytes;

use crate::base::error_code::ErrorCode;
use crate::base::ids::GenerationId;
use crate::wire::codec::message;

message! {
    /// Who syncs; the leader with everyone's assignment.
    pub struct SyncGroupRequest(api_key 14, versions 0..=5, flexible 4) {
        group_id: String => 0..;
        generation_id: GenerationId => 0..;
        member_id: String => 0..;
        group_instance_id: Option<String> => 3.., nullable 3..;
        protocol_type: Option<String> => 5.., nullable 5.., ignorable;
        protocol_name: Option<String> => 5.., nullable 5.., ignorable;
        assignments: Vec<SyncGroupRequestAssignment> => 0..;
    }

    /// What one member is to do.
    pub struct SyncGroupRequestAssignment {
        member_id: String => 0..;
        assignment: Bytes => 0..;
    }

    /// What the member that asked is to do.
    pub struct SyncGroupResponse(api_key 14, versions 0..=5, flexible 4) {
        throttle_time_ms: i32 => 1.., ignorable;
        error_code: ErrorCode => 0..;
        protocol_type: Option<String> => 5.., nullable 5.., ignorable;
        protocol_name: Option<String> => 5.., nullable 5.., ignorable;
        assignment: Bytes => 0..;
    }
}
