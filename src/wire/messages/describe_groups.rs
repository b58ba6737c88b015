//! DescribeGroups (15), versions 0 to 6: classic groups with their members.
//!
//! - Version 1 adds the throttle time, 3 permitted operations (KIP-430), 4 static members
//!   (KIP-345), 5 is flexible, 6 answers GROUP_ID_NOT_FOUND with a message (KIP-1043), where
//!   earlier ones answer with a group that is dead.

use bytes::Bytes;

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// Which groups.
    pub struct DescribeGroupsRequest(api_key 15, versions 0..=6, flexible 5) {
        groups: Vec<String> => 0..;
        include_authorized_operations: bool => 3..;
    }

    /// The groups.
    pub struct DescribeGroupsResponse(api_key 15, versions 0..=6, flexible 5) {
        throttle_time_ms: i32 => 1.., ignorable;
        groups: Vec<DescribedGroup> => 0..;
    }

    /// One group.
    pub struct DescribedGroup {
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 6.., nullable 6..;
        group_id: String => 0..;
        /// "Empty", "PreparingRebalance", "CompletingRebalance", "Stable" or "Dead".
        group_state: String => 0..;
        protocol_type: String => 0..;
        /// The protocol chosen, in a stable group.
        protocol_data: String => 0..;
        members: Vec<DescribedGroupMember> => 0..;
        /// A bit for each `AclOperation`; the smallest number when not asked for.
        authorized_operations: i32 => 3.., default i32::MIN;
    }

    /// One member.
    pub struct DescribedGroupMember {
        member_id: String => 0..;
        group_instance_id: Option<String> => 4.., nullable 4.., ignorable;
        client_id: String => 0..;
        client_host: String => 0..;
        /// For the protocol chosen, in a stable group.
        member_metadata: Bytes => 0..;
        /// In a stable group.
        member_assignment: Bytes => 0..;
    }
}
