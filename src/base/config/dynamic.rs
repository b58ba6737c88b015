//! Broker settings that change while the broker runs (`DynamicBrokerConfig`): for one broker, for
//! all brokers, and under both what `server.properties` says.

use std::collections::BTreeMap;

use super::broker::BrokerConfig;
use super::listener_limits;
use super::relations;
use super::setting::{Setting, Status, UpdateMode};
use super::table::{broker_setting, topic_setting};
use super::topic::{BrokerTexts, TOPIC_SYNONYMS, broker_value};

/// Settings of one resource by name, as the metadata log holds them.
pub type ConfigMap = BTreeMap<String, String>;

/// What a broker was given, nearest first.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// For this broker, at run time.
    pub own: &'a ConfigMap,
    /// For all brokers, at run time.
    pub common: &'a ConfigMap,
    /// At its start.
    pub fixed: &'a BrokerTexts,
}

/// Whom a change is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// One broker.
    Broker,
    /// All brokers.
    AllBrokers,
}

/// Settings of a listener that may be given for all brokers
/// (`DynamicBrokerConfig.ClusterLevelListenerConfigs`).
const COMMON_OF_LISTENERS: [&str; 3] = [
    "max.connections",
    "max.connection.creation.rate",
    "num.network.threads",
];

/// Settings that change for single listeners only (`SslConfigs.RECONFIGURABLE_CONFIGS`).
const SECURITY: [&str; 10] = [
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
];

/// Numbers of threads, which may at most double or halve at a time (`DynamicThreadPool`).
const THREADS: [&str; 5] = [
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
];

/// With 0 of these nobody is served.
const CONNECTIONS: [&str; 2] = ["max.connections", "max.connection.creation.rate"];

/// Synonyms among broker settings: giving one of them takes the others out of the layers below.
const OVERRIDING: [&str; 3] = ["retention.ms", "segment.ms", "segment.jitter.ms"];

impl Layers<'_> {
    /// All texts in force: a nearer layer wins, also over a synonym that a farther one gives. What
    /// no layer may hold, which only another program writes, does not count.
    #[must_use]
    pub fn merged(&self) -> BrokerTexts {
        let mut texts = self.fixed.clone();
        overlay(&mut texts, self.common, Level::AllBrokers);
        overlay(&mut texts, self.own, Level::Broker);
        texts
    }

    /// Whether nothing was changed at run time.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.own.is_empty() && self.common.is_empty()
    }

    /// `fixed` with all layers in force.
    #[must_use]
    pub fn config(&self, fixed: &BrokerConfig) -> BrokerConfig {
        let mut config = fixed.with_texts(self.merged());
        let layers = [&fixed.listener_texts, self.common, self.own];
        config.listener_limits = listener_limits::read(layers);
        config
    }
}

fn overlay(texts: &mut BrokerTexts, layer: &ConfigMap, level: Level) {
    for (name, value) in layer {
        let Some(setting) = broker_setting(name) else {
            continue;
        };
        if is_dynamic(setting, level) && setting.check(value).is_ok() {
            for synonym in synonyms(name) {
                texts.remove(synonym);
            }
            texts.insert(setting.name, value.trim().to_owned());
        }
    }
}

fn is_dynamic(setting: &Setting, level: Level) -> bool {
    match setting.update_mode {
        UpdateMode::ReadOnly => false,
        UpdateMode::PerBroker => level == Level::Broker,
        UpdateMode::ClusterWide => true,
    }
}

/// Every name of the same meaning, `name` among them.
fn synonyms(name: &str) -> impl Iterator<Item = &'static str> {
    let groups = TOPIC_SYNONYMS.iter();
    groups
        .filter(|(topic, _)| OVERRIDING.contains(topic))
        .map(|(_, names)| *names)
        .filter(move |names| names.iter().any(|(known, _)| *known == name))
        .flat_map(|names| names.iter().map(|(known, _)| *known))
}

/// A listener's setting without its listener (`listener.name.<listener>.<setting>`).
#[must_use]
pub fn of_listener(name: &str) -> Option<&str> {
    let (_, base) = name.strip_prefix("listener.name.")?.split_once('.')?;
    Some(base)
}

/// Whether a broker may run with `layer` as what `level` was given, in place of what `layers` has
/// there; the text says why not (`DynamicBrokerConfig.validate`).
///
/// # Errors
/// The first rule that is broken, in Kafka's words where Kafka has the rule.
pub fn check(level: Level, layer: &ConfigMap, layers: Layers<'_>) -> Result<(), String> {
    let settings = || layer.iter().map(|(name, value)| (name.as_str(), value));
    let refuse = |message: &str, names: Vec<&str>| match names.is_empty() {
        true => Ok(()),
        false => Err(format!("{message}: [{}]", names.join(", "))),
    };
    let is_fixed = |name: &&str| {
        broker_setting(name).is_some_and(|setting| setting.update_mode == UpdateMode::ReadOnly)
    };
    let names = || settings().map(|(name, _)| name);
    refuse(
        "Cannot update these configs dynamically",
        names().filter(is_fixed).collect(),
    )?;
    refuse(
        "These security configs can be dynamically updated only per-listener using the listener \
         prefix",
        names().filter(|name| SECURITY.contains(name)).collect(),
    )?;
    for (name, value) in settings() {
        if let Some(setting) = broker_setting(of_listener(name).unwrap_or(name)) {
            setting.check(value).map_err(|fault| fault.to_string())?;
        }
    }
    check_open(settings())?;
    if level == Level::AllBrokers {
        refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            names().filter(|name| is_per_broker(name)).collect(),
        )?;
    }
    let after = match level {
        Level::Broker => Layers {
            own: layer,
            ..layers
        },
        Level::AllBrokers => Layers {
            common: layer,
            ..layers
        },
    };
    let (before, after) = (layers.merged(), after.merged());
    check_served(layer, layers.fixed)?;
    let faults = relations::check(&after);
    if let Some(fault) = faults.first() {
        return Err(fault.to_string());
    }
    check_threads(&before, &after)?;
    check_local_retention(&after)
}

