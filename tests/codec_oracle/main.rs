//! Our codec against `kafka-protocol`, a codec generated from Kafka 4.1's schemas: random messages
//! of every key, version and direction. What ours writes the other reads whole, finds the same
//! value in every field, and writes again byte by byte; and ours reads that back.

mod debug_tree;

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use coreline::base::random::Random;
use coreline::wire::api::APIS;
use coreline::wire::codec::Message;
use coreline::wire::messages as ours;
use coreline::wire::primitives::{Reader, Writer};
use coreline::wire::sample::{self, Sample};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};

/// How fields of versions that we do not serve end, as theirs prints them at their defaults.
fn not_served<Theirs>() -> &'static [&'static str] {
    let name = std::any::type_name::<Theirs>();
    match name.rsplit("::").next().unwrap_or_default() {
        "InitProducerIdRequest" => &[".enable_2_pc=false", ".keep_prepared_txn=false"],
        "InitProducerIdResponse" => &[
            ".ongoing_txn_producer_id=-1",
            ".ongoing_txn_producer_epoch=-1",
        ],
        "OffsetCommitRequest"
        | "OffsetCommitResponse"
        | "OffsetFetchRequest"
        | "OffsetFetchResponse" => &[".topic_id=00000000-0000-0000-0000-000000000000"],
        _ => &[],
    }
}

/// Random messages of each key, version and direction.
const MESSAGES: u64 = 60;

fn encode<M: Message>(message: &M, version: i16) -> Bytes {
    let mut writer = Writer::default();
    message
        .encode(&mut writer, version)
        .expect("a drawn message fits its version");
    writer.into_bytes()
}

/// Compares `Ours` with `Theirs`; how many messages were compared, by version.
fn compare<Ours, Theirs>() -> Vec<(i16, u64)>
where
    Ours: Message + Sample + Debug + PartialEq,
    Theirs: kafka_protocol::protocol::Message + Encodable + Decodable + Debug,
{
    let known = Theirs::VERSIONS;
    let absent = not_served::<Theirs>();
    let mut compared = Vec::new();
    for version in Ours::VERSIONS.filter(|version| (known.min..=known.max).contains(version)) {
        for seed in 0..MESSAGES {
            let mut random = Random::new(seed << 16 | version as u64);
            let message: Ours = sample::message(&mut random, version);
            let bytes = encode(&message, version);
            let context = format!("version {version}, seed {seed}: {message:?}");

            let mut rest = bytes.clone();
            let other = Theirs::decode(&mut rest, version)
                .unwrap_or_else(|error| panic!("theirs cannot read: {error}: {context}"));
            assert!(
                rest.is_empty(),
                "theirs leaves {} bytes: {context}",
                rest.len()
            );
            let mut fields = debug_tree::leaves(&other);
            // A keyword of Rust, which theirs cannot name a field by.
            for field in &mut fields {
                *field = field.replace("._match=", ".match=");
            }
            fields.sort();
            fields.retain(|field| !absent.iter().any(|end| field.ends_with(end)));
            assert_eq!(
                debug_tree::leaves(&message),
                fields,
                "fields differ: {context}"
            );

            let mut again = BytesMut::new();
            other
                .encode(&mut again, version)
                .expect("theirs writes what it read");
            assert_eq!(again, bytes, "bytes differ: {context}");

            let mut reader = Reader::new(again);
            assert_eq!(Ours::decode(&mut reader, version), Ok(message));
        }
        compared.push((version, MESSAGES));
    }
    compared
}

/// Compares both directions of a key, and refuses a version left out unless it is named.
macro_rules! oracle {
    ($($test:ident: $module:ident, $request:ident, $response:ident $(, beyond $beyond:literal)?;)*)
    => {$(
        #[test]
        fn $test() {
            let requests = compare::<ours::$module::$request, theirs::$request>();
            let responses = compare::<ours::$module::$response, theirs::$response>();
            let served = <ours::$module::$request as Message>::VERSIONS;
            let expected: Vec<i16> = served
                $(.filter(|version| *version != $beyond))?
                .collect();
            for compared in [requests, responses] {
                let versions: Vec<i16> = compared.iter().map(|(version, _)| *version).collect();
                assert_eq!(versions, expected);
            }
        }
    )*

    #[test]
    fn every_key_served_is_compared() {
        let compared = [$(<ours::$module::$request as Message>::API_KEY),*];
        for api in APIS {
            assert!(compared.contains(&api.key), "{} is not compared", api.name);
        }
        $(
            assert_eq!(
                <ours::$module::$request as Message>::API_KEY,
                <ours::$module::$response as Message>::API_KEY
            );
            assert_eq!(
                <ours::$module::$request as Message>::VERSIONS,
                <ours::$module::$response as Message>::VERSIONS
            );
        )*
    }};
}

