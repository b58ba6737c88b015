//! Deleting a log and cutting it: changes of its shape that the journal must know before the files
//! do (JOURNAL §6).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;

use super::error::LogError;
use super::format::file_names::{FolderState, LOG_ID, PARTITION_METADATA, marked_partition_folder};
use super::journal::record::{RecordHeader, RecordKind};
use super::journal::{Entry, Result, Signal};
use super::partition_log::{Log, LogStatus};
use super::removal;
use super::roll::RETRY_DELAY;
use crate::base::ids::Offset;
use crate::io::{self, FileUse, TaskClass};

impl Log {
    /// Ends the log: nothing waits on it any more, and its folder is gone, durably.
    ///
    /// # Errors
    /// A full disk is told at once; the folder then goes as soon as there is room.
    pub(crate) async fn delete(self: &Rc<Self>) -> Result<()> {
        if self.status.get() != LogStatus::Open {
            return Err(LogError::Closed);
        }
        self.set_status(LogStatus::Deleting);
        self.shard.journal.room.wake_all();
        self.wait_until_not_cleaning().await?;
        let _shape = self.shape.take().await;
        let _turn = self.order.take().await;
        let uses = self.wait_for_own_writes().await?;
        // From here on nobody writes to the files: whoever would waits until they are gone.
        self.is_truncating.set(true);
        if let Some(log_id) = self.log_id() {
            let signal = Signal::new(&self.shard.health);
            let segment = self.active_segment();
            let position = segment.size.get();
            let header = RecordHeader {
                end_before: self.log_end_offset(),
                end_after: self.log_end_offset(),
                ..RecordHeader::new(RecordKind::Delete, log_id, segment.base_offset, position)
            };
            self.shard
                .journal
                .enqueue(self, Entry::control(header, Bytes::new(), signal.add()));
            signal.wait(&self.shard.health).await?;
        }
        let marked = self.marked_folder();
        if let Err(error) = self.remove_folder(&marked, uses).await {
            if error.is_full_disk() {
                io::spawn(
                    TaskClass::Background,
                    Rc::clone(self).remove_in_time(marked),
                );
            }
            return Err(self.left_half_done(error));
        }
        self.leave();
        Ok(())
    }

    /// The folder is gone: whoever waits for the log goes on without it.
    fn leave(&self) {
        let (charge, pinned) = self.tail.borrow_mut().truncate(Offset(i64::MIN));
        self.shard.cache.drop_cached(charge, pinned);
        self.read_ahead.clear();
        self.is_truncating.set(false);
        self.set_status(LogStatus::Gone);
        self.segments
            .borrow()
            .values()
            .for_each(|segment| segment.note_cut());
    }

    /// Tries to remove the folder until the disk has room for that. Meanwhile the journal cannot go
    /// past the log's last record, so whoever would wait for the ring is refused. A shard that
    /// closes leaves the folder to the next start.
    async fn remove_in_time(self: Rc<Self>, marked: PathBuf) {
        let short_of_disk = self.shard.note_short_of_disk();
        loop {
            io::sleep(RETRY_DELAY).await;
            if self.shard.is_closing.get() || self.shard.health.is_offline() {
                return;
            }
            match self.remove_folder(&marked, Vec::new()).await {
                Ok(()) => break,
                Err(error) if error.is_full_disk() => tracing::warn!(%error, "trying again"),
                Err(error) => {
                    self.left_half_done(error);
                    return;
                }
            }
        }
        drop(short_of_disk);
        self.leave();
        let is_this = |log: &Rc<Self>| Rc::ptr_eq(log, &self);
        let mut logs = self.shard.logs.borrow_mut();
        if logs.get(self.identity()).is_some_and(is_this) {
            logs.remove(self.identity());
        }
    }

    /// Waits for every write in flight of this log, also those whose future was dropped. Answers
    /// who may be reading still.
    async fn wait_for_own_writes(&self) -> Result<Vec<FileUse>> {
        self.wait_all_durable().await?;
        self.wait_until_left().await?;
        self.wait_until_named().await?;
        let segments: Vec<_> = self.segments.borrow().values().cloned().collect();
        let mut uses = Vec::new();
        for segment in segments {
            if segment.is_sealed.get() {
                let finished = || segment.is_finished.get().then_some(());
                self.shard.health.race(&segment.waiters, finished).await?;
            } else {
                segment.wait_for_writes().await?;
            }
            uses.extend(segment.uses());
            segment.close_files();
        }
        Ok(uses)
    }

    /// The name under which the folder waits for its removal.
    fn marked_folder(&self) -> PathBuf {
        let identity = self.identity();
        let unique = u128::from_be_bytes(self.shard.next_uuid().0);
        let (topic, partition) = (identity.topic.as_str(), identity.partition);
        let name = marked_partition_folder(topic, partition, unique, FolderState::Delete);
        self.shard.directory.join(name)
    }

    /// Removes the folder; again where an earlier try has left it.
    async fn remove_folder(&self, marked: &Path, uses: Vec<FileUse>) -> Result<()> {
        let failed = |error| LogError::io(format!("deleting {}", self.folder.display()), error);
        if let Err(error) = io::directory::rename(&self.folder.path(), marked).await {
            match error.kind() {
                // By an earlier try.
                ErrorKind::NotFound => {}
                // Even a name may need a block; those of the records are free to take.
                ErrorKind::StorageFull => {
                    self.remove_records().await.map_err(failed)?;
                    let renamed = io::directory::rename(&self.folder.path(), marked).await;
                    renamed.map_err(failed)?;
                }
                _ => return Err(failed(error)),
            }
        }
        let flushes = &self.shard.flushes;
        flushes.names(&self.shard.directory).await.map_err(failed)?;
        match removal::remove_folder(&self.shard, marked, uses).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Removes all files but those that say whose the folder is: recovery goes by them, and a new
    /// topic of the name must not take the folder for its own.
    async fn remove_records(&self) -> std::io::Result<()> {
        for entry in io::directory::list(&self.folder.path()).await? {
            if ![PARTITION_METADATA, LOG_ID].contains(&entry.name.as_str()) {
                io::directory::remove_file(&self.folder.join(&entry.name)).await?;
            }
        }
        io::directory::sync(&self.folder.path()).await
    }
}
