//! IncrementalAlterConfigs (44), versions 0 to 1: single changes of settings (KIP-339).
//!
//! - Version 1 is flexible.

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// The changes.
    pub struct IncrementalAlterConfigsRequest(api_key 44, versions 0..=1, flexible 1) {
        resources: Vec<AlterConfigsResource> => 0..;
        validate_only: bool => 0..;
    }

    /// The changes of one topic, broker, or other resource.
    pub struct AlterConfigsResource {
        /// `ConfigResource.Type`: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8 => 0..;
        resource_name: String => 0..;
        configs: Vec<AlterableConfig> => 0..;
    }

    /// One change.
    pub struct AlterableConfig {
        name: String => 0..;
        /// `AlterConfigOp.OpType`: 0 set, 1 delete, 2 append, 3 subtract.
        config_operation: i8 => 0..;
        /// Null for a deletion.
        value: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// How it went.
    pub struct IncrementalAlterConfigsResponse(api_key 44, versions 0..=1, flexible 1) {
        throttle_time_ms: i32 => 0..;
        responses: Vec<AlterConfigsResourceResponse> => 0..;
    }

    /// How it went for one resource: all of its changes were made, or none.
    pub struct AlterConfigsResourceResponse {
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        resource_type: i8 => 0..;
        resource_name: String => 0..;
    }
}
