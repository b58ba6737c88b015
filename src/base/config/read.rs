//! From texts to a checked [`BrokerConfig`]: every fault is reported at once, each with where it
//! stands.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::Path;

use super::broker::BrokerConfig;
use super::dynamic::ConfigMap;
use super::folders::{nested, nested_reason};
use super::listener::{self, ListenerTexts};
use super::listener_limits::{self, OF_LISTENERS};
use super::properties::{self, LineFault};
use super::relations;
use super::setting::{Setting, Status, ValueFault, list};
use super::table::{FORMER_SETTINGS, broker_setting};
use super::topic::{BrokerTexts, TopicSettings};

/// Where settings come from; a later one wins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// The text of `server.properties`, when one is given.
    pub file: Option<&'a str>,
    /// `name=value` pairs of the command line.
    pub overrides: &'a [String],
}

/// Where one setting was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// On that line of the file.
    Line(usize),
    /// In that override of the command line, from 1.
    Override(usize),
    /// Nowhere: it follows from several settings or from a default.
    Combined,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No such setting exists.
    UnknownName(String),
    /// An override is not of the form `name=value`.
    NotAPair(String),
    /// The line is not an entry.
    Line(LineFault),
    /// The value is not valid.
    Value(ValueFault),
    /// Kafka serves this, Coreline does not, and ignoring it would be unsafe.
    NotServed {
        /// The setting's name.
        name: String,
        /// What to do about it.
        advice: String,
    },
}

/// One reason not to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// Where it stands.
    pub origin: Origin,
    /// What is wrong.
    pub kind: FaultKind,
}

/// Why a setting is mentioned in the start-up log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// Nothing here corresponds to it.
    NoMeaning,
    /// It belongs to a part that is not served yet.
    NotYet,
    /// Kafka itself has dropped it.
    Former,
    /// It is for a listener that there is not.
    NoListener,
    /// A controller listener is accepted; one node binds nothing to it.
    ControllerListener,
}

/// Something that an operator should be told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Why.
    pub kind: NoticeKind,
    /// The settings, or for a listener its address.
    pub names: Vec<String>,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(out, "line {line}"),
            Self::Override(number) => write!(out, "override {number}"),
            Self::Combined => write!(out, "settings"),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName(name) => write!(out, "Unknown setting {name}"),
            Self::Line(fault) => fault.fmt(out),
            Self::NotAPair(text) => write!(out, "`{text}` is not of the form name=value"),
            Self::Value(fault) => fault.fmt(out),
            Self::NotServed { name, advice } => write!(out, "{name} is not served: {advice}"),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.join(", ");
        match self.kind {
            NoticeKind::NoMeaning => write!(out, "accepted, without meaning here: {names}"),
            NoticeKind::NotYet => write!(out, "accepted, not in effect yet: {names}"),
            NoticeKind::Former => write!(out, "accepted, no longer Kafka settings: {names}"),
            NoticeKind::NoListener => write!(out, "accepted, for no listener there is: {names}"),
            NoticeKind::ControllerListener => {
                write!(
                    out,
                    "nothing is bound for the controller on one node: {names}"
                )
            }
        }
    }
}

/// Reads and checks all settings.
pub fn read(sources: Sources<'_>) -> Result<(BrokerConfig, Vec<Notice>), Vec<ConfigFault>> {
    let mut reading = Reading::default();
    let parsed = properties::parse(sources.file.unwrap_or_default());
    for (line, fault) in parsed.faults {
        reading.fault(Origin::Line(line), FaultKind::Line(fault));
    }
    for entry in parsed.entries {
        reading.take(Origin::Line(entry.line), &entry.name, &entry.value);
    }
    for (index, text) in sources.overrides.iter().enumerate() {
        let origin = Origin::Override(index + 1);
        match text.split_once('=') {
            Some((name, value)) => reading.take(origin, name.trim(), value),
            None => reading.fault(origin, FaultKind::NotAPair(text.clone())),
        }
    }
    if sources.file.is_none() {
        // Without a file nobody has said that the network may reach this broker.
        let loopback = "PLAINTEXT://127.0.0.1:9092".to_owned();
        reading.texts.entry("listeners").or_insert(loopback);
    }
    reading.finish()
}