oracle! {
    produce: produce, ProduceRequest, ProduceResponse;
    fetch: fetch, FetchRequest, FetchResponse;
    // Version 11 is Kafka 4.2's; tests/codec_apache compares it with Apache's own classes.
    list_offsets: list_offsets, ListOffsetsRequest, ListOffsetsResponse, beyond 11;
    metadata: metadata, MetadataRequest, MetadataResponse;
    find_coordinator: find_coordinator, FindCoordinatorRequest, FindCoordinatorResponse;
    api_versions: api_versions, ApiVersionsRequest, ApiVersionsResponse;
    create_topics: create_topics, CreateTopicsRequest, CreateTopicsResponse;
    delete_topics: delete_topics, DeleteTopicsRequest, DeleteTopicsResponse;
    delete_records: delete_records, DeleteRecordsRequest, DeleteRecordsResponse;
    init_producer_id: init_producer_id, InitProducerIdRequest, InitProducerIdResponse;
    offset_for_leader_epoch: offset_for_leader_epoch,
        OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
    describe_configs: describe_configs, DescribeConfigsRequest, DescribeConfigsResponse;
    alter_configs: alter_configs, AlterConfigsRequest, AlterConfigsResponse;
    alter_replica_log_dirs: alter_replica_log_dirs,
        AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse;
    describe_log_dirs: describe_log_dirs, DescribeLogDirsRequest, DescribeLogDirsResponse;
    create_partitions: create_partitions, CreatePartitionsRequest, CreatePartitionsResponse;
    incremental_alter_configs: incremental_alter_configs,
        IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
    list_config_resources: list_config_resources,
        ListConfigResourcesRequest, ListConfigResourcesResponse;
    describe_cluster: describe_cluster, DescribeClusterRequest, DescribeClusterResponse;
    describe_topic_partitions: describe_topic_partitions,
        DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse;
    join_group: join_group, JoinGroupRequest, JoinGroupResponse;
    sync_group: sync_group, SyncGroupRequest, SyncGroupResponse;
    heartbeat: heartbeat, HeartbeatRequest, HeartbeatResponse;
    leave_group: leave_group, LeaveGroupRequest, LeaveGroupResponse;
    offset_commit: offset_commit, OffsetCommitRequest, OffsetCommitResponse;
    offset_fetch: offset_fetch, OffsetFetchRequest, OffsetFetchResponse;
    offset_delete: offset_delete, OffsetDeleteRequest, OffsetDeleteResponse;
    describe_groups: describe_groups, DescribeGroupsRequest, DescribeGroupsResponse;
    list_groups: list_groups, ListGroupsRequest, ListGroupsResponse;
    delete_groups: delete_groups, DeleteGroupsRequest, DeleteGroupsResponse;
    elect_leaders: elect_leaders,
        ElectLeadersRequest, ElectLeadersResponse;
    list_partition_reassignments: list_partition_reassignments,
        ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse;
    alter_partition_reassignments: alter_partition_reassignments,
        AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse;
    describe_producers: describe_producers,
        DescribeProducersRequest, DescribeProducersResponse;
    describe_quorum: describe_quorum,
        DescribeQuorumRequest, DescribeQuorumResponse;
    describe_user_scram_credentials: describe_user_scram_credentials,
        DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse;
    update_features: update_features,
        UpdateFeaturesRequest, UpdateFeaturesResponse;
    describe_client_quotas: describe_client_quotas,
        DescribeClientQuotasRequest, DescribeClientQuotasResponse;
    alter_client_quotas: alter_client_quotas,
        AlterClientQuotasRequest, AlterClientQuotasResponse;
}
