//! The keys of groups: refusals, a simple consumer's offsets, a member's life.
//!
//! Over 500 lines, as these cases ask both brokers through one set of requests and comparisons.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use coreline::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex};
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
use coreline::wire::messages::describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse};
use coreline::wire::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use coreline::wire::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use coreline::wire::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
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
use coreline::wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponse,
};
use coreline::wire::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};

use crate::session::{ALL, Peer, Session, Versions, from};

/// For both brokers.
pub const SETTINGS: &str = "group.initial.rebalance.delay.ms=200\n";

pub fn compare(session: &mut Session) {
    prepare(session);
    compare_refused_members(session);
    compare_offsets(session);
    compare_deletions(session);
    for version in [0, 3, 4, 5, 7, 9] {
        compare_member(session, version);
    }
    compare_static_member(session);
    compare_lists(session);
}

fn prepare(session: &mut Session) {
    let topic = |name: &str| CreatableTopic {
        name: name.to_owned(),
        num_partitions: 2,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let create = CreateTopicsRequest {
        topics: vec![topic("t"), topic("u")],
        timeout_ms: 10_000,
        ..CreateTopicsRequest::default()
    };
    let find = FindCoordinatorRequest {
        key: "g".to_owned(),
        ..FindCoordinatorRequest::default()
    };
    for peer in [&mut session.kafka, &mut session.coreline] {
        let _: CreateTopicsResponse = peer.ask(7, &create);
        for _ in 0..400 {
            let found: FindCoordinatorResponse = peer.ask(2, &find);
            let fetched: OffsetFetchResponse = peer.ask(5, &fetch_single("g", &[("t", &[0])]));
            if found.error_code.is_none() && fetched.error_code.is_none() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    session.learn();
}

fn join_of(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        member_id: member_id.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".to_owned(),
            metadata: Bytes::from_static(b"\0\x01\0\0\0\x01\0\x01t\0\0\0\0\0\0\0\0"),
        }],
        ..JoinGroupRequest::default()
    }
}

fn same<R>(_: &Peer, _: &mut R) {}

fn compare_refused_members(session: &mut Session) {
    let join = |case: &str, session: &mut Session, change: &dyn Fn(&mut JoinGroupRequest)| {
        let request = |_: &Peer| {
            let mut request = join_of("refused", "");
            change(&mut request);
            request
        };
        session.compare(case, ALL, request, same::<JoinGroupResponse>);
    };
    join("no group", session, &|one| one.group_id.clear());
    join("short session", session, &|one| {
        one.session_timeout_ms = 5_999
    });
    join("long session", session, &|one| {
        one.session_timeout_ms = 1_800_001
    });
    join("unknown member", session, &|one| {
        one.member_id = "x".to_owned()
    });
    join("no protocols", session, &|one| one.protocols.clear());
    join("no type", session, &|one| one.protocol_type.clear());
    for group in ["", "none", "refused"] {
        let beat = |_: &Peer| HeartbeatRequest {
            group_id: group.to_owned(),
            member_id: "x".to_owned(),
            ..HeartbeatRequest::default()
        };
        session.compare("stranger", ALL, beat, same::<HeartbeatResponse>);
        let sync = |_: &Peer| SyncGroupRequest {
            group_id: group.to_owned(),
            member_id: "x".to_owned(),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("range".to_owned()),
            ..SyncGroupRequest::default()
        };
        session.compare("stranger", ALL, sync, same::<SyncGroupResponse>);
        let nameless = |peer: &Peer| SyncGroupRequest {
            protocol_name: None,
            ..sync(peer)
        };
        session.compare("no protocol", ALL, nameless, same::<SyncGroupResponse>);
        let leave = |_: &Peer| LeaveGroupRequest {
            group_id: group.to_owned(),
            member_id: "x".to_owned(),
            ..LeaveGroupRequest::default()
        };
        session.compare("stranger", 0..=2, leave, same::<LeaveGroupResponse>);
        let leave = |_: &Peer| LeaveGroupRequest {
            group_id: group.to_owned(),
            members: ["x", ""].map(identity).to_vec(),
            ..LeaveGroupRequest::default()
        };
        session.compare("strangers", from(3), leave, same::<LeaveGroupResponse>);
    }
}

fn identity(member_id: &str) -> MemberIdentity {
    MemberIdentity {
        member_id: member_id.to_owned(),
        ..MemberIdentity::default()
    }
}

