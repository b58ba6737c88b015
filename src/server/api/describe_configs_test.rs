use super::*;
use crate::cluster::records::{ConfigRecord, MetadataRecord};
use crate::server::api::metadata::metadata_test;

fn image() -> Image {
    let mut image = metadata_test::image();
    let config = ConfigRecord {
        resource_type: 2,
        resource_name: "a".into(),
        name: "retention.ms".into(),
        value: Some("77".into()),
    };
    image.apply(&MetadataRecord::Config(config)).unwrap();
    image
}

fn ask(resource_type: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsResult {
    let texts = BrokerTexts::from([("log.retention.hours", "2".to_owned())]);
    let keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type,
            resource_name: name.to_owned(),
            configuration_keys: keys,
        }],
        include_synonyms: true,
        include_documentation: true,
    };
    results(&image(), &request, &texts).next().unwrap()
}

fn synonyms(config: &DescribeConfigsResourceResult) -> Vec<(&str, Option<&str>, i8)> {
    (config.synonyms.iter())
        .map(|one| (one.name.as_str(), one.value.as_deref(), one.source))
        .collect()
}

#[test]
fn a_topics_setting_comes_with_where_it_is_from() {
    let own = ask(2, "a", Some(&["retention.ms"]));
    let [retention] = &own.configs[..] else {
        panic!("{own:?}");
    };
    assert_eq!(
        (retention.value.as_deref(), retention.config_source),
        (Some("77"), 1)
    );
    assert_eq!((retention.config_type, retention.read_only), (5, false));
    let names = synonyms(retention);
    // The hours stand under a name that has no value of its own, and so are not listed.
    assert_eq!(names, [("retention.ms", Some("77"), 1)]);
    assert!(retention.documentation.is_some());
    let inherited = ask(2, "b", Some(&["retention.ms", "cleanup.policy"]));
    let values: Vec<(&str, Option<&str>, i8)> = (inherited.configs.iter())
        .map(|one| (one.name.as_str(), one.value.as_deref(), one.config_source))
        .collect();
    let expected = [
        ("cleanup.policy", Some("delete"), 5),
        ("retention.ms", Some("7200000"), 5),
    ];
    assert_eq!(values, expected);
}

#[test]
fn no_keys_means_all_and_unknown_keys_mean_nothing() {
    let all = ask(2, "a", None);
    assert!(all.configs.len() > 30);
    assert_eq!(ask(2, "a", Some(&[])).configs, all.configs);
    assert!(ask(2, "a", Some(&["nope"])).configs.is_empty());
    assert_eq!(ask(2, "a", None).error_message.as_deref(), Some(""));
}

/// Codes and messages as Apache Kafka 4.4.0 answered them, for node 1.
#[test]
fn refusals_are_kafkas() {
    let cases = [
        (2, "nope", 3, ""),
        (
            2,
            "",
            17,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            4,
            "7",
            42,
            "Unexpected broker id, expected 1 or empty string, but received 7",
        ),
        (4, "x", 42, "Broker id must be an integer, but it is: x"),
        (8, "", 42, "Broker id must not be empty"),
        (
            8,
            "7",
            42,
            "Unexpected broker id, expected 1 but received 7",
        ),
        (99, "g", 42, INVALID_REQUEST_MESSAGE),
    ];
    for (resource_type, name, code, message) in cases {
        let result = ask(resource_type, name, None);
        assert_eq!(result.error_code.0, code, "{resource_type} {name}");
        assert_eq!(result.error_message.as_deref(), Some(message));
        assert!(result.configs.is_empty());
    }
}

#[test]
fn the_broker_and_its_log_level_are_described() {
    let broker = ask(4, "1", None);
    let of = |name: &str| broker.configs.iter().find(|one| one.name == name).unwrap();
    let hours = of("log.retention.hours");
    assert_eq!(
        (hours.value.as_deref(), hours.config_source),
        (Some("2"), 4)
    );
    assert!(hours.read_only);
    assert_eq!(
        synonyms(hours),
        [
            ("log.retention.hours", Some("2"), 4),
            ("log.retention.hours", Some("168"), 5),
        ]
    );
    assert!(ask(4, "", None).configs.is_empty());
    let levels = ask(8, "1", None).configs;
    let root = &levels[0];
    assert_eq!((root.name.as_str(), root.config_source), ("root", 6));

    assert!(levels.len() > 1 && levels.iter().all(|level| level.config_source == 6));
}

#[test]
fn a_resource_that_is_named_again_is_described_once() {
    let resource = |resource_type, name: &str| DescribeConfigsResource {
        resource_type,
        resource_name: name.to_owned(),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: vec![
            resource(2, "a"),
            resource(4, "a"),
            resource(2, "b"),
            resource(2, "a"),
        ],
        ..DescribeConfigsRequest::default()
    };
    let described: Vec<(i8, String)> = results(&image(), &request, &BrokerTexts::default())
        .map(|result| (result.resource_type, result.resource_name))
        .collect();
    let expected = [(2, "a"), (4, "a"), (2, "b")];
    assert_eq!(
        described,
        expected.map(|(kind, name)| (kind, name.to_owned()))
    );
}
