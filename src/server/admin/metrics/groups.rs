//! Groups and how far behind they are, under the names that Kafka's beans get, and, so that no
//! exporter is needed beside the broker, under those of kafka_exporter, of kafka-lag-exporter and
//! of Redpanda.
//!
//! Absent: lag in seconds.

use std::collections::HashMap;

use super::super::observer::{Observer, ShardView};
use super::text::{Text, fitting};
use crate::base::ids::{Offset, PartitionIndex};
use crate::coordinator::group::{GroupCounts, GroupReport};
use crate::metrics::DURATION_STEPS_MS;

/// Where partitions end for consumers, by topic.
type Ends<'a> = HashMap<&'a str, HashMap<PartitionIndex, Offset>>;

/// Writes them.
pub fn render(text: &mut Text, observer: &Observer) {
    observer.shards(|shards| {
        totals(text, shards);
        let ends = ends(shards);
        let of_shard = |shard| -> &Vec<GroupReport> {
            let shard: &ShardView = shard;
            &shard.groups.groups
        };
        let mut groups: Vec<Standing<'_>> = (shards.iter().flat_map(of_shard))
            .map(|group| Standing::of(group, &ends))
            .collect();
        groups.sort_by(|left, right| left.group.group_id.cmp(&right.group.group_id));
        let untold = (
            shards.iter().map(|one| one.groups.groups_left_out).sum(),
            shards.iter().map(|one| one.groups.offsets_left_out).sum(),
        );
        each_group(text, &groups, untold.0);
        each_offset(text, &groups, untold.1);
    });
}

fn ends(shards: &[ShardView]) -> Ends<'_> {
    let mut ends = Ends::new();
    for report in shards.iter().flat_map(|shard| &shard.partitions.0) {
        let of_topic = ends.entry(report.topic.as_str()).or_default();
        of_topic.insert(report.partition, report.state.high_watermark);
    }
    ends
}

fn totals(text: &mut Text, shards: &[ShardView]) {
    let mut all = GroupCounts::default();
    for shard in shards {
        all.merge(&shard.groups.counts);
    }
    let [empty, preparing, completing, stable] = all.groups;
    for (name, help, value) in [
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroups",
            "Groups",
            all.groups.iter().sum(),
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
            "Groups without members",
            empty,
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",
            "Groups whose members are awaited to join",
            preparing,
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance",
            "Groups whose leader's assignment is awaited",
            completing,
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
            "Groups whose members know what they consume",
            stable,
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroupsdead",
            "Groups on their way out: they go at once here",
            0,
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numoffsets",
            "Committed offsets",
            all.offsets,
        ),
    ] {
        text.gauge(name, help).value(&[], value as f64);
    }
    let rebalances = &all.rebalances;
    text.gauge(
        "kafka_server_group_coordinator_metrics_group_completed_rebalance_count",
        "Rebalances that ended with a stable group, since the start",
    )
    .value(&[], rebalances.count() as f64);
    let mut family = text.histogram(
        "coreline_group_rebalance_seconds",
        "From the first sign of a rebalance until the group is stable again",
    );
    let bounds = DURATION_STEPS_MS.iter().map(|ms| *ms as f64 / 1e3);
    let bounds = bounds.map(|seconds| seconds.to_string());
    let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
    let mut sum = 0;
    for (bound, count) in bounds.zip(rebalances.counts) {
        sum += count;
        family.series("_bucket", &[("le", &bound)], sum as f64);
    }
    family.series("_sum", &[], rebalances.total.as_secs_f64());
    family.series("_count", &[], sum as f64);
}

/// One offset, and how many records come after it; the latter only where the partition is known.
struct Place<'a> {
    topic: &'a str,
    partition: PartitionIndex,
    offset: Offset,
    lag: Option<u64>,
}

/// A group with its offsets held against the partitions' ends.
struct Standing<'a> {
    group: &'a GroupReport,
    places: Vec<Place<'a>>,
}

impl<'a> Standing<'a> {
    fn of(group: &'a GroupReport, ends: &Ends<'_>) -> Self {
        let mut places = Vec::with_capacity(group.offsets_len);
        for (topic, offsets) in &group.offsets {
            let of_topic = ends.get(topic.as_str());
            for (partition, offset) in offsets {
                let end = of_topic.and_then(|known| known.get(partition));
                // Ends and offsets are not of the same moment.
                let lag = end.map(|end| u64::try_from(end.0.saturating_sub(offset.0)).unwrap_or(0));
                places.push(Place {
                    topic,
                    partition: *partition,
                    offset: *offset,
                    lag,
                });
            }
        }
        Self { group, places }
    }

    fn lags(&self) -> impl Iterator<Item = u64> {
        self.places.iter().filter_map(|place| place.lag)
    }

    /// Offsets are what clients say: a sum of lags may pass what a number holds.
    fn lag_sum(&self) -> u64 {
        self.lags().fold(0, u64::saturating_add)
    }

    /// Sums by topic, in the topics' order: of offsets, and of lags.
    fn topics(&self) -> Vec<(&'a str, i64, u64)> {
        let mut topics: Vec<(&str, i64, u64)> = Vec::new();
        for place in &self.places {
            if topics.last().is_none_or(|last| last.0 != place.topic) {
                topics.push((place.topic, 0, 0));
            }
            if let Some(last) = topics.last_mut() {
                last.1 = last.1.saturating_add(place.offset.0);
                last.2 = last.2.saturating_add(place.lag.unwrap_or(0));
            }
        }
        topics
    }
}

