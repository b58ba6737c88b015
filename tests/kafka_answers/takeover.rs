//! A data folder that Coreline closed in order is carried on by Apache Kafka, and what Kafka closed
//! by Coreline: topics keep their names, ids and settings, partitions their records, groups their
//! offsets, producer ids are not given out again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use coreline::base::ids::{Offset, PartitionIndex, ProducerEpoch, ProducerId, Uuid};
use coreline::wire::compression::Codec;
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use coreline::wire::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use coreline::wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use coreline::wire::messages::offset_fetch::OffsetFetchResponse;
use coreline::wire::messages::produce::ProduceResponse;

use crate::brokers::{Broker, kafka_home};
use crate::data::{batch, fetch, produce};
use crate::requests;
use crate::session::Peer;

const RECORDS: [&str; 3] = ["one", "two", "three"];

fn create(peer: &mut Peer, name: &str) -> Uuid {
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.to_owned(),
            num_partitions: 2,
            replication_factor: 1,
            configs: vec![CreatableTopicConfig {
                name: "retention.ms".to_owned(),
                value: Some("-1".to_owned()),
            }],
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    };
    let response: CreateTopicsResponse = peer.ask(7, &request);
    assert!(response.topics[0].error_code.is_none(), "{response:?}");
    peer.learn();
    response.topics[0].topic_id
}

/// Asks until there is an answer: Apache Kafka may not know a topic or lead its partitions yet when
/// it says that it has created it.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..400 {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what}: no answer");
}

/// Appends a batch; answers its offset.
fn append(peer: &mut Peer, topic: &str) -> i64 {
    until(topic, || {
        peer.learn();
        let request = produce(peer, topic, 0, batch(&RECORDS, Codec::Lz4));
        let response: ProduceResponse = peer.ask(13, &request);
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code.is_none()).then_some(partition.base_offset.0)
    })
}

/// The end of a partition, which has been read from its start.
fn end(peer: &mut Peer, topic: &str) -> i64 {
    until(topic, || {
        peer.learn();
        let request = fetch(peer, topic, 0, 0);
        let response: FetchResponse = peer.ask(17, &request);
        let partition = &response.responses[0].partitions[0];
        let is_read = !partition.records.as_ref()?.is_empty();
        (partition.error_code.is_none() && is_read).then_some(partition.high_watermark.0)
    })
}

/// A producer id, asked for until there is one.
fn producer_id(peer: &mut Peer) -> i64 {
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: 60_000,
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
    };
    until("a producer id", || {
        let response: InitProducerIdResponse = peer.ask(5, &request);
        (response.error_code.is_none()).then_some(response.producer_id.0)
    })
}

/// Commits an offset of partition 0; asked for until it is done.
fn commit(peer: &mut Peer, topic: &str, offset: i64) {
    let find = FindCoordinatorRequest {
        coordinator_keys: vec!["g".to_owned()],
        ..FindCoordinatorRequest::default()
    };
    let request = OffsetCommitRequest {
        group_id: "g".to_owned(),
        topics: vec![OffsetCommitRequestTopic {
            name: topic.to_owned(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: PartitionIndex(0),
                committed_offset: Offset(offset),
                committed_metadata: Some("m".to_owned()),
                ..OffsetCommitRequestPartition::default()
            }],
        }],
        ..OffsetCommitRequest::default()
    };
    until("a commit", || {
        let _: FindCoordinatorResponse = peer.ask(4, &find);
        let response: OffsetCommitResponse = peer.ask(9, &request);
        let code = response.topics[0].partitions[0].error_code;
        code.is_none().then_some(())
    });
}

/// All that the group has committed.
fn committed(peer: &mut Peer) -> Vec<(String, i64)> {
    let request = requests::fetch_all_offsets(&["g"]);
    until("offsets", || {
        let response: OffsetFetchResponse = peer.ask(9, &request);
        let group = &response.groups[0];
        let topics = group.topics.iter().map(|topic| {
            let offset = topic.partitions[0].committed_offset;
            (topic.name.clone(), offset.0)
        });
        let mut offsets: Vec<_> = topics.collect();
        offsets.sort_unstable();
        group.error_code.is_none().then_some(offsets)
    })
}

/// Apache's tool reads which topic an offset is for.
fn assert_offset_names(folder: &Path, topic_id: Uuid) {
    let folders = std::fs::read_dir(folder.join("data")).expect("a folder");
    let folders = folders.map(|entry| entry.expect("an entry").path());
    let logs = folders.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("__consumer_offsets-"))
    });
    let logs = logs.map(|path| path.join("00000000000000000000.log"));
    let filled = logs.filter(|path| path.metadata().is_ok_and(|file| file.len() > 0));
    let text = dumped(&filled.collect::<Vec<_>>(), "--offsets-decoder");
    let wanted = format!("\"topicId\":\"{topic_id}\"");
    assert!(
        text.contains("\"group\":\"g\"") && text.contains(&wanted),
        "{text}"
    );
}

/// `coreline log verify` finds nothing wrong with what either of them has closed.
fn assert_whole(folder: &Path) {
    let verified = std::process::Command::new(env!("CARGO_BIN_EXE_coreline"))
        .args(["log", "verify"])
        .arg(folder.join("data"))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.status.success(), "{text}");
}

