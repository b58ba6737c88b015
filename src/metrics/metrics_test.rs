use std::time::Duration;

use super::*;
use crate::base::ids::ApiKey;

const PRODUCE: ApiKey = ApiKey(0);

#[test]
fn shards_add_up() {
    let (one, two) = (ShardMetrics::new(), ShardMetrics::new());
    for ms in 1..=100 {
        one.record_request(PRODUCE, Duration::from_millis(ms));
        two.record_request(PRODUCE, Duration::from_millis(100 + ms));
    }
    two.record_request(ApiKey(3), Duration::from_micros(5));
    one.add(Counter::Flushes, 3);
    two.add(Counter::Flushes, 4);
    let mut sum = MetricsSnapshot::default();
    sum.merge(&one.snapshot());
    sum.merge(&two.snapshot());
    let produce = sum.request(PRODUCE).expect("recorded");
    assert_eq!(produce.len(), 200);
    let median = produce.value_at_quantile(0.5) as f64;
    assert!((median / 100e6 - 1.0).abs() < 0.01, "{median}");
    assert_eq!(sum.counter(Counter::Flushes), 7);
    assert_eq!(
        sum.request(ApiKey(3)).map(|metadata| metadata.len()),
        Some(1)
    );
    assert!(sum.request(ApiKey(1)).is_none());
}

#[test]
fn a_latency_past_the_bound_counts_as_the_bound() {
    let shard = ShardMetrics::new();
    shard.record_stage(Stage::Flush, Duration::from_nanos(LATENCY_NS_MAX));
    shard.record_stage(Stage::Flush, Duration::from_nanos(LATENCY_NS_MAX + 1));
    shard.record_stage(Stage::Flush, Duration::from_secs(u64::MAX));
    shard.record_stage(Stage::Flush, Duration::ZERO);
    let snapshot = shard.snapshot();
    let flush = snapshot.stage(Stage::Flush).expect("recorded");
    assert_eq!(flush.len(), 4);
    assert!(flush.max() as f64 / LATENCY_NS_MAX as f64 - 1.0 < 0.001);
}

#[test]
fn the_table_shows_milliseconds() {
    let shard = ShardMetrics::new();
    assert_eq!(shard.snapshot().table(|_| None), "");
    shard.record_request(PRODUCE, Duration::from_millis(2));
    shard.record_request(ApiKey(99), Duration::from_micros(7));
    shard.add(Counter::JournalWrites, 12);
    let table = shard
        .snapshot()
        .table(|key| (key == PRODUCE).then_some("Produce"));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].contains("p99.99"), "{table}");
    assert!(
        lines[1].starts_with("Produce ") && lines[1].contains("2.0"),
        "{table}"
    );
    assert!(
        lines[2].starts_with("key 99 ") && lines[2].contains("0.007"),
        "{table}"
    );
    assert!(
        lines[3].starts_with("journal writes") && lines[3].ends_with(" 12"),
        "{table}"
    );
}
