//! ApiVersions (18), versions 0 to 4 (KIP-35, KIP-511, KIP-584).
//!
//! - A version that is not known is answered in version 0 with UNSUPPORTED_VERSION and this key's
//!   own range (KIP-511); dispatch does that, since the body cannot be read.
//! - From version 3 on a client names its software; a name outside Kafka's pattern is
//!   INVALID_REQUEST.
//! - Below version 4 supported features whose minimum is 0 are left out (KAFKA-17492).
//! - Finalized features: only those whose meaning is served. A log that Apache Kafka wrote may hold
//!   others, such as `transaction.version`; publishing them would promise what is not there.

use crate::base::error_code::ErrorCode;
use crate::cluster::decide::{KRAFT_VERSION, KRAFT_VERSIONS, METADATA_VERSIONS};
use crate::cluster::image::{Image, METADATA_VERSION};
use crate::server::context::RequestContext;
use crate::wire::api;
use crate::wire::header::RequestHeader;
use crate::wire::messages::api_versions::{
    ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};

/// First version that names the client's software.
const SOFTWARE_FROM: i16 = 3;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: ApiVersionsRequest,
) -> ApiVersionsResponse {
    respond(&context.image(), &request, header.api_version)
}

/// The response to `request`. Pure.
#[must_use]
pub fn respond(image: &Image, request: &ApiVersionsRequest, version: i16) -> ApiVersionsResponse {
    let names = [
        &request.client_software_name,
        &request.client_software_version,
    ];
    if version >= SOFTWARE_FROM && !names.into_iter().all(|name| is_software_name(name)) {
        return ApiVersionsResponse {
            error_code: ErrorCode::INVALID_REQUEST,
            ..ApiVersionsResponse::default()
        };
    }
    let feature = |name: &str, (min_version, max_version)| SupportedFeatureKey {
        name: name.to_owned(),
        min_version,
        max_version,
    };
    let supported = vec![
        feature(KRAFT_VERSION, KRAFT_VERSIONS),
        feature(METADATA_VERSION, METADATA_VERSIONS),
    ];
    let finalized = image.features().get(METADATA_VERSION);
    let finalized = finalized.map(|level| FinalizedFeatureKey {
        name: METADATA_VERSION.to_owned(),
        max_version_level: *level,
        min_version_level: *level,
    });
    ApiVersionsResponse {
        api_keys: api::advertised(),
        supported_features: supported,
        finalized_features_epoch: image.end_offset().0 - 1,
        finalized_features: finalized.into_iter().collect(),
        ..ApiVersionsResponse::default()
    }
    .for_version(version)
}

/// Kafka's pattern `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`.
fn is_software_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let ends = [name.bytes().next(), name.bytes().next_back()];
    ends.iter()
        .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && name.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{ApiKey, BrokerId, LeaderEpoch, Offset};
    use crate::cluster::records::{FeatureLevelRecord, MetadataRecord};

    fn image() -> Image {
        let mut image = Image::new("cluster", BrokerId(1));
        for (name, level) in [("metadata.version", 25), ("transaction.version", 2)] {
            let record = FeatureLevelRecord {
                name: name.into(),
                feature_level: level,
            };
            image.apply(&MetadataRecord::FeatureLevel(record)).unwrap();
        }
        image.advance_to(Offset(8), LeaderEpoch(1));
        image
    }

    fn request(name: &str, version: &str) -> ApiVersionsRequest {
        ApiVersionsRequest {
            client_software_name: name.into(),
            client_software_version: version.into(),
        }
    }

    #[test]
    fn features_are_published_as_far_as_they_are_served() {
        let response = respond(&image(), &request("a", "1"), 4);
        assert_eq!(response.finalized_features_epoch, 7);
        let [level] = &response.finalized_features[..] else {
            panic!("{response:?}");
        };
        assert_eq!(
            (level.name.as_str(), level.max_version_level),
            (METADATA_VERSION, 25)
        );
        let names = |response: &ApiVersionsResponse| -> Vec<String> {
            let features = response.supported_features.iter();
            features.map(|feature| feature.name.clone()).collect()
        };
        assert_eq!(names(&response), [KRAFT_VERSION, METADATA_VERSION]);
        let older = respond(&image(), &request("a", "1"), 3);
        assert_eq!(names(&older), [METADATA_VERSION]);
        let produce = response
            .api_keys
            .iter()
            .find(|api| api.api_key == ApiKey(0));
        assert_eq!(produce.map(|api| api.min_version), Some(0));
    }

    #[test]
    fn a_client_names_its_software_from_version_3_on() {
        let code = |name: &str, software: &str, version| {
            respond(&image(), &request(name, software), version).error_code
        };
        assert_eq!(code("apache-kafka-java", "4.4.0", 3), ErrorCode::NONE);
        assert_eq!(code("", "", 2), ErrorCode::NONE);
        for (name, software) in [
            ("", "1"),
            ("a b", "1"),
            ("-a", "1"),
            ("a", "1."),
            ("a", "ä"),
        ] {
            assert_eq!(
                code(name, software, 3),
                ErrorCode::INVALID_REQUEST,
                "{name} {software}"
            );
        }
    }
}
