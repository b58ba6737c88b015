use bytes::{BufMut, Bytes, BytesMut};

use super::api;
use super::frame::{
    FrameError, FrameLimits, Progress, encode_request, encode_response, inspect, split,
};
use super::header;
use crate::base::ids::{ApiKey, CorrelationId, Offset};
use crate::base::limits::{FRAME_BYTES_MAX_OTHER, FRAME_BYTES_MAX_UNAUTHENTICATED};
use crate::wire::codec::Message;
use crate::wire::header::RequestHeader;
use crate::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use crate::wire::messages::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
use crate::wire::primitives::Reader;

fn limits() -> FrameLimits {
    FrameLimits::authenticated(100 * 1024 * 1024)
}

fn frame(length: i32, body: &[u8]) -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_i32(length);
    bytes.put_slice(body);
    bytes
}

#[test]
fn a_request_comes_out_as_it_went_in_whatever_the_pieces() {
    let request = ApiVersionsRequest {
        client_software_name: "name".into(),
        client_software_version: "1".into(),
    };
    let pieces = encode_request(&request, 4, CorrelationId(7), Some("me")).unwrap();
    let wire: Vec<u8> = pieces.concat();
    let mut buffer = BytesMut::new();
    for (place, byte) in wire.iter().enumerate() {
        assert_eq!(
            split(&mut buffer, &limits()),
            Ok(None),
            "after {place} bytes"
        );
        buffer.put_u8(*byte);
    }
    buffer.put_u8(9);
    let body = split(&mut buffer, &limits()).unwrap().unwrap();
    assert_eq!(buffer.as_ref(), [9]);
    let mut reader = Reader::new(body);
    let header = RequestHeader::decode(&mut reader).unwrap();
    assert_eq!(header.api_key, ApiKey(18));
    assert_eq!(header.client_id.as_deref(), Some("me"));
    assert_eq!(
        ApiVersionsRequest::decode(&mut reader, header.api_version),
        Ok(request)
    );
}

#[test]
fn lengths_are_judged_at_their_limits() {
    let all = limits();
    let produce = [0, 0];
    let fetch = [0, 1];
    for (key, bytes_max) in [
        (produce, all.produce_bytes_max),
        (fetch, FRAME_BYTES_MAX_OTHER),
    ] {
        let at = frame(bytes_max as i32, &key);
        let progress = inspect(&at, &all);
        assert!(
            matches!(progress, Ok(Progress::Partial { .. })),
            "{progress:?}"
        );
        let past = frame(bytes_max as i32 + 1, &key);
        assert_eq!(
            inspect(&past, &all),
            Err(FrameError::TooLarge {
                bytes: bytes_max + 1,
                bytes_max
            })
        );
    }
    let before = FrameLimits::UNAUTHENTICATED;
    let bytes = FRAME_BYTES_MAX_UNAUTHENTICATED as i32;
    assert!(inspect(&frame(bytes, &produce), &before).is_ok());
    assert!(inspect(&frame(bytes + 1, &produce), &before).is_err());
    assert_eq!(
        inspect(&frame(-1, &[]), &all),
        Err(FrameError::Negative(-1))
    );
    assert_eq!(inspect(&frame(9, &[]), &all), Err(FrameError::TooShort(9)));
    assert_eq!(inspect(&frame(10, &[]), &all), Ok(Progress::Peeking));
}

#[test]
fn what_is_no_kafka_is_refused_at_its_first_bytes() {
    for hello in [
        &b"GET / HTTP/1.1\r\n"[..],
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc][..],
    ] {
        let refused = inspect(hello, &limits());
        assert!(
            matches!(refused, Err(FrameError::TooLarge { .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn a_large_length_without_a_key_asks_for_no_more_than_the_key() {
    let all = limits();
    let long = all.produce_bytes_max as i32;
    assert_eq!(inspect(&frame(long, &[]), &all), Ok(Progress::Peeking));
    assert_eq!(inspect(&frame(long, &[0]), &all), Ok(Progress::Peeking));
    let refused = inspect(&frame(long, &[0, 1]), &all);
    assert!(matches!(refused, Err(FrameError::TooLarge { .. })));
}

#[test]
fn a_response_counts_its_bytes_and_shares_its_records() {
    let records = Bytes::from(vec![7u8; 4096]);
    let response = FetchResponse {
        responses: vec![FetchableTopicResponse {
            partitions: vec![PartitionData {
                high_watermark: Offset(5),
                records: Some(vec![records.clone(), Bytes::from_static(b"end")].into()),
                ..PartitionData::default()
            }],
            ..FetchableTopicResponse::default()
        }],
        ..FetchResponse::default()
    };
    for version in FetchResponse::VERSIONS {
        let pieces = encode_response(&response, version, CorrelationId(3)).unwrap();
        assert!(
            pieces
                .iter()
                .any(|piece| piece.as_ptr() == records.as_ptr())
        );
        let whole: Vec<u8> = pieces.concat();
        let (length, rest) = whole.split_first_chunk::<4>().unwrap();
        assert_eq!(i32::from_be_bytes(*length) as usize, rest.len());
        let mut reader = Reader::new(Bytes::copy_from_slice(rest));
        let api = api::find(ApiKey(1)).unwrap();
        let id = header::decode_response_header(&mut reader, api, version).unwrap();
        assert_eq!(id, CorrelationId(3));
        let decoded = FetchResponse::decode(&mut reader, version).unwrap();
        assert_eq!(decoded, response, "version {version}");
    }
}

#[test]
fn an_api_versions_response_never_has_a_tagged_section_in_its_header() {
    for version in ApiVersionsResponse::VERSIONS {
        let pieces =
            encode_response(&ApiVersionsResponse::default(), version, CorrelationId(1)).unwrap();
        let whole = pieces.concat();
        // Length, correlation id, then at once the error code and an empty array.
        let array: &[u8] = if version >= 3 { &[1] } else { &[0; 4] };
        assert_eq!(whole[4..10], [0, 0, 0, 1, 0, 0]);
        assert!(whole[10..].starts_with(array));
    }
}
