//! ApiVersions (18), versions 0 to 4: which keys and versions the broker serves, and its features.
//!
//! - Every client's first request on a connection; it comes before authentication.
//! - Version 3 is flexible (KIP-482) and carries the client's software name and version (KIP-511)
//!   and the features (KIP-584); the response's *header* stays version 0 in every version.
//! - Below version 4 a supported feature whose minimum is 0 is left out (KAFKA-17492):
//!   [`ApiVersionsResponse::for_version`].
//! - A request in a version unknown here is answered in the layout of version 0 with
//!   UNSUPPORTED_VERSION and this key's range alone (KIP-511): [`unsupported_version_response`].
//!
//! Not served: version 5 (KIP-1242), whose cluster and node id the structs do not have.

use crate::base::error_code::ErrorCode;
use crate::base::ids::ApiKey;
use crate::wire::codec::{Message, message};

message! {
    /// What the client is.
    pub struct ApiVersionsRequest(api_key 18, versions 0..=4, flexible 3) {
        /// Checked by the server against Kafka's pattern of a software name.
        client_software_name: String => 3.., ignorable;
        client_software_version: String => 3.., ignorable;
    }

    /// What the broker serves.
    pub struct ApiVersionsResponse(api_key 18, versions 0..=4, flexible 3) {
        error_code: ErrorCode => 0..;
        /// In the order of their keys.
        api_keys: Vec<ApiVersion> => 0..;
        /// Milliseconds for which the connection is muted after this answer (KIP-219).
        throttle_time_ms: i32 => 1.., ignorable;
        supported_features: Vec<SupportedFeatureKey> => 3.., tag 0, ignorable;
        /// Metadata offset at which the features were read; -1 makes clients ignore them.
        finalized_features_epoch: i64 => 3.., tag 1, ignorable, default -1;
        finalized_features: Vec<FinalizedFeatureKey> => 3.., tag 2, ignorable;
        zk_migration_ready: bool => 3.., tag 3, ignorable;
    }

    /// The versions served of one key, both ends inclusive.
    pub struct ApiVersion {
        api_key: ApiKey => 0..;
        min_version: i16 => 0..;
        max_version: i16 => 0..;
    }

    /// The levels of one feature that this broker knows, both ends inclusive.
    pub struct SupportedFeatureKey {
        name: String => 3..;
        min_version: i16 => 3..;
        max_version: i16 => 3..;
    }

    /// The level of one feature that the cluster has settled on.
    pub struct FinalizedFeatureKey {
        name: String => 3..;
        max_version_level: i16 => 3..;
        min_version_level: i16 => 3..;
    }
}

impl ApiVersionsResponse {
    /// This response as a client of `version` may see it: below 4, supported features whose
    /// minimum is 0 are left out, since those clients refuse them (KAFKA-17492).
    #[must_use]
    pub fn for_version(mut self, version: i16) -> Self {
        if version < 4 {
            self.supported_features
                .retain(|feature| feature.min_version > 0);
        }
        self
    }
}

/// The answer to a version unknown here; to be encoded in version 0 whatever was asked.
#[must_use]
pub fn unsupported_version_response() -> ApiVersionsResponse {
    let versions = <ApiVersionsRequest as Message>::VERSIONS;
    ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: vec![ApiVersion {
            api_key: <ApiVersionsRequest as Message>::API_KEY,
            min_version: *versions.start(),
            max_version: *versions.end(),
        }],
        ..ApiVersionsResponse::default()
    }
}
