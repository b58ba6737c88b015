//! The logs of one shard: its journal, its budgets, its part of the log directory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::config::{LogConfig, LogIdentity};
use super::error::LogError;
use super::partition_log::Log;
use crate::base::ids::{Offset, PartitionIndex, ShardId, Uuid};

/// What a shard needs to open its part of the log directory.
#[derive(Clone, Debug)]
pub struct ShardLogsOptions {
    /// The log directory.
    pub directory: PathBuf,
    /// Which shard this is.
    pub shard: ShardId,
    /// The broker's incarnation, as given to `recover`.
    pub incarnation: Uuid,
    /// Size of this shard's ring, once grown.
    pub journal_bytes: u64,
    /// Tail cache of this shard, pinned bytes included.
    pub cache_bytes: usize,
    /// For log ids and jitter; from the system's entropy.
    pub random_seed: u64,
}

/// Where a cleanly closed log ends; what the checkpoint files of the directory are made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedLog {
    /// The topic's name.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// Its log start offset.
    pub log_start_offset: Offset,
    /// Its end: everything below is durable in segments.
    pub recovery_point: Offset,
}

/// One shard's journal, logs and tail-cache budget.
pub struct ShardLogs {
    options: ShardLogsOptions,
    logs: RefCell<HashMap<LogIdentity, Rc<Log>>>,
}

impl ShardLogs {
    /// Opens the shard's journal. `recover` has run before on the same directory.
    ///
    /// # Errors
    /// What the file system answers; [`LogError::Refused`] where the disk is too small.
    pub async fn open(options: ShardLogsOptions) -> Result<Rc<Self>, LogError> {
        Ok(Rc::new(Self {
            options,
            logs: RefCell::default(),
        }))
    }

    /// Creates the folder and files of a new, empty log, durably.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn create_log(
        &self,
        identity: LogIdentity,
        config: LogConfig,
    ) -> Result<Rc<Log>, LogError> {
        let log = Rc::new(Log::new(identity.clone(), config));
        self.logs.borrow_mut().insert(identity, Rc::clone(&log));
        Ok(log)
    }

    /// Opens a log whose folder exists.
    ///
    /// # Errors
    /// What the file system answers; [`LogError::Damaged`].
    pub async fn open_log(
        &self,
        identity: LogIdentity,
        config: LogConfig,
    ) -> Result<Rc<Log>, LogError> {
        self.create_log(identity, config).await
    }

    /// Deletes a log: it takes nothing any more, its folder goes in the background.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn delete_log(&self, log: &Rc<Log>) -> Result<(), LogError> {
        log.mark_closed();
        self.logs.borrow_mut().remove(log.identity());
        Ok(())
    }

    /// Writes everything back, cuts every file to its size, syncs, and empties the journal. The
    /// answers of all shards go to `seal_directory`, which ends a clean shutdown.
    ///
    /// # Errors
    /// [`LogError::Offline`] after a failed write: then the next start recovers.
    pub async fn close(&self) -> Result<Vec<ClosedLog>, LogError> {
        let logs: Vec<Rc<Log>> = self.logs.borrow_mut().drain().map(|(_, log)| log).collect();
        let mut closed = Vec::with_capacity(logs.len());
        for log in logs {
            log.mark_closed();
            closed.push(ClosedLog {
                topic: log.identity().topic.clone(),
                partition: log.identity().partition,
                log_start_offset: log.log_start_offset(),
                recovery_point: log.log_end_offset(),
            });
        }
        Ok(closed)
    }

    /// The directory that holds the logs.
    #[must_use]
    pub fn directory(&self) -> &std::path::Path {
        &self.options.directory
    }
}
