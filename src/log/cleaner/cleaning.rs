//! What a log is asked and answers about its cleaning; one is under way at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::mark::CleanedMark;
use super::pace::CleanerPace;
use super::pass::Pass;
use super::question::{CleanQuestion, Cleanable, SegmentFacts};
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::io;
use crate::log::DiskRoom;
use crate::log::error::LogError;
use crate::log::journal::Result;
use crate::log::partition_log::Log;
use crate::log::scan::Scanner;
use crate::log::segment::Segment;

/// How a log is cleaned.
#[derive(Clone)]
pub struct CleanOptions {
    /// Nothing at or past it is touched.
    pub last_stable_offset: Offset,
    /// Bytes that the map of keys may take.
    pub table_bytes: usize,
    /// How full it may become (`log.cleaner.io.buffer.load.factor`).
    pub load_factor: f64,
    /// Bytes read, and looked at, at a time.
    pub buffer_bytes: usize,
    /// Bytes a second that all cleanings may read and write now.
    pub rate: Rc<dyn Fn() -> f64>,
    /// Shared with all others.
    pub pace: Arc<CleanerPace>,
}

/// What a cleaning did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CleanStats {
    /// Where the dirty part began, and where the next one begins.
    pub first_dirty: Offset,
    /// See `first_dirty`.
    pub cleaned_to: Offset,
    /// Segments before and after.
    pub segments: (usize, usize),
    /// Buffers that were read, for the map and for the new segments.
    pub reads: u64,
    /// Bytes that went into the map.
    pub bytes_mapped: u64,
    /// Bytes that were gone through, and those that stayed.
    pub bytes_read: u64,
    /// See `bytes_read`.
    pub bytes_written: u64,
    /// Records gone through.
    pub records_read: u64,
    /// Records that stayed.
    pub records_kept: u64,
    /// Part of the map's memory that was needed.
    pub table_use: f64,
    /// How long it took.
    pub took: Duration,
}

/// How a cleaning ended.
#[derive(Clone, Debug, PartialEq)]
pub enum CleanOutcome {
    /// There was nothing to clean.
    Nothing,
    /// It came to its end.
    Cleaned(CleanStats),
    /// The log, or its shard, changes or closes: what was replaced stays so.
    Interrupted,
    /// It cannot be cleaned, and why.
    Uncleanable(String),
}

/// What a log knows of its cleaning.
#[derive(Default)]
pub(crate) struct Cleaning {
    /// What the folder's file says.
    pub(crate) mark: Cell<CleanedMark>,
    pub(crate) is_under_way: Cell<bool>,
    /// The log was cut since the one under way began: its table may hold what is gone.
    pub(crate) is_outdated: Cell<bool>,
    /// Why it is left alone, and, where more memory would help, with how much it was tried.
    pub(crate) uncleanable: RefCell<Option<(String, Option<usize>)>>,
}

impl Cleaning {
    /// Of a log whose folder says so.
    pub(crate) fn new(mark: CleanedMark) -> Self {
        Self {
            mark: Cell::new(mark),
            ..Self::default()
        }
    }
}

impl Log {
    /// Up to where it was cleaned, if it ever was.
    #[must_use]
    pub fn cleaned_to(&self) -> Option<Offset> {
        let cleaned = self.cleaning.mark.get().cleaned_to;
        (cleaned > Offset(0)).then_some(cleaned)
    }

    /// Why it is not cleaned with a map of so many bytes, if it is not.
    #[must_use]
    pub fn uncleanable(&self, table_bytes: usize) -> Option<String> {
        let known = self.cleaning.uncleanable.borrow();
        let still = |with: &Option<usize>| with.is_none_or(|with| table_bytes <= with);
        let told = known.as_ref().filter(|(_, with)| still(with));
        told.map(|(what, _)| what.clone())
    }

    /// Whether the disk has room for a new segment beside the old ones.
    #[must_use]
    pub fn has_room_to_clean(&self) -> bool {
        self.shard.full_disk.room() != DiskRoom::Reserve
    }

    /// What may be cleaned now.
    ///
    /// # Errors
    /// [`LogError`] where the segments' times cannot be read.
    pub async fn cleanable(&self, last_stable_offset: Offset) -> Result<Cleanable> {
        let config = self.config();
        let segments: Vec<Rc<Segment>> = self.segments.borrow().values().cloned().collect();
        let mut facts = Vec::with_capacity(segments.len());
        for segment in &segments {
            let is_finished = segment.is_finished.get();
            let largest_timestamp = match config.min_compaction_lag_ms > 0 && is_finished {
                true => self.max_timestamp_of(segment).await?,
                false => TimestampMs::NONE,
            };
            let first_timestamp = match config.max_compaction_lag_ms < i64::MAX as u64 {
                true => first_timestamp(segment).await,
                false => TimestampMs::NONE,
            };
            facts.push(SegmentFacts {
                base_offset: segment.base_offset,
                bytes: segment.size.get(),
                first_timestamp,
                largest_timestamp,
                is_finished,
            });
        }
        let question = CleanQuestion {
            config: &config,
            segments: &facts,
            log_start: self.log_start_offset(),
            log_end: self.log_end_offset(),
            last_stable: last_stable_offset.min(self.durable_end()),
            recovery_point: self.recovery_point(),
            cleaned: self.cleaned_to(),
            now: io::wall_clock(),
        };
        Ok(question.answer())
    }

