//! Log levels by logger, changed while the process runs (KIP-412).
//!
//! Loggers are the parts of this program, named with dots as Kafka's are: `coreline.log` is
//! the module `coreline::log` and what stands in it, `root` is everything. A logger without a level
//! of its own has that of the nearest one above it. A change holds from the next log line on; what
//! is not written costs what it cost before, since each place keeps whether it is.
//!
//! The levels are the process's, as the log is.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, callsite};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Filter};

/// A logger's name and the module that it stands for; those further down stand after those above.
const LOGGERS: [(&str, &str); 22] = [
    (ROOT, ""),
    ("coreline", "coreline"),
    ("coreline.base", "coreline::base"),
    ("coreline.cluster", "coreline::cluster"),
    (
        "coreline.cluster.controller",
        "coreline::cluster::controller",
    ),
    (
        "coreline.cluster.metadata_log",
        "coreline::cluster::metadata_log",
    ),
    ("coreline.coordinator", "coreline::coordinator"),
    ("coreline.io", "coreline::io"),
    ("coreline.log", "coreline::log"),
    ("coreline.log.journal", "coreline::log::journal"),
    ("coreline.log.recovery", "coreline::log::recovery"),
    ("coreline.log.segment", "coreline::log::segment"),
    ("coreline.metrics", "coreline::metrics"),
    ("coreline.partition", "coreline::partition"),
    ("coreline.server", "coreline::server"),
    ("coreline.server.admin", "coreline::server::admin"),
    ("coreline.server.api", "coreline::server::api"),
    ("coreline.server.connection", "coreline::server::connection"),
    ("coreline.server.serve", "coreline::server::serve"),
    ("coreline.server.startup", "coreline::server::startup"),
    ("coreline.shard", "coreline::shard"),
    ("coreline.wire", "coreline::wire"),
];

/// The logger above all others.
pub const ROOT: &str = "root";

/// No level of its own.
const INHERITED: u8 = u8::MAX;

static LEVELS: [AtomicU8; LOGGERS.len()] = [const { AtomicU8::new(INHERITED) }; LOGGERS.len()];

/// What `RUST_LOG` says of other programs' parts.
static FOREIGN: OnceLock<Targets> = OnceLock::new();

/// Kafka's levels (`LogLevelConfig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is that bad here: nothing is written.
    Fatal,
    /// Errors.
    Error,
    /// And warnings.
    Warn,
    /// And what an operator should know.
    Info,
    /// And what helps to find faults.
    Debug,
    /// Everything.
    Trace,
}

const ALL: [Level; 6] = [
    Level::Fatal,
    Level::Error,
    Level::Warn,
    Level::Info,
    Level::Debug,
    Level::Trace,
];

impl Level {
    /// Kafka's word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fatal => "FATAL",
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }

    /// The level of that word, in capitals.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        ALL.into_iter().find(|level| level.name() == word)
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::Fatal => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }

    fn of_filter(filter: LevelFilter) -> Self {
        let found = ALL.into_iter().find(|level| level.filter() == filter);
        found.unwrap_or(Self::Info)
    }
}

/// Every logger with the level in force, by name from the top.
pub fn loggers() -> impl Iterator<Item = (&'static str, Level)> {
    LOGGERS
        .iter()
        .map(|(name, module)| (*name, in_force(module)))
}

/// Whether there is a logger of that name.
#[must_use]
pub fn exists(name: &str) -> bool {
    LOGGERS.iter().any(|(known, _)| *known == name)
}

/// Gives a logger a level, or takes its own away. Nothing happens for a name that is not known.
pub fn set(name: &str, level: Option<Level>) {
    let place = LOGGERS.iter().position(|(known, _)| *known == name);
    if let Some(own) = place.and_then(|place| LEVELS.get(place)) {
        let stored = level.map_or(INHERITED, |level| level as u8);
        own.store(stored, Ordering::Relaxed);
        callsite::rebuild_interest_cache();
    }
}

