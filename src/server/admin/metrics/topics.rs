//! What topics and partitions tell, under Kafka's names: one series without a topic and one for
//! each, since dashboards ask for both.

use std::collections::BTreeMap;

use super::super::observer::{Observer, ShardView};
use super::super::report::PartitionReport;
use super::text::{Text, fitting};
use crate::metrics::Counter;
use crate::partition::{PartitionCounts, PartitionState};

/// Writes them.
pub fn render(text: &mut Text, observer: &Observer) {
    observer.shards(|shards| {
        let mut all: Vec<&PartitionReport> = shards
            .iter()
            .flat_map(|shard| &shard.partitions.0)
            .collect();
        all.sort_by(|left, right| {
            (&left.topic, left.partition).cmp(&(&right.topic, right.partition))
        });
        totals(text, &all, &Whole::of(shards));
        topics(text, &all, |counter| {
            shards.iter().map(|shard| shard.counter(counter)).sum()
        });
        partitions(text, &all);
    });
}

/// What shards tell without going through their partitions.
struct Whole {
    topics: usize,
    hosted: usize,
    /// Partitions that nobody can write or read.
    offline: usize,
}

impl Whole {
    fn of(shards: &[ShardView]) -> Self {
        // Every shard knows the whole broker's.
        let most = |read: fn(&ShardView) -> usize| shards.iter().map(read).max().unwrap_or(0);
        let unserved = most(|shard| shard.gauges.unopened);
        let hosted: usize = shards.iter().map(|shard| shard.gauges.partitions).sum();
        let stopped: usize = shards.iter().map(|shard| shard.gauges.stopped).sum();
        // Shards keep what they hosted in a directory that failed, and soon know it as not served.
        let offline = unserved.max(stopped);
        Self {
            topics: most(|shard| shard.gauges.topics),
            hosted: hosted - stopped + offline,
            offline,
        }
    }
}

fn totals(text: &mut Text, all: &[&PartitionReport], whole: &Whole) {
    let count = |is_so: &dyn Fn(&PartitionState) -> bool| {
        all.iter().filter(|report| is_so(&report.state)).count() as f64
    };
    let under = |state: &PartitionState| state.in_sync < state.replicas;
    for (name, help, value) in [
        (
            "kafka_server_replicamanager_partitioncount",
            "Partitions hosted, those whose log is offline included",
            whole.hosted as f64,
        ),
        (
            "kafka_server_replicamanager_leadercount",
            "Partitions led",
            count(&|state| state.is_leader && !state.is_offline),
        ),
        (
            "kafka_server_replicamanager_underreplicatedpartitions",
            "Partitions with replicas that are not in sync",
            count(&under),
        ),
        (
            "kafka_server_replicamanager_underminisrpartitioncount",
            "Partitions with fewer replicas in sync than min.insync.replicas",
            count(&|state| state.in_sync < state.min_in_sync),
        ),
        (
            "kafka_server_replicamanager_atminisrpartitioncount",
            "Partitions with just min.insync.replicas in sync",
            count(&|state| state.in_sync == state.min_in_sync),
        ),
        (
            "kafka_server_replicamanager_offlinereplicacount",
            "Partitions whose log does not open, or whose directory is offline",
            whole.offline as f64,
        ),
        (
            "kafka_controller_kafkacontroller_globaltopiccount",
            "Topics",
            whole.topics as f64,
        ),
        (
            "kafka_controller_kafkacontroller_globalpartitioncount",
            "Partitions",
            whole.hosted as f64,
        ),
        (
            "kafka_controller_kafkacontroller_offlinepartitionscount",
            "Partitions that nobody can write or read: no leader, or their only log is offline",
            count(&|state| !state.is_leader && !state.is_offline) + whole.offline as f64,
        ),
        (
            "coreline_partitions_damaged",
            "Partitions with records that can no longer be read",
            count(&|state| state.is_damaged),
        ),
    ] {
        text.gauge(name, help).value(&[], value);
    }
}

type Pick = fn(&PartitionCounts) -> u64;

