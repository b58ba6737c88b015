//! A copy of one or several shards' metrics, for reading.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::shard::{Counter, Stage};
use super::table;
use crate::base::ids::ApiKey;

/// Histograms and counters at one moment; those of several shards add up.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot {
    pub(super) requests: BTreeMap<ApiKey, Histogram<u64>>,
    pub(super) stages: BTreeMap<Stage, Histogram<u64>>,
    pub(super) counters: Vec<u64>,
}

impl MetricsSnapshot {
    /// Adds another shard's.
    pub fn merge(&mut self, other: &Self) {
        add_all(&mut self.requests, &other.requests);
        add_all(&mut self.stages, &other.stages);
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

    /// The latencies of one API key, in nanoseconds; `None` before its first request.
    #[must_use]
    pub fn request(&self, key: ApiKey) -> Option<&Histogram<u64>> {
        self.requests.get(&key)
    }

    /// The latencies of one stage, in nanoseconds; `None` before its first pass.
    #[must_use]
    pub fn stage(&self, stage: Stage) -> Option<&Histogram<u64>> {
        self.stages.get(&stage)
    }

    /// A table for people: a line per API key and stage with count, percentiles and maximum in
    /// milliseconds, then the counters that are not zero.
    #[must_use]
    pub fn table(&self, key_name: impl Fn(ApiKey) -> Option<&'static str>) -> String {
        table::render(self, key_name)
    }
}

fn add_all<K: Ord + Copy>(
    sums: &mut BTreeMap<K, Histogram<u64>>,
    others: &BTreeMap<K, Histogram<u64>>,
) {
    for (key, other) in others {
        match sums.get_mut(key) {
            // Bounds are the same everywhere, so that nothing can fall outside.
            Some(sum) => drop(sum.add(other)),
            None => drop(sums.insert(*key, other.clone())),
        }
    }
}
