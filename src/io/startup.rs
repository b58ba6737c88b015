//! What the machine must allow before a broker starts. Each check answers with words that say what
//! is wrong and what to do about it; the caller prints them and decides.
//!
//! Plain blocking calls: they run before the first shard. Ports, the lock on a data directory, CPUs
//! and memory are looked at by `server::startup`, which knows the settings that they concern.

mod limits;
mod memory;
mod ring;
mod storage;

pub use limits::{check_open_files, raise_open_files};
pub use memory::keep_freed_memory;
pub use ring::check_ring;
pub use storage::{DirectIo, FileSystem, direct_io, file_system};

/// The broker must not start like this. The text names the cause and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

#[cfg(test)]
mod startup_test;
