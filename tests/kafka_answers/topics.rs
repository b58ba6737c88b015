//! CreateTopics, DeleteTopics, Metadata, DescribeTopicPartitions.

use coreline::base::ids::{BrokerId, PartitionIndex, Uuid};
use coreline::wire::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
    CreateTopicsResponse,
};
use coreline::wire::messages::delete_topics::{
    DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use coreline::wire::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicRequest,
};
use coreline::wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};

use crate::session::{ALL, NODE, Peer, Session, from};

fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor,
        ..CreatableTopic::default()
    }
}

fn with_config(name: &str, value: Option<&str>) -> CreatableTopic {
    let mut topic = topic("z", 1, 1);
    topic.configs.push(CreatableTopicConfig {
        name: name.to_owned(),
        value: value.map(str::to_owned),
    });
    topic
}

fn assigned(assignments: &[(i32, &[i32])]) -> CreatableTopic {
    let mut topic = topic("z", -1, -1);
    for (index, brokers) in assignments {
        topic.assignments.push(CreatableReplicaAssignment {
            partition_index: PartitionIndex(*index),
            broker_ids: brokers.iter().map(|id| BrokerId(*id)).collect(),
        });
    }
    topic
}

/// - The id of a topic that is only validated is drawn anew each time.
/// - What a value of a setting should have been is told in our own words.
/// - `write.caching` is a setting of our own.
fn even_created(_: &Peer, response: &mut CreateTopicsResponse) {
    for topic in &mut response.topics {
        if topic.error_code.is_none() {
            topic.topic_id = Uuid::ZERO;
        }
        if let Some(message) = &mut topic.error_message
            && message.starts_with("Invalid value")
            && let Some((head, _)) = message.split_once(": ")
        {
            *message = head.to_owned();
        }
        if let Some(configs) = &mut topic.configs {
            configs.retain(|config| config.name != "write.caching");
            configs.sort_by(|one, other| one.name.cmp(&other.name));
        }
    }
}

fn create(topics: Vec<CreatableTopic>, validate_only: bool) -> CreateTopicsRequest {
    CreateTopicsRequest {
        topics,
        timeout_ms: 30_000,
        validate_only,
    }
}

/// Creations that are refused, and those that only validate.
fn creations() -> Vec<(&'static str, Vec<CreatableTopic>)> {
    let mut counts = topic("z", 1, -1);
    counts.assignments = assigned(&[(0, &[1])]).assignments;
    let mut factor = counts.clone();
    (factor.num_partitions, factor.replication_factor) = (-1, 1);
    vec![
        ("valid", vec![topic("z", 2, 1)]),
        ("defaults", vec![topic("z", -1, -1)]),
        (
            "several",
            vec![topic("z", 1, 1), topic("bad name", 1, 1), topic("y", 0, 1)],
        ),
        (
            "names that collide in one request",
            vec![topic("x.y", 1, 1), topic("x_y", 1, 1)],
        ),
        (
            "duplicates",
            vec![topic("d", 1, 1), topic("z", 1, 1), topic("d", 2, 1)],
        ),
        ("none", vec![]),
        ("no name", vec![topic("", 1, 1)]),
        ("dots", vec![topic("..", 1, 1)]),
        ("longest name", vec![topic(&"n".repeat(249), 1, 1)]),
        ("name too long", vec![topic(&"n".repeat(250), 1, 1)]),
        ("metadata topic", vec![topic("__cluster_metadata", 1, 1)]),
        ("existing", vec![topic("a.b", 1, 1)]),
        ("collision", vec![topic("a_b", 1, 1)]),
        ("no partitions", vec![topic("z", 0, 1)]),
        ("negative partitions", vec![topic("z", -2, 1)]),
        ("no replicas", vec![topic("z", 1, 0)]),
        ("neither", vec![topic("z", 0, 0)]),
        ("too many replicas", vec![topic("z", 1, 3)]),
        ("too many partitions", vec![topic("z", 10_001, 1)]),
        ("too many records", vec![topic("z", 10_000, 1)]),
        (
            "too many in sum",
            vec![topic("z", 5_000, 1), topic("y", 5_001, 1)],
        ),
        ("assigned", vec![assigned(&[(0, &[1]), (1, &[1])])]),
        ("assigned and counted", vec![counts]),
        ("assigned and replicated", vec![factor]),
        (
            "assigned with a hole",
            vec![assigned(&[(0, &[1]), (2, &[1])])],
        ),
        ("assigned from 1", vec![assigned(&[(1, &[1])])]),
        ("assigned to nobody", vec![assigned(&[(0, &[])])]),
        ("assigned to strangers", vec![assigned(&[(0, &[8, 7])])]),
        ("assigned twice to one", vec![assigned(&[(0, &[1, 1])])]),
        ("assigned twice", vec![assigned(&[(0, &[1]), (0, &[1])])]),
        ("setting", vec![with_config("retention.ms", Some(" 5000 "))]),
        ("unknown setting", vec![with_config("foo", Some("bar"))]),
        ("null setting", vec![with_config("retention.ms", None)]),
        (
            "setting of another type",
            vec![with_config("retention.ms", Some("abc"))],
        ),
        (
            "setting too small",
            vec![with_config("max.message.bytes", Some("-1"))],
        ),
        (
            "setting not listed",
            vec![with_config("compression.type", Some("foo"))],
        ),
        ("setting empty", vec![with_config("retention.ms", Some(""))]),
        (
            "policy",
            vec![with_config("cleanup.policy", Some("compact,delete"))],
        ),
    ]
}

