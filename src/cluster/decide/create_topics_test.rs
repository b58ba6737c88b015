use super::*;
use crate::base::ids::{BrokerEpoch, TopicId};
use crate::cluster::records::RegisterBrokerRecord;
use crate::wire::messages::create_topics::{CreatableReplicaAssignment, CreatableTopicConfig};

fn image() -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    let broker = RegisterBrokerRecord {
        broker_id: BrokerId(1),
        broker_epoch: BrokerEpoch(3),
        rack: None,
        fenced: false,
        log_dirs: vec![Uuid([9; 16])],
        ..RegisterBrokerRecord::default()
    };
    image
        .apply(&MetadataRecord::RegisterBroker(broker))
        .unwrap();
    image
}

fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic {
        name: name.into(),
        num_partitions,
        replication_factor,
        ..CreatableTopic::default()
    }
}

fn with_config(mut topic: CreatableTopic, name: &str, value: Option<&str>) -> CreatableTopic {
    topic.configs.push(CreatableTopicConfig {
        name: name.into(),
        value: value.map(str::to_owned),
    });
    topic
}

fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> CreatableTopic {
    let mut topic = topic(name, -1, -1);
    for (index, brokers) in assignments {
        topic.assignments.push(CreatableReplicaAssignment {
            partition_index: PartitionIndex(*index),
            broker_ids: brokers.iter().map(|id| BrokerId(*id)).collect(),
        });
    }
    topic
}

fn decide(image: &Image, topics: Vec<CreatableTopic>) -> Decision<CreateTopicsResponse> {
    let request = CreateTopicsRequest {
        topics,
        ..CreateTopicsRequest::default()
    };
    let texts = BrokerTexts::new();
    let context = CreateTopicsContext {
        broker_texts: &texts,
        num_partitions: 3,
        replication_factor: 1,
    };
    create_topics(
        image,
        &request,
        context,
        (&mut Random::new(1), &mut Permits::unlimited()),
    )
}

fn apply(image: &mut Image, decision: &Decision<CreateTopicsResponse>) {
    for record in &decision.records {
        image.apply(record).unwrap();
    }
}

#[test]
fn a_topic_is_created_with_its_partitions_and_settings() {
    let mut image = image();
    let request = with_config(topic("a", -1, -1), "retention.ms", Some("5"));
    let decision = decide(&image, vec![request]);
    apply(&mut image, &decision);
    let result = &decision.response.topics[0];
    assert_eq!(result.error_code, ErrorCode::NONE);
    assert_eq!((result.num_partitions, result.replication_factor), (3, 1));
    let configs = result.configs.as_ref().unwrap();
    let retention = configs.iter().find(|config| config.name == "retention.ms");
    let retention = retention.unwrap();
    assert_eq!(
        (retention.value.as_deref(), retention.config_source),
        (Some("5"), 1)
    );
    let created = image.topics().by_name("a").unwrap();
    assert_eq!(created.id, result.topic_id);
    assert_eq!(created.partitions.len(), 3);
    assert_eq!(image.topic_configs("a")["retention.ms"], "5");
    let partition = created.partition(PartitionIndex(2)).unwrap();
    assert_eq!(
        (partition.leader, partition.leader_epoch),
        (BrokerId(1), LeaderEpoch(0))
    );
    assert_eq!(partition.directories, [Uuid([9; 16])]);
    assert_eq!(partition.isr, [BrokerId(1)]);
}

