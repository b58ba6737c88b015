//! Settings as DescribeConfigs shows them (`ConfigHelper`).

use super::dynamic::{ConfigMap, Layers, of_listener};
use super::groups;
use super::setting::{Kind, Setting, UpdateMode, list, parse_boolean};
use super::table::{
    broker_setting, broker_settings, client_metrics_settings, group_settings, topic_settings,
};
use super::topic::{BrokerTexts, TOPIC_SYNONYMS, TopicOverrides, broker_value, scaled};

/// Where a value in force comes from (`DescribeConfigsResponse.ConfigSource`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Source {
    /// The topic's own setting.
    Topic = 1,
    /// Given to one broker at run time.
    Broker = 2,
    /// Given to all brokers at run time.
    AllBrokers = 3,
    /// `server.properties` or the command line.
    StaticBroker = 4,
    /// The default.
    Default = 5,
    /// The subscription's own setting.
    ClientMetrics = 7,
    /// The group's own setting.
    Group = 8,
}

/// One name under which a value may be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The setting's name.
    pub name: String,
    /// Its value; `None` for null and for passwords.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: Source,
}

/// One setting with its value in force.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// The row of the table; `None` for a name that nobody knows, which a broker may be given.
    pub setting: Option<&'static Setting>,
    /// The value; `None` for null and for passwords.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: Source,
    /// Whether AlterConfigs could not change it.
    pub read_only: bool,
    /// Every name under which it is or could be set, the one in force first.
    pub synonyms: Vec<Synonym>,
}

impl Described {
    /// Whether the value is kept secret: a password, or of a name that nobody knows.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        self.setting.is_none_or(Setting::is_sensitive)
    }
}

/// Gives flushes an interval where they have none of their own.
const FLUSH_SCHEDULER: &str = "log.flush.scheduler.interval.ms";

/// All settings of a topic, in the order of their names.
#[must_use]
pub fn topic(layers: Layers<'_>, overrides: &TopicOverrides) -> Vec<Described> {
    let merged = layers.merged();
    topic_settings()
        .iter()
        .filter(|setting| !setting.internal || overrides.contains_key(setting.name))
        .map(|setting| describe_topic(setting, (layers, &merged), overrides))
        .collect()
}

fn describe_topic(
    setting: &'static Setting,
    (layers, merged): (Layers<'_>, &BrokerTexts),
    overrides: &TopicOverrides,
) -> Described {
    let own = overrides.get(setting.name);
    let own = own.map(|text| normal(Some(setting), text));
    let mut synonyms = Vec::new();
    if let Some(text) = &own {
        synonyms.push(Synonym {
            name: setting.name.to_owned(),
            value: Some(text.clone()),
            source: Source::Topic,
        });
    }
    let names = TOPIC_SYNONYMS
        .iter()
        .find(|(name, _)| *name == setting.name)
        .map_or(&[][..], |(_, names)| *names);
    if let Some((first, _)) = names.first() {
        synonyms.extend(synonyms_of(first, names, layers));
    }
    let inherited = broker_value(merged, setting.name);
    let source = match (&own, &inherited) {
        (Some(_), _) => Source::Topic,
        (None, Some((name, _))) => layers.source(name),
        (None, None) => Source::Default,
    };
    let inherited = inherited.map(|(_, text)| normal(Some(setting), &text));
    let value = own.or(inherited).or_else(|| default_of(setting, names));
    Described {
        name: setting.name.to_owned(),
        setting: Some(setting),
        value: value.filter(|_| !setting.is_sensitive()),
        source,
        read_only: false,
        synonyms,
    }
}

/// A value as Kafka prints it once it has been read.
fn normal(setting: Option<&Setting>, text: &str) -> String {
    let text = text.trim();
    match setting.map(|setting| setting.kind) {
        Some(Kind::Boolean) => match parse_boolean(text) {
            Some(value) => value.to_string(),
            None => text.to_owned(),
        },
        Some(Kind::List) => list(text).collect::<Vec<_>>().join(","),
        Some(Kind::Double) => match text.parse::<f64>() {
            Ok(number) if number.abs() < 1e7 => format!("{number:?}"),
            _ => text.to_owned(),
        },
        _ => text.to_owned(),
    }
}

impl Layers<'_> {
    /// The nearest layer that gives a setting of that very name.
    fn source(&self, name: &str) -> Source {
        if self.own.contains_key(name) {
            Source::Broker
        } else if self.common.contains_key(name) {
            Source::AllBrokers
        } else if self.fixed.contains_key(name) {
            Source::StaticBroker
        } else {
            Source::Default
        }
    }

    fn text(&self, name: &str, source: Source) -> Option<String> {
        match source {
            Source::Topic | Source::ClientMetrics | Source::Group => None,
            Source::Broker => self.own.get(name).cloned(),
            Source::AllBrokers => self.common.get(name).cloned(),
            Source::StaticBroker => self.fixed.get(name).cloned(),
            Source::Default => broker_setting(name)?.default.map(str::to_owned),
        }
    }
}

