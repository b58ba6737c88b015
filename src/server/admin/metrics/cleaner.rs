//! The cleaner, under the names that the usual rules give `kafka.log:type=LogCleaner` and
//! `LogCleanerManager`, and what Coreline adds.

use std::collections::BTreeMap;

use super::super::observer::{Observer, ShardView};
use super::text::Text;
use crate::metrics::{CleanerGauges, Counter, Uncleanable};

/// Writes them.
pub fn render(text: &mut Text, observer: &Observer) {
    gauges(text, observer);
    uncleanable(text, observer);
    counters(text, observer);
}

fn gauges(text: &mut Text, observer: &Observer) {
    let most = |value: fn(&CleanerGauges) -> f64| {
        let of_shard = |shard: &ShardView| value(&shard.gauges.cleaner);
        observer.shards(|shards| shards.iter().map(of_shard).fold(0.0, f64::max))
    };
    let recopied = observer.shards(|shards| {
        let bytes = shards.iter().map(|shard| shard.gauges.cleaner.last_bytes);
        let (read, written) = bytes.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        100.0 * written as f64 / read.max(1) as f64
    });
    for (name, help, value) in [
        (
            "kafka_log_logcleanermanager_max_dirty_percent",
            "Dirty bytes of the dirtiest log, in percent of all its cleanable bytes",
            100.0 * most(|cleaner| cleaner.dirtiest_ratio),
        ),
        (
            "kafka_log_logcleaner_cleaner_recopy_percent",
            "Bytes that stayed in the last cleanings, in percent",
            recopied,
        ),
        (
            "kafka_log_logcleaner_max_clean_time_secs",
            "How long the last cleanings took, at most",
            most(|cleaner| cleaner.last_took.as_secs_f64()),
        ),
        (
            "kafka_log_logcleaner_max_buffer_utilization_percent",
            "Memory that the last cleanings needed of what they may take for keys, at most",
            100.0 * most(|cleaner| cleaner.last_table_use),
        ),
        (
            "kafka_log_logcleaner_max_compaction_delay_secs",
            "How long ago max.compaction.lag.ms was passed, at most",
            most(|cleaner| cleaner.delay.as_secs_f64()),
        ),
        (
            "kafka_log_logcleaner_deadthreadcount",
            "Always 0: a failure ends one cleaning, never the cleaner",
            0.0,
        ),
    ] {
        text.gauge(name, help).value(&[], value);
    }
}

type Value = fn(&Uncleanable) -> f64;

fn uncleanable(text: &mut Text, observer: &Observer) {
    let mut all = BTreeMap::<String, Uncleanable>::new();
    observer.shards(|shards| {
        for (directory, more) in shards
            .iter()
            .flat_map(|shard| &shard.gauges.cleaner.uncleanable)
        {
            let sum = all.entry(directory.display().to_string()).or_default();
            sum.logs += more.logs;
            sum.bytes += more.bytes;
        }
    });
    let families: [(&'static str, &str, Value); 2] = [
        (
            "kafka_log_logcleanermanager_uncleanable_partitions_count",
            "Partitions that cannot be cleaned; the broker's log says why",
            |sum| sum.logs as f64,
        ),
        (
            "kafka_log_logcleanermanager_uncleanable_bytes",
            "Bytes of those",
            |sum| sum.bytes as f64,
        ),
    ];
    for (name, help, value) in families {
        let mut family = text.gauge(name, help);
        for (directory, sum) in &all {
            family.value(&[("logDirectory", directory)], value(sum));
        }
    }
}

fn counters(text: &mut Text, observer: &Observer) {
    for (counter, name, help) in [
        (
            Counter::Cleanings,
            "coreline_cleanings_total",
            "Logs cleaned",
        ),
        (
            Counter::CleanerReads,
            "coreline_cleaner_reads_total",
            "Buffers of log.cleaner.io.buffer.size that cleanings read",
        ),
        (
            Counter::CleanedBytesRead,
            "coreline_cleaner_read_bytes_total",
            "Bytes that cleanings went through",
        ),
        (
            Counter::CleanedBytesWritten,
            "coreline_cleaner_written_bytes_total",
            "Bytes of those that stayed",
        ),
        (
            Counter::CleanedRecordsRead,
            "coreline_cleaner_read_records_total",
            "Records that cleanings went through",
        ),
        (
            Counter::CleanedRecordsKept,
            "coreline_cleaner_kept_records_total",
            "Records of those that stayed",
        ),
    ] {
        let mut family = text.counter(name, help);
        observer.shards(|shards| {
            for (number, shard) in shards.iter().enumerate() {
                let count = shard.counters.get(counter as usize).copied().unwrap_or(0);
                family.value(&[("shard", &number.to_string())], count as f64);
            }
        });
    }
}
