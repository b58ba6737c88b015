//! CreatePartitions and DescribeLogDirs.

use coreline::base::ids::{BrokerId, PartitionIndex};
use coreline::wire::compression::Codec;
use coreline::wire::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsResponse,
    CreatePartitionsTopic,
};
use coreline::wire::messages::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResponse,
};
use coreline::wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use coreline::wire::messages::produce::ProduceResponse;

use crate::data::{self, batch, create, produce, wait_until_led};
use crate::session::{ALL, Peer, Session};

const GROWS: &str = "grows";
const STAYS: &str = "stays";

/// A topic, its new count, and the brokers of each new partition.
type Asked<'a> = (&'a str, i32, Option<&'a [&'a [i32]]>);

fn request(topics: &[Asked<'_>], validate_only: bool) -> CreatePartitionsRequest {
    let assignment = |brokers: &&[i32]| CreatePartitionsAssignment {
        broker_ids: brokers.iter().copied().map(BrokerId).collect(),
    };
    let topic = |(name, count, assignments): &Asked<'_>| CreatePartitionsTopic {
        name: (*name).to_owned(),
        count: *count,
        assignments: assignments.map(|all| all.iter().map(assignment).collect()),
    };
    CreatePartitionsRequest {
        topics: topics.iter().map(topic).collect(),
        timeout_ms: 30_000,
        validate_only,
    }
}

/// - Topics come in the order of Kafka's hash sets there.
fn even_grown(_: &Peer, response: &mut CreatePartitionsResponse) {
    let name = |one: &coreline::wire::messages::create_partitions::CreatePartitionsTopicResult| {
        (one.name.clone(), one.error_code)
    };
    response.results.sort_by_key(name);
}

/// What is refused, and what would be done; both brokers only validate.
const VALIDATED: [(&str, &[Asked<'static>]); 26] = [
    ("nothing", &[]),
    ("two more", &[(GROWS, 4, None)]),
    ("as many", &[(GROWS, 2, None)]),
    ("fewer", &[(GROWS, 1, None)]),
    ("none", &[(GROWS, 0, None)]),
    ("negative", &[(GROWS, -1, None)]),
    ("very negative", &[(GROWS, i32::MIN, None)]),
    ("as many as there may be", &[(GROWS, 10_002, None)]),
    ("one too many", &[(GROWS, 10_003, None)]),
    ("far too many", &[(GROWS, i32::MAX, None)]),
    (
        "too many together",
        &[(GROWS, 5_002, None), (STAYS, 5_003, None)],
    ),
    (
        "too many and twice",
        &[(GROWS, 20_000, None), (STAYS, 3, None), (STAYS, 4, None)],
    ),
    (
        "too many of an unknown one",
        &[("nope", 20_000, None), (STAYS, 3, None)],
    ),
    ("unknown", &[("nope", 3, None), (GROWS, 3, None)]),
    ("no name", &[("", 3, None)]),
    ("a name that none may have", &[("a b", 3, None)]),
    ("the metadata log", &[("__cluster_metadata", 3, None)]),
    (
        "twice",
        &[
            (GROWS, 3, None),
            (STAYS, 3, None),
            (GROWS, 4, None),
            (GROWS, 3, None),
        ],
    ),
    ("assigned", &[(GROWS, 4, Some(&[&[1], &[1]]))]),
    ("assigned too few", &[(GROWS, 4, Some(&[&[1]]))]),
    ("assigned too many", &[(GROWS, 3, Some(&[&[1], &[1]]))]),
    ("nothing assigned", &[(GROWS, 3, Some(&[]))]),
    ("assigned to nobody", &[(GROWS, 3, Some(&[&[]]))]),
    ("assigned to strangers", &[(GROWS, 3, Some(&[&[8, 7]]))]),
    ("assigned twice to one", &[(GROWS, 3, Some(&[&[1, 1]]))]),
    ("assigned and as many", &[(GROWS, 2, Some(&[&[1]]))]),
];

pub fn compare(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        for name in [GROWS, STAYS] {
            create(peer, name, data::KEPT.to_vec());
            (0..2).for_each(|index| wait_until_led(peer, name, index));
        }
    }
    session.learn();
    for (case, topics) in VALIDATED {
        session.compare(case, ALL, |_| request(topics, true), even_grown);
    }
    compare_growth(session);
    compare_directories(session);
}

/// Each count once: the answers are the same again when asked again.
fn compare_growth(session: &mut Session) {
    let metadata = |_: &Peer| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some(GROWS.to_owned()),
            ..MetadataRequestTopic::default()
        }]),
        allow_auto_topic_creation: true,
        ..MetadataRequest::default()
    };
    let steps: [(i32, Option<&[&[i32]]>); 3] = [(3, None), (5, Some(&[&[1], &[1]])), (8, None)];
    let mut before = 2;
    for (count, assignments) in steps {
        let asked = [(GROWS, count, assignments), (STAYS, 1, None)];
        let once = 0..=0;
        session.compare("growth", once, |_| request(&asked, false), even_grown);
        session.compare("grown", 3..=3, |_| request(&asked, false), even_grown);
        for peer in [&mut session.kafka, &mut session.coreline] {
            (before..count).for_each(|index| wait_until_led(peer, GROWS, index));
        }
        before = count;
        let by_number = |_: &Peer, response: &mut MetadataResponse| {
            for topic in &mut response.topics {
                topic.partitions.sort_by_key(|one| one.partition_index);
            }
        };
        session.compare("what has grown", ALL, metadata, by_number);
    }
}

