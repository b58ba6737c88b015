use bytes::Bytes;

use super::codec::DataMessage;
use super::messages::consumer_protocol::{ConsumerProtocolSubscription, subscribed_topics};
use super::messages::group_records::{
    GroupMetadataKey, GroupRecordKey, OffsetCommitKey, encode_key,
};
use super::messages::join_group::JoinGroupResponse;
use super::messages::leave_group::{LeaveGroupResponse, MemberResponse};
use super::primitives::DecodeError;
use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;

#[test]
fn a_key_stands_behind_its_kind() {
    let offset = OffsetCommitKey {
        group: "g".to_owned(),
        topic: "t".to_owned(),
        partition: PartitionIndex(2),
    };
    let bytes = encode_key(&offset).unwrap();
    assert_eq!(bytes, &[0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 2][..]);
    let read = GroupRecordKey::Offset(offset);
    assert_eq!(GroupRecordKey::decode(bytes.clone()), Ok(read.clone()));
    let legacy = [&[0, 0], &bytes[2..]].concat();
    assert_eq!(GroupRecordKey::decode(Bytes::from(legacy)), Ok(read));

    let group = GroupMetadataKey {
        group: "g".to_owned(),
    };
    let bytes = encode_key(&group).unwrap();
    assert_eq!(bytes, &[0, 2, 0, 1, b'g'][..]);
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(
        GroupRecordKey::decode(bytes),
        Ok(GroupRecordKey::Group(group))
    );
    assert_eq!(
        GroupRecordKey::decode(Bytes::from(longer)),
        Err(DecodeError::TrailingBytes(1))
    );
}

#[test]
fn a_kind_unknown_here_is_no_error_but_half_a_kind_is() {
    let newer = Bytes::from_static(&[0, 3, 0, 1, b'g']);
    assert_eq!(
        GroupRecordKey::decode(newer),
        Ok(GroupRecordKey::Unknown(3))
    );
    let half = Bytes::from_static(&[0]);
    assert_eq!(GroupRecordKey::decode(half), Err(DecodeError::Truncated));
}

#[test]
fn the_topics_of_a_newer_subscription_are_read() {
    let subscription = ConsumerProtocolSubscription {
        topics: vec!["a".to_owned(), "b".to_owned()],
        ..ConsumerProtocolSubscription::default()
    };
    for version in <ConsumerProtocolSubscription as DataMessage>::VERSIONS {
        let bytes = subscription.encode_prefixed(version).unwrap();
        assert_eq!(subscribed_topics(bytes), Ok(subscription.topics.clone()));
    }
    let newest = subscription.encode_prefixed(3).unwrap();
    let newer = [&[0, 9], &newest[2..], &[1, 2, 3]].concat();
    assert_eq!(
        subscribed_topics(Bytes::from(newer)),
        Ok(subscription.topics.clone())
    );
    // What stands after the oldest version's fields is not looked at, nor is the version.
    let oldest = subscription.encode_prefixed(0).unwrap();
    for version in [[0, 1], [0, 3], [0x7f, 0xff], [0xff, 0xff]] {
        let cut = [&version, &oldest[2..]].concat();
        assert_eq!(
            subscribed_topics(Bytes::from(cut)),
            Ok(subscription.topics.clone())
        );
    }
}

#[test]
fn old_clients_see_an_empty_protocol_and_one_members_error() {
    let joined = JoinGroupResponse {
        protocol_name: None,
        ..JoinGroupResponse::default()
    };
    assert_eq!(joined.clone().for_version(7).protocol_name, None);
    let empty = Some(String::new());
    assert_eq!(joined.for_version(6).protocol_name, empty);

    let left = LeaveGroupResponse {
        members: vec![MemberResponse {
            error_code: ErrorCode::UNKNOWN_MEMBER_ID,
            ..MemberResponse::default()
        }],
        ..LeaveGroupResponse::default()
    };
    assert_eq!(left.clone().for_version(3), left);
    let old = left.for_version(2);
    assert_eq!(old.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(old.members.is_empty());
}
