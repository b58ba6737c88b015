//! AlterConfigs and IncrementalAlterConfigs (`ConfigAdminManager.preprocess`,
//! `ConfigurationControlManager`): the changes of one resource are made whole or not at all, with
//! Kafka's codes and messages.
//!
//! What an unknown operation on anything but a broker comes to is told here as INVALID_REQUEST;
//! Kafka's handler fails over it and answers UNKNOWN_SERVER_ERROR. Absent: policies.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Decision, RECORDS_PER_OPERATION_MAX, Refusal, client_metrics, topic_names};
use crate::base::config::dynamic::{self, Level};
use crate::base::config::setting::{Kind, Setting, ValueFault};
use crate::base::config::table::{broker_setting, topic_setting};
use crate::base::config::{BrokerTexts, TopicSettings, groups};
use crate::base::error_code::ErrorCode;
use crate::base::limits::{MIB, SETTINGS_BYTES_MAX};
use crate::cluster::effective::DynamicConfigs;
use crate::cluster::image::{ConfigMap, Image, ResourceType, config_bytes};
use crate::cluster::metadata_log::batch::BATCH_BYTES_MAX;
use crate::cluster::records::{ConfigRecord, MetadataRecord};
use crate::wire::primitives::STRING_BYTES_MAX;

/// Most bytes of one operation's records, which stand in one batch.
const RECORDS_BYTES_MAX: usize = 6 * MIB;
/// What a record takes at most beside its texts.
const RECORD_BYTES: usize = 64;

const _: () = assert!(RECORDS_BYTES_MAX < BATCH_BYTES_MAX);

/// What is done with one setting (`AlterConfigOp.OpType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It gets the value.
    Set,
    /// It goes back to what it inherits.
    Delete,
    /// The values are added to its list.
    Append,
    /// The values are taken out of its list.
    Subtract,
    /// None that is known.
    Unknown(i8),
}

impl From<i8> for Operation {
    fn from(number: i8) -> Self {
        match number {
            0 => Self::Set,
            1 => Self::Delete,
            2 => Self::Append,
            3 => Self::Subtract,
            other => Self::Unknown(other),
        }
    }
}

/// One change of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// The setting.
    pub name: String,
    /// What is done with it.
    pub operation: Operation,
    /// The value, of no meaning for a deletion.
    pub value: Option<String>,
}

/// The changes of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceChanges {
    /// What it is.
    pub kind: ResourceType,
    /// Its name.
    pub name: String,
    /// The changes.
    pub changes: Vec<ConfigChange>,
    /// Whether settings that are not named go (AlterConfigs).
    pub is_whole: bool,
}

/// How each resource fared, in their order.
pub type Outcomes = Vec<Result<(), Refusal>>;

fn invalid_request(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, message)
}

fn invalid_config(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::INVALID_CONFIG, message)
}

/// What is refused of a request before anything is looked up: one answer a resource.
#[must_use]
pub fn preprocess(resources: &[ResourceChanges]) -> Outcomes {
    let mut count: HashMap<(ResourceType, &str), usize> = HashMap::new();
    for resource in resources {
        *count.entry((resource.kind, &resource.name)).or_default() += 1;
    }
    let is_repeated = |resource: &ResourceChanges| {
        let count = count.get(&(resource.kind, resource.name.as_str()));
        count.is_some_and(|count| *count > 1)
    };
    let check = |resource: &ResourceChanges| {
        if is_repeated(resource) {
            return Err(invalid_request("Each resource must appear at most once."));
        }
        check_shape(resource)
    };
    resources.iter().map(check).collect()
}

fn check_shape(resource: &ResourceChanges) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    if !(resource.changes.iter()).all(|change| seen.insert(change.name.as_str())) {
        return Err(invalid_request("Error due to duplicate config keys"));
    }
    let is_null =
        |change: &&ConfigChange| change.value.is_none() && change.operation != Operation::Delete;
    let nulls = resource.changes.iter().filter(is_null);
    let nulls: Vec<&str> = nulls.map(|change| change.name.as_str()).collect();
    if !nulls.is_empty() {
        let names = nulls.join(", ");
        return Err(invalid_request(format!(
            "Null value not supported for : {names}"
        )));
    }
    let is_known = match resource.kind {
        ResourceType::TOPIC
        | ResourceType::BROKER
        | ResourceType::CLIENT_METRICS
        | ResourceType::GROUP => true,
        ResourceType::BROKER_LOGGER => !resource.is_whole,
        _ => false,
    };
    if is_known {
        Ok(())
    } else {
        let message = format!("Unknown resource type {}", resource.kind.0);
        Err(invalid_request(message))
    }
}

