//! The values that hold for one topic: its own settings, else the broker's of the same meaning,
//! else the defaults (`LogConfig`, `ServerTopicConfigSynonyms`).

use std::collections::BTreeMap;

use super::setting::{ValueFault, list, parse_boolean};
use super::table::topic_setting;
use super::topic_checks;
use crate::base::time::TimestampType;

/// Settings that a topic was given, by name; validated before they are kept.
pub type TopicOverrides = BTreeMap<String, String>;

/// Broker settings that were given, by name.
pub type BrokerTexts = BTreeMap<&'static str, String>;

/// Broker settings that stand in for a topic's, the first that is set; each with the factor that
/// brings its value into the topic setting's unit.
pub const TOPIC_SYNONYMS: &[(&str, &[(&str, i64)])] = &[
    ("cleanup.policy", &[("log.cleanup.policy", 1)]),
    ("compression.gzip.level", &[("compression.gzip.level", 1)]),
    ("compression.lz4.level", &[("compression.lz4.level", 1)]),
    ("compression.type", &[("compression.type", 1)]),
    ("compression.zstd.level", &[("compression.zstd.level", 1)]),
    (
        "delete.retention.ms",
        &[("log.cleaner.delete.retention.ms", 1)],
    ),
    (
        "file.delete.delay.ms",
        &[("log.segment.delete.delay.ms", 1)],
    ),
    ("flush.messages", &[("log.flush.interval.messages", 1)]),
    (
        "flush.ms",
        &[
            ("log.flush.interval.ms", 1),
            ("log.flush.scheduler.interval.ms", 1),
        ],
    ),
    ("index.interval.bytes", &[("log.index.interval.bytes", 1)]),
    ("local.retention.bytes", &[("log.local.retention.bytes", 1)]),
    ("local.retention.ms", &[("log.local.retention.ms", 1)]),
    (
        "max.compaction.lag.ms",
        &[("log.cleaner.max.compaction.lag.ms", 1)],
    ),
    (
        "max.decompressed.message.bytes",
        &[("max.decompressed.message.bytes", 1)],
    ),
    ("max.message.bytes", &[("message.max.bytes", 1)]),
    (
        "message.timestamp.after.max.ms",
        &[("log.message.timestamp.after.max.ms", 1)],
    ),
    (
        "message.timestamp.before.max.ms",
        &[("log.message.timestamp.before.max.ms", 1)],
    ),
    (
        "message.timestamp.type",
        &[("log.message.timestamp.type", 1)],
    ),
    (
        "min.cleanable.dirty.ratio",
        &[("log.cleaner.min.cleanable.ratio", 1)],
    ),
    (
        "min.compaction.lag.ms",
        &[("log.cleaner.min.compaction.lag.ms", 1)],
    ),
    ("min.insync.replicas", &[("min.insync.replicas", 1)]),
    ("preallocate", &[("log.preallocate", 1)]),
    ("remote.copy.lag.bytes", &[("log.remote.copy.lag.bytes", 1)]),
    ("remote.copy.lag.ms", &[("log.remote.copy.lag.ms", 1)]),
    ("retention.bytes", &[("log.retention.bytes", 1)]),
    (
        "retention.ms",
        &[
            ("log.retention.ms", 1),
            ("log.retention.minutes", 60_000),
            ("log.retention.hours", 3_600_000),
        ],
    ),
    ("segment.bytes", &[("log.segment.bytes", 1)]),
    ("segment.index.bytes", &[("log.index.size.max.bytes", 1)]),
    (
        "segment.jitter.ms",
        &[
            ("log.roll.jitter.ms", 1),
            ("log.roll.jitter.hours", 3_600_000),
        ],
    ),
    (
        "segment.ms",
        &[("log.roll.ms", 1), ("log.roll.hours", 3_600_000)],
    ),
    (
        "unclean.leader.election.enable",
        &[("unclean.leader.election.enable", 1)],
    ),
    ("write.caching", &[("coreline.write.caching", 1)]),
];

