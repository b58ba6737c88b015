//! Settings changed while the broker runs: in force when the answer comes, kept through kill -9,
//! refused whole; and requests that nobody should send.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::io::Read;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use broker::process::Process;
use broker::requests::{errors_of, produce};
use broker::{Client, Harness, HarnessOptions, batch};
use coreline::base::error_code::ErrorCode;
use coreline::base::random::Random;
use coreline::wire::messages::alter_configs as whole;
use coreline::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
};
use coreline::wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};
use coreline::wire::messages::produce::ProduceResponse;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const METRICS: i8 = 16;

const SET: i8 = 0;
const DELETE: i8 = 1;

/// What comes of a change: Kafka's code and message.
type Told = (ErrorCode, Option<String>);

fn change(kind: i8, name: &str, configs: &[(&str, i8, &str)]) -> IncrementalAlterConfigsRequest {
    let config = |(name, operation, value): &(&str, i8, &str)| AlterableConfig {
        name: (*name).to_owned(),
        config_operation: *operation,
        value: (*operation != DELETE).then(|| (*value).to_owned()),
    };
    IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: kind,
            resource_name: name.to_owned(),
            configs: configs.iter().map(config).collect(),
        }],
        validate_only: false,
    }
}

fn told(client: &mut Client, request: &IncrementalAlterConfigsRequest, version: i16) -> Vec<Told> {
    let answer: IncrementalAlterConfigsResponse = client.ask(request, version);
    let told =
        |one: coreline::wire::messages::incremental_alter_configs::AlterConfigsResourceResponse| {
            (one.error_code, one.error_message)
        };
    answer.responses.into_iter().map(told).collect()
}

fn alter(client: &mut Client, kind: i8, name: &str, configs: &[(&str, i8, &str)]) {
    let request = change(kind, name, configs);
    assert_eq!(
        told(client, &request, 1),
        [(ErrorCode::NONE, None)],
        "{configs:?}"
    );
}

/// What a batch of about so many bytes comes to.
fn outcome(client: &mut Client, topic: &str, bytes: usize) -> ErrorCode {
    let request = produce(topic, -1, [(0, batch(1, bytes))]);
    let response: ProduceResponse = client.ask(&request, 9);
    errors_of(&response)[0]
}

fn value(client: &mut Client, kind: i8, resource: &str, name: &str) -> (Option<String>, i8) {
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: kind,
            resource_name: resource.to_owned(),
            configuration_keys: Some(vec![name.to_owned()]),
        }],
        ..DescribeConfigsRequest::default()
    };
    let response: DescribeConfigsResponse = client.ask(&request, 4);
    let config = response.results[0].configs.first().cloned().unwrap();
    (config.value, config.config_source)
}

fn create(client: &mut Client, name: &str) {
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.to_owned(),
            num_partitions: 4,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        timeout_ms: 10_000,
        ..CreateTopicsRequest::default()
    };
    let created: CreateTopicsResponse = client.ask(&request, 7);
    assert_eq!(created.topics[0].error_code, ErrorCode::NONE);
}

