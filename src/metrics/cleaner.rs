//! Where the cleaner of a shard stands.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Logs of one directory that cannot be cleaned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncleanable {
    /// How many.
    pub logs: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Where it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CleanerGauges {
    /// Dirty bytes as a part of all, of the dirtiest log.
    pub dirtiest_ratio: f64,
    /// How long ago `max.compaction.lag.ms` was passed, at most.
    pub delay: Duration,
    /// How long the last cleaning took.
    pub last_took: Duration,
    /// Bytes that it went through and bytes that stayed.
    pub last_bytes: (u64, u64),
    /// Part of the table's memory that its keys took.
    pub last_table_use: f64,
    /// Logs that cannot be cleaned, by their directories; every directory of the shard is there.
    pub uncleanable: BTreeMap<PathBuf, Uncleanable>,
}