pub fn there_and_back(folder: &Path) {
    let broker = Broker::coreline(folder);
    let mut peer = Peer::connect(false, broker.port);
    let ours = create(&mut peer, "ours");
    assert_eq!(append(&mut peer, "ours"), 0);
    let first = producer_id(&mut peer);
    commit(&mut peer, "ours", 2);
    broker.stop();
    assert_whole(folder);
    assert_offset_names(folder, ours);

    let broker = Broker::kafka(folder);
    let mut peer = Peer::connect(true, broker.port);
    assert_eq!(peer.id("ours"), ours);
    assert_eq!(end(&mut peer, "ours"), 3);
    assert_eq!(append(&mut peer, "ours"), 3);
    let theirs = create(&mut peer, "theirs");
    assert_eq!(append(&mut peer, "theirs"), 0);
    let second = producer_id(&mut peer);
    assert_eq!(committed(&mut peer), [("ours".to_owned(), 2)]);
    commit(&mut peer, "theirs", 1);
    broker.stop();
    assert_whole(folder);

    let broker = Broker::coreline(folder);
    let mut peer = Peer::connect(false, broker.port);
    assert_eq!((peer.id("ours"), peer.id("theirs")), (ours, theirs));
    assert_eq!((end(&mut peer, "ours"), end(&mut peer, "theirs")), (6, 3));
    assert_eq!(append(&mut peer, "theirs"), 3);
    let third = producer_id(&mut peer);
    let all = [("ours", 2), ("theirs", 1)].map(|(name, offset)| (name.to_owned(), offset));
    assert_eq!(committed(&mut peer), all);
    assert!(first < second && second < third, "{first} {second} {third}");
    broker.stop();
    assert_whole(folder);
}

/// A snapshot after every change, and no room for anything before it.
const SNAPSHOTS: &str = "metadata.log.max.record.bytes.between.snapshots=1\n\
    metadata.max.retention.bytes=1\ninternal.metadata.log.segment.bytes=2000\n";

/// How long Kafka may take to drop what is old: it looks once a minute.
const DROPPED_WITHIN: Duration = Duration::from_secs(100);

/// The metadata log's files that end so, in order.
fn metadata_files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("data/__cluster_metadata-0")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.to_str().is_some_and(|text| text.ends_with(suffix)))
        .collect();
    paths.sort_unstable();
    paths
}

fn begins_behind(folder: &Path, start: u64) -> Option<u64> {
    let first = metadata_files(folder, ".log").into_iter().next()?;
    let base = first.file_stem()?.to_str()?.parse().ok()?;
    (base > start).then_some(base)
}

/// What Apache's tool reads of the log and its snapshots, without a complaint.
fn dumped_metadata(folder: &Path) -> String {
    let files = [".log", ".checkpoint"].map(|suffix| metadata_files(folder, suffix));
    dumped(&files.concat(), "--cluster-metadata-decoder")
}

fn dumped(files: &[PathBuf], decoder: &str) -> String {
    let files: Vec<&str> = files.iter().filter_map(|path| path.to_str()).collect();
    let output = Command::new(kafka_home().join("bin/kafka-dump-log.sh"))
        .args([decoder, "--files", &files.join(",")])
        .output()
        .expect("kafka-dump-log runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{text}");
    for complaint in [
        "xception",
        "isvalid: false",
        "ismatch",
        "invalid",
        "Could not",
        "Error",
    ] {
        assert!(!text.contains(complaint), "{text}");
    }
    text
}

/// Both brokers take snapshots and drop what lies before them, and each carries on what the other
/// left.
pub fn there_and_back_with_snapshots(folder: &Path) {
    let broker = Broker::coreline_with(folder, SNAPSHOTS);
    let mut peer = Peer::connect(false, broker.port);
    let ours = create(&mut peer, "ours");
    let first = producer_id(&mut peer);
    for number in 0..20 {
        create(&mut peer, &format!("ours-{number}"));
    }
    assert_eq!(append(&mut peer, "ours"), 0);
    broker.stop();
    let start = begins_behind(folder, 0).expect("the log's beginning is gone");
    let text = dumped_metadata(folder);
    for wanted in [
        "SnapshotHeader",
        "SnapshotFooter",
        "TOPIC_RECORD",
        "ours-19",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }

    let broker = Broker::kafka_with(folder, SNAPSHOTS);
    let mut peer = Peer::connect(true, broker.port);
    assert_eq!(peer.id("ours"), ours);
    assert_eq!(end(&mut peer, "ours"), 3);
    let last = peer.id("ours-19");
    let theirs = create(&mut peer, "theirs");
    assert_eq!(append(&mut peer, "theirs"), 0);
    let second = producer_id(&mut peer);
    let begun = Instant::now();
    while begins_behind(folder, start).is_none() {
        assert!(begun.elapsed() < DROPPED_WITHIN, "Kafka keeps its log");
        std::thread::sleep(Duration::from_millis(500));
    }
    broker.stop();

    for _ in 0..2 {
        let broker = Broker::coreline_with(folder, SNAPSHOTS);
        let mut peer = Peer::connect(false, broker.port);
        assert_eq!((peer.id("ours"), peer.id("theirs")), (ours, theirs));
        assert_eq!(peer.id("ours-19"), last);
        assert_eq!(end(&mut peer, "theirs"), 3);
        let third = producer_id(&mut peer);
        assert!(first < second && second < third, "{first} {second} {third}");
        broker.stop();
    }
    dumped_metadata(folder);
}
