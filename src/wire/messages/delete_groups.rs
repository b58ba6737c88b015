//! DeleteGroups (42), versions 0 to 2: groups without members go, with their offsets (KIP-229).
//!
//! - Version 1 answers before it throttles (KIP-219), 2 is flexible.
//!
//! Not served: version 3, whose message the structs do not have.

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// Which groups.
    pub struct DeleteGroupsRequest(api_key 42, versions 0..=2, flexible 2) {
        groups_names: Vec<String> => 0..;
    }

    /// What became of each.
    pub struct DeleteGroupsResponse(api_key 42, versions 0..=2, flexible 2) {
        throttle_time_ms: i32 => 0..;
        results: Vec<DeletableGroupResult> => 0..;
    }

    /// What became of one group.
    pub struct DeletableGroupResult {
        group_id: String => 0..;
        error_code: ErrorCode => 0..;
    }
}