fn topics(text: &mut Text, all: &[&PartitionReport], counter: impl Fn(Counter) -> u64) {
    let mut sums: BTreeMap<&str, PartitionCounts> = BTreeMap::new();
    let mut hosted = PartitionCounts::default();
    for report in all {
        for sum in [&mut hosted, sums.entry(report.topic.as_str()).or_default()] {
            add(sum, &report.state.counts);
        }
    }
    let families: [(&'static str, &str, Pick, Option<Counter>); 8] = [
        (
            "kafka_server_brokertopicmetrics_messagesin_total",
            "Records appended",
            |counts| counts.records_in,
            Some(Counter::RecordsAppended),
        ),
        (
            "kafka_server_brokertopicmetrics_bytesin_total",
            "Bytes of records appended",
            |counts| counts.bytes_in,
            Some(Counter::BytesAppended),
        ),
        (
            "kafka_server_brokertopicmetrics_bytesout_total",
            "Bytes of records read",
            |counts| counts.bytes_out,
            Some(Counter::BytesFetched),
        ),
        (
            "kafka_server_brokertopicmetrics_bytesrejected_total",
            "Bytes of refused batches",
            |counts| counts.bytes_refused,
            Some(Counter::BytesRefused),
        ),
        (
            "kafka_server_brokertopicmetrics_totalproducerequests_total",
            "Appends to a partition",
            |counts| counts.appends,
            None,
        ),
        (
            "kafka_server_brokertopicmetrics_failedproducerequests_total",
            "Appends to a partition that were refused",
            |counts| counts.appends_failed,
            Some(Counter::AppendsFailed),
        ),
        (
            "kafka_server_brokertopicmetrics_totalfetchrequests_total",
            "Reads of a partition",
            |counts| counts.reads,
            None,
        ),
        (
            "kafka_server_brokertopicmetrics_failedfetchrequests_total",
            "Reads of a partition that failed",
            |counts| counts.reads_failed,
            Some(Counter::ReadsFailed),
        ),
    ];
    let listed = fitting(
        sums.keys().map(|name| name.len()),
        &families.map(|family| family.0),
    );
    for (name, help, pick, whole) in families {
        let mut family = text.counter(name, help);
        // Deleted topics stay in the broker's own sums.
        let whole = whole.map_or_else(|| pick(&hosted), &counter);
        family.value(&[], whole as f64);
        for (topic, counts) in sums.iter().take(listed) {
            family.value(&[("topic", topic)], pick(counts) as f64);
        }
    }
}

fn add(sum: &mut PartitionCounts, more: &PartitionCounts) {
    sum.appends += more.appends;
    sum.appends_failed += more.appends_failed;
    sum.records_in += more.records_in;
    sum.bytes_in += more.bytes_in;
    sum.bytes_refused += more.bytes_refused;
    sum.reads += more.reads;
    sum.reads_failed += more.reads_failed;
    sum.bytes_out += more.bytes_out;
}

type Value = fn(&PartitionState) -> f64;

fn partitions(text: &mut Text, all: &[&PartitionReport]) {
    let families: [(&'static str, &str, Value); 6] = [
        (
            "kafka_log_log_size",
            "Bytes of a partition's segments",
            |state| state.size_bytes as f64,
        ),
        ("kafka_log_log_logstartoffset", "First offset", |state| {
            state.log_start_offset.0 as f64
        }),
        (
            "kafka_log_log_logendoffset",
            "Exclusive last offset",
            |state| state.log_end_offset.0 as f64,
        ),
        (
            "kafka_cluster_partition_underminisr",
            "1: fewer replicas in sync than min.insync.replicas",
            |state| f64::from(u8::from(state.in_sync < state.min_in_sync)),
        ),
        (
            "kafka_cluster_partition_atminisr",
            "1: just min.insync.replicas in sync",
            |state| f64::from(u8::from(state.in_sync == state.min_in_sync)),
        ),
        (
            "kafka_cluster_partition_replicascount",
            "Replicas",
            |state| state.replicas as f64,
        ),
    ];
    let names = all.iter().map(|report| report.topic.len());
    let listed = fitting(names, &families.map(|family| family.0));
    text.gauge(
        "coreline_metrics_partitions_left_out",
        "Partitions without series of their own: there are too many",
    )
    .value(&[], (all.len() - listed) as f64);
    for (name, help, value) in families {
        let mut family = text.gauge(name, help);
        for report in all.iter().take(listed) {
            let number = report.partition.0.to_string();
            let labels = [
                ("topic", report.topic.as_str()),
                ("partition", number.as_str()),
            ];
            family.value(&labels, value(&report.state));
        }
    }
}
