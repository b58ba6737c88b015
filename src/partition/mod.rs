//! A replica's role: leader or follower, high watermark, parked produces and fetches.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod append;
pub mod append_times;
pub mod delete_records;
pub mod error;
pub mod leadership;
pub mod known_producers;
pub mod moving;
#[cfg(test)]
mod moving_test;
pub mod parked;
pub mod pending;
pub mod read;
pub mod replica;
pub mod state;

pub use append::{
    AppendAnswer, AppendFailure, AppendOutcome, AppendReply, QueuedAppend, RequiredAcks,
    error_is_of_records,
};
pub use append_times::AppendTimes;
pub use error::PartitionError;
pub use known_producers::KnownProducer;
pub use leadership::{LeaderOnly, Leadership};
pub use parked::{ParkedFetch, Waiter};
pub use read::{Isolation, OffsetQuery, PartitionRead, ReadBounds, ReadSpec};
pub use replica::{Departure, Partition, PartitionOptions, WakeSink};
pub use state::{PartitionCounts, PartitionState};
