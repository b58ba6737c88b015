//! ElectLeaders, ListPartitionReassignments, AlterPartitionReassignments, DescribeProducers.

use coreline::base::ids::{BrokerId, PartitionIndex, ProducerEpoch, ProducerId, Sequence};
use coreline::base::time::TimestampMs;
use coreline::wire::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignableTopic,
};
use coreline::wire::messages::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, TopicRequest,
};
use coreline::wire::messages::elect_leaders::{
    ElectLeadersRequest, ElectLeadersResponse, TopicPartitions,
};
use coreline::wire::messages::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
};
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::record_batch::{BatchBuilder, NewRecord};

use crate::data::{self, create, produce, wait_until_led};
use crate::session::{ALL, Peer, Session, from};

const TOPIC: &str = "placed";

/// Partitions by topic.
type Partitions<'a> = &'a [(&'a str, &'a [i32])];

/// Partitions with their new replicas.
type Moves<'a> = &'a [(i32, Option<&'a [i32]>)];

pub fn compare(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        create(peer, TOPIC, data::KEPT.to_vec());
        (0..2).for_each(|index| wait_until_led(peer, TOPIC, index));
    }
    session.learn();
    compare_elections(session);
    compare_listing(session);
    compare_reassignments(session);
    compare_producers(session);
}

fn indexes(partitions: &[i32]) -> Vec<PartitionIndex> {
    partitions.iter().copied().map(PartitionIndex).collect()
}

/// - Topics come in the order of Kafka's hash maps there; a topic of coordinators is there alone.
fn even_elected(_: &Peer, response: &mut ElectLeadersResponse) {
    let results = &mut response.replica_election_results;
    results.retain(|one| !one.topic.starts_with("__"));
    results.sort_by(|one, other| one.topic.cmp(&other.topic));
}

fn compare_elections(session: &mut Session) {
    let ask = |election_type: i8, topics: Option<Partitions<'_>>| ElectLeadersRequest {
        election_type,
        topic_partitions: topics.map(|topics| {
            let topics = topics.iter();
            topics
                .map(|(name, partitions)| TopicPartitions {
                    topic: (*name).to_owned(),
                    partitions: indexes(partitions),
                })
                .collect()
        }),
        ..ElectLeadersRequest::default()
    };
    let cases: [(&str, Option<Partitions<'_>>); 4] = [
        ("all", None),
        ("nothing", Some(&[])),
        ("some", Some(&[(TOPIC, &[0, 1])])),
        (
            "unknown",
            Some(&[(TOPIC, &[0, 7, -1]), ("nope", &[0]), ("", &[])]),
        ),
    ];
    for (case, topics) in cases {
        session.compare(case, ALL, |_| ask(0, topics), even_elected);
        session.compare(case, from(1), |_| ask(1, topics), even_elected);
        session.compare("unknown kind", from(1), |_| ask(2, topics), even_elected);
    }
}

fn compare_listing(session: &mut Session) {
    let cases: [(&str, Option<Partitions<'_>>); 4] = [
        ("all", None),
        ("nothing", Some(&[])),
        ("some", Some(&[(TOPIC, &[0, 1])])),
        ("unknown", Some(&[(TOPIC, &[0, 7]), ("nope", &[0])])),
    ];
    for (case, topics) in cases {
        let topic = |(name, partitions): &(&str, &[i32])| ListPartitionReassignmentsTopics {
            name: (*name).to_owned(),
            partition_indexes: indexes(partitions),
        };
        let request = |_: &Peer| ListPartitionReassignmentsRequest {
            topics: topics.map(|topics| topics.iter().map(topic).collect()),
            ..ListPartitionReassignmentsRequest::default()
        };
        let even = |_: &Peer, _: &mut ListPartitionReassignmentsResponse| {};
        session.compare(case, ALL, request, even);
    }
}

fn compare_reassignments(session: &mut Session) {
    let cases: [(&str, &str, Moves<'_>); 9] = [
        ("as it is", TOPIC, &[(0, Some(&[1])), (1, Some(&[1]))]),
        ("taken back", TOPIC, &[(0, None)]),
        ("nobody", TOPIC, &[(0, Some(&[]))]),
        ("strangers", TOPIC, &[(0, Some(&[8, 7]))]),
        ("a stranger", TOPIC, &[(0, Some(&[1, 2])), (1, Some(&[1]))]),
        ("twice the same", TOPIC, &[(0, Some(&[1, 1]))]),
        ("unknown partition", TOPIC, &[(5, Some(&[1])), (-1, None)]),
        ("unknown topic", "nope", &[(0, Some(&[1])), (0, None)]),
        ("no partition", TOPIC, &[]),
    ];
    let even = |_: &Peer, _: &mut AlterPartitionReassignmentsResponse| {};
    for (case, topic, partitions) in cases {
        let partition = |(index, replicas): &(i32, Option<&[i32]>)| ReassignablePartition {
            partition_index: PartitionIndex(*index),
            replicas: replicas.map(|ids| ids.iter().copied().map(BrokerId).collect()),
        };
        let ask = |may_resize: bool| AlterPartitionReassignmentsRequest {
            allow_replication_factor_change: may_resize,
            topics: vec![ReassignableTopic {
                name: topic.to_owned(),
                partitions: partitions.iter().map(partition).collect(),
            }],
            ..AlterPartitionReassignmentsRequest::default()
        };
        session.compare(case, ALL, |_| ask(true), even);
        session.compare(case, from(1), |_| ask(false), even);
    }
    let nothing = |_: &Peer| AlterPartitionReassignmentsRequest {
        allow_replication_factor_change: false,
        ..AlterPartitionReassignmentsRequest::default()
    };
    session.compare("no topic", from(1), nothing, even);
}

/// Batches of two producers: one with a second epoch, one whose sequence is near its end.
fn write_as_producers(peer: &mut Peer) {
    let batches = [
        (4_000, 0, 0),
        (4_000, 0, 2),
        (4_000, 3, 0),
        (4_001, 1, i32::MAX - 3),
    ];
    for (id, epoch, sequence) in batches {
        let mut builder = BatchBuilder::default().producer(
            ProducerId(id),
            ProducerEpoch(epoch),
            Sequence(sequence),
        );
        for time in [1_700_000_000_000, 1_700_000_000_500] {
            builder.append(NewRecord {
                timestamp: TimestampMs(time),
                key: None,
                value: Some(b"value"),
                headers: &[],
            });
        }
        let records = builder.build().expect("a batch");
        let request = produce(peer, TOPIC, 0, records);
        let response: ProduceResponse = peer.ask(9, &request);
        let partition = &response.responses[0].partition_responses[0];
        assert!(partition.error_code.is_none(), "{partition:?}");
    }
}

fn compare_producers(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        write_as_producers(peer);
    }
    // - Producers come in the order of Kafka's hash map there.
    let even = |_: &Peer, response: &mut DescribeProducersResponse| {
        let topics = response.topics.iter_mut();
        for partition in topics.flat_map(|topic| &mut topic.partitions) {
            partition
                .active_producers
                .sort_by_key(|one| one.producer_id);
        }
    };
    let cases: [(&str, Partitions<'_>); 5] = [
        ("nothing", &[]),
        (
            "bad names",
            &[("", &[0]), (".", &[0, 1]), ("a b", &[0]), (TOPIC, &[0])],
        ),
        ("some", &[(TOPIC, &[0, 1])]),
        ("none of it", &[(TOPIC, &[])]),
        ("unknown", &[(TOPIC, &[7, 0, -1]), ("nope", &[0, 1])]),
    ];
    for (case, topics) in cases {
        let topic = |(name, partitions): &(&str, &[i32])| TopicRequest {
            name: (*name).to_owned(),
            partition_indexes: indexes(partitions),
        };
        let request = |_: &Peer| DescribeProducersRequest {
            topics: topics.iter().map(topic).collect(),
        };
        session.compare(case, ALL, request, even);
    }
}
