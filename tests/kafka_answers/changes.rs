//! AlterConfigs, IncrementalAlterConfigs and ListConfigResources, and what DescribeConfigs tells
//! afterwards.

use std::time::Duration;

use coreline::wire::messages::alter_configs::AlterConfigsResource as Whole;
use coreline::wire::messages::alter_configs::{
    AlterConfigsRequest, AlterConfigsResponse, AlterableConfig as Value,
};
use coreline::wire::messages::describe_configs::DescribeConfigsResponse;
use coreline::wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};
use coreline::wire::messages::list_config_resources::{
    ListConfigResourcesRequest, ListConfigResourcesResponse,
};

use crate::configs;
use crate::session::{ALL, Peer, Session, from};

/// One change a line: the kind of the resource, its name, the setting, what is done with it, and
/// the value.
const SINGLE: &str = include_str!("changes.txt");

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const METRICS: i8 = 16;
const GROUP: i8 = 32;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// A kind of resource, a name, and changes of its settings.
type Changes<'a> = (i8, &'a str, &'a [(&'a str, i8, Option<&'a str>)]);

fn change(resources: &[Changes<'_>], validate_only: bool) -> IncrementalAlterConfigsRequest {
    let config = |(name, operation, value): &(&str, i8, Option<&str>)| AlterableConfig {
        name: (*name).to_owned(),
        config_operation: *operation,
        value: value.map(str::to_owned),
    };
    let resource = |(kind, name, configs): &Changes<'_>| AlterConfigsResource {
        resource_type: *kind,
        resource_name: (*name).to_owned(),
        configs: configs.iter().map(config).collect(),
    };
    IncrementalAlterConfigsRequest {
        resources: resources.iter().map(resource).collect(),
        validate_only,
    }
}

/// A kind of resource, a name, and its settings.
type Settings<'a> = (i8, &'a str, &'a [(&'a str, Option<&'a str>)]);

fn replace(resources: &[Settings<'_>], validate_only: bool) -> AlterConfigsRequest {
    let config = |(name, value): &(&str, Option<&str>)| Value {
        name: (*name).to_owned(),
        value: value.map(str::to_owned),
    };
    let resource = |(kind, name, configs): &Settings<'_>| Whole {
        resource_type: *kind,
        resource_name: (*name).to_owned(),
        configs: configs.iter().map(config).collect(),
    };
    AlterConfigsRequest {
        resources: resources.iter().map(resource).collect(),
        validate_only,
    }
}

/// Kafka names the exception and the place inside it that its own exception wraps, and Scala its
/// requirement.
fn even_message(message: &mut Option<String>) {
    let Some(text) = message else { return };
    if let Some(rest) = text.strip_prefix("requirement failed: ") {
        *text = rest.to_owned();
    }
    let wrapped = "Invalid value org.apache.kafka.common.config.ConfigException: ";
    if let Some(rest) = text.strip_prefix(wrapped) {
        let end = " for configuration Invalid dynamic configuration";
        *text = rest.strip_suffix(end).unwrap_or(rest).to_owned();
    }
}

/// - Resources come in any order, and so do their results there.
/// - A message wrapped twice is unwrapped.
fn even_changed(_: &Peer, response: &mut IncrementalAlterConfigsResponse) {
    for result in &mut response.responses {
        even_message(&mut result.error_message);
    }
    response.responses.sort_by(|one, other| {
        (one.resource_type, &one.resource_name).cmp(&(other.resource_type, &other.resource_name))
    });
}

/// As [`even_changed`].
fn even_replaced(_: &Peer, response: &mut AlterConfigsResponse) {
    for result in &mut response.responses {
        even_message(&mut result.error_message);
    }
    response.responses.sort_by(|one, other| {
        (one.resource_type, &one.resource_name).cmp(&(other.resource_type, &other.resource_name))
    });
}

/// - Kafka has a group coordinator and its topic.
/// - Names come in any order there.
fn even_listed(_: &Peer, response: &mut ListConfigResourcesResponse) {
    let resources = &mut response.config_resources;
    resources.retain(|resource| resource.resource_name != "__consumer_offsets");
    let key = |one: &coreline::wire::messages::list_config_resources::ConfigResource| {
        (one.resource_type, one.resource_name.clone())
    };
    response.config_resources.sort_by_key(key);
}

fn quoted(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or_else(|| panic!("{text} has no quotes"))
}

/// The change that one line of [`SINGLE`] stands for.
fn single(line: &str) -> IncrementalAlterConfigsRequest {
    let (kind, rest) = line.split_once(' ').expect("a kind");
    let (name, rest) = rest[1..].split_once("\" ").expect("a name");
    let mut words = rest.splitn(3, ' ');
    let (setting, operation) = (words.next().unwrap(), words.next().unwrap());
    let kind = match kind {
        "topic" => TOPIC,
        "broker" => BROKER,
        "logger" => LOGGER,
        "metrics" => METRICS,
        "group" => GROUP,
        number => number.parse().expect("a number"),
    };
    let operation = match operation {
        "set" => SET,
        "delete" => DELETE,
        "append" => APPEND,
        "subtract" => SUBTRACT,
        number => number.parse().expect("a number"),
    };
    let value = match words.next().unwrap() {
        "null" => None,
        text => Some(quoted(text)),
    };
    change(&[(kind, name, &[(setting, operation, value)])], true)
}

