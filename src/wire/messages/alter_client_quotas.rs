//! AlterClientQuotas (49), versions 0 to 1: limits for users, clients and addresses (KIP-546).
//!
//! - Version 1 is flexible.

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;
use crate::wire::primitives::Float64;

message! {
    /// The changes.
    pub struct AlterClientQuotasRequest(api_key 49, versions 0..=1, flexible 1) {
        entries: Vec<EntryData> => 0..;
        validate_only: bool => 0..;
    }

    /// The changes of one entity.
    pub struct EntryData {
        entity: Vec<EntityData> => 0..;
        ops: Vec<OpData> => 0..;
    }

    /// A part of what makes the entity.
    pub struct EntityData {
        /// "user", "client-id" or "ip".
        entity_type: String => 0..;
        /// Null for the default.
        entity_name: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// One limit.
    pub struct OpData {
        key: String => 0..;
        value: Float64 => 0..;
        /// Whether it goes; the value is of no use then.
        remove: bool => 0..;
    }

    /// What became of each.
    pub struct AlterClientQuotasResponse(api_key 49, versions 0..=1, flexible 1) {
        throttle_time_ms: i32 => 0..;
        entries: Vec<AlteredEntry> => 0..;
    }

    /// What became of one entity.
    pub struct AlteredEntry {
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        entity: Vec<EntityData> => 0..;
    }
}