/// A fault of a topic: what is asked, Kafka's code, how Kafka's message begins.
type Case = (CreatableTopic, i16, &'static str);

fn count_cases() -> Vec<Case> {
    vec![
        (
            topic("z", 0, 1),
            37,
            "Number of partitions was set to an invalid",
        ),
        (
            topic("z", -2, 1),
            37,
            "Number of partitions was set to an invalid",
        ),
        (
            topic("z", 0, 0),
            38,
            "Replication factor must be larger than 0",
        ),
        (
            topic("z", 1, -2),
            38,
            "Replication factor must be larger than 0",
        ),
        (
            topic("z", 1, 3),
            38,
            "Unable to replicate the partition 3 time(s)",
        ),
        (
            topic("z", 10_001, 1),
            44,
            "Excessively large number of partitions",
        ),
        (
            topic("z", 10_000, 1),
            44,
            "Unable to perform excessively large batch",
        ),
    ]
}

fn name_cases() -> Vec<Case> {
    vec![
        (topic("", 1, 1), 17, "Topic name is invalid: the empty"),
        (topic("a.b", 0, 1), 36, "Topic 'a.b' already exists."),
        (
            topic("a_b", 1, 1),
            17,
            "Topic 'a_b' collides with existing topic: a.b",
        ),
        (
            topic("__cluster_metadata", 1, 1),
            42,
            "Creation of internal topic",
        ),
    ]
}

fn assignment_cases() -> Vec<Case> {
    let manual = |count, factor| {
        let mut topic = assigned("z", &[(0, &[1])]);
        (topic.num_partitions, topic.replication_factor) = (count, factor);
        topic
    };
    vec![
        (
            manual(-1, 1),
            42,
            "A manual partition assignment was specified, but replication",
        ),
        (
            manual(1, -1),
            42,
            "A manual partition assignment was specified, but numPart",
        ),
        (
            assigned("z", &[(0, &[1]), (2, &[1])]),
            39,
            "partitions should be a consecutive",
        ),
        (
            assigned("z", &[(-1, &[1])]),
            39,
            "partitions should be a consecutive",
        ),
        (
            assigned("z", &[(0, &[])]),
            39,
            "The manual partition assignment includes an empty",
        ),
        (
            assigned("z", &[(0, &[7, 8])]),
            39,
            "The manual partition assignment includes broker 7,",
        ),
        (
            assigned("z", &[(0, &[1, 1])]),
            39,
            "The manual partition assignment includes the br",
        ),
        (
            assigned("z", &[(0, &[1]), (0, &[1])]),
            39,
            "Found multiple manual partition",
        ),
    ]
}

fn config_cases() -> Vec<Case> {
    let config = |partitions, name, value| with_config(topic("z", partitions, 1), name, value);
    let retention = "Invalid value abc for configuration retention.ms: ";
    let null = "Null value not supported for topic configs: retention.ms";
    vec![
        (
            config(0, "foo", Some("x")),
            40,
            "Unknown topic config name: foo",
        ),
        (config(1, "retention.ms", Some("abc")), 40, retention),
        (config(1, "retention.ms", None), 40, null),
    ]
}

/// Codes and messages as Apache Kafka 4.4.0 answered them.
#[test]
fn refusals_are_kafkas() {
    let mut image = image();
    let decision = decide(&image, vec![topic("a.b", 1, 1)]);
    apply(&mut image, &decision);
    let cases = [
        count_cases(),
        name_cases(),
        assignment_cases(),
        config_cases(),
    ];
    for (topic, code, message) in cases.concat() {
        let name = format!("{topic:?}");
        let decision = decide(&image, vec![topic]);
        let result = &decision.response.topics[0];
        assert_eq!(result.error_code.0, code, "{name}");
        let told = result.error_message.as_ref().unwrap();
        assert!(told.starts_with(message), "{told} for {name}");
        assert!(decision.records.is_empty());
        assert_eq!(result.topic_id, TopicId::ZERO);
    }
    let most = decide(&image, vec![topic("z", 9_999, 1)]);
    assert_eq!(most.records.len(), RECORDS_PER_OPERATION_MAX);
}

#[test]
fn topics_of_one_request_are_judged_apart() {
    let image = image();
    let decision = decide(
        &image,
        vec![
            topic("dup", 1, 1),
            topic("good", 1, 1),
            topic("bad name", 1, 1),
            topic("dup", 2, 1),
        ],
    );
    let seen: Vec<(&str, i16)> = (decision.response.topics.iter())
        .map(|result| (result.name.as_str(), result.error_code.0))
        .collect();
    assert_eq!(seen, [("good", 0), ("bad name", 17), ("dup", 42)]);
    assert_eq!(decision.records.len(), 2);
    let sum = vec![topic("x", 5_000, 1), topic("y", 5_001, 1)];
    let decision = decide(&image, sum);
    assert!(decision.records.is_empty());
    assert!((decision.response.topics.iter()).all(|result| result.error_code.0 == 44));
}

#[test]
fn validation_alone_writes_nothing() {
    let request = CreateTopicsRequest {
        topics: vec![topic("a", 2, 1)],
        validate_only: true,
        ..CreateTopicsRequest::default()
    };
    let texts = BrokerTexts::new();
    let context = CreateTopicsContext {
        broker_texts: &texts,
        num_partitions: 1,
        replication_factor: 1,
    };
    let decision = create_topics(
        &image(),
        &request,
        context,
        (&mut Random::new(1), &mut Permits::unlimited()),
    );
    assert!(decision.records.is_empty());
    assert_eq!(decision.response.topics[0].num_partitions, 2);
    assert_ne!(decision.response.topics[0].topic_id, TopicId::ZERO);
}
