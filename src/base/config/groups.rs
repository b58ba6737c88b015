//! Settings of single groups (`GroupConfig`, KIP-848, KIP-932, KIP-1071): kept, and not yet heeded.

use super::dynamic::ConfigMap;
use super::setting::{Setting, ValueFault, list};
use super::table::{broker_setting, group_setting, group_settings};
use super::topic::BrokerTexts;

/// Settings whose value must lie between two of the broker's, both included.
const BOUNDED: &[(&str, &str, &str)] = &[
    (
        "consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        "consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    (
        "share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    (
        "share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    (
        "share.heartbeat.interval.ms",
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    (
        "share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    (
        "share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    (
        "share.session.timeout.ms",
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    (
        "streams.assignment.interval.ms",
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
    (
        "streams.heartbeat.interval.ms",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    (
        "streams.session.timeout.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
    ),
];

/// Session timeouts, each with the heartbeat interval that must be shorter.
const SESSIONS: [(&str, &str); 3] = [
    (
        "consumer.session.timeout.ms",
        "consumer.heartbeat.interval.ms",
    ),
    ("share.session.timeout.ms", "share.heartbeat.interval.ms"),
    (
        "streams.session.timeout.ms",
        "streams.heartbeat.interval.ms",
    ),
];

/// The broker's setting that gives a group's its default.
#[must_use]
pub fn broker_synonym(name: &str) -> Option<&'static Setting> {
    if name == "streams.assignor.name" {
        return broker_setting("group.streams.assignors");
    }
    broker_setting(&format!("group.{name}"))
}

/// A group's value: its own, else the broker's, else the default.
#[must_use]
pub fn value(name: &str, configs: &ConfigMap, broker: &BrokerTexts) -> String {
    if let Some(text) = configs.get(name) {
        return text.trim().to_owned();
    }
    let inherited = broker_synonym(name).and_then(|setting| {
        let given = broker.get(setting.name).map(String::as_str);
        given.or(setting.default)
    });
    let text = match inherited {
        Some(text) => text,
        None => group_setting(name)
            .and_then(|row| row.default)
            .unwrap_or_default(),
    };
    match name {
        // The first assignor of the broker's list is its default.
        "streams.assignor.name" => list(text).next().unwrap_or_default().to_owned(),
        _ => text.to_owned(),
    }
}

/// Whether a group may have these settings on a broker with these.
///
/// # Errors
/// The first that is wrong, in Kafka's words.
pub fn check(configs: &ConfigMap, broker: &BrokerTexts) -> Result<(), ValueFault> {
    let rule = |name: &str, reason: String| {
        Err(ValueFault {
            name: name.to_owned(),
            value: None,
            reason,
        })
    };
    if let Some(name) = configs.keys().find(|name| group_setting(name).is_none()) {
        return rule(name, format!("Unknown group config name: {name}"));
    }
    for setting in group_settings() {
        if let Some(text) = configs.get(setting.name) {
            setting.check(text)?;
            check_words(setting, text.trim())?;
        }
    }
    let number = |name: &str| value(name, configs, broker).parse::<i64>().unwrap_or(0);
    let of_broker = |name: &str| {
        let default = broker_setting(name).and_then(|setting| setting.default);
        let text = broker.get(name).map(String::as_str).or(default);
        text.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0)
    };
    for (name, least, most) in BOUNDED {
        let (least, most) = (of_broker(least), of_broker(most));
        if configs.contains_key(*name) && !(least..=most).contains(&number(name)) {
            return rule(
                name,
                format!("{name} must be in the range {least} to {most} inclusive."),
            );
        }
    }
    let standby = "streams.num.standby.replicas";
    let most = of_broker("group.streams.max.standby.replicas");
    if number(standby) > most {
        return rule(
            standby,
            format!("{standby} must be less than or equal to {most}"),
        );
    }
    for (session, heartbeat) in SESSIONS {
        if number(session) <= number(heartbeat) {
            return rule(
                session,
                format!("{session} must be greater than {heartbeat}"),
            );
        }
    }
    let assignor = value("streams.assignor.name", configs, broker);
    let known = "group.streams.assignors";
    let default = broker_setting(known).and_then(|setting| setting.default);
    let known = broker.get(known).map(String::as_str).or(default);
    let known: Vec<&str> = list(known.unwrap_or_default()).collect();
    if !known.contains(&assignor.as_str()) {
        let known = known.join(", ");
        return rule(
            "streams.assignor.name",
            format!(
                "streams.assignor.name '{assignor}' is not a registered task assignor. \
                 Registered assignors are: [{known}]."
            ),
        );
    }
    Ok(())
}

/// `share.auto.offset.reset` is a word or a duration.
fn check_words(setting: &Setting, text: &str) -> Result<(), ValueFault> {
    let fits = setting.name != "share.auto.offset.reset"
        || matches!(text, "earliest" | "latest")
        || text.strip_prefix("by_duration:").is_some_and(is_duration);
    if fits {
        return Ok(());
    }
    let name = setting.name;
    Err(setting.fault(
        text,
        format!(
            "Invalid value `{text}` for configuration {name}. The value must be either \
             'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        ),
    ))
}

/// A duration of ISO 8601's form in days, hours, minutes and seconds, above zero; in any case and
/// with signs at its numbers (`java.time.Duration.parse`).
fn is_duration(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(&text)),
    };
    let Some(text) = text.strip_prefix('P') else {
        return false;
    };
    let (days, rest) = match text.split_once('T') {
        Some((days, rest)) => (days, Some(rest)),
        None => (text, None),
    };
    let seconds = match rest {
        None => parts(days, &[('D', 86_400.0)]),
        Some(rest) if days.is_empty() => parts(rest, &CLOCK),
        Some(rest) => parts(days, &[('D', 86_400.0)])
            .zip(parts(rest, &CLOCK))
            .map(sum),
    };
    seconds.is_some_and(|seconds| seconds * sign > 0.0)
}

const CLOCK: [(char, f64); 3] = [('H', 3_600.0), ('M', 60.0), ('S', 1.0)];

fn sum((left, right): (f64, f64)) -> f64 {
    left + right
}

/// At least one number, each with its unit, in the units' order; only seconds have a fraction.
fn parts(text: &str, units: &[(char, f64)]) -> Option<f64> {
    let (mut rest, mut seconds) = (text, None);
    for (unit, length) in units {
        let Some((number, after)) = rest.split_once(*unit) else {
            continue;
        };
        let number = match unit {
            'S' if number.bytes().all(|byte| !byte.is_ascii_alphabetic()) => number.parse().ok()?,
            _ => number.parse::<i64>().ok()? as f64,
        };
        seconds = Some(seconds.unwrap_or(0.0) + number * length);
        rest = after;
    }
    seconds.filter(|_| rest.is_empty())
}