/// A limit of a topic, one of this broker and one of all brokers: each wins over those behind it
/// from its answer on, and all of them are as they were after kill -9.
#[test]
fn a_change_holds_with_its_answer_and_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let large = ErrorCode::MESSAGE_TOO_LARGE;
    let process = Process::start(folder.path());
    let mut client = Client::connect(process.address);
    create(&mut client, "t");
    create(&mut client, "u");
    assert_eq!(outcome(&mut client, "t", 10_000), ErrorCode::NONE);
    alter(
        &mut client,
        BROKER,
        "",
        &[("message.max.bytes", SET, "9000")],
    );
    assert_eq!(outcome(&mut client, "t", 10_000), large);
    assert_eq!(outcome(&mut client, "t", 8_000), ErrorCode::NONE);
    alter(
        &mut client,
        BROKER,
        "1",
        &[("message.max.bytes", SET, "7000")],
    );
    assert_eq!(outcome(&mut client, "t", 8_000), large);
    assert_eq!(outcome(&mut client, "t", 6_000), ErrorCode::NONE);
    alter(
        &mut client,
        TOPIC,
        "t",
        &[("max.message.bytes", SET, "5000")],
    );
    process.kill();

    let process = Process::start(folder.path());
    let mut client = Client::connect(process.address);
    let limits = |client: &mut Client, topic: &str| {
        let steps = [4_000, 6_000, 8_000, 10_000];
        let mut fits = |bytes: &usize| outcome(client, topic, *bytes) == ErrorCode::NONE;
        steps.iter().take_while(|bytes| fits(bytes)).count()
    };
    let told = value(&mut client, TOPIC, "t", "max.message.bytes");
    assert_eq!(told, (Some("5000".to_owned()), 1));
    assert_eq!((limits(&mut client, "t"), limits(&mut client, "u")), (1, 2));
    alter(
        &mut client,
        TOPIC,
        "t",
        &[("max.message.bytes", DELETE, "")],
    );
    assert_eq!(limits(&mut client, "t"), 2);
    alter(
        &mut client,
        BROKER,
        "1",
        &[("message.max.bytes", DELETE, "")],
    );
    assert_eq!(limits(&mut client, "t"), 3);
    alter(
        &mut client,
        BROKER,
        "",
        &[("message.max.bytes", DELETE, "")],
    );
    assert_eq!((limits(&mut client, "t"), limits(&mut client, "u")), (4, 4));
    process.kill();

    let process = Process::start(folder.path());
    let mut client = Client::connect(process.address);
    let told = value(&mut client, TOPIC, "t", "max.message.bytes");
    assert_eq!(told, (Some("1048588".to_owned()), 5));
    assert_eq!(limits(&mut client, "u"), 4);
}

/// The whole of a topic's settings, as AlterConfigs gives them, and of a topic made anew.
#[test]
fn whole_settings_replace_and_go_with_their_topic() {
    let mut harness = Harness::start(HarnessOptions::default());
    let id = harness.create_topic("t", 2);
    let mut client = harness.connect();
    let replace = |configs: &[(&str, &str)]| whole::AlterConfigsRequest {
        resources: vec![whole::AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: "t".to_owned(),
            configs: (configs.iter())
                .map(|(name, value)| whole::AlterableConfig {
                    name: (*name).to_owned(),
                    value: Some((*value).to_owned()),
                })
                .collect(),
        }],
        validate_only: false,
    };
    let ask = |client: &mut Client, configs: &[(&str, &str)]| {
        let response: whole::AlterConfigsResponse = client.ask(&replace(configs), 2);
        assert_eq!(
            response.responses[0].error_code,
            ErrorCode::NONE,
            "{response:?}"
        );
    };
    ask(
        &mut client,
        &[("max.message.bytes", "5000"), ("segment.ms", "70000")],
    );
    assert_eq!(
        outcome(&mut client, "t", 6_000),
        ErrorCode::MESSAGE_TOO_LARGE
    );
    ask(&mut client, &[("segment.ms", "80000")]);
    assert_eq!(outcome(&mut client, "t", 6_000), ErrorCode::NONE);
    let told = value(&mut client, TOPIC, "t", "segment.ms");
    assert_eq!(told, (Some("80000".to_owned()), 1));
    harness.delete_topic(id);
    harness.create_topic("t", 2);
    let told = value(&mut client, TOPIC, "t", "segment.ms");
    assert_eq!(told, (Some("604800000".to_owned()), 5));
}

#[test]
fn what_is_validated_or_refused_changes_nothing() {
    let mut harness = Harness::start(HarnessOptions::default());
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    let limit = [("max.message.bytes", SET, "5000")];
    let validated = IncrementalAlterConfigsRequest {
        validate_only: true,
        ..change(TOPIC, "t", &limit)
    };
    assert_eq!(told(&mut client, &validated, 0), [(ErrorCode::NONE, None)]);
    // The good one goes with its bad neighbour of the same resource.
    let mixed = change(TOPIC, "t", &[limit[0], ("segment.bytes", SET, "1")]);
    let message = "Invalid value 1 for configuration segment.bytes: \
                   Value must be at least 1048576";
    let invalid = (ErrorCode::INVALID_CONFIG, Some(message.to_owned()));
    assert_eq!(told(&mut client, &mixed, 0), [invalid]);
    let twice = change(TOPIC, "t", &[limit[0], limit[0]]);
    let message = "Error due to duplicate config keys";
    let repeated = (ErrorCode::INVALID_REQUEST, Some(message.to_owned()));
    assert_eq!(told(&mut client, &twice, 1), [repeated]);
    let unknown = change(TOPIC, "nope", &limit);
    let message = "The topic 'nope' does not exist.";
    let unknown_topic = (
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Some(message.to_owned()),
    );
    assert_eq!(told(&mut client, &unknown, 1), [unknown_topic]);
    assert_eq!(outcome(&mut client, "t", 6_000), ErrorCode::NONE);
    let default = (Some("1048588".to_owned()), 5);
    assert_eq!(value(&mut client, TOPIC, "t", "max.message.bytes"), default);
}

