//! What members should not send: Kafka's codes, bounded memory, and never a group that stands still.

use std::time::{Duration, Instant};

use bytes::Bytes;
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex};
use coreline::wire::messages::describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse};
use coreline::wire::messages::heartbeat::HeartbeatRequest;
use coreline::wire::messages::join_group::{JoinGroupRequest, JoinGroupResponse};
use coreline::wire::messages::leave_group::{
    LeaveGroupRequest, LeaveGroupResponse, MemberIdentity,
};
use coreline::wire::messages::list_groups::{ListGroupsRequest, ListGroupsResponse};
use coreline::wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use coreline::wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
};
use coreline::wire::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};

use crate::broker::{Client, Harness};
use crate::{
    commit_request, described, fetched, find, heartbeat, join, join_request, member, options, sync,
};

fn start() -> (Harness, Client) {
    let mut harness = Harness::start(options(2));
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    find(&mut client);
    fetched(&mut client, "g");
    (harness, client)
}

fn codes(told: &OffsetCommitResponse) -> Vec<i16> {
    let partitions = told.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|one| one.error_code.0).collect()
}

#[test]
fn strangers_and_old_generations_are_refused_and_change_nothing() {
    let (_harness, mut client) = start();
    let joined = join(&mut client, "g", "");
    assert!(sync(&mut client, &joined, "g").error_code.is_none());
    let mut refused = |change: &dyn Fn(&mut JoinGroupRequest)| {
        let mut request = join_request("g", "");
        change(&mut request);
        let told: JoinGroupResponse = client.ask(&request, 5);
        told.error_code.0
    };
    assert_eq!(refused(&|one| one.group_id.clear()), 24);
    assert_eq!(refused(&|one| one.member_id = "stranger".into()), 25);
    assert_eq!(refused(&|one| one.session_timeout_ms = 9), 26);
    assert_eq!(refused(&|one| one.session_timeout_ms = i32::MIN), 26);
    assert_eq!(refused(&|one| one.session_timeout_ms = i32::MAX), 26);
    assert_eq!(refused(&|one| one.protocols.clear()), 23);
    assert_eq!(refused(&|one| one.protocol_type = "connect".into()), 23);
    assert_eq!(refused(&|one| one.protocols[0].name = "other".into()), 23);
    let mut beat = |member_id: &str, generation| {
        let request = HeartbeatRequest {
            group_id: "g".to_owned(),
            generation_id: GenerationId(generation),
            member_id: member_id.to_owned(),
            ..HeartbeatRequest::default()
        };
        let told: coreline::wire::messages::heartbeat::HeartbeatResponse = client.ask(&request, 3);
        told.error_code.0
    };
    assert_eq!(beat(&joined.member_id, 0), 22);
    assert_eq!(beat(&joined.member_id, i32::MAX), 22);
    assert_eq!(beat("stranger", 1), 25);
    let mut committed = |member_id: &str, generation, topic: &str, metadata: usize| {
        let mut request = commit_request("g", &[(topic, 0, 3)]);
        request.member_id = member_id.to_owned();
        request.generation_id_or_member_epoch = GenerationId(generation);
        let one = &mut request.topics[0].partitions[0];
        one.committed_metadata = Some("m".repeat(metadata));
        let told: OffsetCommitResponse = client.ask(&request, 7);
        codes(&told)
    };
    let own = joined.member_id.as_str();
    assert_eq!(committed("", -1, "t", 0), [25]);
    assert_eq!(committed("stranger", 1, "t", 0), [25]);
    assert_eq!(committed(own, 0, "t", 0), [22]);
    assert_eq!(committed(own, 2, "t", 0), [22]);
    assert_eq!(committed(own, 1, "none", 0), [3]);
    assert_eq!(committed(own, 1, "t", 4_097), [12]);
    let mut given = |member_id: &str, generation| {
        let request = SyncGroupRequest {
            group_id: "g".to_owned(),
            generation_id: GenerationId(generation),
            member_id: member_id.to_owned(),
            ..SyncGroupRequest::default()
        };
        let told: SyncGroupResponse = client.ask(&request, 3);
        told.error_code.0
    };
    assert_eq!((given("stranger", 1), given(own, 7)), (25, 22));
    assert_eq!(fetched(&mut client, "g"), -1);
    assert!(heartbeat(&mut client, &joined, "g").is_none());
    assert_eq!(described(&mut client, &["g"])[0].group_state, "Stable");
}