/// Decides the changes of all resources but broker loggers. `fixed` are the broker's settings of
/// its start.
pub fn alter_configs(
    image: &Image,
    resources: &[ResourceChanges],
    fixed: &BrokerTexts,
    validate_only: bool,
) -> Decision<Outcomes> {
    let mut decision = Decision {
        records: Vec::new(),
        response: Outcomes::with_capacity(resources.len()),
    };
    if !fits_one_batch(image, resources) {
        let message = "Unable to perform excessively large batch operation.";
        let refusal = Refusal::new(ErrorCode::POLICY_VIOLATION, message);
        decision.response.resize(resources.len(), Err(refusal));
        return decision;
    }
    let mut settings_bytes = image.settings_bytes();
    for resource in resources {
        let decided = decide_one(image, resource, fixed).and_then(|change| {
            settings_bytes = change.settings_bytes(settings_bytes)?;
            Ok(change.records)
        });
        let outcome = decided.map(|records| decision.records.extend(records));
        decision.response.push(outcome);
    }
    if validate_only {
        decision.records.clear();
    }
    decision
}

/// Whether all changes surely fit one batch of the metadata log, told before any is worked out.
fn fits_one_batch(image: &Image, resources: &[ResourceChanges]) -> bool {
    let (mut count, mut bytes) = (0usize, 0usize);
    for resource in resources {
        let before = image.configs(resource.kind, &resource.name);
        let each = resource.name.len() + RECORD_BYTES;
        for change in &resource.changes {
            let is_edit = matches!(change.operation, Operation::Append | Operation::Subtract);
            let known = before.get(&change.name).filter(|_| is_edit);
            let value = change.value.as_ref().map_or(0, String::len);
            bytes += each + change.name.len() + value + known.map_or(0, String::len);
        }
        count += resource.changes.len();
        if resource.is_whole {
            count += before.len();
            bytes += before.keys().map(|name| each + name.len()).sum::<usize>();
        }
    }
    count <= RECORDS_PER_OPERATION_MAX && bytes <= RECORDS_BYTES_MAX
}

/// What the changes of one resource come to.
struct Change {
    records: Vec<MetadataRecord>,
    bytes_before: usize,
    bytes_after: usize,
}

impl Change {
    /// What all settings take with this change, where they take `bytes` without it.
    fn settings_bytes(&self, bytes: usize) -> Result<usize, Refusal> {
        let after = (bytes + self.bytes_after).saturating_sub(self.bytes_before);
        if after > SETTINGS_BYTES_MAX && self.bytes_after > self.bytes_before {
            let message = format!(
                "The settings given at run time would take {after} bytes; at most \
                 {SETTINGS_BYTES_MAX} are kept."
            );
            return Err(Refusal::new(ErrorCode::POLICY_VIOLATION, message));
        }
        Ok(after)
    }
}

fn decide_one(
    image: &Image,
    resource: &ResourceChanges,
    fixed: &BrokerTexts,
) -> Result<Change, Refusal> {
    let before = image.configs(resource.kind, &resource.name);
    if resource.kind == ResourceType::BROKER {
        check_broker(image, resource)?;
    }
    let altered = altered(resource, &before)?;
    let mut after = ConfigMap::clone(&before);
    if resource.is_whole {
        after.clear();
    }
    for (name, value) in &altered {
        match value {
            Some(value) => after.insert((*name).to_owned(), value.clone()),
            None => after.remove(*name),
        };
    }
    validate(image, resource, &after, fixed)?;
    // Of a broker unchanged values are written too: they have it look at files anew
    // (KAFKA-14136).
    let is_written = |(name, value): &(&&str, &Option<String>)| {
        resource.kind == ResourceType::BROKER || before.get(**name) != value.as_ref()
    };
    let explicit = altered.iter().filter(is_written);
    let mut records: Vec<MetadataRecord> = explicit
        .map(|(name, value)| record(resource, name, value.clone()))
        .collect();
    if resource.is_whole {
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        records.extend(gone.map(|name| record(resource, name, None)));
    }
    let bytes = |configs: &ConfigMap| match configs.is_empty() {
        true => 0,
        false => resource.name.len() + config_bytes(configs),
    };
    Ok(Change {
        records,
        bytes_before: bytes(&before),
        bytes_after: bytes(&after),
    })
}

fn record(resource: &ResourceChanges, name: &str, value: Option<String>) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord {
        resource_type: resource.kind.0,
        resource_name: resource.name.clone(),
        name: name.to_owned(),
        value,
    })
}

/// The new value of each setting that is named; `None` where it goes.
fn altered<'a>(
    resource: &'a ResourceChanges,
    before: &ConfigMap,
) -> Result<BTreeMap<&'a str, Option<String>>, Refusal> {
    let mut altered = BTreeMap::new();
    for change in &resource.changes {
        let text = change.value.as_deref().unwrap_or_default();
        let value = match change.operation {
            Operation::Set => Some(text.to_owned()),
            Operation::Delete => None,
            Operation::Append | Operation::Subtract => {
                let known = before.get(&change.name).map(String::as_str);
                Some(edited(resource, change, known)?)
            }
            Operation::Unknown(number) => {
                let message = format!("Unknown operations type {number}");
                return Err(invalid_request(message));
            }
        };
        altered.insert(change.name.as_str(), value);
    }
    Ok(altered)
}

