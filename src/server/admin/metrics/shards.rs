//! What only a broker of shards has.

use super::super::observer::{Observer, ShardView};
use super::super::report::{BUDGETS, Fill};
use super::text::Text;
use crate::metrics::{Counter, SIZE_STEPS};

/// Writes them.
pub fn render(text: &mut Text, observer: &Observer) {
    gauges(text, observer);
    budgets(text, observer);
    counters(text, observer);
    journal_writes(text, observer);
    let uptime = observer.started.elapsed().as_secs_f64();
    text.gauge("coreline_uptime_seconds", "Time since the start")
        .value(&[], uptime);
}

type Value<T> = fn(&ShardView) -> T;

fn gauges(text: &mut Text, observer: &Observer) {
    let families: [(&'static str, &str, Value<f64>); 7] = [
        (
            "coreline_shard_busy_ratio",
            "Part of the last minute in which it did not wait for events",
            |shard| shard.busy_share(),
        ),
        (
            "coreline_shard_silence_seconds",
            "Time since it last told its metrics; it is asked each second",
            |shard| shard.silence().as_secs_f64(),
        ),
        (
            "coreline_shard_inbox_depth",
            "Messages in its inbox",
            |shard| shard.inbox_depth() as f64,
        ),
        (
            "coreline_shard_disk_wait_seconds",
            "How long its journal has waited for the disk's answer to a write",
            |shard| shard.gauges.disk_silence.as_secs_f64(),
        ),
        ("coreline_shard_partitions", "Partitions hosted", |shard| {
            shard.gauges.partitions as f64
        }),
        (
            "coreline_shard_connections",
            "Clients' connections",
            |shard| shard.gauges.connections as f64,
        ),
        (
            "coreline_shard_fetches",
            "Fetches under way, those that wait for records included",
            |shard| shard.gauges.fetches as f64,
        ),
    ];
    for (name, help, value) in families {
        let mut family = text.gauge(name, help);
        observer.shards(|shards| {
            for (number, shard) in shards.iter().enumerate() {
                family.value(&[("shard", &number.to_string())], value(shard));
            }
        });
    }
}

type Amount = fn(&Fill) -> u64;

fn budgets(text: &mut Text, observer: &Observer) {
    let families: [(&'static str, &str, Amount); 2] = [
        (
            "coreline_budget_used_bytes",
            "In use: journal bytes that wait for write-back, tail caches, requests and answers in \
             flight, connections",
            |fill| fill.used,
        ),
        (
            "coreline_budget_size_bytes",
            "What may be in use of each",
            |fill| fill.max,
        ),
    ];
    for (name, help, value) in families {
        let mut family = text.gauge(name, help);
        observer.shards(|shards| {
            for (number, shard) in shards.iter().enumerate() {
                let number = number.to_string();
                for (budget, fill) in BUDGETS.iter().zip(&shard.gauges.budgets) {
                    let labels = [("shard", number.as_str()), ("budget", budget)];
                    family.value(&labels, value(fill) as f64);
                }
            }
        });
    }
}

fn journal_writes(text: &mut Text, observer: &Observer) {
    let mut family = text.histogram(
        "coreline_journal_write_bytes",
        "Sizes of the journal's writes, which are its flushes unless write caching is on",
    );
    observer.shards(|shards| {
        for (number, shard) in shards.iter().enumerate() {
            let number = number.to_string();
            let label = ("shard", number.as_str());
            let told = &shard.gauges.journal_writes;
            let bounds = SIZE_STEPS.iter().map(u64::to_string);
            let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
            let mut sum = 0;
            for (bound, count) in bounds.zip(told.counts) {
                sum += count;
                family.series("_bucket", &[label, ("le", &bound)], sum as f64);
            }
            family.series("_sum", &[label], told.bytes as f64);
            family.series("_count", &[label], sum as f64);
        }
    });
}

/// Counters that a shard has, with their names here and what they count.
const FAMILIES: &[(Counter, &str, &str)] = &[
    (
        Counter::Hops,
        "coreline_hops_total",
        "Messages to other shards",
    ),
    (
        Counter::Flushes,
        "coreline_flushes_total",
        "Writes that went to stable storage before their answers",
    ),
    (
        Counter::SegmentWrites,
        "coreline_segment_writes_total",
        "Writes of segments",
    ),
    (
        Counter::SegmentBytes,
        "coreline_segment_written_bytes_total",
        "Bytes of those",
    ),
    (
        Counter::BytesFetchedFromCache,
        "coreline_cache_hit_bytes_total",
        "Bytes of records read from memory",
    ),
    (
        Counter::BytesFetchedFromDisk,
        "coreline_cache_miss_bytes_total",
        "Bytes of records read from disk",
    ),
    (
        Counter::ConnectionsRefused,
        "coreline_connections_refused_total",
        "Connections closed for what they sent",
    ),
    (
        Counter::RequestsThrottled,
        "coreline_requests_throttled_total",
        "Answers that told a client for how long it is throttled",
    ),
    (
        Counter::ThrottleMs,
        "coreline_throttle_seconds_total",
        "Time that those told in all",
    ),
    (
        Counter::AppendsWithoutRoom,
        "coreline_appends_refused_for_disk_total",
        "Appends refused because the disk has no room",
    ),
    (
        Counter::BytesReceived,
        "coreline_received_bytes_total",
        "Bytes from clients",
    ),
    (
        Counter::BytesSent,
        "coreline_sent_bytes_total",
        "Bytes to clients",
    ),
];

/// How many of a counter make one of its family's unit.
const fn per_unit(counter: Counter) -> f64 {
    match counter {
        Counter::ThrottleMs => 1_000.0,
        _ => 1.0,
    }
}

fn counters(text: &mut Text, observer: &Observer) {
    for (counter, name, help) in FAMILIES {
        let mut family = text.counter(name, help);
        observer.shards(|shards| {
            for (number, shard) in shards.iter().enumerate() {
                let value = shard.counter(*counter) as f64 / per_unit(*counter);
                family.value(&[("shard", &number.to_string())], value);
            }
        });
    }
}