const BROKER_SOURCES: [Source; 4] = [
    Source::Broker,
    Source::AllBrokers,
    Source::StaticBroker,
    Source::Default,
];

/// Each of `names` with what each layer gives it, layer by layer from the nearest. What stands
/// before the first entry of `first` falls away: where that has no value Kafka lists none, even if
/// another name gives the value in force. The scheduler's interval is a default of flushes only,
/// and never listed (`ConfigHelper.configSynonyms`, `DynamicBrokerConfig.brokerConfigSynonyms`).
fn synonyms_of(first: &str, names: &[(&str, i64)], layers: Layers<'_>) -> Vec<Synonym> {
    let mut synonyms = Vec::new();
    for source in BROKER_SOURCES {
        for (name, _) in names {
            if *name == FLUSH_SCHEDULER && first != FLUSH_SCHEDULER {
                continue;
            }
            if let Some(text) = layers.text(name, source) {
                let is_hidden = is_hidden(name);
                synonyms.push(Synonym {
                    name: (*name).to_owned(),
                    value: Some(text).filter(|_| !is_hidden),
                    source,
                });
            }
        }
    }
    let begins = synonyms.iter().position(|synonym| synonym.name == first);
    synonyms.split_off(begins.unwrap_or(synonyms.len()))
}

/// Whether values of that broker setting are kept secret; those of names that nobody knows are.
fn is_hidden(name: &str) -> bool {
    known_setting(name).is_none_or(Setting::is_sensitive)
}

/// The row of a broker's setting, also of one of a listener.
fn known_setting(name: &str) -> Option<&'static Setting> {
    broker_setting(name).or_else(|| broker_setting(of_listener(name)?))
}

/// The topic setting's default, which is the broker's of the same meaning.
fn default_of(setting: &Setting, names: &[(&str, i64)]) -> Option<String> {
    let broker_default = names.iter().find_map(|(name, factor)| {
        let default = broker_setting(name)?.default?;
        Some(scaled(default, *factor))
    });
    setting.default.map(str::to_owned).or(broker_default)
}

