//! The broker's typed settings (`KafkaConfig`). Times are milliseconds, sizes bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::admin::AdminAddress;
use super::cores::Cores;
use super::dynamic::ConfigMap;
use super::group_settings::GroupSettings;
use super::listener::Listeners;
use super::listener_limits::ListenerLimits;
use super::metadata_log::MetadataLogSettings;
use super::quota_windows::QuotaWindows;
use super::setting::{list, parse_boolean};
use super::table::broker_setting;
use super::topic::{BrokerTexts, TopicSettings};
use crate::base::ids::BrokerId;
use crate::base::limits::PARTIAL_REQUEST_MAX;

/// How the cleaner works (`CleanerConfig`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanerSettings {
    /// `log.cleaner.enable`
    pub is_enabled: bool,
    /// `log.cleaner.threads`
    pub threads: usize,
    /// `log.cleaner.dedupe.buffer.size`
    pub dedupe_bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`
    pub load_factor: f64,
    /// `log.cleaner.io.buffer.size`
    pub io_buffer_bytes: usize,
    /// `log.cleaner.io.max.bytes.per.second`
    pub io_bytes_per_second: f64,
    /// `log.cleaner.backoff.ms`
    pub backoff_ms: i64,
}

/// What one broker runs with.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerConfig {
    /// Texts of all settings that were given, for descriptions and for topics' values.
    pub texts: BrokerTexts,
    /// `node.id`
    pub node_id: BrokerId,
    /// `broker.rack`
    pub rack: Option<String>,
    /// `log.dirs` or `log.dir`: the data folders, in the order in which they are given.
    pub log_dirs: Vec<PathBuf>,
    /// `metadata.log.dir`, where it is set: see [`Self::metadata_log_dir`].
    pub metadata_log_dir: Option<PathBuf>,
    /// `listeners` and what belongs to them.
    pub listeners: Listeners,
    /// `num.partitions`
    pub num_partitions: i32,
    /// `default.replication.factor`
    pub default_replication_factor: i16,
    /// `auto.create.topics.enable`
    pub auto_create_topics: bool,
    /// `delete.topic.enable`
    pub delete_topics: bool,
    /// `socket.request.max.bytes`
    pub socket_request_bytes_max: usize,
    /// `socket.send.buffer.bytes`; `None` leaves it to the system.
    pub socket_send_buffer_bytes: Option<usize>,
    /// `socket.receive.buffer.bytes`; `None` leaves it to the system.
    pub socket_receive_buffer_bytes: Option<usize>,
    /// `socket.listen.backlog.size`
    pub socket_listen_backlog: i32,
    /// `max.connections`
    pub connections_max: usize,
    /// `max.connection.creation.rate`
    pub connection_creation_rate_max: usize,
    /// `max.connections.per.ip`
    pub connections_per_ip_max: usize,
    /// `max.connections.per.ip.overrides`: address or host, and its limit.
    pub connections_per_ip_overrides: Vec<(String, usize)>,
    /// Settings of single listeners as they were given at the start, by their whole name.
    pub listener_texts: ConfigMap,
    /// What they come to, by the listener's name.
    pub listener_limits: BTreeMap<String, ListenerLimits>,
    /// `connections.max.idle.ms`; negative for ever.
    pub connections_idle_ms_max: i64,
    /// [`PARTIAL_REQUEST_MAX`]; no setting, tests want it shorter.
    pub partial_request_max: Duration,
    /// `fetch.max.bytes`
    pub fetch_bytes_max: usize,
    /// `max.incremental.fetch.session.cache.slots`
    pub fetch_sessions_max: usize,
    /// `max.request.partition.size.limit`
    pub described_partitions_max: usize,
    /// `replica.alter.log.dirs.io.max.bytes.per.second`; `None`: no limit.
    pub move_bytes_per_second: Option<u64>,
    /// `producer.id.expiration.ms`
    pub producer_id_expiration_ms: i64,
    /// `producer.id.expiration.check.interval.ms`
    pub producer_id_expiration_check_ms: i64,
    /// `replica.high.watermark.checkpoint.interval.ms`
    pub high_watermark_checkpoint_ms: i64,
    /// `log.flush.start.offset.checkpoint.interval.ms`
    pub log_start_checkpoint_ms: i64,
    /// `log.flush.offset.checkpoint.interval.ms`
    pub recovery_point_checkpoint_ms: i64,
    /// `log.retention.check.interval.ms`
    pub retention_check_ms: i64,
    /// `log.initial.task.delay.ms`
    pub initial_task_delay_ms: i64,
    /// `quota.window.num` and `quota.window.size.seconds`
    pub quota_windows: QuotaWindows,
    /// `controller.quota.window.num` and `controller.quota.window.size.seconds`
    pub controller_quota_windows: QuotaWindows,
    /// `log.cleaner.…` but what topics may override.
    pub cleaner: CleanerSettings,
    /// `metadata.…`
    pub metadata_log: MetadataLogSettings,
    /// `group.…`, `offset.…` and `offsets.…`
    pub groups: GroupSettings,
    /// Values of a topic without settings of its own.
    pub topic_defaults: TopicSettings,
    /// `coreline.cores`
    pub cores: Cores,
    /// `coreline.memory`
    pub memory_bytes: Option<u64>,
    /// `coreline.cache.bytes`
    pub cache_bytes: Option<u64>,
    /// `coreline.requests.bytes`
    pub requests_bytes: Option<u64>,
    /// `coreline.journal.bytes`
    pub journal_bytes: Option<u64>,
    /// `coreline.disk.reserve.bytes`
    pub disk_reserve_bytes: Option<u64>,
    /// `coreline.disk.low.bytes`
    pub disk_low_bytes: Option<u64>,
    /// `coreline.validate.compressed`
    pub validate_compressed: bool,
    /// `coreline.admin.listener`; `None` opens no admin port.
    pub admin_listener: Option<AdminAddress>,
    /// `coreline.latency.log`
    pub latency_log: Option<PathBuf>,
    /// `coreline.slow.request.ms`
    pub slow_request_ms: u64,
}

impl Default for BrokerConfig {
    /// Every default, without listeners: [`super::read`] fills those.
    fn default() -> Self {
        Self::from_texts(BrokerTexts::new())
    }
}

impl BrokerConfig {
    /// The limits that a listener has for itself.
    #[must_use]
    pub fn listener_limits(&self, listener: &str) -> ListenerLimits {
        let limits = self.listener_limits.get(listener);
        limits.copied().unwrap_or_default()
    }

    /// Where the metadata log is: the first data folder unless another is named.
    #[must_use]
    pub fn metadata_log_dir(&self) -> &Path {
        let first = self.log_dirs.first().map(PathBuf::as_path);
        let named = self.metadata_log_dir.as_deref();
        named.or(first).unwrap_or(Path::new("."))
    }

    /// The same broker with other texts of what may change while it runs.
    pub(super) fn with_texts(&self, texts: BrokerTexts) -> Self {
        let changed = Self::from_texts(texts);
        Self {
            connections_max: changed.connections_max,
            connections_per_ip_max: changed.connections_per_ip_max,
            connections_per_ip_overrides: changed.connections_per_ip_overrides,
            connection_creation_rate_max: changed.connection_creation_rate_max,
            move_bytes_per_second: changed.move_bytes_per_second,
            producer_id_expiration_ms: changed.producer_id_expiration_ms,
            topic_defaults: changed.topic_defaults,
            cleaner: changed.cleaner,
            texts: changed.texts,
            ..self.clone()
        }
    }

    /// The values of checked texts. Listeners stay empty: [`super::read`] fills them.
    pub(super) fn from_texts(texts: BrokerTexts) -> Self {
        let values = Values(&texts);
        let folders = values
            .given("log.dirs")
            .unwrap_or_else(|| values.text("log.dir"));
        let node_id = match values.given("node.id") {
            Some(text) => text.parse().unwrap_or_default(),
            None => match values.long("broker.id") {
                -1 => values.long("node.id") as i32,
                old => old as i32,
            },
        };
        Self {
            node_id: BrokerId(node_id),
            rack: values.given("broker.rack"),
            log_dirs: list(&folders).map(PathBuf::from).collect(),
            metadata_log_dir: values.given("metadata.log.dir").map(PathBuf::from),
            listeners: Listeners::default(),
            num_partitions: values.long("num.partitions") as i32,
            default_replication_factor: values.long("default.replication.factor") as i16,
            auto_create_topics: values.boolean("auto.create.topics.enable"),
            delete_topics: values.boolean("delete.topic.enable"),
            socket_request_bytes_max: values.size("socket.request.max.bytes"),
            socket_send_buffer_bytes: values.optional_size("socket.send.buffer.bytes"),
            socket_receive_buffer_bytes: values.optional_size("socket.receive.buffer.bytes"),
            socket_listen_backlog: values.long("socket.listen.backlog.size") as i32,
            connections_max: values.size("max.connections"),
            connection_creation_rate_max: values.size("max.connection.creation.rate"),
            connections_per_ip_max: values.size("max.connections.per.ip"),
            connections_per_ip_overrides: per_ip(&values.text("max.connections.per.ip.overrides")),
            listener_texts: ConfigMap::new(),
            listener_limits: BTreeMap::new(),
            connections_idle_ms_max: values.long("connections.max.idle.ms"),
            partial_request_max: PARTIAL_REQUEST_MAX,
            fetch_bytes_max: values.size("fetch.max.bytes"),
            fetch_sessions_max: values.size("max.incremental.fetch.session.cache.slots"),
            described_partitions_max: values.size("max.request.partition.size.limit"),
            move_bytes_per_second: values.bytes("replica.alter.log.dirs.io.max.bytes.per.second"),
            producer_id_expiration_ms: values.long("producer.id.expiration.ms"),
            producer_id_expiration_check_ms: values
                .long("producer.id.expiration.check.interval.ms"),
            high_watermark_checkpoint_ms: values
                .long("replica.high.watermark.checkpoint.interval.ms"),
            log_start_checkpoint_ms: values.long("log.flush.start.offset.checkpoint.interval.ms"),
            recovery_point_checkpoint_ms: values.long("log.flush.offset.checkpoint.interval.ms"),
            retention_check_ms: values.long("log.retention.check.interval.ms"),
            initial_task_delay_ms: values.long("log.initial.task.delay.ms"),
            quota_windows: values.windows("quota"),
            controller_quota_windows: values.windows("controller.quota"),
            cleaner: values.cleaner(),
            metadata_log: values.metadata_log(),
            groups: values.groups(),
            topic_defaults: TopicSettings::derive(&texts, &Default::default()).unwrap_or_default(),
            cores: Cores::parse(&values.text("coreline.cores")).unwrap_or_default(),
            memory_bytes: values.bytes("coreline.memory"),
            cache_bytes: values.bytes("coreline.cache.bytes"),
            requests_bytes: values.bytes("coreline.requests.bytes"),
            journal_bytes: values.bytes("coreline.journal.bytes"),
            disk_reserve_bytes: values.bytes("coreline.disk.reserve.bytes"),
            disk_low_bytes: values.bytes("coreline.disk.low.bytes"),
            validate_compressed: values.boolean("coreline.validate.compressed"),
            admin_listener: AdminAddress::parse(&values.text("coreline.admin.listener"))
                .unwrap_or_default(),
            latency_log: values.given("coreline.latency.log").map(PathBuf::from),
            slow_request_ms: u64::try_from(values.long("coreline.slow.request.ms")).unwrap_or(0),
            texts,
        }
    }
}

/// `address:limit` pairs; an address may hold colons itself.
pub(super) fn per_ip(text: &str) -> Vec<(String, usize)> {
    list(text)
        .filter_map(|item| {
            let (address, limit) = item.rsplit_once(':')?;
            Some((address.trim().to_owned(), limit.trim().parse().ok()?))
        })
        .collect()
}

struct Values<'a>(&'a BrokerTexts);

impl Values<'_> {
    fn given(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|text| text.trim().to_owned())
    }

    fn text(&self, name: &str) -> String {
        self.given(name).unwrap_or_else(|| {
            let default = broker_setting(name).and_then(|setting| setting.default);
            default.unwrap_or_default().to_owned()
        })
    }

    /// 0 for what is not set; values were checked before.
    fn long(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or_default()
    }

    fn cleaner(&self) -> CleanerSettings {
        let double = |name| self.text(name).parse().unwrap_or_default();
        CleanerSettings {
            is_enabled: self.boolean("log.cleaner.enable"),
            threads: self.size("log.cleaner.threads"),
            dedupe_bytes: self.size("log.cleaner.dedupe.buffer.size"),
            load_factor: double("log.cleaner.io.buffer.load.factor"),
            io_buffer_bytes: self.size("log.cleaner.io.buffer.size"),
            io_bytes_per_second: double("log.cleaner.io.max.bytes.per.second"),
            backoff_ms: self.long("log.cleaner.backoff.ms"),
        }
    }

    fn size(&self, name: &str) -> usize {
        usize::try_from(self.long(name)).unwrap_or_default()
    }

    fn optional_size(&self, name: &str) -> Option<usize> {
        usize::try_from(self.long(name)).ok()
    }

    fn bytes(&self, name: &str) -> Option<u64> {
        self.given(name)?.parse().ok()
    }

    fn metadata_log(&self) -> MetadataLogSettings {
        let internal = "internal.metadata.log.segment.bytes";
        let segment_bytes = match self.given(internal) {
            Some(_) => self.long(internal),
            None => self.long("metadata.log.segment.bytes"),
        };
        let between = "metadata.log.max.record.bytes.between.snapshots";
        MetadataLogSettings {
            segment_bytes_max: u64::try_from(segment_bytes).unwrap_or(0),
            segment_ms_max: self.long("metadata.log.segment.ms"),
            bytes_between_snapshots_max: u64::try_from(self.long(between)).unwrap_or(0),
            snapshot_interval_ms_max: self.long("metadata.log.max.snapshot.interval.ms"),
            retention_bytes: self.long("metadata.max.retention.bytes"),
            retention_ms: self.long("metadata.max.retention.ms"),
        }
    }

    fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(u64::try_from(self.long(name)).unwrap_or(0))
    }

    fn groups(&self) -> GroupSettings {
        GroupSettings {
            session_timeout_min: self.millis("group.min.session.timeout.ms"),
            session_timeout_max: self.millis("group.max.session.timeout.ms"),
            initial_rebalance_delay: self.millis("group.initial.rebalance.delay.ms"),
            members_max: self.size("group.max.size"),
            offset_metadata_max: self.size("offset.metadata.max.bytes"),
            offsets_retention: self.millis("offsets.retention.minutes") * 60_000,
            retention_check_interval: self.millis("offsets.retention.check.interval.ms"),
            topic_partitions: self.long("offsets.topic.num.partitions") as i32,
            topic_replication_factor: self.long("offsets.topic.replication.factor") as i16,
            topic_segment_bytes: self.long("offsets.topic.segment.bytes"),
            topic_codec: u8::try_from(self.long("offsets.topic.compression.codec")).unwrap_or(0),
        }
    }

    fn windows(&self, of: &str) -> QuotaWindows {
        let long = |end| self.long(&format!("{of}.window.{end}"));
        QuotaWindows::of(long("num"), long("size.seconds"))
    }

    fn boolean(&self, name: &str) -> bool {
        parse_boolean(&self.text(name)).unwrap_or_default()
    }
}
