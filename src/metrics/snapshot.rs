//! A copy of one or several shards' metrics, for reading.

use super::recorded::Recorded;
use super::shard::Counter;
use super::table;
use crate::base::ids::ApiKey;

/// Histograms and counters at one moment; those of several shards add up.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot {
    /// Latencies.
    pub recorded: Recorded,
    /// Values of [`Counter::ALL`], in their order; none stands for zeros.
    pub counters: Vec<u64>,
}

impl MetricsSnapshot {
    /// Adds another shard's.
    pub fn merge(&mut self, other: &Self) {
        self.recorded.merge(&other.recorded);
        self.counters.resize(Counter::ALL.len(), 0);
        for (sum, count) in self.counters.iter_mut().zip(&other.counters) {
            *sum = sum.wrapping_add(*count);
        }
    }

    /// A counter's value.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }

    /// A table for people: a line per API key and stage with count, percentiles and maximum in
    /// milliseconds, what the slowest requests waited for, then the counters that are not zero.
    #[must_use]
    pub fn table(&self, key_name: impl Fn(ApiKey) -> Option<&'static str>) -> String {
        table::render(self, key_name)
    }
}