/// Requests that only validate.
pub fn compare_validation(session: &mut Session) {
    for line in SINGLE.lines() {
        session.compare(line, ALL, |_| single(line), even_changed);
    }
    let one = |value| [("retention.ms", SET, Some(value))];
    let (first, second, none) = (one("1"), one("2"), []);
    let several: &[(&str, Vec<Changes<'_>>)] = &[
        ("nothing", vec![]),
        ("no change", vec![(TOPIC, "b", &none), (BROKER, "1", &none)]),
        (
            "no change of loggers, groups and subscriptions",
            vec![
                (LOGGER, "1", &none),
                (GROUP, "g", &none),
                (METRICS, "m", &none),
            ],
        ),
        ("no change of no topic", vec![(TOPIC, "nope", &none)]),
        (
            "a topic twice",
            vec![(TOPIC, "b", &first), (TOPIC, "b", &second)],
        ),
        (
            "a topic twice and another",
            vec![
                (TOPIC, "b", &first),
                (TOPIC, "nope", &first),
                (TOPIC, "b", &second),
            ],
        ),
        (
            "a good and a bad",
            vec![
                (TOPIC, "b", &first),
                (TOPIC, "nope", &first),
                (BROKER, "7", &none),
            ],
        ),
    ];
    for (case, resources) in several {
        session.compare(case, ALL, |_| change(resources, true), even_changed);
    }
    compare_combinations(session);
}

/// Several changes of one resource.
fn compare_combinations(session: &mut Session) {
    let combined: &[(&str, Changes<'_>)] = &[
        (
            "twice the same",
            (
                TOPIC,
                "b",
                &[
                    ("retention.ms", SET, Some("1")),
                    ("retention.ms", SET, Some("2")),
                ],
            ),
        ),
        (
            "set and deleted",
            (
                TOPIC,
                "b",
                &[
                    ("retention.ms", SET, Some("1")),
                    ("retention.ms", DELETE, None),
                ],
            ),
        ),
        (
            "two nulls",
            (
                TOPIC,
                "b",
                &[("retention.ms", SET, None), ("nope", APPEND, None)],
            ),
        ),
        (
            "lags that conflict",
            (
                TOPIC,
                "b",
                &[
                    ("min.compaction.lag.ms", SET, Some("9")),
                    ("max.compaction.lag.ms", SET, Some("5")),
                ],
            ),
        ),
        (
            "fixed ones at the default level",
            (
                BROKER,
                "",
                &[("nope", SET, Some("x")), ("node.id", SET, Some("x"))],
            ),
        ),
    ];
    for (case, resource) in combined {
        session.compare(case, ALL, |_| change(&[*resource], true), even_changed);
    }
    let whole: &[(&str, Settings<'_>)] = &[
        ("a value", (TOPIC, "b", &[("retention.ms", Some("5"))])),
        ("a bad value", (TOPIC, "b", &[("retention.ms", Some("x"))])),
        ("a null", (TOPIC, "b", &[("retention.ms", None)])),
        ("nothing", (TOPIC, "b", &[])),
        ("no topic", (TOPIC, "nope", &[])),
        ("an unknown setting", (TOPIC, "b", &[("nope", Some("1"))])),
        (
            "twice",
            (
                TOPIC,
                "b",
                &[("retention.ms", Some("5")), ("retention.ms", Some("6"))],
            ),
        ),
        ("loggers", (LOGGER, "1", &[("root", Some("INFO"))])),
        (
            "another broker",
            (BROKER, "7", &[("log.retention.ms", Some("1"))]),
        ),
        ("a fixed setting", (BROKER, "1", &[("node.id", Some("1"))])),
        (
            "all brokers",
            (BROKER, "", &[("log.retention.ms", Some("5"))]),
        ),
        (
            "a subscription",
            (METRICS, "m", &[("interval.ms", Some("99"))]),
        ),
        (
            "a group",
            (GROUP, "g", &[("consumer.session.timeout.ms", Some("1"))]),
        ),
        ("an unknown kind", (3, "b", &[("a", Some("b"))])),
    ];
    for (case, resource) in whole {
        session.compare(case, ALL, |_| replace(&[*resource], true), even_replaced);
    }
}

/// Kafka answers before its broker has the new metadata.
fn settle() {
    std::thread::sleep(Duration::from_millis(500));
}

/// Changes that are made, and what is told of them.
pub fn compare_changes(session: &mut Session) {
    let made: &[Changes<'_>] = &[
        (
            TOPIC,
            "b",
            &[
                ("preallocate", SET, Some(" TRUE ")),
                ("min.cleanable.dirty.ratio", SET, Some("0.50")),
                ("cleanup.policy", SET, Some("delete, compact")),
            ],
        ),
        (
            BROKER,
            "1",
            &[
                ("log.retention.ms", SET, Some("5000")),
                ("nope", SET, Some("x")),
                ("leader.replication.throttled.rate", SET, Some("5")),
                ("listener.name.plaintext.max.connections", SET, Some("5000")),
                ("message.max.bytes", SET, Some("2000000")),
                (
                    "listener.name.plaintext.ssl.keystore.password",
                    SET,
                    Some("x"),
                ),
            ],
        ),
        (
            BROKER,
            "",
            &[
                ("log.retention.ms", SET, Some("6000")),
                ("message.max.bytes", SET, Some(" 3000000 ")),
                ("nope2", SET, Some("x")),
                ("log.cleanup.policy", SET, Some("compact, delete")),
            ],
        ),
        (
            METRICS,
            "m1",
            &[
                ("interval.ms", SET, Some(" 5000 ")),
                ("metrics", SET, Some("a, b")),
            ],
        ),
        (
            GROUP,
            "g1",
            &[
                ("consumer.session.timeout.ms", SET, Some("50000")),
                ("share.isolation.level", SET, Some("read_committed")),
                ("streams.rack.aware.assignment.tags", SET, Some("a,b")),
            ],
        ),
    ];
    session.compare("changes made", ALL, |_| change(made, false), even_changed);
    settle();
    compare_told(session, "after changes");
    compare_lists(session);
    let lists: &[Changes<'_>] = &[(
        TOPIC,
        "b",
        &[
            ("cleanup.policy", SUBTRACT, Some("delete")),
            (
                "follower.replication.throttled.replicas",
                APPEND,
                Some("0:1"),
            ),
            ("preallocate", DELETE, None),
        ],
    )];
    session.compare("lists edited", ALL, |_| change(lists, false), even_changed);
    settle();
    compare_told(session, "after edits");
    let whole: &[Settings<'_>] = &[
        (TOPIC, "b", &[("segment.ms", Some("70000"))]),
        (BROKER, "1", &[("log.retention.bytes", Some("1000000"))]),
        (BROKER, "", &[]),
        (METRICS, "m1", &[("match", Some("client_id=a"))]),
        (
            GROUP,
            "g1",
            &[("share.isolation.level", Some("read_uncommitted"))],
        ),
    ];
    session.compare(
        "all replaced",
        ALL,
        |_| replace(whole, false),
        even_replaced,
    );
    settle();
    compare_told(session, "after replacement");
    let nothing: Vec<Settings<'_>> = whole
        .iter()
        .map(|(kind, name, _)| (*kind, *name, &[][..]))
        .collect();
    session.compare(
        "all taken",
        ALL,
        |_| replace(&nothing, false),
        even_replaced,
    );
    settle();
    compare_told(session, "at the end");
    compare_lists(session);
}

/// What DescribeConfigs tells of every resource that changes.
fn compare_told(session: &mut Session, when: &str) {
    let asked: &[(i8, &str, Option<&[&str]>)] = &[
        (TOPIC, "b", None),
        (BROKER, "", None),
        (BROKER, "", Some(&["log.retention.ms", "nope2"])),
        (METRICS, "m1", None),
        (METRICS, "m1", Some(&["metrics"])),
        (METRICS, "unknown", None),
        (METRICS, "", None),
        (GROUP, "g1", None),
        (GROUP, "unknown", None),
        (GROUP, "", None),
    ];
    for one in asked {
        let case = format!("{when}: {one:?}");
        session.compare(&case, ALL, |_| configs::ask(&[*one]), configs::even);
    }
    let case = format!("{when}: the broker");
    let ask = |_: &Peer| configs::ask(&[(BROKER, "1", None)]);
    session.compare(
        &case,
        ALL,
        ask,
        |peer, response: &mut DescribeConfigsResponse| {
            configs::even_broker(peer, response);
        },
    );
}

fn compare_lists(session: &mut Session) {
    let kinds: [&[i8]; 12] = [
        &[],
        &[TOPIC],
        &[BROKER],
        &[LOGGER],
        &[METRICS],
        &[GROUP],
        &[99],
        &[TOPIC, 99],
        &[0],
        &[TOPIC, TOPIC],
        &[GROUP, TOPIC],
        &[-1],
    ];
    let ask = |kinds: &[i8]| ListConfigResourcesRequest {
        resource_types: kinds.to_vec(),
    };
    for kinds in kinds {
        let case = format!("kinds {kinds:?}");
        session.compare(&case, from(1), |_| ask(kinds), even_listed);
    }
    session.compare("subscriptions", 0..=0, |_| ask(&[]), even_listed);
}