fn commit_of(group: &str, offsets: &[(&str, i32, Option<&str>)]) -> OffsetCommitRequest {
    let topic = |(name, index, metadata): &(&str, i32, Option<&str>)| OffsetCommitRequestTopic {
        name: (*name).to_owned(),
        partitions: vec![OffsetCommitRequestPartition {
            partition_index: PartitionIndex(*index),
            committed_offset: Offset(i64::from(*index) + 40),
            committed_leader_epoch: LeaderEpoch(0),
            committed_metadata: metadata.map(str::to_owned),
        }],
    };
    OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: offsets.iter().map(topic).collect(),
        ..OffsetCommitRequest::default()
    }
}

fn fetch_single(group: &str, topics: &[(&str, &[i32])]) -> OffsetFetchRequest {
    let topic = |(name, indexes): &(&str, &[i32])| OffsetFetchRequestTopic {
        name: (*name).to_owned(),
        partition_indexes: indexes.iter().map(|index| PartitionIndex(*index)).collect(),
    };
    OffsetFetchRequest {
        group_id: group.to_owned(),
        topics: Some(topics.iter().map(topic).collect()),
        ..OffsetFetchRequest::default()
    }
}

fn fetch_group(group: &str, topics: Option<&[(&str, &[i32])]>) -> OffsetFetchRequestGroup {
    let topic = |(name, indexes): &(&str, &[i32])| OffsetFetchRequestTopics {
        name: (*name).to_owned(),
        partition_indexes: indexes.iter().map(|index| PartitionIndex(*index)).collect(),
    };
    OffsetFetchRequestGroup {
        group_id: group.to_owned(),
        topics: topics.map(|topics| topics.iter().map(topic).collect()),
        ..OffsetFetchRequestGroup::default()
    }
}

/// - The order of topics and partitions, where all are asked for, is that of a hash table in Kafka.
fn even_fetched(_: &Peer, response: &mut OffsetFetchResponse) {
    response
        .topics
        .sort_by(|one, other| one.name.cmp(&other.name));
    for topic in &mut response.topics {
        topic.partitions.sort_by_key(|one| one.partition_index);
    }
    for group in &mut response.groups {
        group.topics.sort_by(|one, other| one.name.cmp(&other.name));
        for topic in &mut group.topics {
            topic.partitions.sort_by_key(|one| one.partition_index);
        }
    }
}

fn compare_offsets(session: &mut Session) {
    let commit = |session: &mut Session, case: &str, within: Versions, request| {
        let request: OffsetCommitRequest = request;
        session.compare(
            case,
            within,
            |_| request.clone(),
            same::<OffsetCommitResponse>,
        );
    };
    let offsets = [("t", 0, Some("m")), ("u", 1, None), ("t", 1, Some(""))];
    commit(
        session,
        "a simple consumer",
        ALL,
        commit_of("simple", &offsets),
    );
    let partly = [
        ("t", 0, Some("m")),
        ("t", 9, None),
        ("none", 0, None),
        ("t", -1, None),
    ];
    commit(
        session,
        "unknown partitions",
        ALL,
        commit_of("simple", &partly),
    );
    let long = "x".repeat(4_097);
    let large = [("t", 0, Some(long.as_str())), ("t", 1, Some("short"))];
    commit(session, "large metadata", ALL, commit_of("simple", &large));
    commit(session, "no topics", ALL, commit_of("simple", &[]));
    commit(
        session,
        "a group without a name",
        ALL,
        commit_of("", &offsets),
    );
    for group in ["unknown", "simple"] {
        let member = OffsetCommitRequest {
            member_id: "x".to_owned(),
            generation_id_or_member_epoch: GenerationId(3),
            ..commit_of(group, &offsets)
        };
        commit(session, "a stranger", ALL, member);
    }
    let wanted: &[(&str, &[i32])] = &[("t", &[0, 1, 9]), ("none", &[0]), ("u", &[1])];
    for group in ["simple", "unknown", ""] {
        let some = |_: &Peer| fetch_single(group, wanted);
        session.compare("some", 0..=7, some, even_fetched);
        let all = |_: &Peer| OffsetFetchRequest {
            topics: None,
            ..fetch_single(group, &[])
        };
        session.compare("all", 2..=7, all, even_fetched);
    }
    let groups = |require_stable| OffsetFetchRequest {
        groups: vec![
            fetch_group("simple", Some(wanted)),
            fetch_group("unknown", Some(wanted)),
            fetch_group("simple", None),
            fetch_group("", None),
        ],
        require_stable,
        ..OffsetFetchRequest::default()
    };
    session.compare("groups", from(8), |_| groups(false), even_fetched);
    session.compare("stable groups", from(8), |_| groups(true), even_fetched);
}