/// Where one part of a commit does not fit, nothing of it is acknowledged.
#[test]
fn a_commit_that_is_too_large_is_refused_whole() {
    let mut harness = Harness::start(options(1));
    harness.create_topic("t", 1_010);
    let mut client = harness.connect();
    find(&mut client);
    fetched(&mut client, "g");
    let commit = |metadata: usize| {
        let one = |index| OffsetCommitRequestPartition {
            partition_index: PartitionIndex(index),
            committed_offset: Offset(7),
            committed_leader_epoch: LeaderEpoch(0),
            committed_metadata: Some("m".repeat(metadata)),
        };
        OffsetCommitRequest {
            group_id: "g".to_owned(),
            topics: vec![OffsetCommitRequestTopic {
                name: "t".to_owned(),
                partitions: (0..1_010).map(one).collect(),
            }],
            ..OffsetCommitRequest::default()
        }
    };
    let told: OffsetCommitResponse = client.ask(&commit(4_000), 8);
    assert!(codes(&told).iter().all(|code| *code == -1), "{told:?}");
    assert_eq!(fetched(&mut client, "g"), -1);
    let told: OffsetCommitResponse = client.ask(&commit(10), 8);
    assert!(codes(&told).iter().all(|code| *code == 0));
    assert_eq!(fetched(&mut client, "g"), 7);
}

#[test]
fn a_flood_of_joins_keeps_nobody_out() {
    let (harness, mut client) = start();
    let mut flood = harness.connect();
    let mut request = join_request("g", "");
    request.session_timeout_ms = 1_800_000;
    request.rebalance_timeout_ms = i32::MAX;
    const FLOOD: usize = 2_000;
    for _ in 0..FLOOD {
        flood.send(&request, 5);
    }
    for _ in 0..FLOOD {
        let (_, told): (_, JoinGroupResponse) = flood.receive(5);
        assert_eq!(told.error_code, ErrorCode::MEMBER_ID_REQUIRED);
    }
    // Its rebalance waits for those that were given ids, but no longer than it said itself.
    let mut request = join_request("g", "");
    request.rebalance_timeout_ms = 300;
    let began = Instant::now();
    let joined: JoinGroupResponse = client.ask(&request, 3);
    assert!(joined.error_code.is_none(), "{joined:?}");
    assert!(sync(&mut client, &joined, "g").error_code.is_none());
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(described(&mut client, &["g"])[0].members.len(), 1);
}