#[derive(Default)]
struct Reading {
    texts: BrokerTexts,
    listener_texts: ConfigMap,
    origins: BTreeMap<&'static str, Origin>,
    /// In the order in which they were mentioned, each once.
    mentioned: BTreeMap<NoticeKind, (Vec<String>, HashSet<String>)>,
    faults: Vec<ConfigFault>,
}

impl Reading {
    fn fault(&mut self, origin: Origin, kind: FaultKind) {
        self.faults.push(ConfigFault { origin, kind });
    }

    fn mention(&mut self, kind: NoticeKind, name: &str) {
        let (names, known) = self.mentioned.entry(kind).or_default();
        if known.insert(name.to_owned()) {
            names.push(name.to_owned());
        }
    }

    fn take(&mut self, origin: Origin, name: &str, value: &str) {
        let Some(setting) = broker_setting(name) else {
            return self.take_foreign(origin, name, value);
        };
        if let Err(fault) = setting.check(value) {
            return self.fault(origin, FaultKind::Value(fault));
        }
        match setting.status {
            Status::Effective => {}
            Status::NoMeaning => self.mention(NoticeKind::NoMeaning, name),
            Status::NotYet => self.mention(NoticeKind::NotYet, name),
            Status::Refused => {
                if !is_default(setting, value) {
                    let advice = "remove it or leave it at its default".to_owned();
                    let name = name.to_owned();
                    return self.fault(origin, FaultKind::NotServed { name, advice });
                }
            }
        }
        self.texts.insert(setting.name, value.trim().to_owned());
        self.origins.insert(setting.name, origin);
    }

    /// A listener's own settings, settings of older releases, and names that nobody knows.
    fn take_foreign(&mut self, origin: Origin, name: &str, value: &str) {
        if FORMER_SETTINGS.contains(&name) {
            return self.mention(NoticeKind::Former, name);
        }
        let Some(setting) = listener_setting(name) else {
            return self.fault(origin, FaultKind::UnknownName(name.to_owned()));
        };
        if let Err(fault) = setting.check(value) {
            return self.fault(origin, FaultKind::Value(fault));
        }
        match setting.status {
            Status::Effective if OF_LISTENERS.contains(&setting.name) => {
                let value = value.trim().to_owned();
                self.listener_texts.insert(name.to_owned(), value);
            }
            Status::Effective | Status::NoMeaning => self.mention(NoticeKind::NoMeaning, name),
            Status::NotYet | Status::Refused => self.mention(NoticeKind::NotYet, name),
        }
    }

    fn origin(&self, name: &str) -> Origin {
        self.origins.get(name).copied().unwrap_or(Origin::Combined)
    }

    fn value_fault(&mut self, name: &'static str, reason: impl Into<String>) {
        let value = self.texts.get(name).cloned().unwrap_or_default();
        let fault = ValueFault {
            name: name.to_owned(),
            value: Some(value),
            reason: reason.into(),
        };
        self.fault(self.origin(name), FaultKind::Value(fault));
    }

    fn finish(mut self) -> Result<(BrokerConfig, Vec<Notice>), Vec<ConfigFault>> {
        self.check_folder();
        self.check_nested();
        self.check_relations();
        self.check_cluster();
        let listeners = self.read_listeners();
        if let Err(fault) = TopicSettings::derive(&self.texts, &BTreeMap::new()) {
            self.fault(Origin::Combined, FaultKind::Value(fault));
        }
        if let Some(listeners) = &listeners {
            self.check_listener_texts(listeners);
        }
        self.faults.sort_by_key(|fault| fault.origin);
        let Some(listeners) = listeners.filter(|_| self.faults.is_empty()) else {
            return Err(self.faults);
        };
        let mut config = BrokerConfig::from_texts(self.texts);
        config.listeners = listeners;
        config.listener_limits = listener_limits::read([&self.listener_texts]);
        config.listener_texts = self.listener_texts;
        let notices = self
            .mentioned
            .into_iter()
            .map(|(kind, (names, _))| Notice { kind, names })
            .collect();
        Ok((config, notices))
    }

