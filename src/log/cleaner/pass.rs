//! One cleaning of one log: the keys of its dirty part into a map, then every segment below through
//! it, group by group.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::chunks::Chunks;
use super::filter::{Rules, last_records};
use super::groups::{GroupLimits, Member, group};
use super::key_map::{KeyMap, KeyMapSize};
use super::pace::CleanerPace;
use super::question::{CleanQuestion, Cleanable, SegmentFacts};
use super::transactions::CleanedTransactions;
use super::work::{Mapped, Work};
use super::write_holes;
use super::writer::{Cleaned, CleanedWriter, remove_cleaned};
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::io;
use crate::log::DiskRoom;
use crate::log::error::LogError;
use crate::log::format::file_names::LogFileKind;
use crate::log::format::transaction_index::{AbortedTransaction, TransactionIndex};
use crate::log::journal::Result;
use crate::log::open::read_small;
use crate::log::partition_log::Log;
use crate::log::scan::Scanner;
use crate::log::segment::{Segment, segment_path};
use crate::wire::compression::DecodeLimits;

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
    /// Up to where it came.
    pub(crate) cleaned: Cell<Option<Offset>>,
    /// Below it there may be holes; what the folder's file says.
    pub(crate) holes_below: Cell<Offset>,
    pub(crate) is_under_way: Cell<bool>,
    /// Why it is left alone, and, where more memory would help, with how much it was tried.
    pub(crate) uncleanable: RefCell<Option<(String, Option<usize>)>>,
}

/// One segment of a pass, as it was when the pass began.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) segment: Rc<Segment>,
    pub(super) end: Offset,
    pub(super) cuts: u32,
}

