//! ListConfigResources (74), versions 0 to 1: the names of what has settings.
//!
//! - Version 0 was ListClientMetricsResources (KIP-714) and lists client metrics only; 1 lists any
//!   kind (KIP-1142). Both are flexible.

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// Which kinds to list.
    pub struct ListConfigResourcesRequest(api_key 74, versions 0..=1, flexible 0) {
        /// `ConfigResource.Type`: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group;
        /// all of them when empty.
        resource_types: Vec<i8> => 1..;
    }

    /// The names.
    pub struct ListConfigResourcesResponse(api_key 74, versions 0..=1, flexible 0) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 0..;
        config_resources: Vec<ConfigResource> => 0..;
    }

    /// One resource.
    pub struct ConfigResource {
        resource_name: String => 0..;
        resource_type: i8 => 1.., ignorable, default 16;
    }
}
