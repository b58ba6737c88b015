//! The log directories on their way to serving: who they belong to, their recovery, and where the
//! partitions are.
//!
//! One that fails on the way is left out and its partitions are offline, as in Kafka; the metadata
//! log's may not fail, nor all of them.

use std::path::{Path, PathBuf};

use super::moved::{self, Found};
use super::strays;
use crate::base::config::BrokerConfig;
use crate::base::ids::{TopicPartition, Uuid};
use crate::base::random::Random;
use crate::cluster::decide::{LocalDirectories, not_at_hand};
use crate::cluster::identity::{self, NodeIdentity};
use crate::cluster::image::Image;
use crate::io::task::JoinHandle;
use crate::io::{self, TaskClass};
use crate::log::{LogError, RecoveryOptions, RecoveryReport, recover};
use crate::shard::OfflineDirectory;

/// Directories recovered at the same time: each takes up to 16 MiB.
const RECOVERED_AT_ONCE: usize = 4;

/// A directory that serves.
#[derive(Clone, Debug)]
pub struct OnlineDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// `directory.id` of its `meta.properties`.
    pub id: Uuid,
    /// A shard's part of its journal, as recovery found it.
    pub journal_bytes_per_shard: u64,
    /// Whether its last owner closed it in order.
    pub was_sealed: bool,
}

/// All log directories of a start.
#[derive(Clone, Debug, Default)]
pub struct Directories {
    /// Those that serve, in the order of `log.dirs`.
    pub online: Vec<OnlineDirectory>,
    /// Those that do not.
    pub offline: Vec<OfflineDirectory>,
    /// Partitions that were on their way into another directory, and its id.
    pub moves: Vec<(TopicPartition, Uuid)>,
    metadata: PathBuf,
}

impl Directories {
    /// Looks at whom the directories of the settings belong to; those in `offline` are left out
    /// already.
    pub async fn identify(
        config: &BrokerConfig,
        offline: Vec<OfflineDirectory>,
        random: &mut Random,
    ) -> Result<(Self, NodeIdentity), String> {
        let metadata = config.metadata_log_dir().to_owned();
        let data = config.log_dirs.iter();
        let data = data.filter(|path| offline.iter().all(|left_out| left_out.path != **path));
        let mut all = vec![metadata.clone()];
        all.extend(data.clone().filter(|path| **path != metadata).cloned());
        let identity = identity::load_or_create(&all, config.node_id, random).await;
        let identity = identity.map_err(|refusal| refusal.to_string())?;
        let online = data.filter_map(|path| {
            Some(OnlineDirectory {
                path: path.clone(),
                id: *identity.directory_ids.get(path)?,
                journal_bytes_per_shard: 0,
                was_sealed: false,
            })
        });
        let mut directories = Self {
            online: online.collect(),
            offline,
            moves: Vec::new(),
            metadata,
        };
        for (path, reason) in &identity.failed {
            directories.leave_out(path, reason)?;
        }
        Ok((directories, identity))
    }

    /// Goes on without one.
    fn leave_out(&mut self, path: &Path, reason: &str) -> Result<(), String> {
        let failed = OfflineDirectory {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        if path == self.metadata {
            return Err(reason.to_owned());
        }
        self.online.retain(|directory| directory.path != path);
        tracing::error!("{}; its partitions do not serve", failed.told());
        self.offline.push(failed);
        match self.online.is_empty() {
            true => Err("no log directory is left".to_owned()),
            false => Ok(()),
        }
    }

    /// Recovers all of them, a few at a time.
    pub async fn recover(
        &mut self,
        options: impl Fn(PathBuf) -> RecoveryOptions,
    ) -> Result<(), String> {
        let paths: Vec<PathBuf> = self.online.iter().map(|one| one.path.clone()).collect();
        for some in paths.chunks(RECOVERED_AT_ONCE) {
            let begin = |path: &PathBuf| {
                let recovery = recover(options(path.clone()));
                (path.clone(), io::spawn(TaskClass::Background, recovery))
            };
            type Recovery = (PathBuf, JoinHandle<Result<RecoveryReport, LogError>>);
            let begun: Vec<Recovery> = some.iter().map(begin).collect();
            let mut refused = None;
            for (path, recovery) in begun {
                let outcome = self.take_report(&path, recovery.await);
                refused = refused.or(outcome.err());
            }
            if let Some(reason) = refused {
                return Err(reason);
            }
        }
        Ok(())
    }

    fn take_report(
        &mut self,
        path: &Path,
        outcome: Result<RecoveryReport, LogError>,
    ) -> Result<(), String> {
        let report = match outcome {
            Ok(report) => report,
            Err(error @ LogError::Io { .. }) => return self.leave_out(path, &error.to_string()),
            Err(error) => return Err(error.to_string()),
        };
        for notice in &report.notices {
            tracing::warn!("{notice}");
        }
        if !report.was_clean {
            let directory = path.display();
            tracing::info!(logs = report.logs_recovered, %directory, "recovered");
        }
        let directory = self
            .online
            .iter_mut()
            .find(|directory| directory.path == path);
        if let Some(directory) = directory {
            directory.journal_bytes_per_shard = report.journal_bytes_per_shard;
            directory.was_sealed = report.was_sealed;
        }
        Ok(())
    }

    /// Finds where the partitions of `image` are, and sets aside what belongs to none of this
    /// broker. What a move between directories has left is settled. As in Kafka
    /// (`LogManager.loadLog`) one that is in two directories keeps the broker from starting.
    pub async fn look(
        &mut self,
        image: &Image,
        random: &mut Random,
    ) -> Result<LocalDirectories, String> {
        let mut folders = Vec::new();
        for directory in self.online.clone() {
            match strays::set_aside(&directory.path, image, random).await {
                Ok(belonging) => folders.extend(belonging.into_iter().map(|one| Found {
                    partition: one.partition,
                    directory: directory.id,
                    path: directory.path.join(one.name),
                    is_future: one.is_future,
                })),
                Err(error) => {
                    let reason = format!("cannot look for partitions: {error}");
                    self.leave_out(&directory.path, &reason)?;
                }
            }
        }
        let online: Vec<Uuid> = self.online.iter().map(|directory| directory.id).collect();
        let settled = moved::settle(folders, image, &online, random).await?;
        self.moves = settled.moves;
        let found = settled.homes;
        let closed = self.online.iter().filter(|directory| directory.was_sealed);
        let local = LocalDirectories {
            online,
            are_all_online: self.offline.is_empty(),
            found,
            closed: closed.map(|directory| directory.id).collect(),
        };
        // Those that are offline were named before, by their paths; which of the ids are theirs is
        // not known here.
        if local.are_all_online {
            for (id, count) in not_at_hand(image, image.node_id(), &local) {
                tracing::error!(
                    "no directory of log.dirs has the directory.id {id}: the {count} partitions in \
                     it do not serve"
                );
            }
        }
        Ok(local)
    }
}
