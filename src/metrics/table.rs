//! The table that is printed at shutdown and on SIGUSR1.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::shard::Counter;
use super::snapshot::MetricsSnapshot;
use crate::base::ids::ApiKey;

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
const NS_PER_MS: f64 = 1_000_000.0;

/// Renders all of it; empty when nothing was recorded.
pub(super) fn render(
    snapshot: &MetricsSnapshot,
    key_name: impl Fn(ApiKey) -> Option<&'static str>,
) -> String {
    let mut text = String::new();
    if !snapshot.requests.is_empty() {
        head(&mut text, "request, ms");
        for (key, histogram) in &snapshot.requests {
            let number = format!("key {key}");
            row(&mut text, key_name(*key).unwrap_or(&number), histogram);
        }
    }
    if !snapshot.stages.is_empty() {
        head(&mut text, "stage, ms");
        for (stage, histogram) in &snapshot.stages {
            row(&mut text, stage.name(), histogram);
        }
    }
    for counter in Counter::ALL {
        let count = snapshot.counter(*counter);
        if count > 0 {
            // Writing to a string cannot fail.
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
    let _ = writeln!(text, " {:>10.3}", histogram.max() as f64 / NS_PER_MS);
}
