//! What the broker as a whole tells, under Kafka's names.

use super::super::Phase;
use super::super::latency::name_of;
use super::super::observer::{Observer, ShardView, Window};
use super::text::Text;
use crate::metrics::Counter;

const QUANTILES: [(f64, &str); 6] = [
    (0.5, "0.50"),
    (0.75, "0.75"),
    (0.95, "0.95"),
    (0.98, "0.98"),
    (0.99, "0.99"),
    (0.999, "0.999"),
];

/// Kafka's name of a request in its metrics; it counts followers' fetches apart.
fn request_name(name: &'static str) -> &'static str {
    match name {
        "Fetch" => "FetchConsumer",
        other => other,
    }
}

/// Writes them.
pub fn render(text: &mut Text, observer: &Observer) {
    state(text, observer);
    sockets(text, observer);
    replication(text);
    metadata(text, observer);
    requests(text, observer);
    process(text);
}

fn state(text: &mut Text, observer: &Observer) {
    let state = match observer.phase() {
        Phase::Starting => 1.0,
        Phase::Serving => 3.0,
        Phase::Stopping => 6.0,
    };
    text.gauge(
        "kafka_server_kafkaserver_brokerstate",
        "1 starting, 3 running, 6 stopping",
    )
    .value(&[], state);
    let count = |shard: &ShardView| shard.gauges.offline.len();
    let offline = observer.shards(|shards| shards.iter().map(count).max().unwrap_or(0));
    text.gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that do not serve",
    )
    .value(&[], offline as f64);
    text.gauge(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1: this broker is its own controller",
    )
    .value(&[], 1.0);
    text.gauge(
        "kafka_controller_kafkacontroller_activebrokercount",
        "Brokers that serve",
    )
    .value(&[], 1.0);
    text.gauge(
        "kafka_controller_kafkacontroller_fencedbrokercount",
        "Brokers that are fenced",
    )
    .value(&[], 0.0);
    let idle = observer.shards(|shards| {
        let busy: f64 = shards.iter().map(|shard| shard.busy_share()).sum();
        1.0 - busy / shards.len().max(1) as f64
    });
    let help = "Part of the last minute in which shards waited for events, 0 to 1";
    for name in [
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidlepercent",
    ] {
        text.gauge(name, help).value(&[], idle);
    }
    let depth: usize =
        observer.shards(|shards| shards.iter().map(|shard| shard.inbox_depth()).sum());
    text.gauge(
        "kafka_network_requestchannel_requestqueuesize",
        "Messages in the shards' inboxes",
    )
    .value(&[], depth as f64);
    let sessions: usize =
        observer.shards(|shards| shards.iter().map(|shard| shard.gauges.fetch_sessions).sum());
    text.gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Fetch sessions",
    )
    .value(&[], sessions as f64);
    let fetches: usize =
        observer.shards(|shards| shards.iter().map(|shard| shard.gauges.fetches).sum());
    text.gauge(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Fetches under way, those that wait for records included",
    )
    .value(&[("delayedOperation", "Fetch")], fetches as f64);
}

/// True zeros, since every partition has one replica: panels about them do not stay empty.
fn replication(text: &mut Text) {
    for (name, help) in [
        (
            "kafka_controller_controllerstats_uncleanleaderelections_total",
            "Leaders elected that were not in sync",
        ),
        (
            "kafka_server_replicamanager_isrshrinks_total",
            "Times that a replica fell out of sync",
        ),
        (
            "kafka_server_replicamanager_isrexpands_total",
            "Times that a replica came back in sync",
        ),
    ] {
        text.counter(name, help).value(&[], 0.0);
    }
}

/// The metadata log, under the rules' name and that of Strimzi's.
fn metadata(text: &mut Text, observer: &Observer) {
    let told = |shards: &[ShardView]| shards.iter().map(|shard| shard.gauges.metadata).max();
    let Some((end, epoch)) = observer.shards(told) else {
        return;
    };
    let leader = f64::from(observer.config.node_id.0);
    let (epoch, end) = (f64::from(epoch.0), end.0 as f64);
    for (names, help, value) in [
        (
            [
                "kafka_server_raft_metrics_current_leader",
                "kafka_server_raftmetrics_current_leader",
            ],
            "The controller",
            leader,
        ),
        (
            [
                "kafka_server_raft_metrics_current_epoch",
                "kafka_server_raftmetrics_current_epoch",
            ],
            "The metadata log's epoch",
            epoch,
        ),
        (
            [
                "kafka_server_raft_metrics_high_watermark",
                "kafka_server_raftmetrics_high_watermark",
            ],
            "Where the committed metadata ends that shards go by",
            end,
        ),
    ] {
        for name in names {
            text.gauge(name, help).value(&[], value);
        }
    }
}