/// In which codec a topic's batches are stored (`BrokerCompressionType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionType {
    /// As they came.
    #[default]
    Producer,
    /// None.
    Uncompressed,
    /// gzip
    Gzip,
    /// snappy
    Snappy,
    /// lz4
    Lz4,
    /// zstd
    Zstd,
}

/// The values in force for one topic. Times are milliseconds, sizes bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicSettings {
    /// Whether `cleanup.policy` holds `delete`.
    pub cleanup_delete: bool,
    /// Whether `cleanup.policy` holds `compact`: then records need keys.
    pub cleanup_compact: bool,
    /// `compression.type`
    pub compression_type: CompressionType,
    /// `compression.gzip.level`; -1 leaves it to the library.
    pub compression_gzip_level: i32,
    /// `compression.lz4.level`
    pub compression_lz4_level: i32,
    /// `compression.zstd.level`
    pub compression_zstd_level: i32,
    /// `delete.retention.ms`
    pub delete_retention_ms: i64,
    /// `file.delete.delay.ms`
    pub file_delete_delay_ms: i64,
    /// `flush.messages`; `i64::MAX` for never.
    pub flush_messages: i64,
    /// `flush.ms`; `i64::MAX` for never.
    pub flush_ms: i64,
    /// `index.interval.bytes`
    pub index_interval_bytes: i32,
    /// `max.compaction.lag.ms`
    pub max_compaction_lag_ms: i64,
    /// `max.decompressed.message.bytes`
    pub max_decompressed_message_bytes: i32,
    /// `max.message.bytes`: of one batch, compressed as it is.
    pub max_message_bytes: i32,
    /// `message.timestamp.after.max.ms`
    pub message_timestamp_after_max_ms: i64,
    /// `message.timestamp.before.max.ms`
    pub message_timestamp_before_max_ms: i64,
    /// `message.timestamp.type`
    pub message_timestamp_type: TimestampType,
    /// `min.cleanable.dirty.ratio`
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`
    pub min_compaction_lag_ms: i64,
    /// `min.insync.replicas`
    pub min_insync_replicas: i32,
    /// `retention.bytes`; -1 for no limit.
    pub retention_bytes: i64,
    /// `retention.ms`; -1 for ever.
    pub retention_ms: i64,
    /// `segment.bytes`, or `internal.segment.bytes` where that is set.
    pub segment_bytes: i32,
    /// `segment.index.bytes`
    pub segment_index_bytes: i32,
    /// `segment.jitter.ms`
    pub segment_jitter_ms: i64,
    /// `segment.ms`
    pub segment_ms: i64,
    /// `unclean.leader.election.enable`
    pub unclean_leader_election: bool,
    /// `write.caching`: the write is waited for, not the flush.
    pub write_caching: bool,
}

impl Default for TopicSettings {
    /// Kafka's defaults.
    fn default() -> Self {
        Self::build(&BrokerTexts::new(), &TopicOverrides::new())
    }
}

impl TopicSettings {
    /// The values of a topic with these settings of its own; the first fault in them otherwise.
    /// The broker's texts were checked when they were read.
    pub fn derive(broker: &BrokerTexts, topic: &TopicOverrides) -> Result<Self, ValueFault> {
        for (name, text) in topic {
            let setting = topic_setting(name).ok_or_else(|| ValueFault {
                name: name.clone(),
                value: None,
                reason: format!("Unknown topic config name: {name}"),
            })?;
            setting.check(text)?;
        }
        let settings = Self::build(broker, topic);
        topic_checks::check(&settings, topic)?;
        Ok(settings)
    }

    fn build(broker: &BrokerTexts, topic: &TopicOverrides) -> Self {
        let values = Values { broker, topic };
        let policy = values.text("cleanup.policy");
        let is_log_append_time = values.text("message.timestamp.type") == "LogAppendTime";
        Self {
            cleanup_delete: list(&policy).any(|word| word == "delete"),
            cleanup_compact: list(&policy).any(|word| word == "compact"),
            compression_type: compression_type(&values.text("compression.type")),
            compression_gzip_level: values.int("compression.gzip.level"),
            compression_lz4_level: values.int("compression.lz4.level"),
            compression_zstd_level: values.int("compression.zstd.level"),
            delete_retention_ms: values.long("delete.retention.ms"),
            file_delete_delay_ms: values.long("file.delete.delay.ms"),
            flush_messages: values.long("flush.messages"),
            flush_ms: values.long("flush.ms"),
            index_interval_bytes: values.int("index.interval.bytes"),
            max_compaction_lag_ms: values.long("max.compaction.lag.ms"),
            max_decompressed_message_bytes: values.int("max.decompressed.message.bytes"),
            max_message_bytes: values.int("max.message.bytes"),
            message_timestamp_after_max_ms: values.long("message.timestamp.after.max.ms"),
            message_timestamp_before_max_ms: values.long("message.timestamp.before.max.ms"),
            message_timestamp_type: if is_log_append_time {
                TimestampType::LogAppendTime
            } else {
                TimestampType::CreateTime
            },
            min_cleanable_dirty_ratio: values
                .text("min.cleanable.dirty.ratio")
                .parse()
                .unwrap_or_default(),
            min_compaction_lag_ms: values.long("min.compaction.lag.ms"),
            min_insync_replicas: values.int("min.insync.replicas"),
            retention_bytes: values.long("retention.bytes"),
            retention_ms: values.long("retention.ms").max(-1),
            segment_bytes: match values.int("internal.segment.bytes") {
                0 => values.int("segment.bytes"),
                internal => internal,
            },
            segment_index_bytes: values.int("segment.index.bytes"),
            segment_jitter_ms: values.long("segment.jitter.ms"),
            segment_ms: values.long("segment.ms"),
            unclean_leader_election: values.boolean("unclean.leader.election.enable"),
            write_caching: values.boolean("write.caching"),
        }
    }
}

fn compression_type(text: &str) -> CompressionType {
    match text {
        "uncompressed" => CompressionType::Uncompressed,
        "gzip" => CompressionType::Gzip,
        "snappy" => CompressionType::Snappy,
        "lz4" => CompressionType::Lz4,
        "zstd" => CompressionType::Zstd,
        _ => CompressionType::Producer,
    }
}

/// The broker setting that stands in for a topic setting of that name, with its value in the topic
/// setting's unit; `None` when none of its names was set.
#[must_use]
pub fn broker_value(broker: &BrokerTexts, topic_name: &str) -> Option<(&'static str, String)> {
    let (_, synonyms) = TOPIC_SYNONYMS
        .iter()
        .find(|(name, _)| *name == topic_name)?;
    synonyms.iter().find_map(|(name, factor)| {
        let text = broker.get(name)?.trim();
        Some((*name, scaled(text, *factor)))
    })
}

/// A number times its factor; any other text as it is.
#[must_use]
pub fn scaled(text: &str, factor: i64) -> String {
    match text.parse::<i64>() {
        Ok(number) if factor != 1 => number.saturating_mul(factor).to_string(),
        _ => text.to_owned(),
    }
}

struct Values<'a> {
    broker: &'a BrokerTexts,
    topic: &'a TopicOverrides,
}

impl Values<'_> {
    fn text(&self, name: &str) -> String {
        if let Some(text) = self.topic.get(name) {
            return text.trim().to_owned();
        }
        if let Some((_, text)) = broker_value(self.broker, name) {
            return text;
        }
        let default = topic_setting(name).and_then(|setting| setting.default);
        default.unwrap_or_default().to_owned()
    }

    /// 0 for what is not set; values were checked before.
    fn long(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or_default()
    }

    fn int(&self, name: &str) -> i32 {
        self.text(name).parse().unwrap_or_default()
    }

    fn boolean(&self, name: &str) -> bool {
        parse_boolean(&self.text(name)).unwrap_or_default()
    }
}
