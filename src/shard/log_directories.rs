//! The logs of one shard by log directory. Each directory has a journal, a tail cache and a health
//! of its own, so that one that fails or waits for its disk takes nothing from the others.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::base::ids::Uuid;
use crate::io::{self, TaskClass};
use crate::log::{ClosedLog, Log, LogError, ShardLogs};

/// A log directory that does not serve until the broker starts again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// Why it does not serve.
    pub reason: String,
}

impl OfflineDirectory {
    /// What an operator reads.
    #[must_use]
    pub fn told(&self) -> String {
        let (path, reason) = (self.path.display(), &self.reason);
        format!("the log directory {path} is offline: {reason}")
    }
}

/// How the logs of one directory closed.
pub type ClosedDirectory = (PathBuf, Result<Vec<ClosedLog>, String>);

/// One shard's part of every log directory.
pub struct LogDirectories {
    open: Vec<(Uuid, Rc<ShardLogs>)>,
    /// Those that did not open.
    unopened: Vec<OfflineDirectory>,
}

impl LogDirectories {
    /// Those that opened, by their ids, in the order of `log.dirs`, and those that did not.
    #[must_use]
    pub fn new(open: Vec<(Uuid, Rc<ShardLogs>)>, unopened: Vec<OfflineDirectory>) -> Self {
        Self { open, unopened }
    }

    /// The logs of the directory with this id. The zero id, which metadata older than ids has, is
    /// that of the only one.
    ///
    /// # Errors
    /// [`LogError::Offline`] where there is none.
    pub fn of(&self, directory: Uuid) -> Result<&Rc<ShardLogs>, LogError> {
        let found = self
            .open
            .iter()
            .find(|(id, _)| *id == directory || directory == Uuid::ZERO);
        let found = found.map(|(_, logs)| logs);
        found.ok_or_else(|| LogError::Offline(format!("no directory here has the id {directory}")))
    }

    /// The id of the directory with this path, where it opened.
    #[must_use]
    pub fn id_of(&self, path: &Path) -> Option<Uuid> {
        let mut open = self.open.iter();
        open.find(|(_, logs)| logs.directory() == path)
            .map(|(id, _)| *id)
    }

    /// The logs of every directory that opened.
    pub fn iter(&self) -> impl Iterator<Item = &Rc<ShardLogs>> {
        self.open.iter().map(|(_, logs)| logs)
    }

    /// Takes a directory offline that failed on another shard.
    pub fn take_offline(&self, failed: &OfflineDirectory) {
        for logs in self.iter().filter(|logs| logs.directory() == failed.path) {
            logs.take_offline(&failed.reason);
        }
    }

    /// The directories that do not serve.
    pub fn offline(&self) -> impl Iterator<Item = OfflineDirectory> {
        let failed = self.iter().filter_map(|logs| {
            Some(OfflineDirectory {
                path: logs.directory().to_owned(),
                reason: logs.offline_reason()?,
            })
        });
        self.unopened.iter().cloned().chain(failed)
    }

    /// Whether the directory with this path serves.
    #[must_use]
    pub fn is_online(&self, path: &Path) -> bool {
        let found = self.iter().find(|logs| logs.directory() == path);
        found.is_some_and(|logs| !logs.is_offline())
    }

    /// Whether no directory serves any more.
    #[must_use]
    pub fn are_all_offline(&self) -> bool {
        self.iter().all(|logs| logs.is_offline())
    }

    /// Deletes a log of any of the directories.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn delete_log(&self, log: &Rc<Log>) -> Result<(), LogError> {
        match self.iter().find(|logs| logs.directory() == log.directory()) {
            Some(logs) => logs.delete_log(log).await,
            None => Err(LogError::Closed),
        }
    }

    /// Writes everything back and closes: each directory by itself.
    pub async fn close(&self) -> Vec<ClosedDirectory> {
        let close = |logs: &Rc<ShardLogs>| {
            let logs = Rc::clone(logs);
            io::spawn(TaskClass::Background, async move {
                let outcome = logs.close().await.map_err(|error| error.to_string());
                (logs.directory().to_owned(), outcome)
            })
        };
        let closing: Vec<_> = self.iter().map(close).collect();
        let mut closed = Vec::with_capacity(closing.len());
        for one in closing {
            closed.push(one.await);
        }
        closed
    }

    /// Bytes of the journals' rings that hold what is not written back, and their sizes.
    #[must_use]
    pub fn journal_fill(&self) -> (u64, u64) {
        let fills = self.iter().map(|logs| logs.journal_fill());
        fills.fold((0, 0), |sum, fill| (sum.0 + fill.0, sum.1 + fill.1))
    }

    /// Bytes of the tail caches, and how many they may be.
    #[must_use]
    pub fn cache_fill(&self) -> (usize, usize) {
        let fills = self.iter().map(|logs| logs.cache_fill());
        fills.fold((0, 0), |sum, fill| (sum.0 + fill.0, sum.1 + fill.1))
    }
}
