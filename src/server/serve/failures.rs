//! What becomes of a log directory that fails while the broker serves (`LogManager`,
//! `ReplicaManager.handleLogDirFailure`): every shard takes its part of it offline, which answers
//! what waits there; the metadata log tells that the broker goes on without it. Without the
//! metadata log, or without any directory, the broker cannot go on: the process is told to end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use super::directories::Directories;
use super::publisher::Publisher;
use crate::base::config::BrokerConfig;
use crate::cluster::controller::{ControlError, ControlHandle};
use crate::io::Inbox;
use crate::server::serve::Failed;
use crate::shard::{OfflineDirectory, Shard};

/// Failures that may wait to be heard.
pub const FAILURES_LEN_MAX: usize = 64;

/// Takes directories offline.
pub struct Failures {
    /// How shards are reached.
    pub publisher: Rc<Publisher>,
    /// The way to the controller.
    pub control: ControlHandle,
    /// The settings.
    pub config: Arc<BrokerConfig>,
    /// The directories of the start.
    pub directories: Arc<Directories>,
    /// Hears why the broker cannot go on.
    pub on_failure: Failed,
}

impl Failures {
    /// Hears of failures as long as anybody may tell of one.
    pub async fn watch(self, mut inbox: Inbox<OfflineDirectory>) {
        let mut batch = Vec::new();
        let mut failed: BTreeSet<PathBuf> = BTreeSet::new();
        while inbox.receive_batch(&mut batch).await {
            for directory in batch.drain(..) {
                if failed.insert(directory.path.clone()) {
                    self.take_offline(&directory, &failed).await;
                }
            }
        }
    }

    async fn take_offline(&self, directory: &OfflineDirectory, failed: &BTreeSet<PathBuf>) {
        let told = directory.told();
        tracing::error!(
            "{told}. Nothing in it is acknowledged or served until the broker restarts"
        );
        for shard in self.publisher.shards() {
            let directory = directory.clone();
            let take = move |shard: Rc<Shard>| async move {
                shard.logs().take_offline(&directory);
            };
            let _ = self.publisher.run(shard, take).await.await;
        }
        let online = &self.directories.online;
        if directory.path == self.config.metadata_log_dir() {
            (self.on_failure)(format!(
                "the metadata log is in a directory that failed: {told}"
            ));
        } else if online.iter().all(|one| failed.contains(&one.path)) {
            let all: Vec<String> = online
                .iter()
                .map(|one| one.path.display().to_string())
                .collect();
            let all = all.join(", ");
            (self.on_failure)(format!(
                "every log directory has failed: {all}; at last {told}"
            ));
        } else if let Some(found) = online.iter().find(|one| one.path == directory.path) {
            match self.control.directory_failed(found.id).await {
                Ok(()) | Err(ControlError::Stopped) => {}
                Err(error) => tracing::error!("the metadata does not tell of it: {error}"),
            }
        }
    }
}
