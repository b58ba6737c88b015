//! Our codec against Apache Kafka's own classes, in what `kafka-protocol` does not know (the newest
//! versions, the records of the metadata log, control records) and in everything else.
//!
//! With `KAFKA_HOME` set (and `java` at hand) random messages go to Kafka's classes through
//! `ApacheCodec.java`: they must read them whole, find the same value in every field, and write
//! the same bytes. Without it, answers that Kafka gave earlier stand in `vectors.txt`; it is
//! written anew with `KAFKA_HOME=… CORELINE_WRITE_VECTORS=1 cargo test --features sim --test
//! codec_apache`.

#[path = "../codec_oracle/debug_tree.rs"]
mod debug_tree;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use coreline::base::random::Random;
use coreline::wire::api::APIS;
use coreline::wire::codec::{DataMessage, Message, RecordMessage};
use coreline::wire::messages::{
    self, consumer_protocol, control_records, group_records, metadata_records, voters_record,
};
use coreline::wire::primitives::{DecodeError, Reader, Writer};
use coreline::wire::sample;

/// Messages of each class and version, with Kafka at hand.
const MESSAGES: u64 = 20;
/// The longest up to here go into the file of earlier answers, else the shortest: so many of them.
const VECTOR_BYTES_MAX: usize = 200;
const VECTORS: usize = 2;

/// A topic's id where we do not serve the versions that have it.
const ZERO_TOPIC_ID: &str = ".topic_id=00000000-0000-0000-0000-000000000000";

/// What we write for a message that we read, and its fields.
type Reread = (Bytes, Vec<String>);

/// One version of one of Kafka's classes, and ours of the same message.
struct Class {
    name: String,
    version: i16,
    /// Whether the file of earlier answers has it: the highest version of a request or response,
    /// since `kafka-protocol` knows the others, and every version of what it does not know.
    is_kept: bool,
    draw: fn(u64, i16) -> Bytes,
    read: fn(Bytes, i16) -> Result<Reread, DecodeError>,
}

macro_rules! functions {
    ($kind:ident, $sample:path) => {{
        (
            |seed, version| {
                let message: T = $sample(&mut Random::new(seed), version);
                let mut writer = Writer::default();
                <T as $kind>::encode(&message, &mut writer, version).expect("drawn for it");
                writer.into_bytes()
            },
            |bytes, version| {
                let message = <T as $kind>::decode(&mut Reader::new(bytes), version)?;
                let mut writer = Writer::default();
                <T as $kind>::encode(&message, &mut writer, version).expect("was read in it");
                Ok((writer.into_bytes(), debug_tree::leaves(&message)))
            },
        )
    }};
}

