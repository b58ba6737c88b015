//! Retention: the oldest segments go when a log is larger or older than it may be, or when its
//! start has passed them (`UnifiedLog.deleteOldSegments`).
//!
//! The journal knows first: the new log start, and that no record of what goes is needed any more
//! (JOURNAL §6). Then the files change their names, and after `file.delete.delay.ms` they are
//! gone. A crash between leaves files below the log's start, which the next pass takes, or files
//! named `.deleted`, which the next start removes.

use std::fmt;
use std::path::Path;
use std::rc::Rc;

use super::config::LogConfig;
use super::error::LogError;
use super::format::file_names::{FileState, LogFileKind, LogFileName};
use super::journal::record::RecordKind;
use super::journal::{Result, Signal};
use super::open::list_folder;
use super::partition_log::Log;
use super::removal::{Marked, remove_at_once};
use super::segment::{Segment, segment_path};
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::io;

/// Why a segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionCause {
    /// The log starts past its end.
    LogStart,
    /// The log without it still holds `retention.bytes`.
    Bytes,
    /// Its newest record is older than `retention.ms`.
    Time,
}

impl fmt::Display for RetentionCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::LogStart => "the log starts past it",
            Self::Bytes => "retention.bytes",
            Self::Time => "retention.ms",
        })
    }
}

/// A segment that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedSegment {
    /// Its base offset.
    pub base_offset: Offset,
    /// Its size.
    pub bytes: u64,
    /// Why it went.
    pub cause: RetentionCause,
}

/// What retention looks at of one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFacts {
    pub(crate) base_offset: Offset,
    pub(crate) bytes: u64,
    /// The largest of its records, or the time of its file where they have none.
    pub(crate) largest_timestamp: TimestampMs,
}

/// What decides which segments go. Pure.
pub(crate) struct RetentionQuestion<'a> {
    pub(crate) config: &'a LogConfig,
    /// All of them, oldest first.
    pub(crate) segments: &'a [SegmentFacts],
    pub(crate) log_start: Offset,
    pub(crate) log_end: Offset,
    pub(crate) high_watermark: Offset,
    pub(crate) now: TimestampMs,
}

impl RetentionQuestion<'_> {
    /// One cause for each segment that goes, oldest first. With all of them the last is to be
    /// rolled first.
    pub(crate) fn causes(&self) -> Vec<RetentionCause> {
        let mut causes = Vec::new();
        self.take(&mut causes, RetentionCause::LogStart, |_, next| {
            next.is_some_and(|next| next <= self.log_start)
        });
        if !self.config.deletes {
            return causes;
        }
        if let Some(bytes_max) = self.config.retention_bytes {
            let left = self.segments.iter().skip(causes.len());
            let size: u64 = left.map(|segment| segment.bytes).sum();
            let mut excess = size.checked_sub(bytes_max);
            self.take(&mut causes, RetentionCause::Bytes, |segment, _| {
                excess = excess.and_then(|excess| excess.checked_sub(segment.bytes));
                excess.is_some()
            });
        }
        if let Some(ms_max) = self.config.retention_ms {
            self.take(&mut causes, RetentionCause::Time, |segment, _| {
                let age = self.now.0.saturating_sub(segment.largest_timestamp.0);
                u64::try_from(age).is_ok_and(|age| age > ms_max)
            });
        }
        causes
    }

    /// Adds `cause` for each further segment that `may_go` with the base offset of the next, up to
    /// the first that may not, or that holds what is not below the high watermark.
    fn take(
        &self,
        causes: &mut Vec<RetentionCause>,
        cause: RetentionCause,
        mut may_go: impl FnMut(&SegmentFacts, Option<Offset>) -> bool,
    ) {
        while let Some(segment) = self.segments.get(causes.len()) {
            let next = self.segments.get(causes.len() + 1);
            let next = next.map(|next| next.base_offset);
            let is_last_and_empty = next.is_none() && segment.bytes == 0;
            let is_below = next.unwrap_or(self.log_end) <= self.high_watermark;
            if is_last_and_empty || !is_below || !may_go(segment, next) {
                break;
            }
            causes.push(cause);
        }
    }
}

