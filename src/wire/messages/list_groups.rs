//! ListGroups (16), versions 0 to 5: the groups that this broker coordinates.
//!
//! - Version 1 adds the throttle time, 3 is flexible, 4 adds states and a filter for them
//!   (KIP-518), 5 the same for types (KIP-848).

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// Which groups; an empty filter lets all pass.
    pub struct ListGroupsRequest(api_key 16, versions 0..=5, flexible 3) {
        states_filter: Vec<String> => 4..;
        types_filter: Vec<String> => 5..;
    }

    /// The groups.
    pub struct ListGroupsResponse(api_key 16, versions 0..=5, flexible 3) {
        throttle_time_ms: i32 => 1.., ignorable;
        error_code: ErrorCode => 0..;
        groups: Vec<ListedGroup> => 0..;
    }

    /// One group.
    pub struct ListedGroup {
        group_id: String => 0..;
        protocol_type: String => 0..;
        group_state: String => 4.., ignorable;
        /// "classic", "consumer", ...
        group_type: String => 5.., ignorable;
    }
}
