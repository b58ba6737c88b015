//! Counters and HDR histograms, one set a shard without locks, merged when read.
//!
//! A shard records into its own [`ShardMetrics`]; whoever wants to read asks it, through its inbox,
//! for a [`MetricsSnapshot`] and merges those of all shards. Latencies are nanoseconds inside and
//! printed in milliseconds.
//!
//! Absent: names of API keys (the caller knows them), the clock, any output.

mod shard;
mod snapshot;
mod table;

pub use self::shard::{Counter, LATENCY_NS_MAX, ShardMetrics, Stage};
pub use self::snapshot::MetricsSnapshot;

#[cfg(test)]
mod metrics_test;