fn sockets(text: &mut Text, observer: &Observer) {
    let clients = &observer.config.listeners.clients;
    let listener = clients
        .first()
        .map_or("", |listener| listener.name.as_str());
    let mut series = |name, help, value: &dyn Fn(&ShardView) -> f64| {
        let mut family = text.gauge(name, help);
        observer.shards(|shards| {
            for (number, shard) in shards.iter().enumerate() {
                let number = number.to_string();
                let labels = [
                    ("listener", listener),
                    ("networkProcessor", number.as_str()),
                ];
                family.value(&labels, value(shard));
            }
        });
    };
    series(
        "kafka_server_socket_server_metrics_connection_count",
        "Connections, all listeners together, by shard",
        &|shard| shard.gauges.connections as f64,
    );
    series(
        "kafka_server_socket_server_metrics_connection_creation_rate",
        "Connections accepted a second, over the last minute",
        &|shard| shard.rate(Counter::ConnectionsOpened),
    );
    series(
        "kafka_server_socket_server_metrics_connection_close_rate",
        "Connections closed a second, over the last minute",
        &|shard| shard.rate(Counter::ConnectionsClosed),
    );
}

fn requests(text: &mut Text, observer: &Observer) {
    let total = observer.recorded(None, Window::Start);
    let minute = observer.recorded(None, Window::Minute);
    let mut family = text.counter(
        "kafka_network_requestmetrics_requests_total",
        "Requests answered",
    );
    for (key, histogram) in total.requests() {
        let name = request_name(name_of(key).unwrap_or("unknown"));
        family.value(&[("request", name)], histogram.len() as f64);
    }
    let mut family = text.summary(
        "kafka_network_requestmetrics_totaltimems",
        "Milliseconds of a request in the last minute, long polls left out; counts since the start",
    );
    for (key, histogram) in total.requests() {
        let name = request_name(name_of(key).unwrap_or("unknown"));
        if let Some(recent) = minute.request(key) {
            for (quantile, label) in QUANTILES {
                let ms = recent.value_at_quantile(quantile) as f64 / 1e6;
                family.value(&[("request", name), ("quantile", label)], ms);
            }
        }
        family.series("_count", &[("request", name)], histogram.len() as f64);
    }
    let mut family = text.summary(
        "coreline_stage_seconds",
        "Time in a stage of requests in the last minute; counts and sums since the start",
    );
    for (stage, histogram) in total.stages() {
        let label = ("stage", stage.name());
        if let Some(recent) = minute.stage(stage) {
            for (quantile, name) in QUANTILES {
                let seconds = recent.value_at_quantile(quantile) as f64 / 1e9;
                family.value(&[label, ("quantile", name)], seconds);
            }
        }
        let seconds = histogram.mean() * histogram.len() as f64 / 1e9;
        family.series("_sum", &[label], seconds);
        family.series("_count", &[label], histogram.len() as f64);
    }
}

/// What `/proc` tells; left out where it cannot be read.
fn process(text: &mut Text) {
    let read = |path| std::fs::read_to_string(path).ok();
    let ticks: Option<u64> = read("/proc/self/stat").and_then(|stat| {
        let after = stat.rsplit_once(')')?.1.to_owned();
        let mut fields = after.split_whitespace().skip(11);
        let user: u64 = fields.next()?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        Some(user + system)
    });
    if let Some(ticks) = ticks {
        // Linux reports in hundredths of a second everywhere (`USER_HZ`).
        text.counter("process_cpu_seconds_total", "CPU time of the process")
            .value(&[], ticks as f64 / 100.0);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        text.gauge("process_open_fds", "Open file descriptors")
            .value(&[], open.count() as f64);
    }
    let pages = read("/proc/self/statm")
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    if let Some(pages) = pages {
        text.gauge("process_resident_memory_bytes", "Resident memory")
            .value(&[], pages as f64 * 4096.0);
    }
    let io = read("/proc/self/io").unwrap_or_default();
    for (field, name) in [
        (
            "read_bytes:",
            "kafka_server_kafkaserver_linux_disk_read_bytes",
        ),
        (
            "write_bytes:",
            "kafka_server_kafkaserver_linux_disk_write_bytes",
        ),
    ] {
        let line = io.lines().find_map(|line| line.strip_prefix(field));
        if let Some(bytes) = line.and_then(|text| text.trim().parse::<u64>().ok()) {
            text.gauge(name, "Bytes between this process and the disks")
                .value(&[], bytes as f64);
        }
    }
}
