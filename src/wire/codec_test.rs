use bytes::Bytes;

use super::codec::{DataMessage, Message, RecordMessage, message};
use super::messages::control_records::EndTxnMarker;
use super::messages::describe_topic_partitions::{Cursor, DescribeTopicPartitionsRequest};
use super::messages::fetch::FetchRequest;
use super::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use super::messages::metadata_records::{NoOpRecord, RecordFrame, TopicRecord, encode_framed};
use super::primitives::{DecodeError, EncodeError, Reader, Writer};
use crate::base::ids::{PartitionIndex, Uuid};

fn encode<M: Message>(message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut writer = Writer::default();
    message.encode(&mut writer, version)?;
    Ok(writer.into_bytes())
}

fn decode<M: Message>(bytes: &[u8], version: i16) -> Result<M, DecodeError> {
    M::decode(&mut Reader::new(Bytes::copy_from_slice(bytes)), version)
}

#[test]
fn defaults_are_kafkas() {
    let request = MetadataRequest::default();
    assert!(request.allow_auto_topic_creation);
    assert_eq!(request.topics, Some(vec![]));
    let request = FetchRequest::default();
    assert_eq!(request.max_bytes, i32::MAX);
    assert_eq!(request.session_epoch, -1);
    assert_eq!(request.cluster_id, None);
}

#[test]
fn a_version_that_cannot_carry_a_field_refuses_it_unless_it_may_be_left_out() {
    let request = MetadataRequest {
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    assert!(encode(&request, 4).is_ok());
    assert_eq!(
        encode(&request, 3),
        Err(EncodeError::FieldNotInVersion {
            field: "MetadataRequest.allow_auto_topic_creation",
            version: 3
        })
    );
    let request = FetchRequest {
        rack_id: "rack".into(),
        ..FetchRequest::default()
    };
    assert_eq!(
        decode(&encode(&request, 11).unwrap(), 11),
        Ok(request.clone())
    );
    assert_eq!(
        decode(&encode(&request, 10).unwrap(), 10),
        Ok(FetchRequest::default())
    );
}

#[test]
fn a_null_is_refused_where_the_version_allows_none() {
    let request = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    assert_eq!(
        decode(&encode(&request, 1).unwrap(), 1),
        Ok(request.clone())
    );
    assert_eq!(
        encode(&request, 0),
        Err(EncodeError::UnexpectedNull {
            field: "MetadataRequest.topics",
            version: 0
        })
    );
    let null = (-1i32).to_be_bytes();
    assert_eq!(
        decode::<MetadataRequest>(&null, 0),
        Err(DecodeError::UnexpectedNull)
    );
    // A topic's name may be null from version 10 on, not in 9.
    let flexible = [2, 0, 0, 1, 0, 0, 0];
    assert_eq!(
        decode::<MetadataRequest>(&flexible, 9),
        Err(DecodeError::UnexpectedNull)
    );
}

#[test]
fn all_topics_are_asked_for_as_each_version_says_it() {
    let empty = MetadataRequest::default();
    assert!(empty.asks_for_all_topics(0));
    assert!(!empty.asks_for_all_topics(1));
    let null = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    assert!(null.asks_for_all_topics(1));
    let one = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic::default()]),
        ..MetadataRequest::default()
    };
    assert!(!one.asks_for_all_topics(0));
}

#[test]
fn versions_outside_the_range_are_errors() {
    for version in [-1, 14, i16::MIN, i16::MAX] {
        assert_eq!(
            decode::<MetadataRequest>(&[], version),
            Err(DecodeError::UnsupportedVersion(version))
        );
        assert_eq!(
            encode(&MetadataRequest::default(), version),
            Err(EncodeError::UnsupportedVersion(version))
        );
    }
}

