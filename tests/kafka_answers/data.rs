//! Produce, Fetch, ListOffsets, OffsetForLeaderEpoch.

use bytes::BytesMut;
use coreline::base::ids::{
    LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence, Uuid,
};
use coreline::base::time::TimestampMs;
use coreline::wire::compression::Codec;
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use coreline::wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use coreline::wire::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopic,
};
use coreline::wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};
use coreline::wire::record_batch::{BatchBuilder, NewRecord};

use crate::session::{ALL, Peer, Session, from};

const TOPIC: &str = "data";
const COMPACTED: &str = "compacted";
/// A time in the past, so that no limit is near.
const TIME: TimestampMs = TimestampMs(1_700_000_000_000);

/// Their records are old, and the first look for old ones comes half a minute after a start.
pub const KEPT: &[(&str, &str)] = &[("retention.ms", "-1")];

pub fn compare(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        create(peer, TOPIC, KEPT.to_vec());
        (0..2).for_each(|index| wait_until_led(peer, TOPIC, index));
    }
    session.learn();
    compare_produce(session);
    compare_fetch(session);
    compare_offsets(session);
    compare_epochs(session);
}

pub fn create(peer: &mut Peer, name: &str, configs: Vec<(&str, &str)>) {
    let configs = configs.into_iter();
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.to_owned(),
            num_partitions: 2,
            replication_factor: 1,
            configs: configs
                .map(|(name, value)| CreatableTopicConfig {
                    name: name.to_owned(),
                    value: Some(value.to_owned()),
                })
                .collect(),
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    };
    let response: CreateTopicsResponse = peer.ask(7, &request);
    assert!(response.topics[0].error_code.is_none());
}

pub fn batch(values: &[&str], codec: Codec) -> BytesMut {
    let mut builder = BatchBuilder::new(Offset(0)).compressed(codec, None);
    for (value, place) in values.iter().zip(0..) {
        builder.append(NewRecord {
            timestamp: TimestampMs(TIME.0 + place),
            key: Some(b"key"),
            value: Some(value.as_bytes()),
            headers: &[(b"header", None)],
        });
    }
    builder.build().expect("a batch")
}

pub fn produce(peer: &Peer, topic: &str, index: i32, records: BytesMut) -> ProduceRequest {
    ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            name: topic.to_owned(),
            topic_id: peer.id(topic),
            partition_data: vec![PartitionProduceData {
                index: PartitionIndex(index),
                records: Some(records),
            }],
        }],
        ..ProduceRequest::default()
    }
}

/// - What is wrong with a batch is told in our own words.
fn even_produced(_: &Peer, response: &mut ProduceResponse) {
    let topics = response.responses.iter_mut();
    for partition in topics.flat_map(|topic| &mut topic.partition_responses) {
        partition.error_message = partition.error_message.take().map(|_| String::new());
        for error in &mut partition.record_errors {
            let message = error.batch_index_error_message.take();
            error.batch_index_error_message = message.map(|_| String::new());
        }
    }
}

fn compare_produce(session: &mut Session) {
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4] {
        let records = batch(&["one", "two", "three"], codec);
        let request = |peer: &Peer| produce(peer, TOPIC, 0, records.clone());
        session.compare("a batch", ALL, request, even_produced);
    }
    let zstd = batch(&["one", "two"], Codec::Zstd);
    // Too early for zstd before version 7.
    session.compare(
        "zstd",
        ALL,
        |peer| produce(peer, TOPIC, 0, zstd.clone()),
        even_produced,
    );
    let good = batch(&["value"], Codec::None);
    let mut corrupt = good.clone();
    *corrupt.last_mut().expect("a byte") ^= 1;
    let corrupt = |peer: &Peer| produce(peer, TOPIC, 0, corrupt.clone());
    session.compare("a corrupt batch", ALL, corrupt, even_produced);
    let strange = |peer: &Peer| produce(peer, TOPIC, 9, good.clone());
    session.compare("an unknown partition", ALL, strange, even_produced);
    let strange = |peer: &Peer| {
        let mut request = produce(peer, "nope", 0, good.clone());
        request.topic_data[0].topic_id = Uuid([77; 16]);
        request
    };
    session.compare("an unknown topic", ALL, strange, even_produced);
    let large = batch(&["x".repeat(2_000_000).as_str()], Codec::None);
    session.compare(
        "too large",
        ALL,
        |peer| produce(peer, TOPIC, 0, large.clone()),
        even_produced,
    );
    compare_faulty_records(session);
    compare_sequences(session);
}