/// All classes compared. The trait says how a message is drawn.
fn classes() -> Vec<Class> {
    let mut found = Vec::new();
    macro_rules! add {
        ($kind:ident, $sample:path, $package:literal, $suffix:literal, $($type:path),* $(,)?) => {$(
            {
                type T = $type;
                let (draw, read) = functions!($kind, $sample);
                let name = stringify!($type).rsplit("::").next().expect("a name").trim();
                let versions = <T as $kind>::VERSIONS;
                for version in versions.clone() {
                    let is_kept = version == *versions.end() || $suffix.is_empty();
                    let name = format!("org.apache.kafka.{}.{name}{}", $package, $suffix);
                    found.push(Class { name, version, is_kept, draw, read });
                }
            }
        )*};
    }
    add!(
        Message,
        sample::message,
        "common.message",
        "Data",
        messages::produce::ProduceRequest,
        messages::produce::ProduceResponse,
        messages::fetch::FetchRequest,
        messages::fetch::FetchResponse,
        messages::list_offsets::ListOffsetsRequest,
        messages::list_offsets::ListOffsetsResponse,
        messages::metadata::MetadataRequest,
        messages::metadata::MetadataResponse,
        messages::find_coordinator::FindCoordinatorRequest,
        messages::find_coordinator::FindCoordinatorResponse,
        messages::api_versions::ApiVersionsRequest,
        messages::api_versions::ApiVersionsResponse,
        messages::create_topics::CreateTopicsRequest,
        messages::create_topics::CreateTopicsResponse,
        messages::delete_topics::DeleteTopicsRequest,
        messages::delete_topics::DeleteTopicsResponse,
        messages::delete_records::DeleteRecordsRequest,
        messages::delete_records::DeleteRecordsResponse,
        messages::init_producer_id::InitProducerIdRequest,
        messages::init_producer_id::InitProducerIdResponse,
        messages::offset_for_leader_epoch::OffsetForLeaderEpochRequest,
        messages::offset_for_leader_epoch::OffsetForLeaderEpochResponse,
        messages::describe_configs::DescribeConfigsRequest,
        messages::describe_configs::DescribeConfigsResponse,
        messages::alter_configs::AlterConfigsRequest,
        messages::alter_configs::AlterConfigsResponse,
        messages::alter_replica_log_dirs::AlterReplicaLogDirsRequest,
        messages::alter_replica_log_dirs::AlterReplicaLogDirsResponse,
        messages::describe_log_dirs::DescribeLogDirsRequest,
        messages::describe_log_dirs::DescribeLogDirsResponse,
        messages::create_partitions::CreatePartitionsRequest,
        messages::create_partitions::CreatePartitionsResponse,
        messages::incremental_alter_configs::IncrementalAlterConfigsRequest,
        messages::incremental_alter_configs::IncrementalAlterConfigsResponse,
        messages::list_config_resources::ListConfigResourcesRequest,
        messages::list_config_resources::ListConfigResourcesResponse,
        messages::describe_cluster::DescribeClusterRequest,
        messages::describe_cluster::DescribeClusterResponse,
        messages::describe_topic_partitions::DescribeTopicPartitionsRequest,
        messages::describe_topic_partitions::DescribeTopicPartitionsResponse,
        messages::join_group::JoinGroupRequest,
        messages::join_group::JoinGroupResponse,
        messages::sync_group::SyncGroupRequest,
        messages::sync_group::SyncGroupResponse,
        messages::heartbeat::HeartbeatRequest,
        messages::heartbeat::HeartbeatResponse,
        messages::leave_group::LeaveGroupRequest,
        messages::leave_group::LeaveGroupResponse,
        messages::offset_commit::OffsetCommitRequest,
        messages::offset_commit::OffsetCommitResponse,
        messages::offset_fetch::OffsetFetchRequest,
        messages::offset_fetch::OffsetFetchResponse,
        messages::offset_delete::OffsetDeleteRequest,
        messages::offset_delete::OffsetDeleteResponse,
        messages::describe_groups::DescribeGroupsRequest,
        messages::describe_groups::DescribeGroupsResponse,
        messages::list_groups::ListGroupsRequest,
        messages::list_groups::ListGroupsResponse,
        messages::delete_groups::DeleteGroupsRequest,
        messages::delete_groups::DeleteGroupsResponse,
        messages::elect_leaders::ElectLeadersRequest,
        messages::elect_leaders::ElectLeadersResponse,
        messages::list_partition_reassignments::ListPartitionReassignmentsRequest,
        messages::list_partition_reassignments::ListPartitionReassignmentsResponse,
        messages::alter_partition_reassignments::AlterPartitionReassignmentsRequest,
        messages::alter_partition_reassignments::AlterPartitionReassignmentsResponse,
        messages::describe_producers::DescribeProducersRequest,
        messages::describe_producers::DescribeProducersResponse,
        messages::describe_quorum::DescribeQuorumRequest,
        messages::describe_quorum::DescribeQuorumResponse,
        messages::describe_user_scram_credentials::DescribeUserScramCredentialsRequest,
        messages::describe_user_scram_credentials::DescribeUserScramCredentialsResponse,
        messages::update_features::UpdateFeaturesRequest,
        messages::update_features::UpdateFeaturesResponse,
        messages::describe_client_quotas::DescribeClientQuotasRequest,
        messages::describe_client_quotas::DescribeClientQuotasResponse,
        messages::alter_client_quotas::AlterClientQuotasRequest,
        messages::alter_client_quotas::AlterClientQuotasResponse,
    );
    for api in APIS {
        for (version, direction) in api
            .versions()
            .zip(std::iter::repeat(["Request", "Response"]))
        {
            for name in direction.map(|end| format!(".{}{end}Data", api.name)) {
                let is_it = |class: &Class| class.name.ends_with(&name) && class.version == version;
                assert!(found.iter().any(is_it), "{name} {version} is not compared");
            }
        }
    }
    add!(
        RecordMessage,
        sample::record,
        "common.metadata",
        "",
        metadata_records::RegisterBrokerRecord,
        metadata_records::UnregisterBrokerRecord,
        metadata_records::FenceBrokerRecord,
        metadata_records::UnfenceBrokerRecord,
        metadata_records::BrokerRegistrationChangeRecord,
        metadata_records::TopicRecord,
        metadata_records::RemoveTopicRecord,
        metadata_records::PartitionRecord,
        metadata_records::PartitionChangeRecord,
        metadata_records::ConfigRecord,
        metadata_records::FeatureLevelRecord,
        metadata_records::ProducerIdsRecord,
        metadata_records::NoOpRecord,
        metadata_records::BeginTransactionRecord,
        metadata_records::EndTransactionRecord,
        metadata_records::AbortTransactionRecord,
        metadata_records::ClientQuotaRecord,
    );
    add!(
        DataMessage,
        sample::data,
        "common.message",
        "",
        control_records::LeaderChangeMessage,
        control_records::KRaftVersionRecord,
        control_records::SnapshotHeaderRecord,
        control_records::SnapshotFooterRecord,
        control_records::EndTxnMarker,
        voters_record::VotersRecord,
        consumer_protocol::ConsumerProtocolSubscription,
        consumer_protocol::ConsumerProtocolAssignment,
    );
    add!(
        RecordMessage,
        sample::record,
        "coordinator.group.generated",
        "",
        group_records::OffsetCommitKey,
        group_records::GroupMetadataKey,
    );
    add!(
        DataMessage,
        sample::data,
        "coordinator.group.generated",
        "",
        group_records::OffsetCommitValue,
        group_records::GroupMetadataValue,
    );
    found
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

fn unhex(text: &str) -> Bytes {
    let pairs = text.as_bytes().chunks(2);
    let digits = pairs.map(|pair| std::str::from_utf8(pair).expect("hexadecimal digits"));
    digits
        .map(|pair| u8::from_str_radix(pair, 16).expect("two digits"))
        .collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codec_apache")
}

/// Kafka's answers to the questions, in their order.
fn ask_kafka(home: &str, questions: &[String]) -> Vec<String> {
    let mut java = Command::new("java")
        .args(["-Xmx256m", "-cp", &format!("{home}/libs/*")])
        .arg(folder().join("ApacheCodec.java"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("java starts");
    let mut stdin = java.stdin.take().expect("its input is a pipe");
    let text = questions.join("\n") + "\n";
    let feeder = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = java.wait_with_output().expect("java ends");
    feeder
        .join()
        .expect("the feeder ends")
        .expect("java reads all");
    assert!(output.status.success(), "java failed: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("answers are UTF-8");
    let answers: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), questions.len());
    answers
}

/// What both must agree on: the bytes Kafka wrote and the fields it found.
fn check(class: &Class, question: &str, answer: &str) {
    let mut parts = answer.split('\t');
    let written = parts.next().unwrap_or_default();
    assert_ne!(written, "error", "Kafka cannot read {question}: {answer}");
    let asked = question.rsplit(' ').next().unwrap_or_default();
    assert_eq!(written, asked, "bytes differ: {question}");
    let mut fields: Vec<String> = parts.map(str::to_owned).collect();
    let (bytes, leaves) = (class.read)(unhex(asked), class.version)
        .unwrap_or_else(|error| panic!("ours cannot read {question}: {error}"));
    assert_eq!(hex(&bytes), asked, "we write other bytes: {question}");
    fields.retain(|field| !field.is_empty() && !is_not_served(&class.name, field));
    assert_eq!(leaves, fields, "fields differ: {question}");
}

/// A field of a version that we do not serve, at its default.
fn is_not_served(class: &str, field: &str) -> bool {
    let ends: &[&str] = match class.rsplit('.').next().unwrap_or_default() {
        "DescribeLogDirsResponseData" => &[".is_cordoned=false"],
        "ApiVersionsRequestData" => &[".cluster_id=None", ".node_id=-1"],
        "InitProducerIdRequestData" => &[".enable2_pc=false", ".keep_prepared_txn=false"],
        "InitProducerIdResponseData" => &[
            ".ongoing_txn_producer_id=-1",
            ".ongoing_txn_producer_epoch=-1",
        ],
        "OffsetCommitRequestData" | "OffsetCommitResponseData" => &[ZERO_TOPIC_ID],
        "OffsetFetchRequestData" | "OffsetFetchResponseData" => &[ZERO_TOPIC_ID],
        "DeleteGroupsResponseData" => &[".error_message=None"],
        _ => &[],
    };
    ends.iter().any(|end| field.ends_with(end))
}

#[test]
fn apache_kafka_reads_and_writes_the_same() {
    let vectors = folder().join("vectors.txt");
    let Ok(home) = std::env::var("KAFKA_HOME") else {
        let text = fs::read_to_string(vectors).expect("earlier answers are there");
        return check_vectors(&text);
    };
    let classes = classes();
    let mut questions = Vec::new();
    let mut asked = Vec::new();
    for class in &classes {
        for seed in 0..MESSAGES {
            let bytes = (class.draw)(seed, class.version);
            questions.push(format!("{} {} {}", class.name, class.version, hex(&bytes)));
            asked.push(class);
        }
    }
    let answers = ask_kafka(&home, &questions);
    for ((class, question), answer) in asked.iter().zip(&questions).zip(&answers) {
        check(class, question, answer);
    }
    if std::env::var_os("CORELINE_WRITE_VECTORS").is_some() {
        let text = vectors_text(&classes, &questions, &answers);
        fs::write(vectors, text).expect("the answers can be kept");
    }
}

/// One question and answer of each class that is kept, a line each.
fn vectors_text(classes: &[Class], questions: &[String], answers: &[String]) -> String {
    let mut text = String::new();
    for class in classes.iter().filter(|class| class.is_kept) {
        let of_class = format!("{} {} ", class.name, class.version);
        let pairs = questions.iter().zip(answers);
        let mut of_it: Vec<_> = pairs
            .filter(|(question, _)| question.starts_with(&of_class))
            .collect();
        of_it.sort_by_key(|(question, _)| {
            let bytes = (question.len() - of_class.len()) / 2;
            match VECTOR_BYTES_MAX.checked_sub(bytes) {
                Some(below) => (0, below),
                None => (1, bytes),
            }
        });
        of_it.dedup();
        for (question, answer) in of_it.into_iter().take(VECTORS) {
            writeln!(text, "{question}\t{answer}").expect("a string takes all");
        }
    }
    text
}

/// Every class that is kept must stand in the file.
fn check_vectors(text: &str) {
    for class in classes().iter().filter(|class| class.is_kept) {
        let of_class = format!("{} {} ", class.name, class.version);
        let mut count = 0;
        for line in text.lines().filter(|line| line.starts_with(&of_class)) {
            let (question, answer) = line.split_once('\t').expect("a question and its answer");
            check(class, question, answer);
            count += 1;
        }
        assert!(count > 0, "no earlier answer for {of_class}");
    }
}
