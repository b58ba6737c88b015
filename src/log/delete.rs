//! Deleting a log and cutting it: changes of its shape that the journal must know before the files
//! do (JOURNAL §6).

use std::rc::Rc;

use bytes::Bytes;

use super::error::LogError;
use super::format::file_names::FolderState;
use super::format::file_names::marked_partition_folder;
use super::journal::record::{RecordHeader, RecordKind};
use super::journal::{Entry, Result, Signal};
use super::partition_log::{Log, LogStatus};
use crate::base::ids::Offset;
use crate::io;

impl Log {
    /// Ends the log: nothing waits on it any more, and its folder is gone, durably.
    pub(crate) async fn delete(self: &Rc<Self>) -> Result<()> {
        if self.status.get() != LogStatus::Open {
            return Err(LogError::Closed);
        }
        self.set_status(LogStatus::Deleting);
        self.shard.journal.room.wake_all();
        let _turn = self.order.take().await;
        self.wait_for_own_writes().await?;
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
        let removed = self.remove_folder().await;
        removed.map_err(|error| self.left_half_done(error))?;
        let (charge, pinned) = self.tail.borrow_mut().truncate(Offset(i64::MIN));
        self.shard.cache.drop_cached(charge, pinned);
        self.read_ahead.clear();
        self.is_truncating.set(false);
        self.set_status(LogStatus::Gone);
        self.segments
            .borrow()
            .values()
            .for_each(|segment| segment.note_cut());
        Ok(())
    }

    /// Waits for every write in flight of this log, also those whose future was dropped.
    async fn wait_for_own_writes(&self) -> Result<()> {
        self.wait_all_durable().await?;
        self.wait_until_left().await?;
        self.wait_until_named().await?;
        let segments: Vec<_> = self.segments.borrow().values().cloned().collect();
        for segment in segments {
            if segment.is_sealed.get() {
                let finished = || segment.is_finished.get().then_some(());
                self.shard.health.race(&segment.waiters, finished).await?;
            } else {
                segment.wait_for_writes().await?;
            }
            segment.close_files();
        }
        Ok(())
    }

    async fn remove_folder(&self) -> Result<()> {
        let identity = self.identity();
        let unique = u128::from_be_bytes(self.shard.next_uuid().0);
        let (topic, partition) = (identity.topic.as_str(), identity.partition);
        let name = marked_partition_folder(topic, partition, unique, FolderState::Delete);
        let marked = self.shard.directory.join(name);
        let failed = |error| LogError::io(format!("deleting {}", self.folder.display()), error);
        io::directory::rename(&self.folder, &marked)
            .await
            .map_err(failed)?;
        let flushes = &self.shard.flushes;
        flushes.names(&self.shard.directory).await.map_err(failed)?;
        io::directory::remove_all(&marked).await.map_err(failed)
    }
}