/// A record by its timestamp and key.
type Shape = (TimestampMs, Option<&'static [u8]>);

/// Single records at fault: their places in the batch are named (KIP-467).
fn compare_faulty_records(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        create(peer, COMPACTED, vec![("cleanup.policy", "compact")]);
        wait_until_led(peer, COMPACTED, 0);
    }
    session.learn();
    let far = TimestampMs(4_000_000_000_000);
    let shapes: [(&str, [Shape; 3]); 4] = [
        (TOPIC, [(TIME, None), (far, None), (far, None)]),
        (
            COMPACTED,
            [(TIME, None), (TIME, Some(b"key")), (TIME, None)],
        ),
        (COMPACTED, [(far, Some(b"key")), (TIME, None), (TIME, None)]),
        (COMPACTED, [(TIME, None), (far, None), (TIME, Some(b"key"))]),
    ];
    for (topic, shape) in shapes {
        for codec in [Codec::None, Codec::Gzip] {
            let mut builder = BatchBuilder::new(Offset(0)).compressed(codec, None);
            for (timestamp, key) in shape {
                builder.append(NewRecord {
                    timestamp,
                    key,
                    ..NewRecord::default()
                });
            }
            let records = builder.build().expect("a batch");
            let request = |peer: &Peer| produce(peer, topic, 0, records.clone());
            session.compare("faulty records", from(8), request, even_produced);
        }
    }
}

/// A producer's sequence: in order, again, with a gap, with an older epoch.
fn compare_sequences(session: &mut Session) {
    for (epoch, sequence) in [(1, 0), (1, 1), (1, 0), (1, 7), (0, 2), (2, 0), (2, 0)] {
        let mut builder = BatchBuilder::new(Offset(0)).producer(
            ProducerId(900_000),
            ProducerEpoch(epoch),
            Sequence(sequence),
        );
        builder.append(NewRecord {
            timestamp: TIME,
            value: Some(b"v"),
            ..NewRecord::default()
        });
        let records = builder.build().expect("a batch");
        let request = |peer: &Peer| produce(peer, TOPIC, 1, records.clone());
        session.compare("a sequence", 13..=13, request, even_produced);
    }
}

pub fn fetch(peer: &Peer, topic: &str, index: i32, offset: i64) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 100,
        min_bytes: 1,
        max_bytes: 10_000_000,
        topics: vec![FetchTopic {
            topic: topic.to_owned(),
            topic_id: peer.id(topic),
            partitions: vec![FetchPartition {
                partition: PartitionIndex(index),
                fetch_offset: Offset(offset),
                partition_max_bytes: 1_000_000,
                ..FetchPartition::default()
            }],
        }],
        ..FetchRequest::default()
    }
}

/// Neither read_uncommitted nor read_committed.
const STRANGE_LEVELS: [i8; 3] = [2, -1, 127];

/// An isolation level that there is not fails the whole request, unless no partition is known.
fn compare_strange_levels(session: &mut Session) {
    for isolation_level in STRANGE_LEVELS {
        for (topic, index) in [(TOPIC, 0), (TOPIC, 9), ("nope", 0)] {
            let request = |peer: &Peer| FetchRequest {
                isolation_level,
                ..fetch(peer, topic, index, 0)
            };
            session.compare("a strange isolation level", ALL, request, even_fetched);
        }
    }
}

fn even_fetched(_: &Peer, _: &mut FetchResponse) {}

fn compare_fetch(session: &mut Session) {
    compare_strange_levels(session);
    for offset in [0, 4, 1] {
        let request = |peer: &Peer| fetch(peer, TOPIC, 0, offset);
        session.compare("records", ALL, request, even_fetched);
    }
    for offset in [-1, 1_000_000] {
        let request = |peer: &Peer| fetch(peer, TOPIC, 0, offset);
        session.compare("out of range", ALL, request, even_fetched);
    }
    session.compare(
        "unknown partition",
        ALL,
        |peer| fetch(peer, TOPIC, 9, 0),
        even_fetched,
    );
    let unknown = |peer: &Peer| {
        let mut request = fetch(peer, "nope", 0, 0);
        request.topics[0].topic_id = Uuid([77; 16]);
        request
    };
    session.compare("unknown topic", ALL, unknown, even_fetched);
    for leader_epoch in [0, 5] {
        let request = |peer: &Peer| {
            let mut request = fetch(peer, TOPIC, 0, 0);
            request.topics[0].partitions[0].current_leader_epoch = LeaderEpoch(leader_epoch);
            request
        };
        session.compare("a leader's epoch", from(9), request, even_fetched);
    }
    let small = |peer: &Peer| {
        let mut request = fetch(peer, TOPIC, 0, 0);
        request.topics[0].partitions[0].partition_max_bytes = 1;
        request.max_bytes = 1;
        request
    };
    session.compare("one batch at least", ALL, small, even_fetched);
    let committed = |peer: &Peer| FetchRequest {
        isolation_level: 1,
        ..fetch(peer, TOPIC, 0, 0)
    };
    session.compare("committed records", ALL, committed, even_fetched);
    let no_session = |peer: &Peer| FetchRequest {
        session_id: 12_345,
        session_epoch: 3,
        ..fetch(peer, TOPIC, 0, 0)
    };
    session.compare("an unknown session", from(7), no_session, even_fetched);
}

