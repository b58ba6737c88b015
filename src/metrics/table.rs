//! The table of `coreline latency`, SIGUSR1 and shutdown.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::shard::Counter;
use super::snapshot::MetricsSnapshot;
use crate::base::ids::ApiKey;

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
const NS_PER_MS: f64 = 1_000_000.0;
/// Where the time of the slowest is divided among the stages.
const TAIL_QUANTILE: f64 = 0.999;

/// Renders all of it; empty when nothing was recorded.
pub(super) fn render(
    snapshot: &MetricsSnapshot,
    key_name: impl Fn(ApiKey) -> Option<&'static str>,
) -> String {
    let mut text = String::new();
    let recorded = &snapshot.recorded;
    let mut slowest = String::new();
    for (place, (key, histogram)) in recorded.requests().enumerate() {
        if place == 0 {
            head(&mut text, "request, ms");
        }
        let number = format!("key {key}");
        let name = key_name(key).unwrap_or(&number);
        row(&mut text, name, histogram);
        let from = histogram.value_at_quantile(TAIL_QUANTILE);
        let shares = recorded.tail(key).map(|tail| tail.shares_from(from));
        // Writing to a string cannot fail.
        if let Some(shares) = shares.filter(|shares| !shares.shares.is_empty()) {
            let _ = writeln!(slowest, "{name:<26} {}", shares.describe());
        }
    }
    for (place, (stage, histogram)) in recorded.stages().enumerate() {
        if place == 0 {
            head(&mut text, "stage, ms");
        }
        row(&mut text, stage.name(), histogram);
    }
    if !slowest.is_empty() {
        let _ = write!(text, "where the slowest 0.1 % spent their time\n{slowest}");
    }
    for counter in Counter::ALL {
        let count = snapshot.counter(*counter);
        if count > 0 {
            let _ = writeln!(text, "{:<26} {count:>12}", counter.name());
        }
    }
    text
}

fn head(text: &mut String, title: &str) {
    let _ = writeln!(
        text,
        "{title:<26} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "count", "p50", "p90", "p99", "p99.9", "p99.99", "max"
    );
}

fn row(text: &mut String, name: &str, histogram: &Histogram<u64>) {
    let _ = write!(text, "{name:<26} {:>12}", histogram.len());
    for quantile in QUANTILES {
        let _ = write!(
            text,
            " {:>10.3}",
            histogram.value_at_quantile(quantile) as f64 / NS_PER_MS
        );
    }
    // A percentile is the upper end of its step, the maximum of a short time the lower.
    let max = histogram.max().max(histogram.value_at_quantile(1.0));
    let _ = writeln!(text, " {:>10.3}", max as f64 / NS_PER_MS);
}