type OfGroup = fn(&Standing<'_>) -> f64;

/// Name, label of the group, help, value.
type GroupFamily = (&'static str, &'static str, &'static str, OfGroup);

const OF_GROUP: [GroupFamily; 8] = [
    (
        "kafka_consumergroup_members",
        "consumergroup",
        "Members",
        |one| one.group.members as f64,
    ),
    (
        "kafka_consumergroup_group_max_lag",
        "group",
        "Largest lag",
        |one| one.lags().max().unwrap_or(0) as f64,
    ),
    (
        "kafka_consumergroup_group_sum_lag",
        "group",
        "All lags together",
        |one| one.lag_sum() as f64,
    ),
    (
        "redpanda_kafka_consumer_group_consumers",
        "redpanda_group",
        "Members",
        |one| one.group.members as f64,
    ),
    (
        "redpanda_kafka_consumer_group_topics",
        "redpanda_group",
        "Topics with offsets",
        |one| one.topics().len() as f64,
    ),
    (
        "redpanda_kafka_consumer_group_lag_max",
        "redpanda_group",
        "Largest lag",
        |one| one.lags().max().unwrap_or(0) as f64,
    ),
    (
        "redpanda_kafka_consumer_group_lag_sum",
        "redpanda_group",
        "All lags together",
        |one| one.lag_sum() as f64,
    ),
    (
        "coreline_group_rebalances_total",
        "group",
        "Rebalances that the group has completed since it was loaded",
        |one| one.group.rebalances as f64,
    ),
];

const STATE: &str = "coreline_group_state";

fn each_group(text: &mut Text, all: &[Standing<'_>], untold: usize) {
    let mut names: Vec<&str> = OF_GROUP.iter().map(|family| family.0).collect();
    names.push(STATE);
    let listed = fitting(all.iter().map(|one| one.group.group_id.len()), &names);
    text.gauge(
        "coreline_metrics_groups_left_out",
        "Groups without series of their own: there are too many",
    )
    .value(&[], (all.len() - listed + untold) as f64);
    for (name, label, help, value) in OF_GROUP {
        let mut family = match name.ends_with("_total") {
            true => text.counter(name, help),
            false => text.gauge(name, help),
        };
        for one in all.iter().take(listed) {
            family.value(&[(label, &one.group.group_id)], value(one));
        }
    }
    let mut family = text.gauge(STATE, "1 for the state in which the group is");
    for one in all.iter().take(listed) {
        let labels = [
            ("group", &*one.group.group_id),
            ("state", one.group.state.name()),
        ];
        family.value(&labels, 1.0);
    }
}

const BY_TOPIC: [(&str, &str); 2] = [
    (
        "kafka_consumergroup_current_offset_sum",
        "Committed offsets of all partitions together",
    ),
    (
        "kafka_consumergroup_lag_sum",
        "Records after the committed offsets of all partitions",
    ),
];

/// Name, labels of group, topic and partition, whether it is the lag.
const BY_PARTITION: [(&str, [&str; 3], bool); 5] = [
    (
        "kafka_consumergroup_current_offset",
        ["consumergroup", "topic", "partition"],
        false,
    ),
    (
        "kafka_consumergroup_lag",
        ["consumergroup", "topic", "partition"],
        true,
    ),
    (
        "kafka_consumergroup_group_offset",
        ["group", "topic", "partition"],
        false,
    ),
    (
        "kafka_consumergroup_group_lag",
        ["group", "topic", "partition"],
        true,
    ),
    (
        "redpanda_kafka_consumer_group_committed_offset",
        ["redpanda_group", "redpanda_topic", "redpanda_partition"],
        false,
    ),
];

fn each_offset(text: &mut Text, all: &[Standing<'_>], untold: usize) {
    let places = || {
        all.iter()
            .flat_map(|one| one.places.iter().map(move |place| (one, place)))
    };
    let lengths = places().map(|(one, place)| one.group.group_id.len() + place.topic.len());
    // Sums by topic are no more than offsets: they are counted as if each had some.
    let names = BY_PARTITION.iter().map(|family| family.0);
    let names: Vec<&str> = names
        .chain(BY_TOPIC.iter().map(|family| family.0))
        .collect();
    let listed = fitting(lengths, &names);
    text.gauge(
        "coreline_metrics_group_offsets_left_out",
        "Groups' offsets without series of their own: there are too many",
    )
    .value(&[], (places().count() - listed + untold) as f64);
    for (name, [group, topic, partition], is_lag) in BY_PARTITION {
        let help = match is_lag {
            true => "Records after the group's committed offset",
            false => "Committed offset",
        };
        let mut family = text.gauge(name, help);
        for (one, place) in places().take(listed) {
            let value = match is_lag {
                true => place.lag.map(|lag| lag as f64),
                false => Some(place.offset.0 as f64),
            };
            let number = place.partition.0.to_string();
            let labels = [
                (group, &*one.group.group_id),
                (topic, place.topic),
                (partition, number.as_str()),
            ];
            if let Some(value) = value {
                family.value(&labels, value);
            }
        }
    }
    sums_by_topic(text, all, listed);
}

/// Of as many groups as have all their offsets among those that are listed.
fn sums_by_topic(text: &mut Text, all: &[Standing<'_>], listed: usize) {
    let mut left = listed;
    let fits = |one: &&Standing<'_>| {
        let is_within = one.places.len() <= left;
        left = left.saturating_sub(one.places.len());
        is_within
    };
    let whole: Vec<&Standing<'_>> = all.iter().take_while(fits).collect();
    for (number, (name, help)) in BY_TOPIC.into_iter().enumerate() {
        let mut family = text.gauge(name, help);
        for one in &whole {
            for (topic, offsets, lags) in one.topics() {
                let labels = [("consumergroup", &*one.group.group_id), ("topic", topic)];
                family.value(
                    &labels,
                    if number == 0 {
                        offsets as f64
                    } else {
                        lags as f64
                    },
                );
            }
        }
    }
}
