//! DescribeClientQuotas (48), versions 0 to 1: limits of users, clients and addresses (KIP-546).
//!
//! - Version 1 is flexible.

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;
use crate::wire::primitives::Float64;

message! {
    /// Whose limits.
    pub struct DescribeClientQuotasRequest(api_key 48, versions 0..=1, flexible 1) {
        /// What an entity must have, each kind once.
        components: Vec<ComponentData> => 0..;
        /// Whether it may have nothing else.
        strict: bool => 0..;
    }

    /// What an entity must have.
    pub struct ComponentData {
        /// "user", "client-id" or "ip".
        entity_type: String => 0..;
        /// 0: this name; 1: the default; 2: any name.
        match_type: i8 => 0..;
        r#match: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// The limits.
    pub struct DescribeClientQuotasResponse(api_key 48, versions 0..=1, flexible 1) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        /// Null on an error.
        entries: Option<Vec<EntryData>> => 0.., nullable 0.., default Some(Vec::new());
    }

    /// One entity.
    pub struct EntryData {
        entity: Vec<EntityData> => 0..;
        values: Vec<ValueData> => 0..;
    }

    /// A part of what makes the entity.
    pub struct EntityData {
        entity_type: String => 0..;
        /// Null for the default.
        entity_name: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// One limit.
    pub struct ValueData {
        key: String => 0..;
        value: Float64 => 0..;
    }
}
