//! Bytes on disk: segments, indexes, epoch cache, producer state, validation, the journal,
//! recovery.
//!
//! What must always hold, and the test that breaks each rule, stands in [`invariants`]. The way in:
//! [`recover`] once for the log directory, then [`ShardLogs::open`] on every shard, then a [`Log`]
//! a partition.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod config;
pub mod error;
pub mod format;
pub mod invariants;
pub mod recovery;
pub mod seeded;
pub mod validation;
pub mod verify;

mod admission;
mod append;
mod cache;
mod cleaner;
mod checked_batch;
mod claims;
mod closed;
mod context;
mod damage;
mod delete;
mod durable;
mod folder_place;
mod full_disk;
mod health;
mod index_check;
mod index_walk;
mod journal;
mod limited;
mod log_id_file;
mod lookup;
pub mod moved;
mod moving;
mod next_segment;
mod open;
mod partition_log;
mod producers;
mod read;
mod read_ahead;
mod removal;
mod retention;
mod roll;
mod scan;
mod segment;
mod shard_logs;
mod snapshots;
mod tail;
mod truncate;

mod write_back;

use crate::io::wait;

#[cfg(test)]
mod creation_test;
#[cfg(test)]
mod crowd_test;
#[cfg(test)]
mod flush_test;
#[cfg(test)]
mod full_disk_test;
#[cfg(test)]
mod index_memory_test;
#[cfg(test)]
mod log_test;
#[cfg(all(test, feature = "sim"))]
mod moving_test;
#[cfg(test)]
mod small_memory_test;
#[cfg(all(test, feature = "sim"))]
mod proofs_test;

use std::path::Path;

use crate::io::FlushGroup;
use format::file_names::LOCK;

pub use cleaner::{CleanOptions, CleanOutcome, CleanStats, Cleanable, CleanerPace};
pub use config::{AppendContext, AppendOrigin, Appended, LogConfig, LogIdentity};
pub use config::{BufferBytes, ReadLimit, ReadResult, TimestampedOffset};
pub use error::{AppendError, LogError, ReadError};
pub use full_disk::DiskRoom;
pub use moving::{CopyStep, MoveError, copy_step};
pub use partition_log::{Log, LogEvent};
pub use recovery::{CheckpointFile, write_checkpoint};
pub use recovery::{RecoveryOptions, RecoveryReport, recover, seal_directory};
pub use retention::{DeletedSegment, RetentionCause};
pub use shard_logs::{ClosedLog, ShardLogs, ShardLogsOptions};

/// Before anything is written in the directory: see [`FlushGroup::open`]. Kafka's lock file is a
/// regular file that every directory has.
async fn open_flush_group(directory: &Path) -> Result<FlushGroup, LogError> {
    let path = directory.join(LOCK);
    let opened = FlushGroup::open(&path).await;
    opened.map_err(|error| LogError::io(format!("opening {}", path.display()), error))
}
