//! Rules for topic names (`org.apache.kafka.common.internals.Topic`).

use crate::base::limits::TOPIC_NAME_LEN_MAX;

/// The topic that stands for the metadata log; no client may create it.
pub const CLUSTER_METADATA_TOPIC: &str = "__cluster_metadata";

/// Topics that coordinators keep their state in.
const INTERNAL_TOPICS: [&str; 3] = [
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
];

/// Whether clients are told that the topic is the cluster's own.
#[must_use]
pub fn is_internal(name: &str) -> bool {
    INTERNAL_TOPICS.contains(&name)
}

/// Whether `name` may name a topic; else what users are told.
pub fn check(name: &str) -> Result<(), String> {
    let fault = if name.is_empty() {
        "the empty string is not allowed".to_owned()
    } else if name == "." || name == ".." {
        format!("'{name}' is not allowed")
    } else if name.chars().count() > TOPIC_NAME_LEN_MAX {
        format!("the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LEN_MAX}")
    } else if !name.chars().all(is_allowed) {
        format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-'"
        )
    } else {
        return Ok(());
    };
    Err(format!("Topic name is invalid: {fault}"))
}

fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

/// The name under which metrics know the topic: dots and underscores are the same there, so that
/// two names which differ in nothing else collide. `None` for a name with neither.
#[must_use]
pub fn collision_key(name: &str) -> Option<String> {
    name.contains(['.', '_']).then(|| name.replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_kafka_judges_them() {
        for good in [
            "a",
            "a.b_c-D9",
            "...",
            "__consumer_offsets",
            &"x".repeat(249),
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let fault = |name: &str| check(name).unwrap_err();
        assert_eq!(
            fault(""),
            "Topic name is invalid: the empty string is not allowed"
        );
        assert_eq!(fault(".."), "Topic name is invalid: '..' is not allowed");
        assert!(fault(&"x".repeat(250)).ends_with("longer than the max allowed length 249"));
        assert!(fault("a b").contains("other than ASCII alphanumerics, '.', '_' and '-'"));
        assert!(fault("ä").contains("'ä' contains"));
    }

    #[test]
    fn dots_and_underscores_collide() {
        assert_eq!(collision_key("a.b"), collision_key("a_b"));
        assert_ne!(collision_key("a.b"), collision_key("ab"));
        assert_eq!(collision_key("a-b"), None);
    }
}