#[test]
fn a_nullable_struct_has_a_byte_before_it() {
    let mut request = DescribeTopicPartitionsRequest::default();
    let absent = encode(&request, 0).unwrap();
    assert_eq!(absent, &[1, 0, 0, 7, 0xd0, 0xff, 0][..]);
    request.cursor = Some(Cursor {
        topic_name: "t".into(),
        partition_index: PartitionIndex(3),
    });
    let present = encode(&request, 0).unwrap();
    assert_eq!(
        present,
        &[1, 0, 0, 7, 0xd0, 1, 2, b't', 0, 0, 0, 3, 0, 0][..]
    );
    assert_eq!(decode(&present, 0), Ok(request));
}

#[test]
fn a_record_stands_behind_its_frame() {
    let record = TopicRecord {
        name: "t".into(),
        topic_id: Uuid([9; 16]),
    };
    let bytes = encode_framed(&record, 0).unwrap();
    assert_eq!(&bytes[..5], [1, 2, 0, 2, b't']);
    let mut reader = Reader::new(bytes);
    let frame = RecordFrame::decode(&mut reader).unwrap();
    assert_eq!(frame.record_type, TopicRecord::TYPE);
    assert_eq!(TopicRecord::decode(&mut reader, frame.version), Ok(record));

    let empty = encode_framed(&NoOpRecord::default(), 0).unwrap();
    assert_eq!(empty, &[1, 20, 0, 0][..]);
    let other_frame = &[2, 20, 0, 0][..];
    assert_eq!(
        RecordFrame::decode(&mut Reader::new(Bytes::from_static(other_frame))),
        Err(DecodeError::UnsupportedVersion(2))
    );
}

#[test]
fn a_marker_stands_behind_its_version() {
    let marker = EndTxnMarker {
        coordinator_epoch: 7,
    };
    let bytes = marker.encode_prefixed(0).unwrap();
    assert_eq!(bytes, &[0, 0, 0, 0, 0, 7][..]);
    assert_eq!(EndTxnMarker::decode_prefixed(bytes), Ok(marker));
    let unknown = Bytes::from_static(&[0, 9, 0, 0, 0, 7]);
    assert_eq!(
        EndTxnMarker::decode_prefixed(unknown),
        Err(DecodeError::UnsupportedVersion(9))
    );
}

message! {
    /// Knows none of `Later`'s tags.
    pub struct Earlier(data, versions 0..=0, flexible 0) {
        first: i8 => 0..;
        nested: Vec<EarlierNested> => 0..;
    }

    /// Knows none of `LaterNested`'s tags.
    pub struct EarlierNested {
        name: String => 0..;
    }

    /// The same message, with tags added.
    pub struct Later(data, versions 0..=0, flexible 0) {
        first: i8 => 0..;
        nested: Vec<LaterNested> => 0..;
        added: Option<String> => 0.., nullable 0.., tag 3;
        also: i64 => 0.., tag 9, default -1;
    }

    /// The same nested struct, with a tag added.
    pub struct LaterNested {
        name: String => 0..;
        added: Vec<i32> => 0.., tag 0;
    }
}

#[test]
fn tags_unknown_here_are_stepped_over_and_missing_ones_keep_their_defaults() {
    let later = Later {
        first: 1,
        nested: vec![LaterNested {
            name: "n".into(),
            added: vec![1, 2],
        }],
        added: Some("text".into()),
        also: 5,
    };
    let mut writer = Writer::default();
    later.encode(&mut writer, 0).unwrap();
    let bytes = writer.into_bytes();
    assert_eq!(Later::decode(&mut Reader::new(bytes.clone()), 0), Ok(later));
    let earlier = Earlier::decode(&mut Reader::new(bytes), 0).unwrap();
    assert_eq!(earlier.first, 1);
    assert_eq!(earlier.nested[0].name, "n");

    let mut writer = Writer::default();
    earlier.encode(&mut writer, 0).unwrap();
    let later = Later::decode(&mut Reader::new(writer.into_bytes()), 0).unwrap();
    assert_eq!(later.also, -1);
    assert_eq!(later.added, None);
    assert_eq!(later.nested[0].added, Vec::<i32>::new());
}