/// The levels of `RUST_LOG`'s form, such as `info,coreline::log=debug`. False when it is not one.
pub fn set_all(text: &str) -> bool {
    if text.trim().is_empty() {
        return true;
    }
    let Ok(targets) = text.parse::<Targets>() else {
        return false;
    };
    if let Some(filter) = targets.default_level() {
        set(ROOT, Some(Level::of_filter(filter)));
    }
    let mut foreign = Targets::new();
    for (target, filter) in &targets {
        match LOGGERS.iter().find(|(_, module)| *module == target) {
            Some((name, _)) => set(name, Some(Level::of_filter(filter))),
            None => foreign = foreign.with_target(target, filter),
        }
    }
    // The first says it; the process has one environment.
    let _ = FOREIGN.set(foreign);
    callsite::rebuild_interest_cache();
    true
}

/// The level of the nearest logger that has one of its own.
fn in_force(target: &str) -> Level {
    let own = LOGGERS
        .iter()
        .zip(&LEVELS)
        .rev()
        .find_map(|((_, module), level)| {
            let stored = level.load(Ordering::Relaxed);
            let level = ALL.get(usize::from(stored))?;
            holds(module, target).then_some(*level)
        });
    own.unwrap_or(Level::Info)
}

/// Whether `target` is that module or stands in it.
fn holds(module: &str, target: &str) -> bool {
    match target.strip_prefix(module) {
        Some(rest) => module.is_empty() || rest.is_empty() || rest.starts_with("::"),
        None => false,
    }
}

/// What the process's log is filtered by.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLevels;

impl LogLevels {
    fn admits(metadata: &Metadata<'_>) -> bool {
        let foreign = FOREIGN
            .get()
            .filter(|_| !holds("coreline", metadata.target()));
        if let Some(targets) = foreign
            && targets
                .iter()
                .any(|(target, _)| holds(target, metadata.target()))
        {
            return targets.would_enable(metadata.target(), metadata.level());
        }
        *metadata.level() <= in_force(metadata.target()).filter()
    }
}

impl<S> Filter<S> for LogLevels {
    fn enabled(&self, metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        Self::admits(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if Self::admits(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since the levels are the process's.
    #[test]
    fn the_nearest_logger_with_a_level_decides() {
        assert_eq!(in_force("coreline::log::journal::writer"), Level::Info);
        set("coreline.log", Some(Level::Debug));
        set("coreline.log.journal", Some(Level::Error));
        assert_eq!(in_force("coreline::log::journal::writer"), Level::Error);
        assert_eq!(in_force("coreline::log::roll"), Level::Debug);
        assert_eq!(in_force("coreline::log_limit"), Level::Info);
        set("coreline.log.journal", None);
        assert_eq!(in_force("coreline::log::journal::writer"), Level::Debug);
        set(ROOT, Some(Level::Warn));
        assert_eq!(in_force("hyper::client"), Level::Warn);
        assert!(set_all("error,coreline::wire=trace,hyper=off"));
        assert_eq!(in_force("coreline::wire::frame"), Level::Trace);
        assert_eq!(in_force("coreline::shard"), Level::Error);
        let levels: Vec<_> = loggers().collect();
        assert_eq!(levels.first(), Some(&(ROOT, Level::Error)));
        assert!(levels.contains(&("coreline.wire", Level::Trace)));
        assert!(!set_all("coreline=loud") && exists("coreline.io") && !exists("nope"));
        for name in ["coreline.log", "coreline.wire", ROOT] {
            set(name, None);
        }
    }

    #[test]
    fn loggers_stand_below_those_above_them_and_are_modules() {
        for (place, (name, module)) in LOGGERS.iter().enumerate().skip(1) {
            assert_eq!(name.replace('.', "::"), *module);
            let later = LOGGERS.iter().skip(place + 1);
            assert!(
                later.clone().all(|(_, other)| !holds(other, module)),
                "{name}"
            );
        }
    }
}
