//! Settings of groups and of their offsets: each changed, and its effect seen from outside.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{LeaderEpoch, Offset, PartitionIndex};
use coreline::wire::compression::Codec;
use coreline::wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
};
use coreline::wire::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use coreline::wire::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use coreline::wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use coreline::wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use coreline::wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse,
};
use coreline::wire::record_batch::BatchHeader;

use crate::broker::Client;
use crate::changes::TOPIC;
use crate::starts::Process;

const OFFSETS: &str = "__consumer_offsets";

/// A client of a broker whose topic of offsets stands and is loaded.
fn client(process: &Process) -> Client {
    let mut client = process.connect();
    client.create_topic_with("t", 1, &[]);
    let request = FindCoordinatorRequest {
        key: "g".to_owned(),
        ..FindCoordinatorRequest::default()
    };
    let found: FindCoordinatorResponse = client.ask(&request, 2);
    assert!(found.error_code.is_none(), "{found:?}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while fetched(&mut client).is_none() {
        assert!(Instant::now() < deadline, "it is never loaded");
        std::thread::sleep(Duration::from_millis(5));
    }
    client
}

fn join(session_timeout_ms: i32) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".to_owned(),
        session_timeout_ms,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".to_owned(),
            metadata: Bytes::new(),
        }],
        ..JoinGroupRequest::default()
    }
}

fn commit(client: &mut Client, metadata: &str, retention_time_ms: i64) -> ErrorCode {
    let request = OffsetCommitRequest {
        group_id: "g".to_owned(),
        retention_time_ms,
        topics: vec![OffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: PartitionIndex(0),
                committed_offset: Offset(7),
                committed_leader_epoch: LeaderEpoch::NONE,
                committed_metadata: Some(metadata.to_owned()),
            }],
        }],
        ..OffsetCommitRequest::default()
    };
    let told: OffsetCommitResponse = client.ask(&request, 4);
    told.topics[0].partitions[0].error_code
}

/// The group's offset; `None` while the coordinator is being loaded.
fn fetched(client: &mut Client) -> Option<i64> {
    let request = OffsetFetchRequest {
        group_id: "g".to_owned(),
        topics: Some(vec![OffsetFetchRequestTopic {
            name: "t".to_owned(),
            partition_indexes: vec![PartitionIndex(0)],
        }]),
        ..OffsetFetchRequest::default()
    };
    let told: OffsetFetchResponse = client.ask(&request, 7);
    let is_loaded = told.error_code.is_none();
    is_loaded.then(|| told.topics[0].partitions[0].committed_offset.0)
}

#[test]
fn sessions_may_be_so_short_and_so_long() {
    let process = Process::start(&[
        "group.min.session.timeout.ms=100",
        "group.max.session.timeout.ms=200",
        "group.initial.rebalance.delay.ms=0",
    ]);
    let mut client = client(&process);
    for (session_ms, is_refused) in [(99, true), (100, false), (200, false), (201, true)] {
        let told: JoinGroupResponse = client.ask(&join(session_ms), 3);
        let is_told = told.error_code == ErrorCode::INVALID_SESSION_TIMEOUT;
        assert_eq!(is_told, is_refused, "{session_ms}: {told:?}");
        // The member's session ends before the next comes.
        std::thread::sleep(Duration::from_millis(300));
    }
}

#[test]
fn a_new_group_waits_so_long_for_so_many_members() {
    let process = Process::start(&["group.initial.rebalance.delay.ms=700", "group.max.size=1"]);
    let (mut first, mut second) = (client(&process), process.connect());
    let sent = Instant::now();
    first.send(&join(10_000), 3);
    std::thread::sleep(Duration::from_millis(50));
    let told: JoinGroupResponse = second.ask(&join(10_000), 3);
    assert_eq!(told.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    let (_, told): (i32, JoinGroupResponse) = first.receive(3);
    assert!(told.error_code.is_none(), "{told:?}");
    let waited = sent.elapsed();
    assert!(waited >= Duration::from_millis(700), "{waited:?}");
    assert!(waited < Duration::from_millis(2_900), "{waited:?}");
}

#[test]
fn commits_may_say_so_much_and_are_looked_at_so_often() {
    let process = Process::start(&[
        "offset.metadata.max.bytes=5",
        "offsets.retention.check.interval.ms=100",
    ]);
    let mut client = client(&process);
    let code = commit(&mut client, "123456", -1);
    assert_eq!(code, ErrorCode::OFFSET_METADATA_TOO_LARGE);
    assert!(commit(&mut client, "12345", 300).is_none());
    assert_eq!(fetched(&mut client), Some(7));
    let deadline = Instant::now() + Duration::from_secs(10);
    while fetched(&mut client) != Some(-1) {
        assert!(Instant::now() < deadline, "the offset stays");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_topic_of_offsets_is_made_by_its_settings() {
    let mut process = Process::start(&[
        "offsets.topic.num.partitions=3",
        "offsets.topic.segment.bytes=2097152",
        "offsets.topic.compression.codec=1",
    ]);
    let mut client = client(&process);
    let request = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some(OFFSETS.to_owned()),
            ..MetadataRequestTopic::default()
        }]),
        ..MetadataRequest::default()
    };
    let told: MetadataResponse = client.ask(&request, 9);
    assert_eq!(told.topics[0].partitions.len(), 3);
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: TOPIC,
            resource_name: OFFSETS.to_owned(),
            configuration_keys: None,
        }],
        ..DescribeConfigsRequest::default()
    };
    let told: DescribeConfigsResponse = client.ask(&request, 4);
    let configs = &told.results[0].configs;
    let value = |name: &str| {
        let found = configs.iter().find(|config| config.name == name);
        found.and_then(|config| config.value.clone())
    };
    assert_eq!(value("segment.bytes").as_deref(), Some("2097152"));
    assert_eq!(value("cleanup.policy").as_deref(), Some("compact"));
    assert!(commit(&mut client, "m", -1).is_none());
    let data = process.data();
    process.stop();
    // "g" has the hash 103.
    assert_eq!(
        codec_of_first(&data.join(format!("{OFFSETS}-1"))),
        Codec::Gzip
    );
}

fn codec_of_first(folder: &Path) -> Codec {
    let bytes = std::fs::read(folder.join("00000000000000000000.log")).unwrap();
    let header = BatchHeader::parse(&bytes).unwrap();
    header.attributes.codec().unwrap()
}