fn delete_of(group: &str, topics: &[(&str, &[i32])]) -> OffsetDeleteRequest {
    let topic = |(name, indexes): &(&str, &[i32])| OffsetDeleteRequestTopic {
        name: (*name).to_owned(),
        partitions: (indexes.iter())
            .map(|index| OffsetDeleteRequestPartition {
                partition_index: PartitionIndex(*index),
            })
            .collect(),
    };
    OffsetDeleteRequest {
        group_id: group.to_owned(),
        topics: topics.iter().map(topic).collect(),
    }
}

fn compare_deletions(session: &mut Session) {
    for group in ["", "unknown", "simple"] {
        let some: &[(&str, &[i32])] = &[("t", &[0, 9]), ("none", &[0])];
        let delete = |_: &Peer| delete_of(group, some);
        session.compare("offsets", ALL, delete, same::<OffsetDeleteResponse>);
    }
    let again = |_: &Peer| fetch_single("simple", &[("t", &[0, 1])]);
    session.compare("after", 5..=7, again, even_fetched);
    for version in [0, 2] {
        let groups = |_: &Peer| DeleteGroupsRequest {
            groups_names: ["unknown", "", "simple"].map(str::to_owned).to_vec(),
        };
        // The order is that of a set in Kafka.
        let even = |_: &Peer, response: &mut DeleteGroupsResponse| {
            response
                .results
                .sort_by(|one, other| one.group_id.cmp(&other.group_id));
        };
        session.compare("groups", version..=version, groups, even);
    }
}

/// Ids that the brokers gave, by broker; they have one name in the answers.
#[derive(Default)]
struct Ids(RefCell<BTreeMap<bool, String>>);

impl Ids {
    fn of(&self, peer: &Peer) -> String {
        self.0
            .borrow()
            .get(&peer.is_kafka)
            .cloned()
            .unwrap_or_default()
    }

    fn learn(&self, peer: &Peer, response: &mut JoinGroupResponse) {
        let id = response.member_id.clone();
        if id.len() > 36 {
            let mut ids = self.0.borrow_mut();
            ids.insert(peer.is_kafka, id.clone());
            let stem = id.split_at(id.len() - 36).0.to_owned();
            // An old leader's id may be that of the member's last life.
            for text in [&mut response.member_id, &mut response.leader] {
                text.truncate(text.len().saturating_sub(36));
            }
            for member in &mut response.members {
                member.member_id = member.member_id.replace(&id, &stem);
            }
        }
    }
}

/// One member's life, in the version of JoinGroup given and others that go with it.
fn compare_member(session: &mut Session, version: i16) {
    let group = format!("member{version}");
    let ids = Ids::default();
    let only = |version: i16| version..=version;
    let join = |peer: &Peer| join_of(&group, &ids.of(peer));
    let learn = |peer: &Peer, response: &mut JoinGroupResponse| ids.learn(peer, response);
    session.compare("a new member", only(version), join, learn);
    if version >= 4 {
        session.compare("with its id", only(version), join, learn);
    }
    let sync = |peer: &Peer| SyncGroupRequest {
        group_id: group.clone(),
        generation_id: GenerationId(1),
        member_id: ids.of(peer),
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: ids.of(peer),
            assignment: Bytes::from_static(b"mine"),
        }],
        ..SyncGroupRequest::default()
    };
    session.compare(
        "its sync",
        only(version.min(5)),
        sync,
        same::<SyncGroupResponse>,
    );
    let stale = |peer: &Peer| SyncGroupRequest {
        generation_id: GenerationId(0),
        ..sync(peer)
    };
    session.compare("a stale sync", ALL, stale, same::<SyncGroupResponse>);
    let other = |peer: &Peer| SyncGroupRequest {
        protocol_name: Some("other".to_owned()),
        ..sync(peer)
    };
    session.compare(
        "another protocol",
        from(5),
        other,
        same::<SyncGroupResponse>,
    );
    for generation in [0, 1, 2] {
        let beat = |peer: &Peer| HeartbeatRequest {
            group_id: group.clone(),
            generation_id: GenerationId(generation),
            member_id: ids.of(peer),
            ..HeartbeatRequest::default()
        };
        session.compare("its heartbeat", ALL, beat, same::<HeartbeatResponse>);
        let commit = |peer: &Peer| OffsetCommitRequest {
            member_id: ids.of(peer),
            generation_id_or_member_epoch: GenerationId(generation),
            ..commit_of(&group, &[("t", 0, Some("m")), ("u", 0, None)])
        };
        session.compare("its commit", ALL, commit, same::<OffsetCommitResponse>);
    }
    let stranger = |_: &Peer| commit_of(&group, &[("t", 0, None)]);
    session.compare(
        "a stranger's commit",
        ALL,
        stranger,
        same::<OffsetCommitResponse>,
    );
    compare_described(session, &group, &ids);
    let delete = |_: &Peer| delete_of(&group, &[("t", &[0]), ("u", &[0])]);
    session.compare("offsets in use", ALL, delete, same::<OffsetDeleteResponse>);
    let groups = |_: &Peer| DeleteGroupsRequest {
        groups_names: vec![group.clone()],
    };
    session.compare("not empty", ALL, groups, same::<DeleteGroupsResponse>);
    let leave = |peer: &Peer| LeaveGroupRequest {
        group_id: group.clone(),
        member_id: ids.of(peer),
        members: vec![identity(&ids.of(peer))],
    };
    let even = |_: &Peer, response: &mut LeaveGroupResponse| {
        for member in &mut response.members {
            member.member_id.clear();
        }
    };
    let single = |peer: &Peer| LeaveGroupRequest {
        members: Vec::new(),
        ..leave(peer)
    };
    let many = |peer: &Peer| LeaveGroupRequest {
        member_id: String::new(),
        ..leave(peer)
    };
    match version {
        0..=2 => session.compare("it leaves", only(version), single, even),
        _ => session.compare("it leaves", only(version.min(5)), many, even),
    }
    compare_described(session, &group, &ids);
}

