//! One cleaning of one log: the keys of its dirty part into a map, then every segment below through
//! it, group by group.

use std::rc::Rc;

use bytes::Bytes;

use super::chunks::{ChunkLimits, Chunks};
use super::cleaning::{CleanOptions, CleanStats};
use super::filter::{Rules, last_records};
use super::groups::{GroupLimits, Member, group};
use super::key_map::{KeyMap, KeyMapSize};
use super::question::Cleanable;
use super::transactions::CleanedTransactions;
use super::work::{Mapped, Work};
use super::writer::{Cleaned, CleanedWriter, remove_cleaned};
use crate::base::ids::Offset;
use crate::base::limits::MIB;
use crate::base::time::{MonotonicNs, TimestampMs};
use crate::io;
use crate::log::error::LogError;
use crate::log::format::file_names::LogFileKind;
use crate::log::format::transaction_index::{AbortedTransaction, TransactionIndex};
use crate::log::journal::Result;
use crate::log::open::read_small;
use crate::log::partition_log::Log;
use crate::log::segment::{Segment, segment_path};
use crate::wire::compression::DecodeLimits;

/// Largest batch that is cleaned whatever the topic's `max.message.bytes` is now.
const BATCH_BYTES_MAX: usize = 16 * MIB;

/// One segment of a pass, as it was when the pass began.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) segment: Rc<Segment>,
    pub(super) end: Offset,
    pub(super) cuts: u32,
}

/// What a cleaning under way knows.
pub(super) struct Pass<'a> {
    pub(super) log: &'a Rc<Log>,
    pub(super) options: &'a CleanOptions,
    pub(super) cleanable: Cleanable,
    pub(super) now: TimestampMs,
    pub(super) stats: CleanStats,
}

impl Pass<'_> {
    /// From the first key to the mark of what is clean.
    pub(super) async fn run(&mut self) -> Result<()> {
        let sources = self.sources();
        let aborted = self.aborted(&sources).await?;
        let mut work = self.new_work(aborted.clone()).await?;
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
        let below = |source: &Source| source.segment.base_offset < end;
        let sources = sources.into_iter().take_while(below).collect();
        work = self.clean_groups(work, sources).await?;
        self.stats.cleaned_to = end;
        // A table takes milliseconds to be given back.
        on_idle(work, |work| work.map.clear()).await?;
        self.log.note_cleaned(end).await
    }

    /// With an empty table, which takes milliseconds to be made.
    async fn new_work(&self, aborted: Vec<AbortedTransaction>) -> Result<Box<Work>> {
        let seed = || self.log.shard.random_below(u64::MAX);
        let (seeds, rules) = ([seed(), seed()], self.rules());
        let size = KeyMapSize {
            bytes_max: self.options.table_bytes,
            load_factor: self.options.load_factor,
            keys_max: (self.cleanable.end.0 - self.cleanable.first_dirty.0).unsigned_abs(),
        };
        let made = io::run_when_idle(move || {
            Box::new(Work {
                map: KeyMap::new(size, seeds),
                transactions: CleanedTransactions::new(aborted),
                rules,
                scratch: Vec::new(),
            })
        });
        made.await
            .map_err(|error| LogError::io("making a table of keys", error))
    }

    fn chunk_limits(&self) -> ChunkLimits {
        let of_topic = self.log.config().max_message_bytes;
        ChunkLimits {
            buffer_bytes: self.options.buffer_bytes,
            batch_bytes_max: of_topic.max(BATCH_BYTES_MAX),
        }
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
            segment_end: None,
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
            let path = segment_path(&self.log.folder.path(), base, LogFileKind::TransactionIndex);
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
            let mut chunks = Chunks::new(&source.segment, self.chunk_limits()).await?;
            loop {
                let since = io::now();
                let Some(chunk) = chunks.next().await? else {
                    break;
                };
                let length = chunk.len();
                self.stats.reads += 1;
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
        let log = self.log;
        let _shape = log.shape.take().await;
        let mut mark = log.cleaning.mark.get();
        if end > mark.holes_below {
            mark.holes_below = end;
            mark.write(&log.folder.path(), &log.shard.flushes).await?;
            log.cleaning.mark.set(mark);
        }
        Ok(())
    }

    /// A group that was replaced is let go before the next: its files, which have no names any
    /// more, take room on the disk as long as somebody has them.
    async fn clean_groups(
        &mut self,
        mut work: Box<Work>,
        sources: Vec<Source>,
    ) -> Result<Box<Work>> {
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
        let mut rest = sources.into_iter();
        for count in group(&members, limits) {
            let group: Vec<Source> = rest.by_ref().take(count).collect();
            let Some(first) = group.first() else { break };
            let base = first.segment.base_offset;
            work.rules.producers = last_records(&self.log.producers.borrow());
            remove_cleaned(&self.log.folder.path(), base).await?;
            let replaced = self.replace_group(work, &group).await;
            if replaced.is_err() {
                // Removed at the next start, should the disk refuse this too.
                let _ = remove_cleaned(&self.log.folder.path(), base).await;
            }
            work = replaced?;
            self.stats.segments.0 += group.len();
            self.stats.segments.1 += 1;
        }
        Ok(work)
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
        let folder = log.folder.path();
        let mut writer = CleanedWriter::create(&folder, base, interval).await?;
        let is_filled = |source: &Source| source.segment.size.get() > 0;
        let last = group.iter().rposition(is_filled);
        for (place, source) in group.iter().enumerate() {
            let mut chunks = Chunks::new(&source.segment, self.chunk_limits()).await?;
            let mut next = source.segment.base_offset;
            loop {
                let since = io::now();
                let Some(chunk) = chunks.next().await? else {
                    break;
                };
                let length = chunk.len();
                let is_last = last == Some(place) && chunks.is_at_end();
                let filtered;
                (work, filtered) =
                    on_idle(work, move |work| work.filter_chunk((&chunk, is_last), next)).await?;
                let left = filtered.map_err(|what| chunks.damaged(&what))?;
                next = left.next;
                self.stats.reads += 1;
                self.stats.bytes_read += length as u64;
                self.stats.bytes_written += left.bytes.len() as u64;
                self.stats.records_read += left.records_read;
                self.stats.records_kept += left.records_kept;
                writer.append(&left.bytes).await?;
                self.pause(length + left.bytes.len(), since).await?;
            }
        }
        let aborted = work.transactions.take_kept();
        if let Some(source) = group.last() {
            writer.is_as_old_as(&source.segment.path()).await;
        }
        let cleaned = writer.finish(aborted, &log.shard.flushes).await?;
        Ok((work, cleaned))
    }

    /// Lets others have their turn; as long as the pace asks for.
    async fn pause(&self, bytes: usize, since: MonotonicNs) -> Result<()> {
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