/// A list with values added or taken away; one that was not set begins as its default.
fn edited(
    resource: &ResourceChanges,
    change: &ConfigChange,
    known: Option<&str>,
) -> Result<String, Refusal> {
    let setting = setting_of(resource.kind, &change.name);
    let is_append = change.operation == Operation::Append;
    let Some(setting) = setting.filter(|setting| setting.kind == Kind::List) else {
        let word = if is_append { "APPEND" } else { "SUBTRACT" };
        let name = &change.name;
        return Err(invalid_config(format!(
            "Can't {word} to key {name} because its type is not LIST."
        )));
    };
    let known = known.or(setting.default).unwrap_or_default();
    let parts = known.split(',').filter(|part| !part.is_empty());
    let named = change.value.as_deref().unwrap_or_default().split(',');
    let edited = match is_append {
        true => appended(parts, named),
        false => subtracted(parts, named),
    };
    let text = edited.join(",");
    if text.len() > STRING_BYTES_MAX {
        let (name, bytes) = (&change.name, text.len());
        return Err(invalid_config(format!(
            "The list of {name} would take {bytes} bytes; at most {STRING_BYTES_MAX} are kept."
        )));
    }
    Ok(text)
}

/// The list with what it has not yet at its end.
fn appended<'a>(
    parts: impl Iterator<Item = &'a str>,
    named: impl Iterator<Item = &'a str>,
) -> Vec<&'a str> {
    let mut edited: Vec<&str> = parts.collect();
    let mut known: HashSet<&str> = edited.iter().copied().collect();
    edited.extend(named.filter(|part| known.insert(part)));
    edited
}

/// The list without the first of each that is named.
fn subtracted<'a>(
    parts: impl Iterator<Item = &'a str>,
    named: impl Iterator<Item = &'a str>,
) -> Vec<&'a str> {
    let mut gone: HashMap<&str, usize> = HashMap::new();
    for part in named {
        *gone.entry(part).or_default() += 1;
    }
    let stays = |part: &&'a str| match gone.get_mut(*part) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    parts.filter(stays).collect()
}

fn setting_of(kind: ResourceType, name: &str) -> Option<&'static Setting> {
    match kind {
        ResourceType::TOPIC => topic_setting(name),
        ResourceType::BROKER => broker_setting(name),
        _ => None,
    }
}

/// A broker's own checks, before its values are worked out.
fn check_broker(image: &Image, resource: &ResourceChanges) -> Result<(), Refusal> {
    let own = image.node_id().0;
    let name = resource.name.as_str();
    if !name.is_empty() {
        let id: i32 = name.parse().map_err(|_| {
            invalid_request(format!("Node id must be an integer, but it is: {name}"))
        })?;
        if id != own {
            return Err(invalid_request(format!(
                "Unexpected broker id, expected {own}, but received {name}"
            )));
        }
    }
    for change in &resource.changes {
        let word = match change.operation {
            Operation::Append => "append",
            Operation::Subtract => "subtract",
            _ => continue,
        };
        let name = &change.name;
        let Some(setting) = broker_setting(name) else {
            return Err(invalid_config(format!("Unknown config name: {name}")));
        };
        if setting.kind != Kind::List {
            return Err(invalid_config(format!(
                "Config value {word} is not allowed for config key: {name}"
            )));
        }
    }
    Ok(())
}

/// Whether the resource may have these settings, and whether there is such a resource.
fn validate(
    image: &Image,
    resource: &ResourceChanges,
    after: &ConfigMap,
    fixed: &BrokerTexts,
) -> Result<(), Refusal> {
    let name = resource.name.as_str();
    let dynamic = DynamicConfigs::of(image);
    let layers = dynamic.over(fixed);
    match resource.kind {
        ResourceType::TOPIC => {
            if name.is_empty() {
                let message = "Default topic resources are not allowed.";
                return Err(invalid_request(message));
            }
            topic_names::check(name)
                .map_err(|text| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, text))?;
            TopicSettings::derive(&layers.merged(), after).map_err(refused)?;
            if image.topics().by_name(name).is_none() {
                let message = format!("The topic '{name}' does not exist.");
                let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                return Err(Refusal::new(code, message));
            }
            Ok(())
        }
        ResourceType::BROKER => {
            let level = match name.is_empty() {
                true => Level::AllBrokers,
                false => Level::Broker,
            };
            dynamic::check(level, after, layers).map_err(invalid_request)
        }
        ResourceType::CLIENT_METRICS => {
            if name.is_empty() {
                return Err(invalid_request("Subscription name can't be empty"));
            }
            client_metrics::check(after).map_err(|fault| match fault {
                client_metrics::Fault::Request(message) => invalid_request(message),
                client_metrics::Fault::Value(message) => invalid_config(message),
            })
        }
        _ => {
            if name.is_empty() {
                let message = "Default group resources are not allowed.";
                return Err(invalid_request(message));
            }
            groups::check(after, &layers.merged()).map_err(refused)
        }
    }
}

fn refused(fault: ValueFault) -> Refusal {
    invalid_config(fault.to_string())
}

#[cfg(test)]
#[path = "alter_configs_test.rs"]
mod alter_configs_test;