#[test]
fn requests_that_nobody_should_send_are_answered_and_do_no_harm() {
    let mut harness = Harness::start(HarnessOptions::default());
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    // The longest value there can be, quoted by a message that must fit an answer.
    let longest = "9".repeat(i16::MAX as usize);
    for version in [0, 1] {
        let request = change(TOPIC, "t", &[("retention.ms", SET, &longest)]);
        let (code, message) = told(&mut client, &request, version).remove(0);
        assert_eq!(code, ErrorCode::INVALID_CONFIG);
        assert!(message.unwrap().starts_with("Invalid value 999"));
    }
    let one = |number: i32| AlterableConfig {
        name: format!("unknown{number}"),
        config_operation: SET,
        value: Some("x".to_owned()),
    };
    let of = |count: i32| {
        let mut request = change(BROKER, "", &[]);
        request.resources[0].configs = (0..count).map(one).collect();
        request
    };
    // As many as one batch of the metadata log holds, and one more.
    assert_eq!(told(&mut client, &of(10_000), 1)[0].0, ErrorCode::NONE);
    assert_eq!(
        told(&mut client, &of(10_001), 1)[0].0,
        ErrorCode::POLICY_VIOLATION
    );
    // A name that each of many records would repeat.
    let mut request = of(10_000);
    request.resources[0].resource_type = METRICS;
    request.resources[0].resource_name = longest;
    assert_eq!(
        told(&mut client, &request, 1)[0].0,
        ErrorCode::POLICY_VIOLATION
    );
    let mut request = change(TOPIC, "t", &[]);
    request.resources = vec![request.resources[0].clone(); 10_000];
    let answers = told(&mut client, &request, 1);
    assert_eq!(answers.len(), 10_000);
    assert!(
        answers
            .iter()
            .all(|(code, _)| *code == ErrorCode::INVALID_REQUEST)
    );
    assert_eq!(outcome(&mut client, "t", 100), ErrorCode::NONE);
    harness.restart(&HarnessOptions::default());
    let mut client = harness.connect();
    let unknown = value(&mut client, BROKER, "", "unknown9999");
    // Nobody knows whether it is a password.
    assert_eq!(unknown, (None, 3));
    assert_eq!(outcome(&mut client, "t", 100), ErrorCode::NONE);
}

