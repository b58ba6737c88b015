//! What only a broker of shards has.

use super::super::observer::{Observer, ShardView};
use super::text::Text;
use crate::metrics::Counter;

/// Writes them.
pub fn render(text: &mut Text, observer: &Observer) {
    gauges(text, observer);
    counters(text, observer);
    let uptime = observer.started.elapsed().as_secs_f64();
    text.gauge("coreline_uptime_seconds", "Time since the start")
        .value(&[], uptime);
}

type Value<T> = fn(&ShardView) -> T;

fn gauges(text: &mut Text, observer: &Observer) {
    let families: [(&'static str, &str, Value<f64>); 12] = [
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
        (
            "coreline_journal_used_bytes",
            "Journal bytes that wait for write-back",
            |shard| shard.gauges.journal.used as f64,
        ),
        (
            "coreline_journal_size_bytes",
            "The journal's ring",
            |shard| shard.gauges.journal.max as f64,
        ),
        ("coreline_cache_used_bytes", "Tail caches", |shard| {
            shard.gauges.cache.used as f64
        }),
        (
            "coreline_cache_size_bytes",
            "What tail caches may take",
            |shard| shard.gauges.cache.max as f64,
        ),
        (
            "coreline_requests_used_bytes",
            "Memory of requests and answers in flight",
            |shard| shard.gauges.requests.used as f64,
        ),
        (
            "coreline_requests_size_bytes",
            "What requests and answers in flight may take together",
            |shard| shard.gauges.requests.max as f64,
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

fn counters(text: &mut Text, observer: &Observer) {
    let families = [
        (
            Counter::Hops,
            "coreline_hops_total",
            "Messages to other shards",
        ),
        (
            Counter::JournalWrites,
            "coreline_journal_writes_total",
            "Journal cycles written",
        ),
        (
            Counter::JournalBytes,
            "coreline_journal_written_bytes_total",
            "Bytes of journal cycles; over the writes, the mean size of a cycle",
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
    for (counter, name, help) in families {
        let mut family = text.counter(name, help);
        observer.shards(|shards| {
            for (number, shard) in shards.iter().enumerate() {
                let value = shard.counter(counter) as f64;
                family.value(&[("shard", &number.to_string())], value);
            }
        });
    }
}
