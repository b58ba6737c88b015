//! Heartbeat (12), versions 0 to 4: a member of a classic group is alive, and learns of rebalances.
//!
//! - Version 1 adds the throttle time, 3 names static members (KIP-345), 4 is flexible.

use crate::base::error_code::ErrorCode;
use crate::base::ids::GenerationId;
use crate::wire::codec::message;

message! {
    /// Who is alive.
    pub struct HeartbeatRequest(api_key 12, versions 0..=4, flexible 4) {
        group_id: String => 0..;
        generation_id: GenerationId => 0..;
        member_id: String => 0..;
        group_instance_id: Option<String> => 3.., nullable 3..;
    }

    /// Whether all is well, or the member is to join again.
    pub struct HeartbeatResponse(api_key 12, versions 0..=4, flexible 4) {
        throttle_time_ms: i32 => 1.., ignorable;
        error_code: ErrorCode => 0..;
    }
}