/// Any names, values, kinds and operations: every request is answered, and the broker comes back
/// with what it took.
#[test]
fn any_change_is_answered() {
    const NAMES: [&str; 12] = [
        "retention.ms",
        "cleanup.policy",
        "nope",
        "",
        "log.retention.ms",
        "match",
        "interval.ms",
        "listener.name.x.max.connections",
        "listener.name..",
        "consumer.session.timeout.ms",
        "follower.replication.throttled.replicas",
        "compression.gzip.level",
    ];
    const VALUES: [&str; 12] = [
        "",
        "1",
        "-1",
        "x",
        "delete,,compact",
        "\u{0}",
        "é",
        "9223372036854775808",
        "1e400",
        "client_id=(",
        "NaN",
        " ",
    ];
    let mut harness = Harness::start(HarnessOptions::default());
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    let mut random = Random::new(7);
    let mut taken = 0;
    for _ in 0..600 {
        let mut request = change(0, "", &[]);
        request.resources.clear();
        for _ in 0..random.below(4) {
            let kinds = [TOPIC, BROKER, METRICS, 32, 0, -128, 127];
            let names = ["t", "1", "", "g", "\u{7f}", "2147483648"];
            let config = |random: &mut Random| AlterableConfig {
                name: NAMES[random.below(12) as usize].to_owned(),
                config_operation: random.below(6) as i8 - 1,
                value: match random.below(8) {
                    0 => None,
                    _ => Some(VALUES[random.below(12) as usize].to_owned()),
                },
            };
            request.resources.push(AlterConfigsResource {
                resource_type: kinds[random.below(7) as usize],
                resource_name: names[random.below(6) as usize].to_owned(),
                configs: (0..random.below(4)).map(|_| config(&mut random)).collect(),
            });
        }
        let answers = told(&mut client, &request, random.below(2) as i16);
        assert_eq!(answers.len(), request.resources.len());
        taken += answers.iter().filter(|(code, _)| code.is_none()).count();
    }
    assert!(taken > 50, "{taken} were taken");
    harness.restart(&HarnessOptions::default());
    let mut client = harness.connect();
    assert_eq!(outcome(&mut client, "t", 100), ErrorCode::NONE);
}

/// Whether the broker answers a new connection within a second.
fn is_served(address: SocketAddr) -> (bool, Client) {
    let mut client = Client::connect(address);
    let wait = Some(Duration::from_secs(1));
    client.stream.set_read_timeout(wait).unwrap();
    client.send(&ApiVersionsRequest::default(), 3);
    let mut byte = [0];
    let is_answered = matches!(client.stream.read(&mut byte), Ok(1));
    (is_answered, client)
}

#[test]
fn limits_of_connections_change_at_once() {
    let harness = Harness::start(HarnessOptions::default());
    let address = harness.address;
    let mut client = harness.connect();
    let open: Vec<_> = (0..3).map(|_| is_served(address)).collect();
    assert!(open.iter().all(|(is_answered, _)| *is_answered));
    // Those that were open before there was a limit count: these three and the one that asks.
    alter(
        &mut client,
        BROKER,
        "1",
        &[("max.connections.per.ip", SET, "4")],
    );
    assert!(!is_served(address).0, "one past the limit of its address");
    let own = [(
        "max.connections.per.ip.overrides",
        SET,
        "127.0.0.1:5,10.0.0.1:1",
    )];
    alter(&mut client, BROKER, "1", &own);
    let (is_answered, fifth) = is_served(address);
    assert!(is_answered, "the override is one more");
    assert!(!is_served(address).0, "and no other");
    for name in ["max.connections.per.ip", "max.connections.per.ip.overrides"] {
        alter(&mut client, BROKER, "1", &[(name, DELETE, "")]);
    }
    alter(&mut client, BROKER, "", &[("max.connections", SET, "5")]);
    let (is_answered, mut waits) = is_served(address);
    assert!(!is_answered, "one past the limit of all waits");
    drop(fifth);
    let mut byte = [0];
    waits
        .stream
        .read_exact(&mut byte)
        .expect("its place has come");
    let (is_answered, mut waits) = is_served(address);
    assert!(!is_answered);
    alter(&mut client, BROKER, "", &[("max.connections", DELETE, "")]);
    waits
        .stream
        .read_exact(&mut byte)
        .expect("the limit is gone");
}

#[test]
fn the_rate_of_new_connections_changes_at_once() {
    let harness = Harness::start(HarnessOptions::default());
    let mut client = harness.connect();
    let took = |count: u32| {
        let started = Instant::now();
        for _ in 0..count {
            let mut client = harness.connect();
            let _: ApiVersionsResponse = client.ask(&ApiVersionsRequest::default(), 3);
        }
        started.elapsed()
    };
    alter(
        &mut client,
        BROKER,
        "",
        &[("max.connection.creation.rate", SET, "20")],
    );
    // A second's worth comes at once, 20 more take another second.
    let slow = took(45);
    assert!(slow > Duration::from_millis(900), "{slow:?}");
    alter(
        &mut client,
        BROKER,
        "",
        &[("max.connection.creation.rate", DELETE, "")],
    );
    let fast = took(45);
    assert!(fast < slow, "{fast:?} without a limit, {slow:?} with one");
}