    /// Kafka says nothing of settings of a listener that it does not have.
    fn check_listener_texts(&mut self, listeners: &listener::Listeners) {
        let names: Vec<String> = self.listener_texts.keys().cloned().collect();
        for name in names {
            let all = listeners.clients.iter().chain(&listeners.controller);
            let of = listener_limits::parts(&name).map(|(listener, _)| listener);
            if !all
                .map(|one| &one.name)
                .any(|known| of.as_ref() == Some(known))
            {
                self.mention(NoticeKind::NoListener, &name);
            }
        }
    }

    fn check_folder(&mut self) {
        for name in ["log.dirs", "log.dir"] {
            let Some(text) = self.texts.get(name) else {
                continue;
            };
            match list(text).count() {
                0 => self.value_fault(name, "Names no folder"),
                count => {
                    let different: BTreeSet<&str> = list(text).collect();
                    let (twice, empty) = (different.len() < count, different.contains(""));
                    if empty {
                        self.value_fault(name, "Names a folder without a name");
                    } else if twice {
                        self.value_fault(name, "Names a folder twice");
                    }
                }
            }
        }
    }

    /// Of those that are in force.
    fn check_nested(&mut self) {
        let given = |name| self.texts.get(name).filter(|text| !text.is_empty());
        let name = match given("log.dirs") {
            Some(_) => "log.dirs",
            None => "log.dir",
        };
        let folders = given(name).map(String::as_str).unwrap_or_default();
        let metadata = given("metadata.log.dir").map(String::as_str);
        let all: Vec<&Path> = list(folders).chain(metadata).map(Path::new).collect();
        if let Some((outer, inner)) = nested(&all) {
            let reason = nested_reason(outer, inner);
            self.value_fault(name, reason);
        }
    }

    fn check_relations(&mut self) {
        for fault in relations::check(&self.texts) {
            self.fault(self.origin(&fault.name), FaultKind::Value(fault));
        }
    }

    /// Settings that speak of several nodes.
    fn check_cluster(&mut self) {
        let advice = "this broker and its controller are one process; a cluster is not served yet";
        for name in [
            "controller.quorum.voters",
            "controller.quorum.bootstrap.servers",
        ] {
            if self
                .texts
                .get(name)
                .is_some_and(|text| list(text).count() > 1)
            {
                let (origin, name) = (self.origin(name), name.to_owned());
                let advice = advice.to_owned();
                self.fault(origin, FaultKind::NotServed { name, advice });
            }
        }
        if let Some(roles) = self.texts.get("process.roles") {
            let has = |role| list(roles).any(|word| word == role);
            let is_combined = has("broker") && has("controller");
            if !roles.is_empty() && !is_combined {
                let (origin, name) = (self.origin("process.roles"), "process.roles".to_owned());
                let advice = format!("{advice}; use broker,controller");
                self.fault(origin, FaultKind::NotServed { name, advice });
            }
        }
    }

    fn read_listeners(&mut self) -> Option<listener::Listeners> {
        let default = |name| broker_setting(name).and_then(|setting| setting.default);
        let given = |name: &str| self.texts.get(name).map(String::as_str);
        let or_default = |name| given(name).or_else(|| default(name)).unwrap_or_default();
        let outcome = listener::read(ListenerTexts {
            listeners: or_default("listeners"),
            advertised: given("advertised.listeners"),
            controller_names: or_default("controller.listener.names"),
            protocols: or_default("listener.security.protocol.map"),
            inter_broker: given("inter.broker.listener.name"),
        });
        match outcome {
            Ok(listeners) => {
                for listener in &listeners.controller {
                    let address =
                        format!("{}://{}:{}", listener.name, listener.host, listener.port);
                    self.mention(NoticeKind::ControllerListener, &address);
                }
                Some(listeners)
            }
            Err((name, reason)) => {
                self.value_fault(name, reason);
                None
            }
        }
    }
}

fn is_default(setting: &Setting, value: &str) -> bool {
    let value = value.trim();
    match setting.default {
        Some(default) => default.eq_ignore_ascii_case(value),
        None => value.is_empty(),
    }
}

/// The setting behind `listener.name.<listener>.[<mechanism>.]<setting>`.
fn listener_setting(name: &str) -> Option<&'static Setting> {
    let rest = name.strip_prefix("listener.name.")?;
    let (_, rest) = rest.split_once('.')?;
    broker_setting(rest).or_else(|| broker_setting(rest.split_once('.')?.1))
}
