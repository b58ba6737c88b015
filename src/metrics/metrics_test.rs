use std::time::Duration;

use super::*;
use crate::base::ids::ApiKey;

const PRODUCE: ApiKey = ApiKey(0);

#[test]
fn shards_add_up() {
    let (one, two) = (ShardMetrics::new(), ShardMetrics::new());
    for ms in 1..=100 {
        one.record_request(PRODUCE, Duration::from_millis(ms), &StageTimes::default());
        two.record_request(
            PRODUCE,
            Duration::from_millis(100 + ms),
            &StageTimes::default(),
        );
    }
    two.record_request(ApiKey(3), Duration::from_micros(5), &StageTimes::default());
    one.add(Counter::Flushes, 3);
    two.add(Counter::Flushes, 4);
    let mut sum = MetricsSnapshot::default();
    sum.merge(&one.snapshot());
    sum.merge(&two.snapshot());
    let produce = sum.recorded.request(PRODUCE).expect("recorded");
    assert_eq!(produce.len(), 200);
    let median = produce.value_at_quantile(0.5) as f64;
    assert!((median / 100e6 - 1.0).abs() < 0.02, "{median}");
    assert_eq!(sum.counter(Counter::Flushes), 7);
    assert_eq!(
        sum.recorded
            .request(ApiKey(3))
            .map(|metadata| metadata.len()),
        Some(1)
    );
    assert!(sum.recorded.request(ApiKey(1)).is_none());
}

#[test]
fn a_latency_past_the_bound_counts_as_the_bound() {
    let shard = ShardMetrics::new();
    shard.record_stage(Stage::Flush, Duration::from_nanos(LATENCY_NS_MAX));
    shard.record_stage(Stage::Flush, Duration::from_nanos(LATENCY_NS_MAX + 1));
    shard.record_stage(Stage::Flush, Duration::from_secs(u64::MAX));
    shard.record_stage(Stage::Flush, Duration::ZERO);
    let snapshot = shard.snapshot();
    let flush = snapshot.recorded.stage(Stage::Flush).expect("recorded");
    assert_eq!(flush.len(), 4);
    assert!(flush.max() as f64 / LATENCY_NS_MAX as f64 - 1.0 < 0.01);
}

#[test]
fn the_table_shows_milliseconds_and_what_ate_the_tail() {
    let shard = ShardMetrics::new();
    assert_eq!(shard.snapshot().table(|_| None), "");
    let mut times = StageTimes::default();
    times.add(Stage::Flush, Duration::from_micros(1_900));
    times.add(Stage::Decode, Duration::from_micros(100));
    shard.record_request(PRODUCE, Duration::from_millis(2), &times);
    shard.record_request(ApiKey(99), Duration::from_micros(7), &StageTimes::default());
    shard.record_stage(Stage::Flush, Duration::from_micros(1_900));
    shard.add(Counter::JournalWrites, 12);
    let table = shard
        .snapshot()
        .table(|key| (key == PRODUCE).then_some("Produce"));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].contains("p99.99"), "{table}");
    let starts = ["request", "Produce ", "key 99 ", "stage", "flush ", "where"];
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{start} in\n{table}");
    }
    assert!(
        lines[1].contains(" 2.0") && lines[2].contains("0.007"),
        "{table}"
    );
    assert!(lines[4].contains("1.9"), "{table}");
    assert!(lines[6].starts_with("Produce ") && lines[6].ends_with("flush 95 %, decode 5 %"));
    assert!(
        lines[7].starts_with("journal writes") && lines[7].ends_with(" 12"),
        "{table}"
    );
}

#[test]
fn an_exchange_gives_what_came_since_the_last() {
    let shard = ShardMetrics::new();
    let record = |ms| {
        let latency = Duration::from_millis(ms);
        shard.record_request(PRODUCE, latency, &StageTimes::default());
    };
    record(1);
    record(2);
    let mut first = shard.exchange(Recorded::default());
    assert_eq!(first.request(PRODUCE).map(|held| held.len()), Some(2));
    record(3);
    let second = shard.exchange(Recorded::default());
    assert_eq!(second.request(PRODUCE).map(|held| held.len()), Some(1));
    assert!(
        shard
            .exchange(Recorded::default())
            .request(PRODUCE)
            .is_none()
    );
    first.merge(&second);
    assert_eq!(first.request(PRODUCE).map(|held| held.len()), Some(3));
    first.clear();
    assert!(first.request(PRODUCE).is_none() && first.requests().next().is_none());
    assert_eq!(
        first.tail(PRODUCE).map(|tail| tail.shares_from(0).requests),
        Some(0)
    );
}

#[test]
fn a_compact_copy_keeps_every_value() {
    let shard = ShardMetrics::new();
    let mut times = StageTimes::default();
    times.add(Stage::Flush, Duration::from_micros(40));
    for number in 1..=2_000u64 {
        let latency = Duration::from_nanos(number * number * 1_000);
        shard.record_request(PRODUCE, latency, &times);
        shard.record_stage(Stage::Flush, latency * 3);
    }
    let whole = shard.exchange(Recorded::default());
    let mut copy = Recorded::default();
    copy.merge_compact(&Compact::of(&whole));
    assert_eq!(copy.request(PRODUCE), whole.request(PRODUCE));
    assert_eq!(copy.stage(Stage::Flush), whole.stage(Stage::Flush));
    let shares = |of: &Recorded| of.tail(PRODUCE).map(|tail| tail.shares_from(1_000_000));
    assert_eq!(shares(&copy), shares(&whole));
    assert!(shares(&copy).is_some_and(|shares| shares.requests > 1_000));
}

#[test]
fn a_distribution_is_in_milliseconds_and_ends_at_the_maximum() {
    let shard = ShardMetrics::new();
    for ms in 1..=1_000 {
        shard.record_stage(Stage::Park, Duration::from_millis(ms));
    }
    let recorded = shard.exchange(Recorded::default());
    let text = export::hgrm(recorded.stage(Stage::Park).expect("recorded"));
    let rows: Vec<Vec<f64>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            line.split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect()
        })
        .collect();
    let rows: Vec<_> = rows.into_iter().filter(|row| row.len() >= 3).collect();
    let half = rows.iter().find(|row| row[1] == 0.5).expect("the median");
    assert!(
        (half[0] / 500.0 - 1.0).abs() < 0.01 && half[3] == 2.0,
        "{text}"
    );
    let last = rows.last().expect("rows");
    assert_eq!((last.len(), last[1], last[2]), (3, 1.0, 1_000.0));
    assert!((last[0] / 1_000.0 - 1.0).abs() < 0.01, "{text}");
    assert!(rows.windows(2).all(|pair| pair[0][2] <= pair[1][2]));
    let sum = text.lines().find(|line| line.starts_with("#[Max"));
    assert!(
        sum.is_some_and(|line| line.ends_with("Total count    =         1000]")),
        "{text}"
    );
}
