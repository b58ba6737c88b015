//! A classic group and its members.

use bytes::Bytes;

use crate::base::ids::GenerationId;
use crate::base::time::TimestampMs;
use crate::wire::codec::message;

message! {
    /// Which group.
    pub struct GroupMetadataKey(record_type 2, versions 0..=0) {
        group: String => 0..;
    }

    /// The group after a rebalance. Kafka writes version 3; version 1 added the rebalance timeout,
    /// 2 the time of the last change, 3 static members, 4 is flexible.
    pub struct GroupMetadataValue(data, versions 0..=4, flexible 4) {
        protocol_type: String => 0..;
        generation: GenerationId => 0..;
        /// Null in an empty group.
        protocol: Option<String> => 0.., nullable 0.., default Some(String::new());
        /// Member id of the leader; null in an empty group.
        leader: Option<String> => 0.., nullable 0.., default Some(String::new());
        current_state_timestamp: TimestampMs => 2.., ignorable, default TimestampMs::NONE;
        members: Vec<MemberMetadata> => 0..;
    }

    /// One member.
    pub struct MemberMetadata {
        member_id: String => 0..;
        group_instance_id: Option<String> => 3.., nullable 3.., ignorable;
        client_id: String => 0..;
        client_host: String => 0..;
        /// In milliseconds; -1 where version 0 cannot say.
        rebalance_timeout: i32 => 1.., ignorable, default -1;
        /// In milliseconds.
        session_timeout: i32 => 0..;
        /// For the protocol chosen.
        subscription: Bytes => 0..;
        assignment: Bytes => 0..;
    }
}