pub fn compare(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        let mut second = topic("b", 3, -1);
        second.configs = with_config("retention.ms", Some("77000")).configs;
        let topics = vec![topic("a.b", 2, 1), second, topic("c", -1, -1)];
        let response: CreateTopicsResponse = peer.ask(7, &create(topics, false));
        assert!(
            response
                .topics
                .iter()
                .all(|topic| topic.error_code.is_none())
        );
    }
    session.learn();
    for (case, topics) in creations() {
        session.compare(case, ALL, |_| create(topics.clone(), true), even_created);
    }
    compare_metadata(session);
    compare_pages(session);
}

/// - Topics come in the order of Kafka's hash map there, sorted here.
/// - Kafka has created topics of its own meanwhile.
fn even_metadata(_: &Peer, response: &mut MetadataResponse) {
    response
        .topics
        .retain(|topic| !topic.is_internal || !topic.error_code.is_none());
    response
        .topics
        .sort_by(|one, other| one.name.cmp(&other.name));
}

fn metadata(topics: Option<Vec<(Option<&str>, Uuid)>>) -> MetadataRequest {
    let topic = |(name, topic_id): (Option<&str>, Uuid)| MetadataRequestTopic {
        topic_id,
        name: name.map(str::to_owned),
    };
    MetadataRequest {
        topics: topics.map(|topics| topics.into_iter().map(topic).collect()),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    }
}

fn compare_metadata(session: &mut Session) {
    let zero = Uuid::ZERO;
    let known = vec![(Some("b"), zero), (Some("a.b"), zero), (Some("b"), zero)];
    let names = [
        known.clone(),
        vec![(Some("nope"), zero), (Some("b d"), zero)],
    ]
    .concat();
    let with_auto = |request: MetadataRequest| MetadataRequest {
        // The field came with version 4; the default is what older versions mean.
        allow_auto_topic_creation: true,
        ..request
    };
    let none = || metadata(Some(vec![]));
    session.compare(
        "no topics, or all in version 0",
        ALL,
        |_| with_auto(none()),
        even_metadata,
    );
    session.compare(
        "known topics",
        ALL,
        |_| with_auto(metadata(Some(known.clone()))),
        even_metadata,
    );
    session.compare(
        "all topics",
        from(1),
        |_| with_auto(metadata(None)),
        even_metadata,
    );
    session.compare(
        "known and unknown",
        from(4),
        |_| metadata(Some(names.clone())),
        even_metadata,
    );
    session.compare(
        "internal",
        from(4),
        |_| metadata(Some(vec![(Some("__x"), zero)])),
        even_metadata,
    );
    let with_operations = |_: &Peer| MetadataRequest {
        include_topic_authorized_operations: true,
        ..metadata(Some(names.clone()))
    };
    session.compare("operations", from(8), with_operations, even_metadata);
    session.compare(
        "ids",
        from(12),
        |peer| metadata(Some(vec![(None, peer.id("b"))])),
        even_metadata,
    );
    let stranger = Uuid([77; 16]);
    session.compare(
        "unknown id",
        from(12),
        |_| metadata(Some(vec![(None, stranger)])),
        even_metadata,
    );
    let mixed = |peer: &Peer| metadata(Some(vec![(None, peer.id("c")), (Some("b"), zero)]));
    session.compare("an id and a name", from(12), mixed, even_metadata);
    for (name, count) in [("b", 50_000), ("nope", 50_000), ("b d", 100_000)] {
        let repeated = |_: &Peer| metadata(Some(vec![(Some(name), zero); count]));
        session.compare("one name very often", from(4), repeated, even_metadata);
    }
    compare_creation(session);
}