fn compare_described(session: &mut Session, group: &str, ids: &Ids) {
    let describe = |_: &Peer| DescribeGroupsRequest {
        groups: vec![group.to_owned(), "unknown".to_owned(), String::new()],
        include_authorized_operations: false,
    };
    let even = |peer: &Peer, response: &mut DescribeGroupsResponse| {
        for one in &mut response.groups {
            for member in &mut one.members {
                member.member_id = member.member_id.replace(&ids.of(peer), "ID");
            }
        }
        response
            .groups
            .sort_by(|one, other| one.group_id.cmp(&other.group_id));
    };
    session.compare("groups", ALL, describe, even);
    let operations = |peer: &Peer| DescribeGroupsRequest {
        include_authorized_operations: true,
        ..describe(peer)
    };
    session.compare("operations", from(3), operations, even);
}

fn compare_static_member(session: &mut Session) {
    let ids = Ids::default();
    let join = |_: &Peer| JoinGroupRequest {
        group_instance_id: Some("name".to_owned()),
        ..join_of("static", "")
    };
    let learn = |peer: &Peer, response: &mut JoinGroupResponse| ids.learn(peer, response);
    session.compare("a static member", 9..=9, join, learn);
    let sync = |peer: &Peer| SyncGroupRequest {
        group_id: "static".to_owned(),
        generation_id: GenerationId(1),
        member_id: ids.of(peer),
        group_instance_id: Some("name".to_owned()),
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        ..SyncGroupRequest::default()
    };
    session.compare("its sync", 5..=5, sync, same::<SyncGroupResponse>);
    let before = Ids::default();
    *before.0.borrow_mut() = ids.0.borrow().clone();
    session.compare("it comes back", 9..=9, join, learn);
    let fenced = |peer: &Peer| HeartbeatRequest {
        group_id: "static".to_owned(),
        generation_id: GenerationId(1),
        member_id: before.of(peer),
        group_instance_id: Some("name".to_owned()),
    };
    session.compare("the old one", from(3), fenced, same::<HeartbeatResponse>);
    session.compare("an old client comes back", 7..=7, join, learn);
    let leave = |_: &Peer| LeaveGroupRequest {
        group_id: "static".to_owned(),
        members: [("", "name"), ("", "other"), ("x", "name")]
            .map(|(member_id, name)| MemberIdentity {
                group_instance_id: Some(name.to_owned()),
                ..identity(member_id)
            })
            .to_vec(),
        ..LeaveGroupRequest::default()
    };
    session.compare("by name", 5..=5, leave, same::<LeaveGroupResponse>);
}

fn compare_lists(session: &mut Session) {
    for (states, types) in [
        (&[][..], &[][..]),
        (&["Empty"], &[]),
        (&["empty", " Stable "], &["classic"]),
        (&["Nonsense"], &[]),
        (&[], &["Classic"]),
        (&[], &["consumer"]),
        (&["Dead"], &[]),
    ] {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let request = |_: &Peer| ListGroupsRequest {
            states_filter: texts(states),
            types_filter: texts(types),
        };
        let even = |_: &Peer, response: &mut ListGroupsResponse| {
            response
                .groups
                .sort_by(|one, other| one.group_id.cmp(&other.group_id));
        };
        let within = match (states, types) {
            ([], []) => ALL,
            (_, []) => from(4),
            _ => from(5),
        };
        session.compare("list", within, request, even);
    }
}
