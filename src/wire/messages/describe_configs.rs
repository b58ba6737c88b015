//! DescribeConfigs (32), versions 1 to 4: settings of topics and brokers, and where they come from.
//!
//! - Version 1 adds sources and synonyms (KIP-226), 3 types and documentation (KIP-569), 4 is
//!   flexible.

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// Whose settings to describe.
    pub struct DescribeConfigsRequest(api_key 32, versions 1..=4, flexible 4) {
        resources: Vec<DescribeConfigsResource> => 0..;
        include_synonyms: bool => 0..;
        include_documentation: bool => 3..;
    }

    /// One topic or broker.
    pub struct DescribeConfigsResource {
        /// `ConfigResource.Type`: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8 => 0..;
        resource_name: String => 0..;
        /// Null for all of them.
        configuration_keys: Option<Vec<String>> => 0.., nullable 0.., default Some(Vec::new());
    }

    /// The settings.
    pub struct DescribeConfigsResponse(api_key 32, versions 1..=4, flexible 4) {
        throttle_time_ms: i32 => 0..;
        results: Vec<DescribeConfigsResult> => 0..;
    }

    /// The settings of one topic or broker.
    pub struct DescribeConfigsResult {
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        resource_type: i8 => 0..;
        resource_name: String => 0..;
        configs: Vec<DescribeConfigsResourceResult> => 0..;
    }

    /// One setting.
    pub struct DescribeConfigsResourceResult {
        name: String => 0..;
        /// Null when it is a secret or not set.
        value: Option<String> => 0.., nullable 0.., default Some(String::new());
        read_only: bool => 0..;
        /// `DescribeConfigsResponse.ConfigSource`: 1 topic, 2 one broker's, 3 all brokers', 4 file,
        /// 5 default.
        config_source: i8 => 0.., default -1;
        is_sensitive: bool => 0..;
        synonyms: Vec<DescribeConfigsSynonym> => 0..;
        /// `DescribeConfigsResponse.ConfigType`: 1 boolean, 2 string, 3 int, 4 short, 5 long,
        /// 6 double, 7 list, 8 class, 9 password.
        config_type: i8 => 3.., ignorable;
        documentation: Option<String>
            => 3.., nullable 3.., ignorable, default Some(String::new());
    }

    /// A setting that gives the value where a nearer one does not; nearest first.
    pub struct DescribeConfigsSynonym {
        name: String => 0..;
        value: Option<String> => 0.., nullable 0.., default Some(String::new());
        source: i8 => 0..;
    }
}
