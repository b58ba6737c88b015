//! Settings as DescribeConfigs shows them (`ConfigHelper`).

use super::setting::Setting;
use super::table::{broker_setting, broker_settings, topic_settings};
use super::topic::{BrokerTexts, TOPIC_SYNONYMS, TopicOverrides, broker_value, scaled};

/// Where a value in force comes from (`DescribeConfigsResponse.ConfigSource`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Source {
    /// The topic's own setting.
    Topic = 1,
    /// `server.properties` or the command line.
    StaticBroker = 4,
    /// The default.
    Default = 5,
}

/// One name under which a value may be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The setting's name.
    pub name: &'static str,
    /// Its value; `None` for null and for passwords.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: Source,
}

/// One setting with its value in force.
#[derive(Clone, Debug)]
pub struct Described {
    /// The row of the table.
    pub setting: &'static Setting,
    /// The value; `None` for null and for passwords.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: Source,
    /// Whether AlterConfigs could not change it.
    pub read_only: bool,
    /// Every name under which it is or could be set, the one in force first.
    pub synonyms: Vec<Synonym>,
}

/// Gives flushes an interval where they have none of their own.
const FLUSH_SCHEDULER: &str = "log.flush.scheduler.interval.ms";

/// All settings of a topic, in the order of their names.
#[must_use]
pub fn topic(broker: &BrokerTexts, overrides: &TopicOverrides) -> Vec<Described> {
    topic_settings()
        .iter()
        .filter(|setting| !setting.internal || overrides.contains_key(setting.name))
        .map(|setting| describe_topic(setting, broker, overrides))
        .collect()
}

fn describe_topic(
    setting: &'static Setting,
    broker: &BrokerTexts,
    overrides: &TopicOverrides,
) -> Described {
    let mut synonyms = Vec::new();
    let own = overrides.get(setting.name).cloned();
    if let Some(text) = &own {
        synonyms.push(Synonym {
            name: setting.name,
            value: Some(text.clone()),
            source: Source::Topic,
        });
    }
    let names = TOPIC_SYNONYMS
        .iter()
        .find(|(name, _)| *name == setting.name)
        .map_or(&[][..], |(_, names)| *names);
    if let Some((first, _)) = names.first() {
        synonyms.extend(synonyms_of(first, names, broker));
    }
    // Set ones stand before defaults, each group in the table's order.
    let inherited = broker_value(broker, setting.name).map(|(_, text)| text);
    let source = match (&own, &inherited) {
        (Some(_), _) => Source::Topic,
        (None, Some(_)) => Source::StaticBroker,
        (None, None) => Source::Default,
    };
    let value = own.or(inherited).or_else(|| default_of(setting, names));
    Described {
        setting,
        value: value.filter(|_| !setting.is_sensitive()),
        source,
        read_only: false,
        synonyms,
    }
}

/// The synonyms under the first of `names`. Where that one has no value Kafka lists none, even if
/// another gives the value in force; where it has, it lists all of them, but for the scheduler's
/// interval, which is a default of flushes only (`DynamicBrokerConfig.brokerConfigSynonyms`).
fn synonyms_of(first: &str, names: &[(&str, i64)], broker: &BrokerTexts) -> Vec<Synonym> {
    let of = |name: &str| broker_setting(name).map(|setting| broker_synonyms(setting, broker));
    let own: Vec<Synonym> = of(first).into_iter().flatten().collect();
    if own.is_empty() {
        return own;
    }
    let others = names.iter().map(|(name, _)| *name);
    let others = others.filter(|name| *name != first && *name != FLUSH_SCHEDULER);
    own.into_iter()
        .chain(others.filter_map(of).flatten())
        .collect()
}

/// The topic setting's default, which is the broker's of the same meaning.
fn default_of(setting: &Setting, names: &[(&str, i64)]) -> Option<String> {
    let broker_default = names.iter().find_map(|(name, factor)| {
        let default = broker_setting(name)?.default?;
        Some(scaled(default, *factor))
    });
    setting.default.map(str::to_owned).or(broker_default)
}

/// The value given for a broker setting, then its default where it has one.
fn broker_synonyms(
    setting: &'static Setting,
    broker: &BrokerTexts,
) -> impl Iterator<Item = Synonym> {
    let visible = !setting.is_sensitive();
    let given = broker.get(setting.name).map(|text| Synonym {
        name: setting.name,
        value: Some(text.clone()).filter(|_| visible),
        source: Source::StaticBroker,
    });
    let default = setting.default.map(|text| Synonym {
        name: setting.name,
        value: Some(text.to_owned()).filter(|_| visible),
        source: Source::Default,
    });
    given.into_iter().chain(default)
}

/// All settings of the broker, in the order of their names.
#[must_use]
pub fn broker(texts: &BrokerTexts) -> Vec<Described> {
    let mut described: Vec<Described> = broker_settings()
        .filter(|setting| !setting.internal || texts.contains_key(setting.name))
        .map(|setting| {
            let group = TOPIC_SYNONYMS.iter().map(|(_, names)| *names);
            let group = group
                .into_iter()
                .find(|names| names.first().is_some_and(|(name, _)| *name == setting.name));
            let synonyms = synonyms_of(setting.name, group.unwrap_or_default(), texts);
            let value = texts.get(setting.name).cloned();
            let value = value.or_else(|| setting.default.map(str::to_owned));
            Described {
                setting,
                value: value.filter(|_| !setting.is_sensitive()),
                source: synonyms
                    .first()
                    .map_or(Source::Default, |synonym| synonym.source),
                read_only: setting.update_mode == super::setting::UpdateMode::ReadOnly,
                synonyms,
            }
        })
        .collect();
    described.sort_by_key(|described| described.setting.name);
    described
}