/// - The path is each broker's own, absolute in both.
/// - The room of a file system changes all the time; it is there and below the size.
/// - Topics and partitions come in the order of Kafka's hash maps there.
/// - The topics of Kafka's coordinators.
fn even_directories(_: &Peer, response: &mut DescribeLogDirsResponse) {
    for result in &mut response.results {
        assert!(result.log_dir.starts_with('/') && result.log_dir.ends_with("/data"));
        result.log_dir.clear();
        assert!(result.usable_bytes <= result.total_bytes);
        result.usable_bytes = result.usable_bytes.signum();
        result.topics.retain(|topic| !topic.name.starts_with("__"));
        result
            .topics
            .sort_by(|one, other| one.name.cmp(&other.name));
        for topic in &mut result.topics {
            topic.partitions.sort_by_key(|one| one.partition_index);
        }
    }
}

/// Partitions by topic.
type Partitions<'a> = &'a [(&'a str, &'a [i32])];

fn compare_directories(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        for index in [0, 0, 1, 7] {
            let records = batch(&["one", "two", "three"], Codec::None);
            let request = produce(peer, GROWS, index, records);
            let response: ProduceResponse = peer.ask(9, &request);
            let partition = &response.responses[0].partition_responses[0];
            assert!(partition.error_code.is_none());
        }
    }
    let cases: [(&str, Option<Partitions<'_>>); 6] = [
        ("all", None),
        ("nothing", Some(&[])),
        ("some", Some(&[(GROWS, &[7, 0]), (STAYS, &[1])])),
        ("twice", Some(&[(GROWS, &[7, 7])])),
        (
            "unknown",
            Some(&[("nope", &[0]), ("", &[0]), (GROWS, &[99, -1])]),
        ),
        ("no partitions", Some(&[(GROWS, &[])])),
    ];
    for (case, topics) in cases {
        let topic = |(name, partitions): &(&str, &[i32])| DescribableLogDirTopic {
            topic: (*name).to_owned(),
            partitions: partitions.iter().copied().map(PartitionIndex).collect(),
        };
        let request = |_: &Peer| DescribeLogDirsRequest {
            topics: topics.map(|topics| topics.iter().map(topic).collect()),
        };
        session.compare(case, ALL, request, even_directories);
    }
}