    /// Cleans what may be cleaned now.
    ///
    /// # Errors
    /// [`LogError::Io`], [`LogError::Offline`]; the log is as whole as before.
    pub async fn clean(self: &Rc<Self>, options: &CleanOptions) -> Result<CleanOutcome> {
        let is_free = self.check_writable().is_ok() && !self.is_moving();
        if !is_free || self.cleaning.is_under_way.replace(true) {
            return Ok(CleanOutcome::Interrupted);
        }
        self.cleaning.is_outdated.set(false);
        let cleaned = self.try_clean(options).await;
        self.cleaning.is_under_way.set(false);
        self.waiters.wake_all();
        let what = match cleaned {
            Err(_) if self.is_over() => return Ok(CleanOutcome::Interrupted),
            Err(LogError::Closed) => return Ok(CleanOutcome::Interrupted),
            Err(LogError::Damaged(what)) => (what, None),
            Err(LogError::Refused(what)) => (what, Some(options.table_bytes)),
            cleaned => return cleaned.inspect_err(|error| self.shard.health.judge(error)),
        };
        let told = what.0.clone();
        *self.cleaning.uncleanable.borrow_mut() = Some(what);
        Ok(CleanOutcome::Uncleanable(told))
    }

    /// Whether a cleaning is to end.
    pub(super) fn is_over(&self) -> bool {
        let is_wanted = !self.cleaning.is_outdated.get() && self.config().compacted;
        !is_wanted || self.is_moving() || self.check_writable().is_err()
    }

    async fn try_clean(self: &Rc<Self>, options: &CleanOptions) -> Result<CleanOutcome> {
        let begun = io::now();
        let cleanable = self.cleanable(options.last_stable_offset).await?;
        if cleanable.dirty_bytes == 0 {
            return Ok(CleanOutcome::Nothing);
        }
        let mut pass = Pass {
            log: self,
            options,
            cleanable,
            now: io::wall_clock(),
            stats: CleanStats {
                first_dirty: cleanable.first_dirty,
                ..CleanStats::default()
            },
        };
        pass.run().await?;
        pass.stats.took = io::now().since(begun);
        Ok(CleanOutcome::Cleaned(pass.stats))
    }

    /// Waits until no cleaning writes beside the log's files any more. One that is to end does so
    /// at its next buffer.
    pub(crate) async fn wait_until_not_cleaning(&self) -> Result<()> {
        let idle = || (!self.cleaning.is_under_way.get()).then_some(());
        self.shard.health.race(&self.waiters, idle).await
    }

    /// The log will end at `end` or later: what comes to lie behind is dirty, and the folder says
    /// so before anything is cut. The caller has the log's shape.
    pub(crate) async fn note_cut_ahead(&self, end: Offset) -> Result<()> {
        let cleaning = &self.cleaning;
        // Files go first, then what memory holds of them: a pass must not take that for a failure.
        cleaning.is_outdated.set(true);
        let mut mark = cleaning.mark.get();
        if mark.cleaned_to > end {
            mark.cleaned_to = end;
            mark.write(&self.folder.path(), &self.shard.flushes).await?;
            cleaning.mark.set(mark);
        }
        Ok(())
    }

    /// The log is clean up to `end`, unless it was cut meanwhile.
    pub(super) async fn note_cleaned(&self, end: Offset) -> Result<()> {
        let _shape = self.shape.take().await;
        self.check_writable()?;
        if self.cleaning.is_outdated.get() {
            return Err(LogError::Closed);
        }
        let mut mark = self.cleaning.mark.get();
        mark.cleaned_to = end;
        mark.write(&self.folder.path(), &self.shard.flushes).await?;
        self.cleaning.mark.set(mark);
        Ok(())
    }
}

/// Of its first batch.
async fn first_timestamp(segment: &Rc<Segment>) -> TimestampMs {
    if let Some(first) = segment.first_timestamp.get() {
        return first;
    }
    let Ok(file) = segment.reader().await else {
        return TimestampMs::NONE;
    };
    let mut scanner = Scanner::headers(&file, 0, segment.size.get());
    let first = scanner.next().await;
    let first = first.map_or(TimestampMs::NONE, |batch| batch.header.max_timestamp);
    segment.first_timestamp.set(Some(first));
    first
}
