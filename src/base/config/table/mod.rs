//! The tables of all settings: Kafka's broker settings, Coreline's own, and those of topics, groups
//! and subscriptions to client metrics.
//!
//! Names, types, defaults and ranges are those of Kafka 4.4 (`KafkaConfig`, `LogConfig`); where a
//! default differs, the setting's documentation or the README says so.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::setting::Setting;

/// Rows of `"name": Kind = default, range, update mode, status[, internal]; "documentation";`.
macro_rules! settings {
    ($(
        $name:literal: $kind:expr => $default:expr, $range:expr, $mode:expr, $status:expr
        $(, $internal:ident)?;
        $documentation:literal;
    )*) => {
        pub(super) const ROWS: &[Setting] = &[$(Setting {
            name: $name,
            kind: $kind,
            default: $default,
            range: $range,
            update_mode: $mode,
            status: $status,
            internal: settings!(@internal $($internal)?),
            documentation: $documentation,
        },)*];
    };
    (@internal internal) => { true };
    (@internal) => { false };
}

mod broker;
mod cluster;
mod group;
mod groups;
mod log;
mod metrics;
mod own;
mod remote;
mod security;
mod topic;
mod transactions;

const BROKER_TABLES: [&[Setting]; 8] = [
    broker::ROWS,
    cluster::ROWS,
    groups::ROWS,
    log::ROWS,
    remote::ROWS,
    security::ROWS,
    transactions::ROWS,
    own::ROWS,
];

/// Settings of older Kafka releases: accepted, named in the start-up log, without effect.
pub const FORMER_SETTINGS: &[&str] = &[
    "advertised.host.name",
    "advertised.port",
    "broker.id.generation.enable",
    "control.plane.listener.name",
    "controlled.shutdown.max.retries",
    "controlled.shutdown.retry.backoff.ms",
    "group.consumer.migration.enable",
    "host.name",
    "inter.broker.protocol.version",
    "leader.imbalance.per.broker.percentage",
    "log.message.downconversion.enable",
    "log.message.format.version",
    "log.message.timestamp.difference.max.ms",
    "offsets.commit.required.acks",
    "password.encoder.cipher.algorithm",
    "password.encoder.iterations",
    "password.encoder.key.length",
    "password.encoder.keyfactory.algorithm",
    "password.encoder.old.secret",
    "password.encoder.secret",
    "port",
    "quota.consumer.default",
    "quota.producer.default",
    "reserved.broker.max.id",
    "zookeeper.connect",
    "zookeeper.connection.timeout.ms",
    "zookeeper.max.in.flight.requests",
    "zookeeper.metadata.migration.enable",
    "zookeeper.session.timeout.ms",
    "zookeeper.set.acl",
    "zookeeper.sync.time.ms",
];

/// All settings of a broker.
pub fn broker_settings() -> impl Iterator<Item = &'static Setting> {
    BROKER_TABLES.iter().flat_map(|table| table.iter())
}

/// All settings of a topic.
#[must_use]
pub fn topic_settings() -> &'static [Setting] {
    topic::ROWS
}

/// Descriptions look each name up, several times a setting.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Setting>> = LazyLock::new(|| {
    broker_settings()
        .map(|setting| (setting.name, setting))
        .collect()
});

/// The broker setting of that exact name.
#[must_use]
pub fn broker_setting(name: &str) -> Option<&'static Setting> {
    BY_NAME.get(name).copied()
}

/// The topic setting of that exact name.
#[must_use]
pub fn topic_setting(name: &str) -> Option<&'static Setting> {
    topic::ROWS.iter().find(|setting| setting.name == name)
}

/// All settings of a subscription to client metrics.
#[must_use]
pub fn client_metrics_settings() -> &'static [Setting] {
    metrics::ROWS
}

/// The setting of that exact name of a subscription to client metrics.
#[must_use]
pub fn client_metrics_setting(name: &str) -> Option<&'static Setting> {
    metrics::ROWS.iter().find(|setting| setting.name == name)
}

/// All settings of a group.
#[must_use]
pub fn group_settings() -> &'static [Setting] {
    group::ROWS
}

/// The group setting of that exact name.
#[must_use]
pub fn group_setting(name: &str) -> Option<&'static Setting> {
    group::ROWS.iter().find(|setting| setting.name == name)
}
