//! Consumer groups over real sockets: joins that wait, commits that last, coordinators on every
//! shard, restarts and kills.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod assign;
mod book;
#[path = "../broker/mod.rs"]
mod broker;
mod churn;
mod compaction;
mod gone;
mod input;
mod member;
mod metrics;

use std::time::{Duration, Instant};

use broker::process::Process;
use broker::{Client, Harness, HarnessOptions, requests};
use bytes::Bytes;
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex};
use coreline::wire::messages::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
use coreline::wire::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup,
};
use coreline::wire::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use coreline::wire::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use coreline::wire::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use coreline::wire::messages::leave_group::{
    LeaveGroupRequest, LeaveGroupResponse, MemberIdentity,
};
use coreline::wire::messages::list_groups::{ListGroupsRequest, ListGroupsResponse};
use coreline::wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use coreline::wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use coreline::wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
};
use coreline::wire::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};

fn options(shards: usize) -> HarnessOptions {
    HarnessOptions {
        shards,
        set: |config| {
            config.groups.topic_partitions = 8;
            config.groups.initial_rebalance_delay = Duration::from_millis(100);
            config.groups.session_timeout_min = Duration::from_millis(10);
        },
        ..HarnessOptions::default()
    }
}

fn find(client: &mut Client) {
    let request = FindCoordinatorRequest {
        coordinator_keys: vec!["g".to_owned()],
        ..FindCoordinatorRequest::default()
    };
    let found: FindCoordinatorResponse = client.ask(&request, 4);
    assert!(found.coordinators[0].error_code.is_none(), "{found:?}");
}

fn join_request(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 20_000,
        member_id: member_id.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".to_owned(),
            metadata: Bytes::from_static(b"\0\x01\0\0\0\x01\0\x01t\0\0\0\0\0\0\0\0"),
        }],
        ..JoinGroupRequest::default()
    }
}

/// Until the coordinator is loaded.
fn join(client: &mut Client, group: &str, member_id: &str) -> JoinGroupResponse {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let told: JoinGroupResponse = client.ask(&join_request(group, member_id), 3);
        let is_loading = told.error_code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
        if !is_loading || Instant::now() > deadline {
            return told;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn sync(client: &mut Client, joined: &JoinGroupResponse, group: &str) -> SyncGroupResponse {
    let given = joined
        .members
        .iter()
        .map(|member| SyncGroupRequestAssignment {
            member_id: member.member_id.clone(),
            assignment: Bytes::from(format!("of {}", member.member_id)),
        });
    let request = SyncGroupRequest {
        group_id: group.to_owned(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: given.collect(),
        ..SyncGroupRequest::default()
    };
    client.ask(&request, 3)
}

fn heartbeat(client: &mut Client, joined: &JoinGroupResponse, group: &str) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: group.to_owned(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..HeartbeatRequest::default()
    };
    let told: HeartbeatResponse = client.ask(&request, 3);
    told.error_code
}

fn commit_request(group: &str, offsets: &[(&str, i32, i64)]) -> OffsetCommitRequest {
    let topic = |(name, index, offset): &(&str, i32, i64)| OffsetCommitRequestTopic {
        name: (*name).to_owned(),
        partitions: vec![OffsetCommitRequestPartition {
            partition_index: PartitionIndex(*index),
            committed_offset: Offset(*offset),
            committed_leader_epoch: LeaderEpoch(0),
            committed_metadata: Some("m".to_owned()),
        }],
    };
    OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: offsets.iter().map(topic).collect(),
        ..OffsetCommitRequest::default()
    }
}

fn commit(client: &mut Client, group: &str, offsets: &[(&str, i32, i64)]) -> Vec<ErrorCode> {
    let told: OffsetCommitResponse = client.ask(&commit_request(group, offsets), 8);
    let partitions = told.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|one| one.error_code).collect()
}

/// Every offset of a group whose coordinator is loaded.
fn all_of(client: &mut Client, group: &str) -> Vec<i64> {
    let told: OffsetFetchResponse = client.ask(&requests::fetch_all_offsets(&[group]), 8);
    let partitions = told.groups[0].topics.iter().flat_map(|one| &one.partitions);
    partitions.map(|one| one.committed_offset.0).collect()
}

