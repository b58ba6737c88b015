//! The logs of one shard in one log directory: a journal and budgets of its own.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::closed::{Difference, key_of, read_closed};
use super::config::{LogConfig, LogIdentity};
use super::context::{FoundAtOpen, ShardContext};
use super::damage::{describe, mark_after, mark_damage, whole_prefix};
use super::error::LogError;
use super::format::file_names::{
    DAMAGE_MARK, FileState, LOG_ID, LOG_START_CHECKPOINT, LogFileKind, LogFileName,
    PARTITION_METADATA,
};
use super::format::partition_metadata;
use super::full_disk::DiskRoom;
use super::health::Health;
use super::journal::{Journal, JournalOptions};
use super::open::{list_folder, load, read_small};
use super::partition_log::{Log, LogEvent, LogParts, LogStatus};
use super::segment::{segment_path, step_max_for};
use crate::base::ids::{Offset, PartitionIndex, ShardId, TopicId, Uuid};
use crate::base::limits::write_buffer_bytes;
use crate::base::time::MonotonicNs;
use crate::io::{self, File, OpenOptions};
use crate::metrics::ShardMetrics;

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
    /// Where the shard counts and times its work.
    pub metrics: Rc<ShardMetrics>,
}

impl ShardLogsOptions {
    /// For the buffers of all writes in flight, beside the cache whose bytes they copy.
    #[must_use]
    pub fn write_buffer_bytes(&self) -> usize {
        write_buffer_bytes(self.cache_bytes)
    }
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
    /// Up to where it was cleaned, if it ever was.
    pub cleaned: Option<Offset>,
    /// The topic's id.
    pub topic_id: TopicId,
    /// Base offset and bytes of each of its segments.
    pub segments: Vec<(Offset, u64)>,
}

/// One shard's journal, logs and tail-cache budget in one log directory.
pub struct ShardLogs {
    context: Rc<ShardContext>,
}

impl ShardLogs {
    pub(crate) fn context(&self) -> &Rc<ShardContext> {
        &self.context
    }

    /// Opens the shard's journal. `recover` has run before on the same directory.
    ///
    /// # Errors
    /// What the file system answers; [`LogError::Refused`] where the disk is too small.
    pub async fn open(options: ShardLogsOptions) -> Result<Rc<Self>, LogError> {
        let health = Rc::new(Health::default());
        let flushes = super::open_flush_group(&options.directory).await?;
        let journal = JournalOptions::new(&options, Rc::clone(&health), flushes);
        let journal = Journal::open(journal).await?;
        let found = FoundAtOpen {
            reserve_step_max: step_max_for(&options.directory).await,
            log_starts: super::recovery::read_log_starts(&options.directory).await?,
            recovery_points: super::recovery::read_recovery_points(&options.directory).await?,
            closed: read_closed(&options.directory).await?,
        };
        let context = Rc::new(ShardContext::new(&options, health, journal, found));
        let watched = Rc::downgrade(&context);
        context.health.watch(move || {
            let Some(context) = watched.upgrade() else {
                return;
            };
            let logs: Vec<Rc<Log>> = context.logs.borrow().values().cloned().collect();
            logs.iter().for_each(|log| log.notify(LogEvent::Offline));
        });
        Ok(Rc::new(Self { context }))
    }