/// All settings of the broker, in the order of their names.
#[must_use]
pub fn broker(layers: Layers<'_>) -> Vec<Described> {
    let merged = layers.merged();
    let is_given = |name: &str| layers.source(name) != Source::Default;
    let known = broker_settings()
        .filter(|setting| !setting.internal || is_given(setting.name))
        .map(|setting| setting.name.to_owned());
    let foreign = layers.own.keys().chain(layers.common.keys());
    let foreign = foreign.filter(|name| broker_setting(name).is_none());
    let mut names: Vec<String> = known.chain(foreign.cloned()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .map(|name| describe_broker(name, layers, &merged))
        .collect()
}

/// What all brokers were given at run time, in the order of the names.
#[must_use]
pub fn all_brokers(layers: Layers<'_>) -> Vec<Described> {
    let describe = |name: &String| {
        let mut described = describe_broker(name.clone(), layers, layers.fixed);
        let text = layers.common.get(name);
        let is_hidden = described.is_sensitive();
        described.value = text.cloned().filter(|_| !is_hidden);
        described
            .synonyms
            .retain(|synonym| synonym.source == Source::AllBrokers);
        described.source = Source::AllBrokers;
        described
    };
    layers.common.keys().map(describe).collect()
}

fn describe_broker(name: String, layers: Layers<'_>, merged: &BrokerTexts) -> Described {
    let exact = broker_setting(&name);
    let setting = known_setting(&name);
    let group = TOPIC_SYNONYMS.iter().map(|(_, names)| *names);
    let group = group
        .into_iter()
        .find(|names| names.first().is_some_and(|(first, _)| *first == name));
    let alone = [(name.as_str(), 1)];
    let of_listener = of_listener(&name).map(|base| [(name.as_str(), 1), (base, 1)]);
    let names: &[(&str, i64)] = match (group, &of_listener) {
        (Some(names), _) => names,
        (None, Some(names)) => names,
        (None, None) => &alone,
    };
    let synonyms = synonyms_of(&name, names, layers);
    let value = match exact {
        Some(setting) => {
            let text = merged.get(setting.name).map(String::as_str);
            text.or(setting.default).map(str::to_owned)
        }
        None => synonyms.first().and_then(|synonym| synonym.value.clone()),
    };
    let is_hidden = setting.is_none_or(Setting::is_sensitive);
    Described {
        setting,
        value: value
            .map(|text| normal(setting, &text))
            .filter(|_| !is_hidden),
        source: synonyms
            .first()
            .map_or(Source::Default, |synonym| synonym.source),
        read_only: exact.is_none_or(|row| row.update_mode == UpdateMode::ReadOnly),
        synonyms,
        name,
    }
}

/// All settings of a group, in the order of their names.
#[must_use]
pub fn group(layers: Layers<'_>, configs: &ConfigMap) -> Vec<Described> {
    let merged = layers.merged();
    let describe = |setting: &'static Setting| {
        let value = groups::value(setting.name, configs, &merged);
        let value = normal(Some(setting), &value);
        let inherited = match groups::broker_synonym(setting.name) {
            Some(broker) => synonyms_of(broker.name, &[(broker.name, 1)], layers),
            None => setting
                .default
                .map(|default| synonym(setting, default, Source::Default))
                .into_iter()
                .collect(),
        };
        let own = configs.contains_key(setting.name);
        let own = own.then(|| synonym(setting, &value, Source::Group));
        let synonyms: Vec<Synonym> = own.into_iter().chain(inherited).collect();
        described_own(setting, value, synonyms)
    };
    group_settings().iter().map(describe).collect()
}

/// All settings of a subscription to client metrics, in the order of their names.
#[must_use]
pub fn client_metrics(configs: &ConfigMap) -> Vec<Described> {
    let describe = |setting: &'static Setting| {
        let given = configs.get(setting.name).map(String::as_str);
        let value = given.or(setting.default).unwrap_or_default();
        let value = normal(Some(setting), value);
        let own = given.map(|_| synonym(setting, &value, Source::ClientMetrics));
        described_own(setting, value, own.into_iter().collect())
    };
    client_metrics_settings().iter().map(describe).collect()
}

fn synonym(setting: &Setting, value: &str, source: Source) -> Synonym {
    Synonym {
        name: setting.name.to_owned(),
        value: Some(value.to_owned()),
        source,
    }
}

fn described_own(setting: &'static Setting, value: String, synonyms: Vec<Synonym>) -> Described {
    Described {
        name: setting.name.to_owned(),
        setting: Some(setting),
        value: Some(value),
        source: synonyms
            .first()
            .map_or(Source::Default, |synonym| synonym.source),
        read_only: false,
        synonyms,
    }
}