#[test]
fn a_member_that_never_syncs_holds_up_the_others_for_its_rebalance_timeout_alone() {
    let (harness, mut silent) = start();
    let mut other = harness.connect();
    let mut request = join_request("g", "");
    request.rebalance_timeout_ms = 500;
    request.session_timeout_ms = 5_000;
    silent.send(&request, 3);
    std::thread::sleep(Duration::from_millis(20));
    other.send(&request, 3);
    let (_, leader): (_, JoinGroupResponse) = silent.receive(3);
    let (_, joined): (_, JoinGroupResponse) = other.receive(3);
    assert_eq!(leader.leader, leader.member_id, "who comes first leads");
    assert_eq!(leader.members.len(), 2);
    // The leader says nothing more. The other waits for its assignment, and is told to come again.
    let began = Instant::now();
    let told = sync(&mut other, &joined, "g");
    assert_eq!(told.error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    request.member_id.clone_from(&joined.member_id);
    let again: JoinGroupResponse = other.ask(&request, 3);
    assert!(again.error_code.is_none(), "{again:?}");
    assert_eq!(
        (again.members.len(), again.generation_id),
        (1, GenerationId(2))
    );
    assert!(sync(&mut other, &again, "g").error_code.is_none());
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    let late = sync(&mut silent, &leader, "g");
    assert_eq!(late.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

/// Members whose metadata do not fit into one record of `__consumer_offsets`: the group cannot be
/// stored, says so, and goes on when they are gone.
#[test]
fn a_group_that_does_not_fit_into_its_record_is_told_and_recovers() {
    let (harness, mut client) = start();
    let mut request = join_request("g", "");
    let mut metadata = member::subscription("t").to_vec();
    metadata.resize(2 << 20, 0);
    request.protocols[0].metadata = Bytes::from(metadata);
    let large: JoinGroupResponse = client.ask(&request, 3);
    assert!(large.error_code.is_none(), "{large:?}");
    let told = sync(&mut client, &large, "g");
    assert_eq!(told.error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    let leave = LeaveGroupRequest {
        group_id: "g".to_owned(),
        members: vec![MemberIdentity {
            member_id: large.member_id,
            ..MemberIdentity::default()
        }],
        ..LeaveGroupRequest::default()
    };
    let left: LeaveGroupResponse = client.ask(&leave, 4);
    assert!(left.error_code.is_none(), "{left:?}");
    let mut other = harness.connect();
    let joined = join(&mut other, "g", "");
    assert!(joined.error_code.is_none(), "{joined:?}");
    assert!(sync(&mut other, &joined, "g").error_code.is_none());
}

#[test]
fn names_of_groups_may_be_empty_only_where_kafka_lets_them() {
    let (_harness, mut client) = start();
    // A client without a group of its own may commit under the empty name.
    let told: OffsetCommitResponse = client.ask(&commit_request("", &[("t", 0, 5)]), 8);
    assert_eq!(codes(&told), [0]);
    assert_eq!(fetched(&mut client, ""), 5);
    let leave = LeaveGroupRequest::default();
    let left: LeaveGroupResponse = client.ask(&leave, 4);
    assert_eq!(left.error_code, ErrorCode::INVALID_GROUP_ID);
    let given: SyncGroupResponse = client.ask(&SyncGroupRequest::default(), 3);
    assert_eq!(given.error_code, ErrorCode::INVALID_GROUP_ID);
    let long = "g".repeat(i16::MAX as usize);
    let told: OffsetCommitResponse = client.ask(&commit_request(&long, &[("t", 0, 6)]), 8);
    assert_eq!(codes(&told), [0]);
    assert_eq!(fetched(&mut client, &long), 6);
    let listed: ListGroupsResponse = client.ask(&ListGroupsRequest::default(), 4);
    assert!(listed.groups.iter().any(|one| one.group_id == long));
}

/// A request of 20 kB would else be answered with 2 GB.
#[test]
fn a_group_is_described_once_however_often_it_is_named() {
    let (_harness, mut client) = start();
    let mut request = join_request("fat", "");
    request.protocols[0].metadata = Bytes::from(vec![7; 500_000]);
    let joined: JoinGroupResponse = client.ask(&request, 3);
    assert!(sync(&mut client, &joined, "fat").error_code.is_none());
    let mut groups = vec!["fat".to_owned(); 4_000];
    groups.push("none".to_owned());
    let request = DescribeGroupsRequest {
        groups,
        ..DescribeGroupsRequest::default()
    };
    let told: DescribeGroupsResponse = client.ask(&request, 5);
    let names: Vec<&str> = (told.groups.iter())
        .map(|one| one.group_id.as_str())
        .collect();
    assert_eq!(names, ["fat", "none"]);
    assert_eq!(told.groups[0].members[0].member_metadata.len(), 500_000);
}

/// An unknown name costs a look, however many there are beside it.
#[test]
fn very_many_unknown_topics_are_answered_soon() {
    let (_harness, mut client) = start();
    let topic = |number: i32| OffsetDeleteRequestTopic {
        name: number.to_string(),
        partitions: vec![OffsetDeleteRequestPartition::default()],
    };
    let told: OffsetCommitResponse = client.ask(&commit_request("g", &[("t", 0, 3)]), 7);
    assert_eq!(codes(&told), [0]);
    let request = OffsetDeleteRequest {
        group_id: "g".to_owned(),
        topics: (0..60_000).map(topic).collect(),
    };
    let began = Instant::now();
    let told: OffsetDeleteResponse = client.ask(&request, 0);
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!((told.error_code.0, told.topics.len()), (0, 60_000));
}
