//! DeleteRecords, and what Fetch and ListOffsets tell afterwards.

use coreline::base::ids::{Offset, PartitionIndex};
use coreline::wire::compression::Codec;
use coreline::wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
};
use coreline::wire::messages::produce::ProduceResponse;

use crate::data::{self, batch, create, produce, wait_until_led};
use crate::session::{ALL, Peer, Session};

const TOPIC: &str = "trimmed";
const COMPACTED: &str = "trimmed-compacted";
const BOTH: &str = "trimmed-both";
const INTERNAL: &str = "__consumer_offsets";

/// Topics with their partitions' offsets.
type Asked<'a> = &'a [(&'a str, &'a [(i32, i64)])];

fn request(topics: Asked<'_>, timeout_ms: i32) -> DeleteRecordsRequest {
    let partition = |(index, offset): &(i32, i64)| DeleteRecordsPartition {
        partition_index: PartitionIndex(*index),
        offset: Offset(*offset),
    };
    let topic = |(name, partitions): &(&str, &[(i32, i64)])| DeleteRecordsTopic {
        name: (*name).to_owned(),
        partitions: partitions.iter().map(partition).collect(),
    };
    DeleteRecordsRequest {
        topics: topics.iter().map(topic).collect(),
        timeout_ms,
    }
}

/// - Topics and partitions come in the order of Kafka's hash maps there.
fn even(_: &Peer, response: &mut DeleteRecordsResponse) {
    response
        .topics
        .sort_by(|one, other| one.name.cmp(&other.name));
    for topic in &mut response.topics {
        topic.partitions.sort_by_key(|one| one.partition_index);
    }
}

/// In this order: each goes on from what the ones before have left.
const CASES: [(&str, Asked<'static>); 17] = [
    ("nothing", &[]),
    ("no partitions", &[(TOPIC, &[])]),
    ("the start", &[(TOPIC, &[(0, 0), (1, 0)])]),
    ("beyond the end", &[(TOPIC, &[(0, 10)])]),
    ("far beyond the end", &[(TOPIC, &[(0, i64::MAX)])]),
    ("no place", &[(TOPIC, &[(0, -2), (1, i64::MIN)])]),
    (
        "unknown",
        &[(TOPIC, &[(2, 0), (-1, 0)]), ("nope", &[(0, 0)])],
    ),
    ("no name", &[("", &[(0, 0)])]),
    ("a batch", &[(TOPIC, &[(0, 3)])]),
    ("within a batch", &[(TOPIC, &[(0, 4)])]),
    ("backwards", &[(TOPIC, &[(0, 1)])]),
    ("twice", &[(TOPIC, &[(0, 6), (0, 5)])]),
    ("twice, refused last", &[(TOPIC, &[(0, 6), (0, 99)])]),
    (
        "a topic twice",
        &[(TOPIC, &[(0, 99)]), (TOPIC, &[(1, -1), (0, 7)])],
    ),
    ("to the high watermark", &[(TOPIC, &[(0, -1), (1, -1)])]),
    (
        "by the policy",
        &[(COMPACTED, &[(0, 1), (0, -9)]), (BOTH, &[(0, 1), (1, -1)])],
    ),
    (
        "internal",
        &[(INTERNAL, &[(0, 0), (7, 0)]), (TOPIC, &[(0, 99)])],
    ),
];

pub fn compare(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        create(peer, TOPIC, data::KEPT.to_vec());
        create(peer, COMPACTED, vec![("cleanup.policy", "compact")]);
        let both = ("cleanup.policy", "compact,delete");
        create(peer, BOTH, [data::KEPT, &[both]].concat());
        create(peer, INTERNAL, Vec::new());
        for name in [TOPIC, COMPACTED, BOTH] {
            (0..2).for_each(|index| wait_until_led(peer, name, index));
            peer.learn();
            for codec in [Codec::None, Codec::None, Codec::Gzip] {
                let records = batch(&["one", "two", "three"], codec);
                let request = produce(peer, name, 0, records);
                let response: ProduceResponse = peer.ask(9, &request);
                let partition = &response.responses[0].partition_responses[0];
                assert!(partition.error_code.is_none());
            }
        }
    }
    session.learn();
    for (case, topics) in CASES {
        for timeout_ms in [30_000, 0, -1] {
            session.compare(case, ALL, |_| request(topics, timeout_ms), even);
        }
        data::compare_place(session, TOPIC);
    }
}
