//! The data keys' answers beside Apache Kafka's, field by field, in every version: the same
//! requests to both, ids and ports normalised. `KAFKA_BOOTSTRAP` names a running Kafka.

use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex, Uuid};
use coreline::base::time::TimestampMs;
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse,
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

mod broker;

use broker::{Client, Harness, HarnessOptions, batch};

struct Side {
    client: Client,
    topic: String,
    topic_id: Uuid,
}

impl Side {
    fn new(mut client: Client, topic: &str) -> Self {
        let request = CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: topic.to_owned(),
                num_partitions: 2,
                replication_factor: 1,
                ..CreatableTopic::default()
            }],
            timeout_ms: 10_000,
            ..CreateTopicsRequest::default()
        };
        let created: CreateTopicsResponse = client.ask(&request, 7);
        assert_eq!(created.topics[0].error_code, ErrorCode::NONE);
        let mut side = Self {
            client,
            topic: topic.to_owned(),
            topic_id: created.topics[0].topic_id,
        };
        // Kafka answers before its partitions have their leaders.
        let started = Instant::now();
        while (0..2).any(|partition| !list(&mut side, 1, (true, partition, -1)).contains("NONE")) {
            assert!(started.elapsed() < Duration::from_secs(20), "no leaders");
            std::thread::sleep(Duration::from_millis(50));
        }
        side
    }

    fn name(&self, known: bool) -> (String, Uuid) {
        if known {
            (self.topic.clone(), self.topic_id)
        } else {
            ("nowhere".to_owned(), Uuid([3; 16]))
        }
    }

    fn normal_id(&self, id: Uuid) -> Uuid {
        if id == self.topic_id {
            Uuid([1; 16])
        } else {
            id
        }
    }
}

/// Records of a produce, by what is wrong with them.
fn spoilt(kind: &str) -> Option<BytesMut> {
    let mut records = batch(3, 20);
    match kind {
        "good" => {}
        "null" => return None,
        "empty" => records.clear(),
        "crc" => records[30] ^= 1,
        "magic" => records[16] = 1,
        "base offset" => records[7] = 5,
        "short" => records.truncate(60),
        "two" => records.extend_from_slice(&batch(1, 5)),
        "length" => records[8..12].copy_from_slice(&5i32.to_be_bytes()),
        _ => unreachable!("{kind}"),
    }
    Some(records)
}

fn produce(side: &mut Side, version: i16, acks: i16, what: (&str, bool, i32)) -> String {
    let (kind, known, partition) = what;
    let (name, topic_id) = side.name(known);
    let request = ProduceRequest {
        acks,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData {
            name,
            topic_id,
            partition_data: vec![PartitionProduceData {
                index: PartitionIndex(partition),
                records: spoilt(kind),
            }],
        }],
        ..ProduceRequest::default()
    };
    let mut response: ProduceResponse = side.client.ask(&request, version);
    for topic in &mut response.responses {
        topic.topic_id = side.normal_id(topic.topic_id);
        for partition in &mut topic.partition_responses {
            // The texts are each broker's own; that there is one is compared, but where Kafka
            // keeps its reason to itself and ours is told.
            let text = partition.error_message.take().map(|_| String::new());
            partition.error_message = text.filter(|_| kind != "base offset");
            for record in &mut partition.record_errors {
                record.batch_index_error_message = record
                    .batch_index_error_message
                    .take()
                    .map(|_| String::new());
            }
        }
    }
    format!("{response:?}")
}

struct Read {
    known: bool,
    partition: i32,
    offset: i64,
    epoch: i32,
    fetched_epoch: i32,
    isolation: i8,
    session_epoch: i32,
}

const READ: Read = Read {
    known: true,
    partition: 0,
    offset: 0,
    epoch: -1,
    fetched_epoch: -1,
    isolation: 0,
    session_epoch: -1,
};

fn fetch(side: &mut Side, version: i16, read: &Read) -> String {
    let (topic, topic_id) = side.name(read.known);
    let request = FetchRequest {
        max_wait_ms: 10,
        min_bytes: 1,
        max_bytes: 1 << 20,
        isolation_level: read.isolation,
        session_epoch: read.session_epoch,
        topics: vec![FetchTopic {
            topic,
            topic_id,
            partitions: vec![FetchPartition {
                partition: PartitionIndex(read.partition),
                current_leader_epoch: LeaderEpoch(read.epoch),
                fetch_offset: Offset(read.offset),
                last_fetched_epoch: LeaderEpoch(if version >= 12 {
                    read.fetched_epoch
                } else {
                    -1
                }),
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            }],
        }],
        ..FetchRequest::default()
    };
    let mut response: FetchResponse = side.client.ask(&request, version);
    response.session_id = response.session_id.signum();
    for topic in &mut response.responses {
        topic.topic_id = side.normal_id(topic.topic_id);
        for partition in &mut topic.partitions {
            if partition.current_leader.leader_id != BrokerId(-1) {
                partition.current_leader.leader_id = BrokerId(1);
            }
        }
    }
    for endpoint in &mut response.node_endpoints {
        (endpoint.node_id, endpoint.host, endpoint.port) = (BrokerId(1), String::new(), 1);
    }
    format!("{response:?}")
}