/// A change that would let no client in any more, not even to take it back, is refused
/// (`ConnectionQuotas.validateReconfiguration`).
fn check_open<'a>(settings: impl Iterator<Item = (&'a str, &'a String)>) -> Result<(), String> {
    for (name, value) in settings {
        let base = of_listener(name).unwrap_or(name);
        if CONNECTIONS.contains(&base) && value.trim().parse().is_ok_and(|limit: i64| limit <= 0) {
            return Err(format!("Invalid {base} {}", value.trim()));
        }
    }
    Ok(())
}

fn is_per_broker(name: &str) -> bool {
    match of_listener(name) {
        Some(base) => !COMMON_OF_LISTENERS.contains(&base),
        None => broker_setting(name).is_some_and(|row| row.update_mode == UpdateMode::PerBroker),
    }
}

/// What is refused at the start is refused later too, and listeners stay as they were opened.
fn check_served(layer: &ConfigMap, fixed: &BrokerTexts) -> Result<(), String> {
    for (name, value) in layer {
        let Some(setting) = broker_setting(name) else {
            continue;
        };
        let default = setting.default.unwrap_or_default();
        if setting.status == Status::Refused && !default.eq_ignore_ascii_case(value.trim()) {
            return Err(format!(
                "{name} is not served: only its default is accepted"
            ));
        }
        let known = fixed.get(name.as_str()).map_or(default, String::as_str);
        if setting.update_mode == UpdateMode::PerBroker
            && setting.status == Status::Effective
            && known != value.trim()
        {
            return Err(format!("{name} cannot be altered while the broker runs"));
        }
    }
    Ok(())
}

fn number(texts: &BrokerTexts, name: &str) -> i64 {
    let default = broker_setting(name).and_then(|setting| setting.default);
    let text = texts.get(name).map(String::as_str).or(default);
    text.and_then(|text| text.parse::<i64>().ok())
        .unwrap_or_default()
}

/// `log.cleaner.threads` has words of its own (`LogCleaner.validateReconfiguration`).
fn check_threads(before: &BrokerTexts, after: &BrokerTexts) -> Result<(), String> {
    for name in THREADS {
        let (old, new) = (number(before, name), number(after, name));
        let rule = if new < old / 2 {
            "value should be at least half the current value"
        } else if new > old * 2 {
            "value should not be greater than double the current value"
        } else {
            continue;
        };
        return Err(format!(
            "Dynamic thread count update validation failed for {name}={new}, {rule} {old}"
        ));
    }
    let cleaners = "log.cleaner.threads";
    let (old, new) = (number(before, cleaners), number(after, cleaners));
    let rule = if new < old / 2 {
        "reduced to less than half"
    } else if new > old * 2 {
        "increased to more than double"
    } else {
        return Ok(());
    };
    Err(format!(
        "Log cleaner threads cannot be {rule} the current value {old}"
    ))
}

/// What stays on this disk is no more than what stays at all (`DynamicRemoteLogConfig`).
fn check_local_retention(after: &BrokerTexts) -> Result<(), String> {
    let retention_ms = topic_default(after, "retention.ms");
    let pairs = [
        ("log.local.retention.ms", "log.retention.ms", retention_ms),
        (
            "log.local.retention.bytes",
            "log.retention.bytes",
            number(after, "log.retention.bytes"),
        ),
    ];
    for (name, above, most) in pairs {
        let local = number(after, name);
        let rule = match local {
            _ if most == -1 || local == -2 => continue,
            -1 => format!("Value must not be -1 as {above} value is set as {most}."),
            _ if local > most => {
                format!("Value must not be more than {above} property value: {most}")
            }
            _ => continue,
        };
        return Err(format!(
            "Invalid value {local} for configuration {name}: {rule}"
        ));
    }
    Ok(())
}

/// What a topic inherits of a setting, in the topic's unit.
fn topic_default(texts: &BrokerTexts, name: &str) -> i64 {
    let given = broker_value(texts, name).and_then(|(_, text)| text.parse().ok());
    let default = topic_setting(name).and_then(|setting| setting.default);
    let default = default.and_then(|text| text.parse().ok());
    given.or(default).unwrap_or_default()
}

#[cfg(test)]
#[path = "dynamic_test.rs"]
mod dynamic_test;