impl Log {
    /// Lets the segments go that retention does not keep; answers which.
    ///
    /// # Errors
    /// [`LogError`] when the journal or the folder does not take the change.
    pub async fn delete_old_segments(
        self: &Rc<Self>,
        high_watermark: Offset,
    ) -> Result<Vec<DeletedSegment>> {
        if self.check_writable().is_err() {
            // What is damaged or going is not touched.
            return Ok(Vec::new());
        }
        let _shape = self.shape.take().await;
        let (facts, log_end) = self.segment_facts().await;
        let config = self.config();
        let question = RetentionQuestion {
            config: &config,
            segments: &facts,
            log_start: self.log_start_offset(),
            log_end,
            high_watermark: high_watermark.min(self.durable_end()),
            now: io::wall_clock(),
        };
        let causes = question.causes();
        let mut deleted: Vec<DeletedSegment> = facts
            .iter()
            .zip(&causes)
            .map(|(facts, cause)| DeletedSegment {
                base_offset: facts.base_offset,
                bytes: facts.bytes,
                cause: *cause,
            })
            .collect();
        if deleted.len() == facts.len() && !self.roll_at(log_end).await? {
            deleted.pop();
        }
        let Some(last) = deleted.last() else {
            return Ok(deleted);
        };
        let left = async {
            let gone = self.leave_behind(last.base_offset).await?;
            self.mark_deleted(&gone).await
        };
        let left = left.await;
        left.inspect_err(|error| self.shard.health.judge(error))?;
        Ok(deleted)
    }

    async fn segment_facts(&self) -> (Vec<SegmentFacts>, Offset) {
        let segments: Vec<Rc<Segment>> = self.segments.borrow().values().cloned().collect();
        let mut facts = Vec::with_capacity(segments.len());
        for segment in &segments {
            // Read when a limit of time asks for it alone.
            let largest_timestamp = match self.config().retention_ms {
                Some(_) => largest_timestamp(self, segment).await,
                None => TimestampMs::NONE,
            };
            facts.push(SegmentFacts {
                base_offset: segment.base_offset,
                bytes: 0,
                largest_timestamp,
            });
        }
        for (facts, segment) in facts.iter_mut().zip(&segments) {
            facts.bytes = segment.size.get();
        }
        // A segment that has begun meanwhile is younger than all of these: its turn comes later.
        let next = self.segments.borrow();
        let next = segments.last().and_then(|last| {
            let mut later = next.range(last.base_offset.0 + 1..);
            later.next().map(|(base, _)| Offset(*base))
        });
        (facts, next.unwrap_or(self.log_end_offset()))
    }

    /// Begins a new segment if the log still ends at `end`.
    async fn roll_at(self: &Rc<Self>, end: Offset) -> Result<bool> {
        let _turn = self.order.take().await;
        self.check_writable()?;
        if self.log_end_offset() != end {
            return Ok(false);
        }
        if self.active_segment().size.get() == 0 {
            return Ok(true);
        }
        if self.log_id().is_none() {
            self.begin_life().await?;
        }
        self.roll().await?;
        Ok(true)
    }