fn list(side: &mut Side, version: i16, (known, partition, timestamp): (bool, i32, i64)) -> String {
    let request = ListOffsetsRequest {
        replica_id: BrokerId(-1),
        topics: vec![ListOffsetsTopic {
            name: side.name(known).0,
            partitions: vec![ListOffsetsPartition {
                partition_index: PartitionIndex(partition),
                timestamp: TimestampMs(timestamp),
                ..ListOffsetsPartition::default()
            }],
        }],
        ..ListOffsetsRequest::default()
    };
    let response: ListOffsetsResponse = side.client.ask(&request, version);
    format!("{response:?}")
}

fn epoch(side: &mut Side, version: i16, (known, seen, asked): (bool, i32, i32)) -> String {
    let request = OffsetForLeaderEpochRequest {
        replica_id: BrokerId(-1),
        topics: vec![OffsetForLeaderTopic {
            topic: side.name(known).0,
            partitions: vec![OffsetForLeaderPartition {
                partition: PartitionIndex(0),
                current_leader_epoch: LeaderEpoch(seen),
                leader_epoch: LeaderEpoch(asked),
            }],
        }],
    };
    let response: OffsetForLeaderEpochResponse = side.client.ask(&request, version);
    format!("{response:?}")
}

struct Differences {
    ours: Side,
    theirs: Side,
    compared: usize,
    found: Vec<String>,
}

impl Differences {
    fn compare(&mut self, what: &str, mut ask: impl FnMut(&mut Side) -> String) {
        let (ours, theirs) = (ask(&mut self.ours), ask(&mut self.theirs));
        self.compared += 1;
        if ours != theirs {
            self.found
                .push(format!("{what}\n   ours {ours}\n  kafka {theirs}"));
        }
    }
}

#[test]
#[ignore = "needs Apache Kafka at KAFKA_BOOTSTRAP"]
fn the_data_keys_answer_as_kafka_does() {
    let peer = std::env::var("KAFKA_BOOTSTRAP").expect("KAFKA_BOOTSTRAP names a broker");
    let peer = peer.to_socket_addrs().unwrap().next().unwrap();
    let harness = Harness::start(HarnessOptions::default());
    let topic = format!("compared-{}", std::process::id());
    let mut all = Differences {
        ours: Side::new(harness.connect(), &topic),
        theirs: Side::new(Client::connect(peer), &topic),
        compared: 0,
        found: Vec::new(),
    };
    for version in 3..=13 {
        let kinds = [
            "good",
            "empty",
            "crc",
            "magic",
            "base offset",
            "short",
            "two",
            "length",
        ];
        for kind in kinds {
            let what = format!("Produce v{version} {kind}");
            all.compare(&what, |side| produce(side, version, -1, (kind, true, 0)));
        }
        for (acks, known, partition) in [(1, false, 0), (1, true, 7), (5, true, 0), (1, true, 1)] {
            let what = format!("Produce v{version} acks {acks} known {known} {partition}");
            all.compare(&what, |side| {
                produce(side, version, acks, ("good", known, partition))
            });
        }
    }
    for version in 4..=18 {
        let reads = [
            READ,
            Read {
                isolation: 1,
                ..READ
            },
            Read {
                offset: 5,
                partition: 1,
                ..READ
            },
            Read {
                offset: 33,
                partition: 1,
                ..READ
            },
            Read {
                offset: 34,
                partition: 1,
                ..READ
            },
            Read {
                offset: 33,
                partition: 1,
                isolation: 1,
                ..READ
            },
            Read { offset: -1, ..READ },
            Read {
                known: false,
                ..READ
            },
            Read {
                partition: 5,
                ..READ
            },
            Read { epoch: 0, ..READ },
            Read { epoch: 3, ..READ },
            Read {
                fetched_epoch: 0,
                offset: 99,
                ..READ
            },
            Read {
                fetched_epoch: 7,
                ..READ
            },
            Read {
                session_epoch: 0,
                ..READ
            },
            Read {
                session_epoch: 5,
                ..READ
            },
        ];
        for (number, read) in reads.iter().enumerate() {
            let what = format!("Fetch v{version} case {number}");
            all.compare(&what, |side| fetch(side, version, read));
        }
    }
    for version in 1..=11 {
        let times = [
            -1,
            -2,
            -3,
            -4,
            -5,
            -6,
            -7,
            0,
            1_700_000_000_000,
            1_700_000_000_001,
        ];
        for timestamp in times {
            let what = format!("ListOffsets v{version} at {timestamp}");
            all.compare(&what, |side| list(side, version, (true, 1, timestamp)));
        }
        for (known, partition) in [(false, 0), (true, 9)] {
            let what = format!("ListOffsets v{version} known {known} partition {partition}");
            all.compare(&what, |side| list(side, version, (known, partition, -1)));
        }
    }
    for version in 2..=4 {
        for case in [
            (true, -1, 0),
            (true, 0, 0),
            (true, 4, 0),
            (true, -1, 9),
            (false, -1, 0),
        ] {
            let what = format!("OffsetForLeaderEpoch v{version} {case:?}");
            all.compare(&what, |side| epoch(side, version, case));
        }
    }
    println!(
        "{} answers compared, {} differ",
        all.compared,
        all.found.len()
    );
    assert!(all.found.is_empty(), "{}", all.found.join("\n"));
}
