//! The files of a log directory as bytes: encoded, decoded and kept in memory, without touching a
//! disk. Layouts are Kafka's to the byte (`LogFileUtils` and the classes each file names), so that
//! Apache's tools read what stands here and a stopped Apache broker's directory opens.
//!
//! Two files here are our own, [`damage_mark`] and [`closed_segments`]; Apache Kafka ignores
//! unknown files in a partition's folder and in a log directory.
//!
//! Whatever a disk holds, decoding ends in a value or in a [`FormatError`] that names the position;
//! nothing is allocated from a count before it was held against the bytes at hand.

use thiserror::Error;

pub mod checkpoint_files;
pub mod clean_shutdown;
pub mod closed_segments;
pub mod damage_mark;
pub mod epoch_cache;
pub mod file_names;
pub mod index_sums;
pub mod known_directories;
pub mod meta_properties;
pub mod move_mark;
pub mod offset_index;
pub mod partition_metadata;
pub mod producer_snapshot;
pub mod producer_state;
pub mod time_index;
pub mod transaction_index;

mod text;

#[cfg(test)]
mod epoch_cache_test;
#[cfg(test)]
mod index_test;
#[cfg(test)]
mod producer_snapshot_test;
#[cfg(test)]
mod producer_state_test;

/// Bytes that are not the file they should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at byte {position}: {what}")]
pub struct FormatError {
    /// Where, in bytes from the file's start.
    pub position: u64,
    /// What is wrong.
    pub what: String,
}

impl FormatError {
    pub(crate) fn new(position: usize, what: impl Into<String>) -> Self {
        Self {
            position: position as u64,
            what: what.into(),
        }
    }
}
