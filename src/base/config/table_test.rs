//! The tables of settings against themselves.

use super::setting::{Kind, Setting};
use super::table::{broker_setting, broker_settings, topic_setting, topic_settings};
use super::topic::{TOPIC_SYNONYMS, TopicSettings};

fn all() -> impl Iterator<Item = &'static Setting> {
    broker_settings().chain(topic_settings())
}

#[test]
fn every_default_is_valid_and_every_row_is_explained() {
    for setting in all() {
        let documentation = setting.documentation;
        assert!(
            documentation.ends_with('.') && documentation.len() > 15,
            "{}",
            setting.name
        );
        // Kafka's own default for these is an empty list, which stands for "not set".
        if let Some(default) = setting.default.filter(|text| !text.is_empty()) {
            assert_eq!(setting.check(default), Ok(()), "{}", setting.name);
        }
    }
}

#[test]
fn no_name_stands_twice() {
    let mut names: Vec<_> = broker_settings().map(|setting| setting.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(topic_settings().is_sorted_by_key(|setting| setting.name));
}

#[test]
fn ranges_hold_at_the_limit_and_one_past_it() {
    let check = |name: &str, text: &str| {
        let setting = all()
            .find(|setting| setting.name == name)
            .expect("a known setting");
        setting.check(text).is_ok()
    };
    assert!(check("segment.bytes", "1048576") && !check("segment.bytes", "1048575"));
    assert!(check("segment.bytes", "2147483647") && !check("segment.bytes", "2147483648"));
    assert!(check("compression.gzip.level", "-1") && check("compression.gzip.level", "9"));
    assert!(!check("compression.gzip.level", "0") && !check("compression.gzip.level", "10"));
    assert!(check("min.cleanable.dirty.ratio", "1") && !check("min.cleanable.dirty.ratio", "1.1"));
    assert!(check("cleanup.policy", " compact , delete ") && !check("cleanup.policy", "both"));
    assert!(check("cleanup.policy", "") && check("preallocate", "TRUE"));
    assert!(!check("preallocate", "yes") && !check("retention.ms", "-2"));
    assert!(check("leader.replication.throttled.replicas", "*"));
    assert!(check("leader.replication.throttled.replicas", "0:1,2:3"));
    assert!(!check("leader.replication.throttled.replicas", "0,1"));
}

#[test]
fn passwords_are_never_shown() {
    let setting = all()
        .find(|setting| setting.kind == Kind::Password)
        .expect("a password");
    assert!(
        !setting
            .fault("hunter2", "x")
            .to_string()
            .contains("hunter2")
    );
}

#[test]
fn synonyms_name_settings() {
    for (topic, synonyms) in TOPIC_SYNONYMS {
        assert!(topic_setting(topic).is_some(), "{topic}");
        for (name, _) in *synonyms {
            assert!(broker_setting(name).is_some(), "{name}");
        }
    }
}

#[test]
fn topic_defaults_are_kafkas() {
    let settings = TopicSettings::default();
    assert_eq!(settings.segment_bytes, 1 << 30);
    assert_eq!(settings.segment_ms, 604_800_000);
    assert_eq!(settings.max_message_bytes, 1_048_588);
    assert_eq!(settings.flush_messages, i64::MAX);
    assert_eq!(settings.message_timestamp_after_max_ms, 3_600_000);
    assert!(settings.cleanup_delete && !settings.cleanup_compact);
}
