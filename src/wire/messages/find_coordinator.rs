//! FindCoordinator (10), versions 0 to 6: the broker that coordinates a group or a transaction.
//!
//! - Version 1 adds transactions, 3 is flexible, 4 asks for several keys at once (KIP-699), 5
//!   allows TRANSACTION_ABORTABLE (KIP-890), 6 share groups (KIP-932).
//! - librdkafka sends no lz4 batches to a broker without this key, and an assigned consumer's
//!   close waits for it.

use crate::base::error_code::ErrorCode;
use crate::base::ids::BrokerId;
use crate::wire::codec::message;

message! {
    /// Whose coordinators to find.
    pub struct FindCoordinatorRequest(api_key 10, versions 0..=6, flexible 3) {
        /// The group or transactional id, below version 4.
        key: String => 0..=3;
        /// 0: group; 1: transaction; 2: share group.
        key_type: i8 => 1..;
        /// The ids, from version 4 on.
        coordinator_keys: Vec<String> => 4..;
    }

    /// The coordinator below version 4, the coordinators from there on.
    pub struct FindCoordinatorResponse(api_key 10, versions 0..=6, flexible 3) {
        throttle_time_ms: i32 => 1.., ignorable;
        error_code: ErrorCode => 0..=3;
        error_message: Option<String>
            => 1..=3, nullable 1..=3, ignorable, default Some(String::new());
        node_id: BrokerId => 0..=3;
        host: String => 0..=3;
        port: i32 => 0..=3;
        coordinators: Vec<Coordinator> => 4..;
    }

    /// The coordinator of one key; node -1 on an error.
    pub struct Coordinator {
        key: String => 4..;
        node_id: BrokerId => 4..;
        host: String => 4..;
        port: i32 => 4..;
        error_code: ErrorCode => 4..;
        error_message: Option<String>
            => 4.., nullable 4.., ignorable, default Some(String::new());
    }
}