impl Log {
    /// Up to where it was cleaned, if it ever was.
    #[must_use]
    pub fn cleaned_to(&self) -> Option<Offset> {
        self.cleaning.cleaned.get()
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
        if self.is_over() || self.cleaning.is_under_way.replace(true) {
            return Ok(CleanOutcome::Interrupted);
        }
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
    fn is_over(&self) -> bool {
        self.check_writable().is_err()
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

    /// The log ends at `end` now: what lies behind is dirty again.
    pub(crate) fn note_cut_for_cleaner(&self, end: Offset) {
        let cleaned = &self.cleaning.cleaned;
        cleaned.set(cleaned.get().map(|cleaned| cleaned.min(end)));
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

struct Pass<'a> {
    log: &'a Rc<Log>,
    options: &'a CleanOptions,
    cleanable: Cleanable,
    now: TimestampMs,
    stats: CleanStats,
}

impl Pass<'_> {
    async fn run(&mut self) -> Result<()> {
        let sources = self.sources();
        let aborted = self.aborted(&sources).await?;
        let seed = || self.log.shard.random_below(u64::MAX);
        let size = KeyMapSize {
            bytes_max: self.options.table_bytes,
            load_factor: self.options.load_factor,
            keys_max: (self.cleanable.end.0 - self.cleanable.first_dirty.0).unsigned_abs(),
        };
        let mut work = Box::new(Work {
            map: KeyMap::new(size, [seed(), seed()]),
            transactions: CleanedTransactions::new(aborted.clone()),
            rules: self.rules(),
            scratch: Vec::new(),
        });
        work = self.map_keys(work, &sources).await?;
        self.stats.table_use = work.map.utilization();
        let end = work.map.latest().plus(1);
        if end <= self.cleanable.first_dirty {
            return Err(LogError::Refused(format!(
                "{}: the keys of one batch do not fit into a table of {} bytes: raise \
                 log.cleaner.dedupe.buffer.size",
                self.log.folder.display(),
                self.options.table_bytes
            )));
        }
        self.announce_holes(end).await?;
        work.transactions = CleanedTransactions::new(aborted);
        let below = |source: &&Source| source.segment.base_offset < end;
        let sources: Vec<Source> = sources.iter().take_while(below).cloned().collect();
        self.clean_groups(work, &sources).await?;
        self.stats.cleaned_to = end;
        self.log.cleaning.cleaned.set(Some(end));
        Ok(())
    }

    /// The segments that may be cleaned, from the log's first on.
    fn sources(&self) -> Vec<Source> {
        let segments = self.log.segments.borrow();
        let pairs = segments.values().zip(segments.values().skip(1));
        let sources = pairs.map(|(segment, next)| Source {
            segment: Rc::clone(segment),
            end: next.base_offset,
            cuts: segment.cuts.get(),
        });
        sources
            .take_while(|source| source.end <= self.cleanable.end)
            .collect()
    }

    fn rules(&self) -> Rules {
        let config = self.log.config();
        Rules {
            now: self.now,
            delete_retention_ms: config.delete_retention_ms,
            round_end: self.cleanable.end,
            producers: last_records(&self.log.producers.borrow()),
            limits: DecodeLimits::for_message_bytes_max(config.max_message_bytes),
        }
    }

    /// The aborted transactions that the segments' indexes name.
    async fn aborted(&self, sources: &[Source]) -> Result<Vec<AbortedTransaction>> {
        let mut aborted = Vec::new();
        let bases = sources.iter().map(|source| source.segment.base_offset);
        let active = self.log.active_segment().base_offset;
        for base in bases.chain([active]) {
            let path = segment_path(&self.log.folder, base, LogFileKind::TransactionIndex);
            let Some(bytes) = read_small(&path).await? else {
                continue;
            };
            let index = TransactionIndex::decode(base, &bytes)
                .map_err(|error| LogError::Damaged(format!("{}: {error}", path.display())))?;
            aborted.extend_from_slice(index.entries());
        }
        Ok(aborted)
    }

    async fn map_keys(&mut self, mut work: Box<Work>, sources: &[Source]) -> Result<Box<Work>> {
        let first_dirty = self.cleanable.first_dirty;
        for source in sources.iter().filter(|source| source.end > first_dirty) {
            let mut chunks = Chunks::new(&source.segment, self.options.buffer_bytes).await?;
            loop {
                let since = io::now();
                let Some(chunk) = chunks.next().await? else {
                    break;
                };
                let length = chunk.len();
                self.stats.bytes_mapped += length as u64;
                let mapped;
                (work, mapped) =
                    on_idle(work, move |work| work.map_chunk(&chunk, first_dirty)).await?;
                match mapped.map_err(|what| chunks.damaged(&what))? {
                    Mapped::Full => return Ok(work),
                    Mapped::All => {}
                }
                self.pause(length, since).await?;
            }
            work.map.cover(Offset(source.end.0 - 1));
        }
        Ok(work)
    }

    /// Below `end` there may be holes from now on: durably, before there are.
    async fn announce_holes(&self, end: Offset) -> Result<()> {
        let known = &self.log.cleaning.holes_below;
        if end > known.get() {
            write_holes(&self.log.folder, end, &self.log.shard.flushes).await?;
            known.set(end);
        }
        Ok(())
    }

    async fn clean_groups(&mut self, mut work: Box<Work>, sources: &[Source]) -> Result<()> {
        let config = self.log.config();
        let limits = GroupLimits {
            segment_bytes: config.segment_bytes,
            index_bytes: config.segment_index_bytes,
            index_interval_bytes: config.index_interval_bytes,
        };
        let member = |source: &Source| Member {
            base_offset: source.segment.base_offset,
            bytes: source.segment.size.get(),
            end: source.end,
        };
        let members: Vec<Member> = sources.iter().map(member).collect();
        let mut rest = sources;
        for count in group(&members, limits) {
            let (group, behind) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = behind;
            let Some(first) = group.first() else { break };
            let base = first.segment.base_offset;
            work.rules.producers = last_records(&self.log.producers.borrow());
            remove_cleaned(&self.log.folder, base).await?;
            let replaced = self.replace_group(work, group).await;
            if replaced.is_err() {
                // Removed at the next start, should the disk refuse this too.
                let _ = remove_cleaned(&self.log.folder, base).await;
            }
            work = replaced?;
            self.stats.segments.0 += group.len();
            self.stats.segments.1 += 1;
        }
        Ok(())
    }

    async fn replace_group(&mut self, work: Box<Work>, group: &[Source]) -> Result<Box<Work>> {
        let (work, cleaned) = self.clean_group(work, group).await?;
        self.log.replace(group, cleaned).await?;
        Ok(work)
    }

    async fn clean_group(
        &mut self,
        mut work: Box<Work>,
        group: &[Source],
    ) -> Result<(Box<Work>, Cleaned)> {
        let log = self.log;
        let interval = log.config().index_interval_bytes;
        let base = group.first().map(|first| first.segment.base_offset);
        let base = base.unwrap_or_default();
        let mut writer = CleanedWriter::create(&log.folder, base, interval).await?;
        for source in group {
            let mut chunks = Chunks::new(&source.segment, self.options.buffer_bytes).await?;
            let mut next = source.segment.base_offset;
            loop {
                let since = io::now();
                let Some(chunk) = chunks.next().await? else {
                    break;
                };
                let length = chunk.len();
                let filtered;
                (work, filtered) =
                    on_idle(work, move |work| work.filter_chunk(&chunk, next)).await?;
                let left = filtered.map_err(|what| chunks.damaged(&what))?;
                next = left.next;
                self.stats.bytes_read += length as u64;
                self.stats.bytes_written += left.bytes.len() as u64;
                self.stats.records_read += left.records_read;
                self.stats.records_kept += left.records_kept;
                writer.append(&left.bytes).await?;
                self.pause(length + left.bytes.len(), since).await?;
            }
        }
        let aborted = work.transactions.take_kept();
        let cleaned = writer.finish(aborted, &log.shard.flushes).await?;
        Ok((work, cleaned))
    }

    /// Lets others have their turn; as long as the pace asks for.
    async fn pause(&self, bytes: usize, since: crate::base::time::MonotonicNs) -> Result<()> {
        io::yield_now().await;
        let is_over = || self.log.is_over();
        let rate = &*self.options.rate;
        match self.options.pace.spend(bytes, since, rate, &is_over).await {
            true => Ok(()),
            false => Err(LogError::Closed),
        }
    }
}

/// Does a piece of work on a thread that gives way to the shards.
async fn on_idle<T: Send + 'static>(
    mut work: Box<Work>,
    piece: impl FnOnce(&mut Work) -> T + Send + 'static,
) -> Result<(Box<Work>, T)> {
    let done = io::run_when_idle(move || {
        let answer = piece(&mut work);
        (work, answer)
    });
    done.await
        .map_err(|error| LogError::io("cleaning a buffer", error))
}

/// The bytes of a chunk that stay.
pub(super) struct LeftOfChunk {
    pub(super) bytes: Bytes,
    /// The offset after the chunk.
    pub(super) next: Offset,
    pub(super) records_read: u64,
    pub(super) records_kept: u64,
}