/// Kafka answers the creation before its partitions have a leader.
pub fn wait_until_led(peer: &mut Peer, topic: &str, index: i32) {
    for _ in 0..200 {
        let response: ListOffsetsResponse = peer.ask(7, &ask(topic, index, -1, -1));
        if response.topics[0].partitions[0].error_code.is_none() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("partition {index} has no leader after 20 s");
}

fn ask(topic: &str, index: i32, timestamp: i64, leader_epoch: i32) -> ListOffsetsRequest {
    ListOffsetsRequest {
        replica_id: coreline::base::ids::BrokerId(-1),
        topics: vec![ListOffsetsTopic {
            name: topic.to_owned(),
            partitions: vec![ListOffsetsPartition {
                partition_index: PartitionIndex(index),
                current_leader_epoch: LeaderEpoch(leader_epoch),
                timestamp: TimestampMs(timestamp),
            }],
        }],
        ..ListOffsetsRequest::default()
    }
}

fn compare_offsets(session: &mut Session) {
    let even = |_: &Peer, _: &mut ListOffsetsResponse| {};
    let (before, within, after) = (TIME.0 - 5, TIME.0 + 1, TIME.0 + 100);
    for timestamp in [-1, -2, -3, -4, -5, before, within, after] {
        session.compare("a timestamp", ALL, |_| ask(TOPIC, 0, timestamp, -1), even);
    }
    session.compare("unknown partition", ALL, |_| ask(TOPIC, 9, -1, -1), even);
    session.compare("unknown topic", ALL, |_| ask("nope", 0, -1, -1), even);
    for isolation_level in STRANGE_LEVELS {
        for (topic, index, timestamp) in [
            (TOPIC, 0, -1),
            (TOPIC, 0, -9),
            (TOPIC, 9, -2),
            ("no", 0, -1),
        ] {
            let request = |_: &Peer| ListOffsetsRequest {
                isolation_level,
                ..ask(topic, index, timestamp, -1)
            };
            session.compare("a strange isolation level", from(2), request, even);
        }
    }
    for leader_epoch in [0, 5] {
        let request = |_: &Peer| ask(TOPIC, 0, -1, leader_epoch);
        session.compare("a leader's epoch", from(4), request, even);
    }
}

/// What the first partition of a topic holds, where it starts, and what its times find.
pub fn compare_place(session: &mut Session, topic: &str) {
    for offset in [0, 3, 4, 5, 9] {
        let request = |peer: &Peer| fetch(peer, topic, 0, offset);
        session.compare("records that are left", ALL, request, even_fetched);
    }
    for timestamp in [-1, -2, -3, -4, TIME.0, TIME.0 + 1] {
        let request = |_: &Peer| ask(topic, 0, timestamp, -1);
        session.compare(
            "what times find",
            ALL,
            request,
            |_, _: &mut ListOffsetsResponse| {},
        );
    }
}

fn compare_epochs(session: &mut Session) {
    let ask =
        |topic: &str, index: i32, leader_epoch: i32, current: i32| OffsetForLeaderEpochRequest {
            replica_id: coreline::base::ids::BrokerId(-1),
            topics: vec![OffsetForLeaderTopic {
                topic: topic.to_owned(),
                partitions: vec![OffsetForLeaderPartition {
                    partition: PartitionIndex(index),
                    current_leader_epoch: LeaderEpoch(current),
                    leader_epoch: LeaderEpoch(leader_epoch),
                }],
            }],
        };
    let even = |_: &Peer, _: &mut OffsetForLeaderEpochResponse| {};
    for (leader_epoch, current) in [(0, -1), (0, 0), (3, -1), (0, 5), (-1, -1)] {
        let request = |_: &Peer| ask(TOPIC, 0, leader_epoch, current);
        session.compare("the end of an epoch", ALL, request, even);
    }
    session.compare("unknown partition", ALL, |_| ask(TOPIC, 9, 0, -1), even);
    session.compare("unknown topic", ALL, |_| ask("nope", 0, 0, -1), even);
}
