//! A new segment takes the place of those that it was made of (`UnifiedLog.replaceSegments`): the
//! order of the steps is in the head of the folder.

use std::rc::Rc;

use super::pass::Source;
use super::writer::{Cleaned, SEGMENT_KINDS, path_in};
use crate::base::ids::Offset;
use crate::io;
use crate::log::error::LogError;
use crate::log::format::file_names::{FileState, LogFileKind};
use crate::log::journal::{Result, Signal};
use crate::log::partition_log::Log;
use crate::log::removal::Marked;
use crate::log::segment::Segment;

/// Durable cycles that say that the old bytes are named no more: one of them may be damaged.
const CYCLES: usize = 2;

impl Log {
    /// Puts the new segment in the place of the group's.
    ///
    /// # Errors
    /// [`LogError::Closed`] where the log has changed meanwhile, and what the file system answers:
    /// the log has its old segments then, or its directory is offline.
    pub(super) async fn replace(self: &Rc<Self>, group: &[Source], cleaned: Cleaned) -> Result<()> {
        let _shape = self.shape.take().await;
        self.check_writable()?;
        self.check_unchanged(group)?;
        self.forget_records().await?;
        let new = self.open_cleaned(&cleaned).await?;
        for source in group {
            // Whoever has it goes on in its file, whatever becomes of the names.
            source.segment.hold_open().await?;
        }
        let base = cleaned.base;
        if let Err(error) = self
            .rename_all(base, FileState::Cleaned, FileState::Swap)
            .await
        {
            return Err(self.take_back(base, error).await);
        }
        // From here on only forward.
        self.exchange(group, &new, cleaned);
        for source in group {
            source.segment.leave().await;
        }
        let finished = self.finish_exchange(group, base).await;
        finished.map_err(|error| self.left_half_done(error))?;
        new.close_files();
        Ok(())
    }

    /// Every segment of the group is what it was when the pass began.
    fn check_unchanged(&self, group: &[Source]) -> Result<()> {
        let segments = self.segments.borrow();
        let is_same = |source: &Source| {
            let segment = &source.segment;
            let known = segments.get(&segment.base_offset.0);
            let mut later = segments.range(segment.base_offset.0 + 1..);
            let next = later.next().map(|(base, _)| Offset(*base));
            known.is_some_and(|known| Rc::ptr_eq(known, segment))
                && segment.is_finished.get()
                && segment.cuts.get() == source.cuts
                && next == Some(source.end)
        };
        let is_outdated = self.cleaning.is_outdated.get() || self.is_truncating.get();
        match group.iter().all(is_same) && !is_outdated && self.config().compacted {
            true => Ok(()),
            false => Err(LogError::Closed),
        }
    }

    /// No live record of the journal names bytes of finished segments once this answers.
    async fn forget_records(self: &Rc<Self>) -> Result<()> {
        for _ in 0..CYCLES {
            let signal = Signal::new(&self.shard.health);
            self.queue_watermark(&signal);
            signal.wait(&self.shard.health).await?;
        }
        Ok(())
    }

    /// The new segment, whose file is open and stays so while its name changes.
    async fn open_cleaned(&self, cleaned: &Cleaned) -> Result<Rc<Segment>> {
        let (folder, health) = (self.folder.clone(), &self.shard.health);
        let new = Segment::new_finished(cleaned.base, folder, health, cleaned.bytes);
        let path = path_in(
            &self.folder.path(),
            cleaned.base,
            LogFileKind::Log,
            FileState::Cleaned,
        );
        new.hold_open_at(&path).await?;
        new.first_timestamp.set(cleaned.first_timestamp);
        new.largest_timestamp.set(Some(cleaned.index.max_timestamp));
        new.indexing.is_proven.set(true);
        Ok(new)
    }

    /// Renames a segment's files, the batches last, durably.
    async fn rename_all(&self, base: Offset, from: FileState, to: FileState) -> Result<()> {
        for kind in SEGMENT_KINDS {
            let (old, new) = (
                path_in(&self.folder.path(), base, kind, from),
                path_in(&self.folder.path(), base, kind, to),
            );
            match io::directory::rename(&old, &new).await {
                // There is not always one of transactions, and an earlier try may have come so far.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                renamed => renamed
                    .map_err(|error| LogError::io(format!("renaming {}", old.display()), error))?,
            }
        }
        self.sync_names().await
    }

    async fn sync_names(&self) -> Result<()> {
        let synced = self.shard.flushes.names(&self.folder.path()).await;
        synced.map_err(|error| LogError::io(format!("syncing {}", self.folder.display()), error))
    }

    /// The names could not be changed: nothing of the new segment may stay, or the next start would
    /// put it in a place that is not the same any more.
    async fn take_back(&self, base: Offset, error: LogError) -> LogError {
        for kind in SEGMENT_KINDS.into_iter().rev() {
            let path = path_in(&self.folder.path(), base, kind, FileState::Swap);
            match io::directory::remove_file(&path).await {
                Err(left) if left.kind() != std::io::ErrorKind::NotFound => {
                    let reason = format!("removing {} failed: {left}", path.display());
                    self.shard.health.fail(reason);
                    break;
                }
                _ => {}
            }
        }
        error
    }

    /// The log has the new segment from here on. Nothing waits in between.
    fn exchange(&self, group: &[Source], new: &Rc<Segment>, cleaned: Cleaned) {
        *new.index.borrow_mut() = Some(cleaned.index);
        {
            let mut segments = self.segments.borrow_mut();
            for source in group {
                segments.remove(&source.segment.base_offset.0);
            }
            segments.insert(new.base_offset.0, Rc::clone(new));
        }
        let last = group.last().map(|source| source.segment.base_offset);
        let charge = self.tail.borrow_mut().drop_up_to(last.unwrap_or_default());
        self.shard.cache.drop_cached(charge, 0);
        self.read_ahead.clear();
    }

    /// The files follow: the old ones are marked, the new ones get their names.
    async fn finish_exchange(&self, group: &[Source], base: Offset) -> Result<()> {
        let mut marked = Marked::default();
        for source in group {
            let old = source.segment.base_offset;
            marked.uses.extend(source.segment.uses());
            let kept = |kind: LogFileKind| kind == LogFileKind::ProducerSnapshot && old == base;
            for kind in LogFileKind::ALL {
                if !kept(kind) {
                    self.in_time(async || {
                        marked.paths.extend(self.mark_file(old, kind).await?);
                        Ok(())
                    })
                    .await?;
                }
            }
        }
        self.in_time(async || self.sync_names().await).await?;
        self.in_time(async || {
            self.rename_all(base, FileState::Swap, FileState::Live)
                .await
        })
        .await?;
        self.remove_later(marked);
        Ok(())
    }
}