/// The offset of partition 0 of "t"; waits until the coordinator is loaded.
fn fetched(client: &mut Client, group: &str) -> i64 {
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: "t".to_owned(),
                partition_indexes: vec![PartitionIndex(0)],
            }]),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let told: OffsetFetchResponse = client.ask(&request, 8);
        let group = &told.groups[0];
        if group.error_code.is_none() {
            return group.topics[0].partitions[0].committed_offset.0;
        }
        let code = group.error_code;
        assert_eq!(code, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        assert!(Instant::now() < deadline, "it is never loaded");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn described(client: &mut Client, groups: &[&str]) -> Vec<DescribedGroup> {
    let request = DescribeGroupsRequest {
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        include_authorized_operations: true,
    };
    let told: DescribeGroupsResponse = client.ask(&request, 5);
    told.groups
}

#[test]
fn a_group_lives_its_life_wherever_its_connections_are() {
    let mut harness = Harness::start(options(2));
    harness.create_topic("t", 1);
    let mut clients: Vec<Client> = (0..4).map(|_| harness.connect()).collect();
    find(&mut clients[0]);
    for group in ["one", "two", "three"] {
        for client in &mut clients {
            client.send(&join_request(group, ""), 3);
        }
        let mut joined: Vec<JoinGroupResponse> = clients
            .iter_mut()
            .map(|client| client.receive(3).1)
            .collect();
        if joined[0].error_code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS {
            for client in &mut clients {
                client.send(&join_request(group, ""), 3);
            }
            joined = clients
                .iter_mut()
                .map(|client| client.receive(3).1)
                .collect();
        }
        assert!(
            joined.iter().all(|one| one.error_code.is_none()),
            "{joined:?}"
        );
        assert!(
            joined
                .iter()
                .all(|one| one.generation_id == GenerationId(1))
        );
        let leader = joined
            .iter()
            .position(|one| !one.members.is_empty())
            .unwrap();
        assert_eq!(joined[leader].members.len(), 4);
        let told = sync(&mut clients[leader], &joined[leader], group);
        assert!(told.error_code.is_none());
        for (client, one) in clients.iter_mut().zip(&joined) {
            let told = sync(client, one, group);
            assert_eq!(told.assignment, format!("of {}", one.member_id));
            assert!(heartbeat(client, one, group).is_none());
        }
        let leave = LeaveGroupRequest {
            group_id: group.to_owned(),
            members: (joined.iter().skip(1))
                .map(|one| MemberIdentity {
                    member_id: one.member_id.clone(),
                    ..MemberIdentity::default()
                })
                .collect(),
            ..LeaveGroupRequest::default()
        };
        let left: LeaveGroupResponse = clients[0].ask(&leave, 4);
        assert!(left.members.iter().all(|one| one.error_code.is_none()));
        let code = heartbeat(&mut clients[0], &joined[0], group);
        assert_eq!(code, ErrorCode::REBALANCE_IN_PROGRESS);
        let again = join(&mut clients[0], group, &joined[0].member_id);
        assert_eq!(again.generation_id, GenerationId(2));
    }
    let listed: ListGroupsResponse = clients[0].ask(&ListGroupsRequest::default(), 4);
    assert_eq!(listed.groups.len(), 3);
    assert!(
        listed
            .groups
            .iter()
            .all(|one| one.group_state == "CompletingRebalance")
    );
}

#[test]
fn the_topic_of_offsets_is_made_as_kafka_makes_it() {
    let mut harness = Harness::start(options(2));
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    let early = commit(&mut client, "g", &[("t", 0, 1)]);
    assert_eq!(early, [ErrorCode::NOT_COORDINATOR]);
    find(&mut client);
    let request = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some("__consumer_offsets".to_owned()),
            ..MetadataRequestTopic::default()
        }]),
        ..MetadataRequest::default()
    };
    let told: MetadataResponse = client.ask(&request, 9);
    let topic = &told.topics[0];
    assert!(topic.is_internal);
    assert_eq!((topic.partitions.len(), topic.error_code.0), (8, 0));
    find(&mut client);
}

#[test]
fn commits_and_groups_are_there_again_after_a_restart() {
    let options = options(2);
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 2);
    let mut client = harness.connect();
    find(&mut client);
    assert_eq!(fetched(&mut client, "simple"), -1);
    let joined = join(&mut client, "g", "");
    assert!(sync(&mut client, &joined, "g").error_code.is_none());
    for offset in 0..20 {
        assert_eq!(
            commit(&mut client, "simple", &[("t", 0, offset)]),
            [ErrorCode::NONE]
        );
    }
    let before = described(&mut client, &["g", "simple", "none"]);
    let states: Vec<_> = before.iter().map(|one| one.group_state.as_str()).collect();
    assert_eq!(states, ["Stable", "Empty", "Dead"]);
    assert_eq!(before[0].members.len(), 1);
    harness.restart(&options);
    let mut client = harness.connect();
    assert_eq!(fetched(&mut client, "simple"), 19);
    fetched(&mut client, "g");
    assert_eq!(described(&mut client, &["g", "simple", "none"]), before);
    assert!(heartbeat(&mut client, &joined, "g").is_none());
    let told = sync(&mut client, &joined, "g");
    assert_eq!(told.assignment, format!("of {}", joined.member_id));
}

