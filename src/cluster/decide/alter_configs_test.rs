use super::*;
use crate::base::ids::{BrokerId, Uuid};
use crate::cluster::records::TopicRecord;

fn image() -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    let topic = TopicRecord {
        name: "t".into(),
        topic_id: Uuid([7; 16]),
    };
    image.apply(&MetadataRecord::Topic(topic)).unwrap();
    image
}

fn changes(kind: i8, name: &str, changes: &[(&str, i8, Option<&str>)]) -> ResourceChanges {
    let change = |(name, operation, value): &(&str, i8, Option<&str>)| ConfigChange {
        name: (*name).to_owned(),
        operation: Operation::from(*operation),
        value: value.map(str::to_owned),
    };
    ResourceChanges {
        kind: ResourceType(kind),
        name: name.to_owned(),
        changes: changes.iter().map(change).collect(),
        is_whole: false,
    }
}

fn decide(image: &Image, resource: ResourceChanges) -> Decision<Outcomes> {
    alter_configs(image, &[resource], &BrokerTexts::new(), false)
}

/// Decides and applies; answers the resource's settings.
fn apply(image: &mut Image, resource: ResourceChanges) -> Vec<(String, String)> {
    let (kind, name) = (resource.kind, resource.name.clone());
    let decision = decide(image, resource);
    assert_eq!(decision.response, [Ok(())]);
    for record in &decision.records {
        image.apply(record).unwrap();
    }
    let configs = image.configs(kind, &name);
    (configs.iter())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn told(image: &Image, resource: ResourceChanges) -> (i16, String) {
    let shape = preprocess(std::slice::from_ref(&resource)).remove(0);
    let outcome = shape.and_then(|()| decide(image, resource).response.remove(0));
    match outcome {
        Ok(()) => (0, String::new()),
        Err(refusal) => (refusal.code.0, refusal.message),
    }
}

#[test]
fn settings_are_made_changed_and_unmade() {
    let mut image = image();
    let retention = |operation, value| changes(2, "t", &[("retention.ms", operation, value)]);
    let policy = |operation, value| changes(2, "t", &[("cleanup.policy", operation, Some(value))]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let after = apply(&mut image, retention(0, Some("5")));
    assert_eq!(after, [pair("retention.ms", "5")]);
    // What is so already is not written again.
    assert!(decide(&image, retention(0, Some("5"))).records.is_empty());
    assert_eq!(apply(&mut image, retention(1, Some("x"))), []);
    assert!(decide(&image, retention(1, None)).records.is_empty());
    // A list that was not set begins as its default.
    let after = apply(&mut image, policy(2, "compact"));
    assert_eq!(after, [pair("cleanup.policy", "delete,compact")]);
    assert_eq!(apply(&mut image, policy(2, "compact")), after);
    let after = apply(&mut image, policy(3, "delete,nothing"));
    assert_eq!(after, [pair("cleanup.policy", "compact")]);
    let whole = ResourceChanges {
        is_whole: true,
        ..retention(0, Some("9"))
    };
    assert_eq!(apply(&mut image, whole), [pair("retention.ms", "9")]);
}

#[test]
fn what_is_only_validated_writes_nothing() {
    let resource = changes(2, "t", &[("retention.ms", 0, Some("5"))]);
    let decision = alter_configs(&image(), &[resource], &BrokerTexts::new(), true);
    assert_eq!(
        (decision.records, decision.response),
        (vec![], vec![Ok(())])
    );
}

#[test]
fn a_brokers_unchanged_values_are_written_again() {
    let mut image = image();
    let resource = || changes(4, "1", &[("message.max.bytes", 0, Some("5"))]);
    apply(&mut image, resource());
    assert_eq!(decide(&image, resource()).records.len(), 1);
}

#[test]
fn one_refusal_leaves_the_others_and_spoils_its_own_resource_alone() {
    let good = changes(2, "t", &[("retention.ms", 0, Some("5"))]);
    let bad = changes(
        16,
        "m",
        &[("metrics", 0, Some("a")), ("interval.ms", 0, Some("1"))],
    );
    let decision = alter_configs(&image(), &[bad, good], &BrokerTexts::new(), false);
    assert!(decision.response[0].is_err() && decision.response[1].is_ok());
    assert_eq!(decision.records.len(), 1);
}

#[test]
fn too_many_records_are_refused_at_once() {
    let subscriptions = |count: usize| -> Vec<ResourceChanges> {
        (0..count)
            .map(|number| changes(16, &number.to_string(), &[("metrics", 0, Some("a"))]))
            .collect()
    };
    let decide = |count| alter_configs(&image(), &subscriptions(count), &BrokerTexts::new(), false);
    let most = decide(RECORDS_PER_OPERATION_MAX);
    assert_eq!(most.records.len(), RECORDS_PER_OPERATION_MAX);
    let above = decide(RECORDS_PER_OPERATION_MAX + 1);
    assert!(above.records.is_empty());
    assert!((above.response.iter()).all(|outcome| {
        outcome
            .as_ref()
            .is_err_and(|refusal| refusal.code == ErrorCode::POLICY_VIOLATION)
    }));
}

/// Codes and messages as Apache Kafka 4.4.0 answered them; tests/kafka_answers asks it anew.
#[test]
fn refusals_are_kafkas() {
    let image = image();
    let one = |kind, resource: &str, name: &str, operation, value| {
        told(&image, changes(kind, resource, &[(name, operation, value)]))
    };
    let is = |told: (i16, String), code: i16, message: &str| {
        assert_eq!((told.0, told.1.as_str()), (code, message));
    };
    let invalid = "Invalid value x for configuration retention.ms: Not a number of type LONG";
    is(one(2, "t", "retention.ms", 0, Some("x")), 40, invalid);
    let unknown = "Unknown topic config name: nope";
    is(one(2, "t", "nope", 0, Some("x")), 40, unknown);
    let list = "Can't APPEND to key retention.ms because its type is not LIST.";
    is(one(2, "t", "retention.ms", 2, Some("1")), 40, list);
    let missing = "The topic 'u' does not exist.";
    is(one(2, "u", "retention.ms", 0, Some("1")), 3, missing);
    let default = "Default topic resources are not allowed.";
    is(one(2, "", "retention.ms", 0, Some("1")), 42, default);
    is(
        one(3, "t", "a", 0, Some("b")),
        42,
        "Unknown resource type 3",
    );
    let null = "Null value not supported for : retention.ms";
    is(one(2, "t", "retention.ms", 0, None), 42, null);
    let broker = "Unexpected broker id, expected 1, but received 7";
    is(one(4, "7", "message.max.bytes", 0, Some("1")), 42, broker);
    let broker = "Node id must be an integer, but it is: x";
    is(one(4, "x", "message.max.bytes", 0, Some("1")), 42, broker);
    let append = "Config value append is not allowed for config key: log.retention.ms";
    is(one(4, "1", "log.retention.ms", 2, Some("5")), 40, append);
    is(
        one(4, "1", "nope", 3, Some("5")),
        40,
        "Unknown config name: nope",
    );
    is(one(4, "1", "nope", 0, Some("5")), 0, "");
    is(
        one(4, "1", "log.retention.ms", 7, Some("5")),
        42,
        "Unknown operations type 7",
    );
}

#[test]
fn refusals_of_other_resources_and_whole_requests_are_kafkas() {
    let image = image();
    let one = |kind, resource: &str, name: &str, operation, value| {
        told(&image, changes(kind, resource, &[(name, operation, value)]))
    };
    let is = |told: (i16, String), code: i16, message: &str| {
        assert_eq!((told.0, told.1.as_str()), (code, message));
    };
    let empty = "Subscription name can't be empty";
    is(one(16, "", "interval.ms", 0, Some("100")), 42, empty);
    let group = "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.";
    is(
        one(32, "g", "consumer.session.timeout.ms", 0, Some("1")),
        40,
        group,
    );
    let group = "Default group resources are not allowed.";
    is(
        one(32, "", "consumer.session.timeout.ms", 0, Some("1")),
        42,
        group,
    );
    let twice = [("retention.ms", 0, Some("1")), ("retention.ms", 1, None)];
    let duplicate = "Error due to duplicate config keys";
    is(told(&image, changes(2, "t", &twice)), 42, duplicate);
    let same = [changes(2, "t", &[]), changes(2, "t", &[])];
    let repeated = "Each resource must appear at most once.";
    assert!(
        (preprocess(&same).into_iter())
            .all(|outcome| { outcome.is_err_and(|refusal| refusal.message == repeated) })
    );
    let whole = ResourceChanges {
        is_whole: true,
        ..changes(8, "1", &[("root", 0, Some("INFO"))])
    };
    is(told(&image, whole), 42, "Unknown resource type 8");
}

/// Subscriptions whose records come to so many bytes by the estimate that is held to the limit.
fn subscriptions_of(bytes: usize) -> Vec<ResourceChanges> {
    let mut left = bytes;
    let mut resources = Vec::new();
    for number in 0.. {
        let name = format!("{number:04}");
        let each = 4 + RECORD_BYTES + "metrics".len();
        // What is left after this one is room for another.
        let most = if left < 30_000 {
            left
        } else {
            left.min(30_000 + each) - each
        };
        let value = most - each;
        left -= each + value;
        let value = "a".repeat(value);
        let change = [("metrics", 0, Some(value.as_str()))];
        resources.push(changes(16, &name, &change));
        if left == 0 {
            break;
        }
    }
    resources
}

#[test]
fn more_bytes_than_a_batch_holds_are_refused_at_once() {
    let decide = |bytes| {
        let resources = subscriptions_of(bytes);
        alter_configs(&image(), &resources, &BrokerTexts::new(), false).response
    };
    assert!(decide(RECORDS_BYTES_MAX).iter().all(Result::is_ok));
    let above = decide(RECORDS_BYTES_MAX + 1);
    assert!((above.iter()).all(|outcome| {
        outcome
            .as_ref()
            .is_err_and(|refusal| refusal.code == ErrorCode::POLICY_VIOLATION)
    }));
}

#[test]
fn all_settings_together_have_a_limit_that_deletions_may_pass() {
    let mut image = image();
    let set = |name: &str, bytes: usize| {
        let value = "a".repeat(bytes);
        changes(16, name, &[("metrics", 0, Some(value.as_str()))])
    };
    let each = 32_000;
    let text = "metrics".len();
    let whole = (SETTINGS_BYTES_MAX - 10_000) / each;
    for number in 0..whole {
        let resource = set(&format!("{number:04}"), each - text - 4);
        apply(&mut image, resource);
    }
    assert_eq!(image.settings_bytes(), whole * each);
    let room = SETTINGS_BYTES_MAX - whole * each - text - 1;
    let refused = decide(&image, set("m", room + 1)).response.remove(0);
    assert_eq!(refused.unwrap_err().code, ErrorCode::POLICY_VIOLATION);
    apply(&mut image, set("m", room));
    assert_eq!(image.settings_bytes(), SETTINGS_BYTES_MAX);
    apply(&mut image, changes(16, "0000", &[("metrics", 1, None)]));
    assert_eq!(image.settings_bytes(), SETTINGS_BYTES_MAX - each);
}

#[test]
fn a_list_grows_to_what_an_answer_can_carry() {
    let list = "follower.replication.throttled.replicas";
    let mut image = image();
    let filled: Vec<String> = (0..4_000)
        .map(|number| format!("{:04}:10", number))
        .collect();
    let filled = filled.join(",");
    let append = |text: &str| changes(2, "t", &[(list, 2, Some(text))]);
    apply(&mut image, append(&filled));
    let left = STRING_BYTES_MAX - filled.len();
    let longest = format!("5:{}", "1".repeat(left - 3));
    // A broker's number has an end; zeros before it do not count.
    let longest = longest.replace(":1", ":0").replace('1', "0");
    let longer = format!("{longest}0");
    let (code, message) = told(&image, append(&longer));
    assert_eq!(code, 40, "{message}");
    assert!(message.contains("32768 bytes"), "{message}");
    apply(&mut image, append(&longest));
    let known = image.topic_configs("t");
    assert_eq!(known[list].len(), STRING_BYTES_MAX);
    apply(&mut image, changes(2, "t", &[(list, 3, Some(&filled))]));
    assert_eq!(image.topic_configs("t")[list], longest);
}
