//! DeleteTopics (20), versions 1 to 6: topics to delete, by name or by id.
//!
//! - Version 3 allows TOPIC_DELETION_DISABLED (KIP-322), 4 is flexible, 5 explains errors
//!   (KIP-599), 6 takes ids (KIP-516).

use crate::base::error_code::ErrorCode;
use crate::base::ids::Uuid;
use crate::wire::codec::message;

message! {
    /// The topics to delete.
    pub struct DeleteTopicsRequest(api_key 20, versions 1..=6, flexible 4) {
        /// From version 6 on.
        topics: Vec<DeleteTopicState> => 6..;
        /// Below version 6.
        topic_names: Vec<String> => 0..=5, ignorable;
        timeout_ms: i32 => 0..;
    }

    /// A topic by name, or by id with a null name.
    pub struct DeleteTopicState {
        name: Option<String> => 6.., nullable 6..;
        topic_id: Uuid => 6..;
    }

    /// What became of each topic.
    pub struct DeleteTopicsResponse(api_key 20, versions 1..=6, flexible 4) {
        throttle_time_ms: i32 => 0..;
        responses: Vec<DeletableTopicResult> => 0..;
    }

    /// A topic that is gone, or why not.
    pub struct DeletableTopicResult {
        name: Option<String> => 0.., nullable 6.., default Some(String::new());
        topic_id: Uuid => 6.., ignorable;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 5.., nullable 5.., ignorable;
    }
}
