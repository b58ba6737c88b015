//! AlterConfigs (33), versions 0 to 2: the whole of a resource's settings (KIP-133); clients of
//! today send IncrementalAlterConfigs.
//!
//! - Version 1 is as 0, 2 is flexible.

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// The settings that shall hold.
    pub struct AlterConfigsRequest(api_key 33, versions 0..=2, flexible 2) {
        resources: Vec<AlterConfigsResource> => 0..;
        validate_only: bool => 0..;
    }

    /// All settings of one topic, broker, or other resource; what is not named goes.
    pub struct AlterConfigsResource {
        /// `ConfigResource.Type`: 2 topic, 4 broker, 16 client metrics, 32 group.
        resource_type: i8 => 0..;
        resource_name: String => 0..;
        configs: Vec<AlterableConfig> => 0..;
    }

    /// One setting.
    pub struct AlterableConfig {
        name: String => 0..;
        value: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// How it went.
    pub struct AlterConfigsResponse(api_key 33, versions 0..=2, flexible 2) {
        throttle_time_ms: i32 => 0..;
        responses: Vec<AlterConfigsResourceResponse> => 0..;
    }

    /// How it went for one resource.
    pub struct AlterConfigsResourceResponse {
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        resource_type: i8 => 0..;
        resource_name: String => 0..;
    }
}