/// More than is read at a time while the coordinator is loaded.
#[test]
fn commits_of_many_megabytes_are_loaded_to_the_last() {
    const PARTITIONS: i32 = 60;
    const COMMITS: i64 = 50;
    let options = options(2);
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", PARTITIONS);
    let mut client = harness.connect();
    find(&mut client);
    fetched(&mut client, "g");
    let offsets = |commit| (0..PARTITIONS).map(move |index| ("t", index, commit));
    for number in 0..COMMITS {
        let mut request = commit_request("g", &[]);
        request.topics = offsets(number)
            .map(|one| commit_request("g", &[one]).topics.remove(0))
            .collect();
        for topic in &mut request.topics {
            topic.partitions[0].committed_metadata = Some("m".repeat(4_000));
        }
        let told: OffsetCommitResponse = client.ask(&request, 8);
        let mut partitions = told.topics.iter().flat_map(|topic| &topic.partitions);
        assert!(partitions.all(|one| one.error_code.is_none()), "{told:?}");
    }
    commit(&mut client, "g", &[("t", 0, COMMITS)]);
    harness.restart(&options);
    let mut client = harness.connect();
    assert_eq!(fetched(&mut client, "g"), COMMITS);
    let last = all_of(&mut client, "g");
    let mut expected = vec![COMMITS - 1; PARTITIONS as usize];
    expected[0] = COMMITS;
    assert_eq!(last, expected);
}

#[test]
fn what_is_committed_for_nothing_is_refused_and_deleted_topics_are_forgotten() {
    let mut harness = Harness::start(options(2));
    let topic_id = harness.create_topic("t", 1);
    harness.create_topic("u", 1);
    let mut client = harness.connect();
    find(&mut client);
    assert_eq!(fetched(&mut client, "g"), -1);
    let told = commit(
        &mut client,
        "g",
        &[("t", 0, 5), ("none", 0, 5), ("u", 1, 5)],
    );
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(told, [unknown, unknown, ErrorCode::NONE]);
    assert_eq!(fetched(&mut client, "g"), 5);
    harness.delete_topic(topic_id);
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    let deadline = Instant::now() + Duration::from_secs(5);
    while fetched(&mut client, "g") != -1 {
        assert!(Instant::now() < deadline, "the offset stays");
    }
}

#[test]
fn groups_are_deleted_when_they_are_empty() {
    let mut harness = Harness::start(options(2));
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    find(&mut client);
    fetched(&mut client, "simple");
    let joined = join(&mut client, "g", "");
    commit(&mut client, "simple", &[("t", 0, 5)]);
    let request = DeleteGroupsRequest {
        groups_names: ["g", "simple", "none", ""].map(str::to_owned).to_vec(),
    };
    let told: DeleteGroupsResponse = client.ask(&request, 2);
    let codes: Vec<_> = told.results.iter().map(|one| one.error_code.0).collect();
    assert_eq!(codes, [68, 0, 69, 69]);
    assert_eq!(fetched(&mut client, "simple"), -1);
    assert!(joined.error_code.is_none());
}

/// The acknowledged commit is never lost, also where the broker has no time to say goodbye.
#[test]
fn a_kill_keeps_what_was_acknowledged() {
    let kills = if std::env::var_os("CORELINE_ACCEPT").is_some() {
        60
    } else {
        2
    };
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = -1;
    for kill in 0..kills {
        let process = Process::start(folder.path());
        let mut client = Client::connect(process.address);
        if kill == 0 {
            client.create_topic_with("t", 1, &[]);
        }
        find(&mut client);
        assert!(fetched(&mut client, "g") >= acknowledged, "kill {kill}");
        // Members whose rebalance the kill cuts short.
        let mut member = Client::connect(process.address);
        member.send(&join_request("h", ""), 3);
        let until = Instant::now() + Duration::from_millis(150 + 37 * (kill % 5));
        while Instant::now() < until {
            let next = acknowledged + 1;
            assert_eq!(
                commit(&mut client, "g", &[("t", 0, next)]),
                [ErrorCode::NONE]
            );
            acknowledged = next;
        }
        client.send(&commit_request("g", &[("t", 0, acknowledged + 1)]), 8);
        process.kill();
    }
    let process = Process::start(folder.path());
    let mut client = Client::connect(process.address);
    assert!(fetched(&mut client, "g") >= acknowledged);
    // Members of a group that the kills cut short come in again.
    let joined = join(&mut client, "h", "");
    assert!(joined.error_code.is_none(), "{joined:?}");
}