    /// Creates the folder and files of a new, empty log, durably. A failure of the device takes the
    /// directory offline.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn create_log(
        &self,
        identity: LogIdentity,
        config: LogConfig,
    ) -> Result<Rc<Log>, LogError> {
        self.context.health.check()?;
        let created = self.try_create(identity, config).await;
        created.inspect_err(|error| self.context.health.judge(error))
    }

    async fn try_create(
        &self,
        identity: LogIdentity,
        config: LogConfig,
    ) -> Result<Rc<Log>, LogError> {
        let folder: Rc<Path> = self.context.directory.join(identity.folder()).into();
        let failed = |error| LogError::io(format!("creating {}", folder.display()), error);
        io::directory::create(&folder).await.map_err(failed)?;
        let made = self
            .fill_folder(&folder, &identity, (Offset(0), Offset(0)))
            .await;
        if let Err(error) = made {
            // Nothing names the folder yet; a leftover would stand in the way of the next try.
            let _ = io::directory::remove_all(&folder).await;
            return Err(failed(error));
        }
        let log = self
            .open_folder(folder, identity, config, Offset(0))
            .await?;
        if log.damage().is_none() {
            log.begin_life().await?;
        }
        Ok(log)
    }

    /// Creates durably what every folder holds and this one does not: a crash may have come between
    /// the folder and its files. The first segment of a log that was never used begins at the first
    /// of the two offsets, that of one with an id at the second.
    pub(crate) async fn fill_folder(
        &self,
        folder: &Path,
        identity: &LogIdentity,
        (new_base, log_start): (Offset, Offset),
    ) -> std::io::Result<()> {
        let entries = io::directory::list(folder).await?;
        let has_metadata = entries.iter().any(|entry| entry.name == PARTITION_METADATA);
        let has_segment = entries.iter().any(|entry| {
            LogFileName::parse(&entry.name)
                .is_some_and(|name| name.state == FileState::Live && name.kind == LogFileKind::Log)
        });
        // A log that was in use and has no segment has lost it: an empty one would hide that.
        let was_used = entries
            .iter()
            .any(|entry| entry.name == DAMAGE_MARK || LogFileName::parse(&entry.name).is_some());
        let has_segment = has_segment || was_used;
        if has_metadata && has_segment {
            return Ok(());
        }
        if !has_metadata {
            let metadata = partition_metadata::encode(identity.topic_id);
            let path = folder.join(PARTITION_METADATA);
            self.context.flushes.write_file(&path, &metadata).await?;
        }
        if !has_segment {
            // Without an id it was never used: see `FolderListing::is_new`.
            let has_id = entries.iter().any(|entry| entry.name == LOG_ID);
            let base = if has_id { log_start } else { new_base };
            let path = segment_path(folder, base, LogFileKind::Log);
            let options = OpenOptions {
                write: true,
                create_new: true,
                ..OpenOptions::default()
            };
            let file = File::open(&path, options).await?;
            self.context.flushes.file(&file).await?;
        }
        self.context.flushes.names(folder).await?;
        self.context.flushes.names(&self.context.directory).await
    }

    /// Whether the folder of a log exists.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn has_folder(&self, identity: &LogIdentity) -> Result<bool, LogError> {
        let folder = self.context.directory.join(identity.folder());
        match io::directory::metadata(&folder).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                let error = LogError::io(format!("looking for {}", folder.display()), error);
                self.context.health.judge(&error);
                Err(error)
            }
        }
    }

    /// Opens a log whose folder exists. A failure of the device takes the directory offline.
    ///
    /// # Errors
    /// What the file system answers; [`LogError::Damaged`].
    pub async fn open_log(
        &self,
        identity: LogIdentity,
        config: LogConfig,
    ) -> Result<Rc<Log>, LogError> {
        self.context.health.check()?;
        let opened = self.try_open(identity, config).await;
        opened.inspect_err(|error| self.context.health.judge(error))
    }

    async fn try_open(
        &self,
        identity: LogIdentity,
        config: LogConfig,
    ) -> Result<Rc<Log>, LogError> {
        let folder: Rc<Path> = self.context.directory.join(identity.folder()).into();
        let key = (identity.topic.clone(), identity.partition);
        let log_start = self
            .context
            .log_starts
            .get(&key)
            .copied()
            .unwrap_or_default();
        self.check_owner(&folder, &identity).await?;
        let failed = |error| LogError::io(format!("completing {}", folder.display()), error);
        let filled = self
            .fill_folder(&folder, &identity, (Offset(0), log_start))
            .await;
        filled.map_err(failed)?;
        self.open_folder(folder, identity, config, log_start).await
    }

    /// The folder of a deleted topic stays while the disk has no room to remove it: a new topic of
    /// its name must not serve what it holds.
    async fn check_owner(&self, folder: &Path, identity: &LogIdentity) -> Result<(), LogError> {
        let bytes = read_small(&folder.join(PARTITION_METADATA)).await?;
        let owner = bytes.and_then(|bytes| partition_metadata::decode(&bytes).ok());
        match owner {
            Some(owner) if owner != identity.topic_id => Err(LogError::Refused(format!(
                "{} still belongs to another topic, {owner}",
                folder.display()
            ))),
            _ => Ok(()),
        }
    }

    async fn open_folder(
        &self,
        folder: Rc<Path>,
        identity: LogIdentity,
        config: LogConfig,
        log_start: Offset,
    ) -> Result<Rc<Log>, LogError> {
        self.context.health.check()?;
        let mut parts = self.load(folder, &identity, config, log_start).await?;
        let fault = parts.index_fault.take();
        let log = Log::new(&self.context, parts);
        if let Some(fault) = fault {
            tracing::warn!("{fault}: made again from its segment");
            log.store_active_index().await?;
        }
        log.check_indexes();
        log.active_segment().jitter_ms.set(log.draw_jitter());
        let mut logs = self.context.logs.borrow_mut();
        logs.insert(identity, Rc::clone(&log));
        self.context.cache.note_logs(logs.len());
        drop(logs);
        Ok(log)
    }

    /// Loads a folder at rest. One whose bytes are not what was closed is marked where its whole
    /// batches end, and named at every start.
    async fn load(
        &self,
        folder: Rc<Path>,
        identity: &LogIdentity,
        config: LogConfig,
        log_start: Offset,
    ) -> Result<LogParts, LogError> {
        let health = &self.context.health;
        let load = || {
            let (folder, identity) = (Rc::clone(&folder), identity.clone());
            load(health, folder, identity, config.clone(), log_start)
        };
        let key = (identity.topic.clone(), identity.partition);
        let known_end = self.context.recovery_points.get(&key).copied();
        let known_end = known_end.unwrap_or_default();
        let closed = self.context.closed.borrow_mut().remove(&key_of(identity));
        let closed = closed.unwrap_or_default();
        let what = match load().await {
            Ok(parts) if parts.damage.is_some() => None,
            // Kafka deletes all that is there then. Nothing was cut here, so nothing is known.
            Ok(parts) if parts.log_start > known_end.max(parts.recovery_point) => {
                let (start, end, folder) =
                    (parts.log_start, parts.recovery_point, folder.display());
                return Err(LogError::Damaged(format!(
                    "{folder} ends at offset {end}, and begins at {start} by \
                     {LOG_START_CHECKPOINT}: put that file right, or the segments back"
                )));
            }
            Ok(parts) => {
                let has_lost = parts.log_end < known_end && parts.has_derived;
                let end = || format!("the log ends at {}, before {known_end}", parts.log_end);
                let difference = Difference::find(&closed, &parts.sizes());
                let difference = difference.map(|difference| difference.cause());
                let Some(what) = difference.or_else(|| has_lost.then(end)) else {
                    return Ok(parts);
                };
                Some(what)
            }
            Err(LogError::Damaged(what)) => Some(what),
            Err(error) => return Err(error),
        };
        if let Some(what) = what {
            let sizes = list_folder(&folder).await?.segments;
            match Difference::find(&closed, &sizes) {
                Some(found) => mark_damage(&folder, &found.mark(&folder, known_end).await?).await?,
                None => self.mark(&folder, known_end, &what).await?,
            }
        }
        let parts = load().await?;
        if let Some(mark) = &parts.damage {
            tracing::error!(
                "{}. The partition serves what lies below and refuses the rest; restore the file \
                 from a copy, or delete the topic",
                describe(&folder, mark)
            );
        }
        Ok(parts)
    }

    async fn mark(&self, folder: &Path, durable_end: Offset, cause: &str) -> Result<(), LogError> {
        let prefix = whole_prefix(folder, None).await?;
        mark_after(folder, prefix, durable_end, cause).await?;
        Ok(())
    }

    /// Deletes a log: it takes nothing any more, and its folder is gone when this answers.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn delete_log(&self, log: &Rc<Log>) -> Result<(), LogError> {
        let deleted = log.delete().await;
        deleted.inspect_err(|error| self.context.health.judge(error))?;
        let mut logs = self.context.logs.borrow_mut();
        logs.remove(log.identity());
        self.context.cache.note_logs(logs.len());
        Ok(())
    }

    /// Writes everything back, cuts every file to its size, syncs, and empties the journal. The
    /// answers of all shards go to `seal_directory`, which ends a clean shutdown.
    ///
    /// # Errors
    /// [`LogError::Offline`] after a failed write: then the next start recovers.
    pub async fn close(&self) -> Result<Vec<ClosedLog>, LogError> {
        self.context.is_closing.set(true);
        let logs: Vec<Rc<Log>> = self.context.logs.borrow().values().cloned().collect();
        super::limited::for_each_limited(logs.clone(), LOGS_CLOSED_AT_ONCE, |log| async move {
            log.settle().await
        })
        .await?;
        self.context.journal.close();
        let mut closed = Vec::with_capacity(logs.len());
        for log in logs {
            log.set_status(LogStatus::Closed);
            if log.is_future() {
                // The next start removes the copy: nothing is to miss it.
                continue;
            }
            closed.push(ClosedLog {
                topic: log.identity().topic.clone(),
                partition: log.identity().partition,
                log_start_offset: log.log_start_offset(),
                recovery_point: log.log_end_offset(),
                cleaned: log.cleaned_to(),
                topic_id: log.identity().topic_id,
                segments: log.segment_sizes(),
            });
        }
        self.context.logs.borrow_mut().clear();
        Ok(closed)
    }

    /// The directory that holds the logs.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.context.directory
    }

    /// Where this shard counts and times its work.
    #[must_use]
    pub fn metrics(&self) -> &Rc<ShardMetrics> {
        &self.context.metrics
    }

    /// Journal cycles written since the shard opened.
    #[must_use]
    pub fn journal_cycles(&self) -> u64 {
        self.context.journal.cycles()
    }

    /// Bytes of the tail caches, pinned ones included, and of what is read ahead.
    #[must_use]
    pub fn cached_bytes(&self) -> usize {
        self.context.cache.used() + self.context.read_ahead.used()
    }

    /// Bytes of the tail caches, and how many they may be.
    #[must_use]
    pub fn cache_fill(&self) -> (usize, usize) {
        let cache = &self.context.cache;
        (cache.used(), cache.bytes_max())
    }

    /// Bytes of the journal's ring that hold what is not written back, and its size.
    #[must_use]
    pub fn journal_fill(&self) -> (u64, u64) {
        self.context.journal.fill()
    }

    /// Lets go of all logs and of what waits for the journal, which hold each other: a simulated
    /// process has ended, and thousands more follow it in this one.
    #[cfg(feature = "sim")]
    pub fn forget(&self) {
        let logs = std::mem::take(&mut *self.context.logs.borrow_mut());
        logs.values().for_each(|log| log.journal_queue().forget());
        self.context.journal.forget();
    }

    /// How long the journal has waited for the disk's answer to a write.
    #[must_use]
    pub fn disk_silence(&self, now: MonotonicNs) -> Duration {
        let since = self.context.journal.waits_since();
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Tells how much room the disk has, see [`DiskRoom`].
    pub fn set_disk_room(&self, room: DiskRoom) {
        self.context.full_disk.set_room(room);
    }

    /// Whether the directory is offline.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.context.health.is_offline()
    }

    /// What has taken the directory offline, if something has.
    #[must_use]
    pub fn offline_reason(&self) -> Option<String> {
        self.context.health.reason()
    }

    /// Takes the directory offline: nothing more is acknowledged, what waits is answered.
    pub fn take_offline(&self, reason: &str) {
        self.context.health.fail(reason);
    }

    /// Waits until something takes the directory offline; answers what.
    pub async fn wait_offline(&self) -> String {
        let health = &self.context.health;
        health.waiters().wait_for(|| health.reason()).await
    }
}

/// Logs written back at the same time while a shard closes.
const LOGS_CLOSED_AT_ONCE: usize = 256;
