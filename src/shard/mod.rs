//! One core: its inbox, the router, placement and budgets.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

mod append_workers;
pub mod budget;
mod core;
mod credit;
mod deleting;
mod log_directories;
mod message;
mod outbox;
mod parking;
mod reading;
mod router;

pub use self::core::{Shard, ShardOptions};
pub use budget::{ANSWER_BYTES_MIN, Budget, KEPT_SHARE_IDLE_MAX};
pub use credit::{Credit, SharedBudget};
pub use log_directories::{ClosedDirectory, LogDirectories, OfflineDirectory};
pub use message::{
    AppendEntry, AppendMessage, DeleteRecordsMessage, DirectorySizes, EpochEnd, EpochEndsMessage,
    KnownProducers, LogSize, LogSizesMessage, OffsetsMessage, ParkedAt, ProducersMessage,
    ReadMessage, ShardMessage, UnparkMessage, WakeMessage, Work,
};
pub use parking::{FetchSignal, Woken};
pub use router::{Placement, Router};
