//! What `/metrics` tells of groups.

use coreline::wire::messages::produce::ProduceResponse;

use crate::broker::requests::{self, errors_of};
use crate::broker::{Harness, HarnessOptions, admin, batch};
use crate::{commit, fetched, find, join, options, sync};

#[test]
fn lag_states_and_rebalances_are_told_under_the_names_that_dashboards_know() {
    let mut harness = Harness::start(HarnessOptions {
        has_admin: true,
        ..options(2)
    });
    harness.create_topic("t", 3);
    harness.create_topic("gone", 1);
    let mut client = harness.connect();
    find(&mut client);
    for name in ["simple", "quoted \"g\"", "members"] {
        fetched(&mut client, name);
    }
    let request = requests::produce("t", -1, [(0, batch(10, 8)), (1, batch(3, 8))]);
    let produced: ProduceResponse = client.ask(&request, 9);
    assert_eq!(errors_of(&produced).len(), 2);
    let offsets = [("t", 0, 4), ("t", 1, 3), ("t", 2, 9), ("gone", 0, i64::MIN)];
    assert_eq!(commit(&mut client, "simple", &offsets).len(), 4);
    commit(&mut client, "quoted \"g\"", &[("t", 0, 10)]);
    let joined = join(&mut client, "members", "");
    assert!(sync(&mut client, &joined, "members").error_code.is_none());

    let series = admin::series(&admin::text(harness.admin(), "/metrics"));
    let of = |name: &str| series.get(name).copied();
    for (partition, offset, lag) in [(0, 4.0, 6.0), (1, 3.0, 0.0), (2, 9.0, 0.0)] {
        let place = format!("topic=\"t\",partition=\"{partition}\"}}");
        for name in ["consumergroup_current_offset", "consumergroup_group_offset"] {
            let label = if name.contains("_group_") {
                "group"
            } else {
                "consumergroup"
            };
            let full = format!("kafka_{name}{{{label}=\"simple\",{place}");
            assert_eq!(of(&full), Some(offset), "{full}");
            let full = full
                .replace("current_offset", "lag")
                .replace("_offset", "_lag");
            assert_eq!(of(&full), Some(lag), "{full}");
        }
    }
    let behind = i64::MIN as f64;
    for (name, value) in [
        (
            "kafka_consumergroup_lag_sum{consumergroup=\"simple\",topic=\"t\"}",
            6.0,
        ),
        (
            "kafka_consumergroup_current_offset_sum{consumergroup=\"simple\",topic=\"t\"}",
            16.0,
        ),
        (
            "kafka_consumergroup_current_offset{consumergroup=\"simple\",topic=\"gone\",\
             partition=\"0\"}",
            behind,
        ),
        (
            "redpanda_kafka_consumer_group_committed_offset{redpanda_group=\"quoted \\\"g\\\"\",\
             redpanda_topic=\"t\",redpanda_partition=\"0\"}",
            10.0,
        ),
        (
            "kafka_consumergroup_group_sum_lag{group=\"quoted \\\"g\\\"\"}",
            0.0,
        ),
        (
            "redpanda_kafka_consumer_group_topics{redpanda_group=\"simple\"}",
            2.0,
        ),
        (
            "kafka_consumergroup_members{consumergroup=\"members\"}",
            1.0,
        ),
        (
            "redpanda_kafka_consumer_group_consumers{redpanda_group=\"simple\"}",
            0.0,
        ),
        (
            "coreline_group_state{group=\"members\",state=\"Stable\"}",
            1.0,
        ),
        (
            "coreline_group_state{group=\"simple\",state=\"Empty\"}",
            1.0,
        ),
        ("coreline_group_rebalances_total{group=\"members\"}", 1.0),
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroups",
            3.0,
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
            1.0,
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
            2.0,
        ),
        (
            "kafka_coordinator_group_groupmetadatamanager_numoffsets",
            5.0,
        ),
        (
            "kafka_server_group_coordinator_metrics_group_completed_rebalance_count",
            1.0,
        ),
        ("coreline_group_rebalance_seconds_count", 1.0),
        ("coreline_group_rebalance_seconds_bucket{le=\"0.01\"}", 0.0),
        ("coreline_group_rebalance_seconds_bucket{le=\"+Inf\"}", 1.0),
        ("coreline_metrics_groups_left_out", 0.0),
        ("coreline_metrics_group_offsets_left_out", 0.0),
    ] {
        assert_eq!(of(name), Some(value), "{name}");
    }
    // The first rebalance waits for more members, which is what it takes.
    let seconds = of("coreline_group_rebalance_seconds_sum").unwrap();
    assert!((0.1..20.0).contains(&seconds), "{seconds}");
}