    /// Takes the segments up to the one at `last` out of the log, once the journal knows, durably,
    /// that it starts behind them and that nothing in them is to be written again.
    async fn leave_behind(self: &Rc<Self>, last: Offset) -> Result<Vec<Rc<Segment>>> {
        let gone: Vec<Rc<Segment>> = {
            let segments = self.segments.borrow();
            segments
                .range(..=last.0)
                .map(|(_, gone)| gone)
                .cloned()
                .collect()
        };
        for segment in &gone {
            self.wait_until_finished(segment).await?;
        }
        let _turn = self.order.take().await;
        self.check_writable()?;
        let next = {
            let segments = self.segments.borrow();
            segments
                .range(last.0 + 1..)
                .next()
                .map(|(base, _)| Offset(*base))
        };
        let Some(start) = next else {
            return Ok(Vec::new());
        };
        if self.log_id().is_none() {
            self.begin_life().await?;
        }
        self.move_log_start(start).await?;
        let signal = Signal::new(&self.shard.health);
        self.queue_watermark(&signal);
        signal.wait(&self.shard.health).await?;
        let mut segments = self.segments.borrow_mut();
        let kept = segments.split_off(&start.0);
        let gone = std::mem::replace(&mut *segments, kept);
        Ok(gone.into_values().collect())
    }

    /// Moves the log's start to `start`, durably, unless it is there already. The caller has the
    /// log's turn.
    pub(crate) async fn move_log_start(self: &Rc<Self>, start: Offset) -> Result<()> {
        if start <= self.log_start_offset() {
            return Ok(());
        }
        let (base, position) = self.ends.durable_place.get();
        self.record_change(RecordKind::LogStart, (Offset(base), position), start)
            .await?;
        self.ends.log_start.set(start);
        self.producers.borrow_mut().on_log_start(start);
        self.epochs.borrow_mut().truncate_from_start(start);
        Ok(())
    }

    /// Gives the files of segments that have left the log their last names, and removes them after
    /// `file.delete.delay.ms`. A log that is deleted meanwhile takes them along.
    async fn mark_deleted(&self, gone: &[Rc<Segment>]) -> Result<()> {
        let Some(last) = gone.last() else {
            return Ok(());
        };
        let mut marked = Marked::default();
        for segment in gone {
            segment.leave().await;
            marked.uses.extend(segment.uses());
            segment.close_files();
            for kind in LogFileKind::ALL {
                marked
                    .paths
                    .extend(self.mark_file(segment.base_offset, kind).await?);
            }
        }
        for snapshot in list_folder(&self.folder.path()).await?.snapshots {
            if snapshot <= last.base_offset {
                let kind = LogFileKind::ProducerSnapshot;
                marked.paths.extend(self.mark_file(snapshot, kind).await?);
            }
        }
        self.remove_later(marked);
        Ok(())
    }

    /// Gives a file its last name; answers that, if there was such a file.
    pub(crate) async fn mark_file(
        &self,
        offset: Offset,
        kind: LogFileKind,
    ) -> Result<Option<Box<Path>>> {
        let live = segment_path(&self.folder.path(), offset, kind);
        let state = FileState::Deleted;
        let name = LogFileName {
            offset,
            kind,
            state,
        };
        let marked = self.folder.join(name.to_string());
        match io::directory::rename(&live, &marked).await {
            Ok(()) => Ok(Some(marked.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::io(format!("renaming {}", live.display()), error)),
        }
    }
}

/// The largest timestamp of a segment's records; where they have none, that of its file. One whose
/// times are not known is as young as can be.
async fn largest_timestamp(log: &Log, segment: &Rc<Segment>) -> TimestampMs {
    let Ok(largest) = log.max_timestamp_of(segment).await else {
        return TimestampMs(i64::MAX);
    };
    if largest > TimestampMs::NONE {
        return largest;
    }
    match io::directory::metadata(&segment.path()).await {
        Ok(metadata) => metadata.modified,
        Err(_) => TimestampMs(i64::MAX),
    }
}

/// Removes what a retention before this start has given its last name.
pub(crate) async fn remove_marked(folder: &Path, names: &[String]) {
    let is_marked = |name: &LogFileName| name.state == FileState::Deleted;
    for name in names {
        if LogFileName::parse(name).is_some_and(|name| is_marked(&name)) {
            remove_at_once(&folder.join(name)).await;
        }
    }
}

#[cfg(test)]
#[path = "retention_test.rs"]
mod retention_test;