/// Kafka answers UNKNOWN_TOPIC_OR_PARTITION for a topic that it goes on to create; we wait and
/// answer it. Asked until it is there, both say the same.
fn compare_creation(session: &mut Session) {
    let request = MetadataRequest {
        allow_auto_topic_creation: true,
        ..metadata(Some(vec![(Some("made"), Uuid::ZERO)]))
    };
    for peer in [&mut session.kafka, &mut session.coreline] {
        let is_there = (0..100).any(|_| {
            let response: MetadataResponse = peer.ask(9, &request);
            std::thread::sleep(std::time::Duration::from_millis(50));
            response.topics[0].error_code.is_none()
        });
        assert!(is_there, "the topic is created");
    }
    session.learn();
    session.compare(
        "a topic made by asking",
        ALL,
        |_| request.clone(),
        even_metadata,
    );
}

fn compare_pages(session: &mut Session) {
    let page = |names: &[&str], limit: i32, cursor: Option<(&str, i32)>| {
        let topic = |name: &&str| TopicRequest {
            name: (*name).to_owned(),
        };
        DescribeTopicPartitionsRequest {
            topics: names.iter().map(topic).collect(),
            response_partition_limit: limit,
            cursor: cursor.map(|(name, index)| Cursor {
                topic_name: name.to_owned(),
                partition_index: PartitionIndex(index),
            }),
        }
    };
    let even = |_: &Peer, response: &mut DescribeTopicPartitionsResponse| {
        // Kafka has created topics of its own meanwhile.
        response.topics.retain(|topic| !topic.is_internal);
    };
    let all: &[&str] = &["b", "a.b", "nope", "b d", "c", "b"];
    for limit in [2_000, 1, 2, 3, 4, 0, -1] {
        session.compare("pages of topics", ALL, |_| page(all, limit, None), even);
    }
    let cursors = [
        ("b", 1),
        ("a.b", 9),
        ("nope", 0),
        ("b", -1),
        ("bb", 0),
        ("c", 0),
    ];
    for cursor in cursors {
        session.compare("a later page", ALL, |_| page(all, 2, Some(cursor)), even);
        session.compare(
            "a later page of all",
            ALL,
            |_| page(&[], 2, Some(cursor)),
            even,
        );
    }
    session.compare("all topics", ALL, |_| page(&[], 2_000, None), even);
}

/// - Kafka shuffles its answers.
fn even_deleted(_: &Peer, response: &mut DeleteTopicsResponse) {
    let key = |one: &coreline::wire::messages::delete_topics::DeletableTopicResult| {
        (one.name.clone(), one.error_code, one.error_message.clone())
    };
    response.responses.sort_by_key(key);
}

/// Deletions; those that succeed come last, in one version each.
pub fn compare_deletion(session: &mut Session) {
    let by_state = |states: Vec<(Option<&str>, Uuid)>| {
        let state = |(name, topic_id): (Option<&str>, Uuid)| DeleteTopicState {
            name: name.map(str::to_owned),
            topic_id,
        };
        DeleteTopicsRequest {
            topics: states.into_iter().map(state).collect(),
            timeout_ms: 30_000,
            ..DeleteTopicsRequest::default()
        }
    };
    let zero = Uuid::ZERO;
    let both = |peer: &Peer| by_state(vec![(Some("b"), peer.id("b")), (None, zero)]);
    session.compare("both and neither", from(6), both, even_deleted);
    let unknown = |_: &Peer| by_state(vec![(Some("nope"), zero), (None, Uuid([77; 16]))]);
    session.compare("unknown", from(6), unknown, even_deleted);
    let twice = |_: &Peer| by_state(vec![(Some("b"), zero), (Some("b"), zero)]);
    session.compare("a name twice", from(6), twice, even_deleted);
    let ids = |peer: &Peer| by_state(vec![(None, peer.id("b")), (None, peer.id("b"))]);
    session.compare("an id twice", from(6), ids, even_deleted);
    let doubled = |peer: &Peer| by_state(vec![(Some("b"), zero), (None, peer.id("b"))]);
    session.compare("a name and its id", from(6), doubled, even_deleted);
    session.compare("nothing", from(6), |_| by_state(vec![]), even_deleted);
    let by_id = |peer: &Peer| by_state(vec![(None, peer.id("c")), (Some("made"), zero)]);
    session.compare("by id and by name", from(6), by_id, even_deleted);
    for version in [1, 5] {
        let request = DeleteTopicsRequest {
            topic_names: vec!["nope".into(), if version == 1 { "b" } else { "a.b" }.into()],
            timeout_ms: 30_000,
            ..DeleteTopicsRequest::default()
        };
        let mut told = [&mut session.kafka, &mut session.coreline].map(|peer| {
            let mut response: DeleteTopicsResponse = peer.ask(version, &request);
            even_deleted(peer, &mut response);
            response
        });
        let [kafka, coreline] = &mut told;
        assert_eq!(kafka, coreline, "DeleteTopics v{version}");
    }
    assert_eq!(
        session
            .coreline
            .ask::<_, MetadataResponse>(12, &metadata(None))
            .controller_id,
        NODE
    );
}
