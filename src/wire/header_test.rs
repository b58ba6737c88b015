use bytes::{BufMut, Bytes, BytesMut};

use super::any_request;
use super::api::{self, APIS};
use super::header::{HeaderError, RequestHeader};
use super::messages::api_versions::{ApiVersionsResponse, unsupported_version_response};
use super::primitives::{DecodeError, Reader, Writer};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{ApiKey, CorrelationId};
use crate::wire::codec::Message;

fn header_bytes(key: i16, version: i16, rest: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(key);
    bytes.put_i16(version);
    bytes.put_i32(77);
    bytes.put_slice(rest);
    bytes.freeze()
}

fn decode(bytes: Bytes) -> Result<(RequestHeader, usize), HeaderError> {
    let mut reader = Reader::new(bytes);
    let header = RequestHeader::decode(&mut reader)?;
    Ok((header, reader.remaining()))
}

#[test]
fn a_header_is_flexible_where_its_request_is() {
    for api in APIS {
        for version in api.versions() {
            let header = RequestHeader {
                api_key: api.key,
                api_version: version,
                correlation_id: CorrelationId(77),
                client_id: Some("me".into()),
            };
            let mut writer = Writer::default();
            header.encode(api, &mut writer).unwrap();
            let bytes = writer.into_bytes();
            // The client id has a length of 2 bytes in either version.
            let tags: &[u8] = if api.is_flexible(version) { &[0] } else { &[] };
            let rest = [&[0, 2, b'm', b'e'][..], tags].concat();
            assert_eq!(bytes, header_bytes(api.key.0, version, &rest));
            assert_eq!(decode(bytes), Ok((header, 0)));
        }
    }
}

#[test]
fn a_null_client_id_and_unknown_tags_are_read() {
    let (header, left) = decode(header_bytes(3, 9, &[0xff, 0xff, 1, 5, 2, 0, 0, 42])).unwrap();
    assert_eq!(header.client_id, None);
    assert_eq!(left, 1, "the body is left");
}

#[test]
fn keys_and_versions_that_are_not_served_are_refused() {
    let unknown = decode(header_bytes(999, 0, &[0, 0]));
    assert_eq!(unknown, Err(HeaderError::UnsupportedApiKey(ApiKey(999))));
    for api in APIS.iter().filter(|api| api.name != "ApiVersions") {
        for version in [api.version_min - 1, api.version_max + 1, i16::MAX, i16::MIN] {
            assert_eq!(
                decode(header_bytes(api.key.0, version, &[0, 0, 0])),
                Err(HeaderError::UnsupportedVersion {
                    api_key: api.key,
                    version
                })
            );
        }
    }
}

#[test]
fn every_request_that_is_served_can_be_read_by_its_key() {
    for api in APIS {
        for version in api.versions() {
            let tags: &[u8] = if api.is_flexible(version) { &[0] } else { &[] };
            let header = header_bytes(api.key.0, version, &[&[0, 0], tags].concat());
            let read = any_request::read_any(BytesMut::from(header.as_ref()));
            let unknown = matches!(read, Err(HeaderError::UnsupportedApiKey(_)));
            assert!(!unknown, "{} {version}: {read:?}", api.name);
        }
    }
}

#[test]
fn a_header_that_ends_early_is_malformed() {
    let whole = header_bytes(3, 9, &[0, 2, b'm', b'e', 0]);
    for end in 0..whole.len() {
        assert_eq!(
            decode(whole.slice(..end)),
            Err(HeaderError::Malformed(DecodeError::Truncated)),
            "after {end} bytes"
        );
    }
}

#[test]
fn api_versions_is_answered_in_any_version() {
    let (header, _) = decode(header_bytes(18, 5, &[0, 0, 0, 9, 9])).unwrap();
    assert!(!header.is_version_served());
    let (header, _) = decode(header_bytes(18, 4, &[0, 0, 0])).unwrap();
    assert!(header.is_version_served());

    let answer = unsupported_version_response();
    let mut writer = Writer::default();
    answer.encode(&mut writer, 0).unwrap();
    // Error 35, one key, its range: as Kafka answers (`ApiVersionsRequest.getErrorResponse`).
    let expected = [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4];
    assert_eq!(writer.into_bytes(), &expected[..]);
    assert_eq!(answer.error_code, ErrorCode::UNSUPPORTED_VERSION);
}

#[test]
fn old_clients_are_not_told_of_features_that_start_at_zero() {
    let response = || ApiVersionsResponse {
        supported_features: [("a", 0), ("b", 1)]
            .map(
                |(name, min_version)| super::messages::api_versions::SupportedFeatureKey {
                    name: name.into(),
                    min_version,
                    max_version: 2,
                },
            )
            .to_vec(),
        ..ApiVersionsResponse::default()
    };
    let names = |version| {
        let features = response().for_version(version).supported_features;
        features
            .iter()
            .map(|feature| feature.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(3), ["b"]);
    assert_eq!(names(4), ["a", "b"]);
}

#[test]
fn the_advertised_table_is_the_one_that_is_ordered() {
    let advertised: Vec<_> = api::advertised()
        .iter()
        .map(|range| (range.api_key.0, range.min_version, range.max_version))
        .collect();
    assert_eq!(
        advertised,
        [
            (0, 0, 13),
            (1, 4, 18),
            (2, 1, 11),
            (3, 0, 13),
            (8, 2, 9),
            (9, 1, 9),
            (10, 0, 6),
            (11, 0, 9),
            (12, 0, 4),
            (13, 0, 5),
            (14, 0, 5),
            (15, 0, 6),
            (16, 0, 5),
            (18, 0, 4),
            (19, 2, 7),
            (20, 1, 6),
            (21, 0, 2),
            (22, 0, 5),
            (23, 2, 4),
            (32, 1, 4),
            (33, 0, 2),
            (34, 1, 2),
            (35, 1, 4),
            (37, 0, 3),
            (42, 0, 2),
            (43, 0, 2),
            (44, 0, 1),
            (45, 0, 1),
            (46, 0, 0),
            (47, 0, 0),
            (48, 0, 1),
            (49, 0, 1),
            (50, 0, 0),
            (55, 0, 2),
            (57, 0, 2),
            (60, 0, 2),
            (61, 0, 0),
            (74, 0, 1),
            (75, 0, 0),
        ]
    );
    for api in APIS {
        assert_eq!(api::find(api.key), Some(api));
        assert_eq!(
            api.advertised_min != api.version_min,
            api.name == "Produce",
            "only Produce is advertised below what is served"
        );
    }
}
