//! Counters and HDR histograms, one set a shard without locks, merged when read.
//!
//! A shard records into its own [`ShardMetrics`]. Whoever wants to read asks it, through its inbox,
//! to exchange what it has [`Recorded`] for an empty set, and adds up what comes. Latencies are
//! nanoseconds inside and printed in milliseconds.
//!
//! | File | What |
//! |---|---|
//! | `stage` | the parts of a request's way, and one request's times in them |
//! | `shard` | what a shard records into, and its counters |
//! | `recorded` | histograms per API key and stage |
//! | `tail` | what the slowest requests spent their time on |
//! | `sizes` | how large writes are |
//! | `durations` | how long rebalances of groups take |
//! | `compact` | a second of them in little memory |
//! | `touched` | how often the bytes of batches are checksummed and copied |
//! | `snapshot`, `table`, `export` | for reading |
//!
//! Absent: names of API keys (the caller knows them), the clock, any output.

mod cleaner;
mod compact;
mod durations;
pub mod export;
mod recorded;
mod shard;
mod sizes;
mod snapshot;
mod stage;
mod table;
mod tail;
pub mod touched;

pub use self::cleaner::{CleanerGauges, Uncleanable};
pub use self::compact::Compact;
pub use self::durations::{DURATION_STEPS_MS, DurationCounts};
pub use self::recorded::{LATENCY_NS_MAX, Recorded};
pub use self::shard::{Counter, ShardMetrics};
pub use self::sizes::{SIZE_STEPS, SizeCounts};
pub use self::snapshot::MetricsSnapshot;
pub use self::stage::{Stage, StageTimes, Visit};
pub use self::tail::{Tail, TailShares};

#[cfg(test)]
mod metrics_test;
