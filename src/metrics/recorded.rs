//! The histograms of a time span, on one shard or on several.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::compact::Compact;
use super::stage::{Stage, StageTimes};
use super::tail::Tail;
use crate::base::ids::ApiKey;

/// The longest latency that is told apart; longer ones count as this.
pub const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// Latencies are told apart from this one on.
const LATENCY_NS_MIN: u64 = 1_000;
/// Significant decimal digits: values are right to 1 %, and a histogram takes 24 KiB.
const DIGITS: u8 = 2;

/// Latencies per API key and stage. Those of several shards or spans add up.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    requests: BTreeMap<ApiKey, Histogram<u64>>,
    stages: BTreeMap<Stage, Histogram<u64>>,
    tails: BTreeMap<ApiKey, Tail>,
}

impl Recorded {
    pub(super) fn record_request(&mut self, key: ApiKey, latency: Duration, times: &StageTimes) {
        record(&mut self.requests, key, latency);
        let tail = self.tails.entry(key).or_default();
        tail.record(as_ns(latency), times);
    }

    pub(super) fn record_stage(&mut self, stage: Stage, latency: Duration) {
        record(&mut self.stages, stage, latency);
    }

    /// Adds another shard's, or another span's.
    pub fn merge(&mut self, other: &Self) {
        add_all(&mut self.requests, &other.requests);
        add_all(&mut self.stages, &other.stages);
        for (key, tail) in &other.tails {
            self.tails.entry(*key).or_default().merge(tail);
        }
    }

    /// Adds a short span.
    pub fn merge_compact(&mut self, other: &Compact) {
        for (key, counts) in &other.requests {
            record_counts(&mut self.requests, *key, counts);
        }
        for (stage, counts) in &other.stages {
            record_counts(&mut self.stages, *stage, counts);
        }
        for (key, steps) in &other.tails {
            self.tails.entry(*key).or_default().merge_steps(steps);
        }
    }

    /// Forgets the values and keeps the memory.
    pub fn clear(&mut self) {
        let histograms = self.requests.values_mut().chain(self.stages.values_mut());
        histograms
            .filter(|histogram| !histogram.is_empty())
            .for_each(Histogram::reset);
        self.tails.values_mut().for_each(Tail::clear);
    }

    /// API keys with requests, and their latencies in nanoseconds.
    pub fn requests(&self) -> impl Iterator<Item = (ApiKey, &Histogram<u64>)> {
        let all = self.requests.iter().map(|(key, held)| (*key, held));
        all.filter(|(_, histogram)| !histogram.is_empty())
    }

    /// Stages that were passed, and their latencies in nanoseconds.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, &Histogram<u64>)> {
        let all = self.stages.iter().map(|(stage, held)| (*stage, held));
        all.filter(|(_, histogram)| !histogram.is_empty())
    }

    /// The latencies of one API key, in nanoseconds; `None` before its first request.
    #[must_use]
    pub fn request(&self, key: ApiKey) -> Option<&Histogram<u64>> {
        self.requests.get(&key).filter(|held| !held.is_empty())
    }

    /// The latencies of one stage, in nanoseconds; `None` before its first pass.
    #[must_use]
    pub fn stage(&self, stage: Stage) -> Option<&Histogram<u64>> {
        self.stages.get(&stage).filter(|held| !held.is_empty())
    }

    /// What the requests of one API key spent their time on; `None` before its first request.
    #[must_use]
    pub fn tail(&self, key: ApiKey) -> Option<&Tail> {
        self.tails.get(&key)
    }
}

fn as_ns(latency: Duration) -> u64 {
    u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)
}

fn record<K: Ord>(histograms: &mut BTreeMap<K, Histogram<u64>>, key: K, latency: Duration) {
    if let Some(histogram) = histogram_of(histograms, key) {
        histogram.saturating_record(as_ns(latency));
    }
}

fn record_counts<K: Ord>(
    histograms: &mut BTreeMap<K, Histogram<u64>>,
    key: K,
    counts: &[(u64, u64)],
) {
    if let Some(histogram) = histogram_of(histograms, key) {
        for (value, count) in counts {
            histogram.saturating_record_n(*value, *count);
        }
    }
}

/// The bounds are constants that the library accepts; were they not, nothing is kept.
fn histogram_of<K: Ord>(
    histograms: &mut BTreeMap<K, Histogram<u64>>,
    key: K,
) -> Option<&mut Histogram<u64>> {
    match histograms.entry(key) {
        Entry::Occupied(held) => Some(held.into_mut()),
        Entry::Vacant(place) => {
            let bounds = (LATENCY_NS_MIN, LATENCY_NS_MAX);
            let fresh = Histogram::new_with_bounds(bounds.0, bounds.1, DIGITS).ok()?;
            Some(place.insert(fresh))
        }
    }
}

fn add_all<K: Ord + Copy>(
    sums: &mut BTreeMap<K, Histogram<u64>>,
    others: &BTreeMap<K, Histogram<u64>>,
) {
    for (key, other) in others.iter().filter(|(_, other)| !other.is_empty()) {
        match sums.get_mut(key) {
            // Bounds are the same everywhere, so that nothing can fall outside.
            Some(sum) => drop(sum.add(other)),
            None => drop(sums.insert(*key, other.clone())),
        }
    }
}
