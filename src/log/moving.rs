//! A log on its way into another log directory (KIP-113): a copy of it, Kafka's future replica, is
//! filled beside what goes on in it, and takes over when it has all of it.
//!
//! The copy is a log like any other, in the other directory's journal: its appends are those of a
//! follower, offsets and leader epochs are the source's. It lies in a folder
//! `<topic>-<partition>.<random>-future`; nothing reads from it before it has taken over. Who
//! drives the steps, and when, is `server::moves`; what a start makes of folders that it finds is
//! [`super::moved`].
//!
//! # The steps of a move
//!
//! 1. [`ShardLogs::create_future`]: the copy's folder, durably.
//! 2. [`copy_step`], again and again: at most [`STEP_BYTES`] of what is durable in the source, then
//!    durable in the copy.
//! 3. With little left: [`Log::mark_moving`] puts the mark of the move into the source's folder,
//!    durably, and [`Log::copy_aborted`] the indexes of transactions into the copy's.
//! 4. The source takes nothing any more; the last steps; [`Log::take_over`] gives the copy the
//!    source's start, epochs and producers, durably.
//! 5. The metadata says, durably, that the partition is in the other directory. **Here the move is
//!    done**, whatever comes after.
//! 6. [`Log::take_name`]: the copy's folder gets the partition's name, durably. The copy serves.
//! 7. The source is deleted.
//!
//! # What must always hold, and what breaks it
//!
//! * Before step 5 the source alone counts, after it the copy alone. What is acknowledged lies in
//!   the one that counts, durably: nothing is acknowledged between the end of step 4 and step 6.
//!   Broken by kills and power cuts at every step:
//!   `a_crash_at_any_step_of_a_move_loses_nothing`.
//! * Never do two folders serve, and none serves that does not count: the mark names the directory
//!   that the metadata must name for the source to be void, so that a start without the other
//!   directory's disk does not take the source for whole. Broken by a start without the target:
//!   `moved::tests::what_has_been_given_up_never_serves_again`.
//! * The copy is a part of the source from its beginning: a start throws it away and begins the
//!   move anew instead of looking whether the source has lost what it once had
//!   (`write.caching`, damage). Broken by power cuts: the same.
//! * A start, an order of a deletion and a failing directory may come at any step; the copy of a
//!   topic that is gone goes with it. Broken by deletion during a move:
//!   `broker_moves::a_topic_that_is_deleted_on_its_way_leaves_nothing`.
//! * Copying takes little from what is served: one step's memory a move, a few moves at a time on a
//!   shard, and a limit of bytes a second. Broken by produce and fetch during a move:
//!   `broker_moves::clients_go_on_during_a_move`.
//!
//! # What can fail
//!
//! * The target: the copy is given up, the source serves on.
//! * The source, before step 5: the move is over, the partition offline like all of its directory.
//!   After step 5 nothing needs the source any more; a later start removes it.
//! * The target, after step 5: the partition is offline until its directory comes back. The source
//!   is void though it may be whole; that is the price of never serving both.
//! * No room in the target: the copy waits and tries again.
//! * The metadata log, in step 5: nobody knows whether the move is done. Neither log serves until
//!   the next start knows.
//! * Records at the source's end that compaction took: the copy ends before the source does, until
//!   the next append. The move waits for that.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use super::cleaner::CleanedMark;
use super::config::{AppendContext, AppendOrigin, BufferBytes, ReadLimit};
use super::error::{AppendError, LogError, ReadError};
use super::format::file_names::{FolderState, LogFileKind, MOVE_MARK, marked_partition_folder};
use super::format::move_mark;
use super::format::transaction_index::TransactionIndex;
use super::journal::Result;
use super::open::{load, read_small};
use super::partition_log::Log;
use super::segment::segment_path;
use super::shard_logs::ShardLogs;
use super::snapshots::Snapshot;
use crate::base::ids::{Offset, Uuid};
use crate::base::limits::KIB;
use crate::io;
use crate::wire::record_batch::BatchHeader;

/// Bytes of one step, beyond which only a single batch goes. At this size a step passes the
/// journal by.
pub const STEP_BYTES: usize = 512 * KIB;
/// How long a step waits for room in the target's journal before it is given up for now.
const ROOM_WAIT: Duration = Duration::from_secs(5);

/// How far a step has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStep {
    /// So many bytes were copied.
    Copied(usize),
    /// All that was durable in the source is durable in the copy.
    CaughtUp,
    /// There is no room now.
    NoRoom,
}

/// Why a move ends.
#[derive(Debug, Error)]
pub enum MoveError {
    /// The source cannot be read, or takes no mark.
    #[error("the log cannot be read: {0}")]
    Source(String),
    /// The copy takes nothing.
    #[error("the copy cannot be written: {0}")]
    Target(String),
}

impl MoveError {
    fn source(error: impl ToString) -> Self {
        Self::Source(error.to_string())
    }

    fn target(error: impl ToString) -> Self {
        Self::Target(error.to_string())
    }
}

impl ShardLogs {
    /// Creates a copy, still empty, of a log in another directory.
    ///
    /// # Errors
    /// What the file system answers; [`LogError::Refused`] where this directory has the partition.
    pub async fn create_future(&self, source: &Rc<Log>) -> Result<Rc<Log>> {
        let context = self.context();
        context.health.check()?;
        let identity = source.identity();
        if context.logs.borrow().contains_key(identity) || self.has_folder(identity).await? {
            let what = format!("{} is there already", identity.folder());
            return Err(LogError::Refused(what));
        }
        let created = async {
            source.begin_move().await?;
            let base = source.first_base().await.map_err(|error| match error {
                ReadError::Log(error) => error,
                other => LogError::Refused(other.to_string()),
            })?;
            let created = self.try_create_future(source, base).await;
            created.inspect_err(|error| context.health.judge(error))
        };
        let created = created.await;
        if created.is_err() {
            source.end_move();
        }
        created
    }

    async fn try_create_future(&self, source: &Rc<Log>, base: Offset) -> Result<Rc<Log>> {
        let context = self.context();
        let identity = source.identity().clone();
        let unique = u128::from_be_bytes(context.next_uuid().0);
        let (topic, partition) = (identity.topic.as_str(), identity.partition);
        let name = marked_partition_folder(topic, partition, unique, FolderState::Future);
        let folder: Rc<Path> = context.directory.join(name).into();
        let failed = |error| LogError::io(format!("creating {}", folder.display()), error);
        io::directory::create(&folder).await.map_err(failed)?;
        let made = async {
            let filled = self.fill_folder(&folder, &identity, (base, base)).await;
            filled.map_err(failed)?;
            let cleaned = source.cleaning.mark.get();
            if cleaned != CleanedMark::default() {
                // Where the source has holes, so has the copy.
                cleaned.write(&folder, &context.flushes).await?;
            }
            let config = (*source.config()).clone();
            let health = &context.health;
            load(health, Rc::clone(&folder), identity.clone(), config, base).await
        };
        let log = match made.await {
            Ok(parts) => Log::new(context, parts),
            Err(error) => {
                let _ = io::directory::remove_all(&folder).await;
                return Err(error);
            }
        };
        log.is_future.set(true);
        log.active_segment().jitter_ms.set(log.draw_jitter());
        let known = (context.logs.borrow_mut()).insert(identity, Rc::clone(&log));
        assert!(known.is_none(), "a copy took the place of a log");
        context.cache.note_logs(context.logs.borrow().len());
        log.begin_life().await?;
        Ok(log)
    }
}

/// Copies the next batches that are durable in `source` to `future`, and waits until they are
/// durable there.
///
/// # Errors
/// [`MoveError`]; the copy is of no use then.
pub async fn copy_step(
    source: &Rc<Log>,
    future: &Rc<Log>,
) -> std::result::Result<CopyStep, MoveError> {
    if source.log_start_offset() > future.log_end_offset() {
        // What was to be copied next is gone.
        let base = source.first_base().await.map_err(MoveError::source)?;
        future.reset(base).await.map_err(MoveError::target)?;
        return Ok(CopyStep::Copied(0));
    }
    let from = future.log_end_offset();
    if from >= source.durable_end() {
        return Ok(CopyStep::CaughtUp);
    }
    let read = source.read_stored(from, source.step_limit(STEP_BYTES));
    let read = read.await.map_err(MoveError::source)?;
    let mut copied = 0;
    for slice in &read.slices {
        match append_all(future, slice).await {
            Ok(()) => copied += slice.len(),
            Err(AppendError::TimedOut | AppendError::StorageFull(_)) => {
                return Ok(CopyStep::NoRoom);
            }
            Err(error) => return Err(MoveError::target(error)),
        }
    }
    let end = future.log_end_offset();
    future.wait_durable(end).await.map_err(MoveError::target)?;
    match copied {
        0 => Ok(CopyStep::CaughtUp),
        copied => Ok(CopyStep::Copied(copied)),
    }
}

/// Appends whole batches as they are.
async fn append_all(future: &Rc<Log>, batches: &Bytes) -> std::result::Result<(), AppendError> {
    let mut rest = batches.clone();
    while !rest.is_empty() {
        let header = BatchHeader::parse(&rest)
            .map_err(|error| LogError::Damaged(format!("a batch to be copied: {error}")))?;
        let length = header.total_bytes().min(rest.len());
        let batch = rest.split_to(length);
        let context = AppendContext {
            origin: AppendOrigin::Replica,
            leader_epoch: header.leader_epoch,
            deadline: io::now().after(ROOM_WAIT),
            buffer_bytes: BufferBytes::default(),
        };
        future.append(BytesMut::from(&*batch), context).await?;
    }
    Ok(())
}

impl Log {
    /// Nothing cleans the log any more, see [`super::cleaner`]. Kafka pauses its cleaner too
    /// (`LogManager.abortAndPauseCleaning`).
    async fn begin_move(&self) -> Result<()> {
        self.is_moving.set(true);
        self.wait_until_not_cleaning().await
    }

    /// The log stays where it is.
    pub fn end_move(&self) {
        self.is_moving.set(false);
    }

    /// A read of what is durable here, at most so many bytes but for a single batch, which was in
    /// memory when it was appended too.
    fn step_limit(&self, max_bytes: usize) -> ReadLimit {
        ReadLimit {
            max_bytes,
            memory_max: usize::MAX,
            first_batch_max: usize::MAX,
            end: self.durable_end(),
        }
    }

    /// Where a copy of the log begins: with the batch that holds its start.
    async fn first_base(self: &Rc<Self>) -> std::result::Result<Offset, ReadError> {
        let start = self.log_start_offset();
        if start >= self.durable_end() {
            return Ok(start);
        }
        let read = self.read_stored(start, self.step_limit(1)).await?;
        let first = read.slices.first();
        let header = first.and_then(|bytes| BatchHeader::parse(bytes).ok());
        Ok(header.map_or(start, |header| header.base_offset.min(start)))
    }

    /// Says in the log's folder, durably, that it holds nothing that counts once the metadata names
    /// `target` as its directory.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn mark_moving(&self, target: Uuid) -> Result<()> {
        let path = self.folder.join(MOVE_MARK);
        let written = (self.shard.flushes)
            .write_file(&path, &move_mark::encode(target))
            .await;
        let failed = |error| LogError::io(format!("writing {}", path.display()), error);
        let written = written.map_err(failed);
        written.inspect_err(|error| self.shard.health.judge(error))
    }

    /// Takes the mark away: the move is given up. One that stays says nothing, for the metadata
    /// does not name the directory that it names.
    pub async fn unmark_moving(&self) {
        let _ = io::directory::remove_file(&self.folder.join(MOVE_MARK)).await;
    }

    /// Gives the copy's segments the indexes of aborted transactions, durably: an entry goes to the
    /// segment that has its marker. Only Apache Kafka writes these so far, so that none changes
    /// meanwhile.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn copy_aborted(self: &Rc<Self>, source: &Self) -> Result<()> {
        let mut indexes: BTreeMap<i64, TransactionIndex> = BTreeMap::new();
        let bases: Vec<i64> = source.segments.borrow().keys().copied().collect();
        for base in bases.into_iter().map(Offset) {
            let kind = LogFileKind::TransactionIndex;
            let path = segment_path(&source.folder.path(), base, kind);
            let Some(bytes) = read_small(&path).await? else {
                continue;
            };
            let Ok(aborted) = TransactionIndex::decode(base, &bytes) else {
                tracing::warn!("{} cannot be read and is left behind", path.display());
                continue;
            };
            for entry in aborted.entries() {
                let segments = self.segments.borrow();
                let with_marker = segments.range(..=entry.last_offset.0).next_back();
                if let Some((base, _)) = with_marker {
                    indexes.entry(*base).or_default().append(*entry);
                }
            }
        }
        let folder = self.folder.path();
        let file = |(base, index): (i64, TransactionIndex)| {
            let kind = LogFileKind::TransactionIndex;
            (segment_path(&folder, Offset(base), kind), index.encode())
        };
        let files: Vec<_> = indexes.into_iter().map(file).collect();
        if files.is_empty() {
            return Ok(());
        }
        let written = self.put_in_place(vec![files]).await;
        written.inspect_err(|error| self.shard.health.judge(error))
    }

    /// Whether the copy has every batch of `source`, durably, and nothing is on its way there.
    #[must_use]
    pub fn has_all_of(&self, source: &Self) -> bool {
        let end = source.log_end_offset();
        source.durable_end() == end && self.durable_end() == end
    }

    /// Gives the copy what does not stand in batches, durably: the start of `source`, its epochs
    /// and its producers, those too whose batches are deleted. The source takes nothing meanwhile.
    ///
    /// # Errors
    /// [`LogError`] when the copy takes no change.
    pub async fn take_over(self: &Rc<Self>, source: &Self) -> Result<()> {
        self.advance_log_start(source.log_start_offset()).await?;
        let epochs = source.epochs.borrow().clone();
        let producers = source.producers.borrow().clone();
        *self.epochs.borrow_mut() = epochs;
        *self.producers.borrow_mut() = producers;
        if self.stable_end() < self.durable_end() {
            self.shard.journal.confirm().await?;
        }
        let snapshot = Snapshot::of(self.log_end_offset(), &self.producers.borrow());
        let files = self.derived_files(&self.active_segment(), &snapshot);
        let written = self.put_in_place(files).await;
        written.inspect_err(|error| self.shard.health.judge(error))
    }

    /// Gives the copy's folder the partition's name, durably: it is a log like any other now.
    ///
    /// # Errors
    /// What the file system answers; the folder may have either name then.
    pub async fn take_name(self: &Rc<Self>) -> Result<()> {
        let _shape = self.shape.take().await;
        let _turn = self.order.take().await;
        self.wait_all_durable().await?;
        let idle = || (!self.is_snapshot_under_way.get()).then_some(());
        self.shard.health.race(&self.waiters, idle).await?;
        self.wait_until_left().await?;
        self.wait_until_named().await?;
        let segments: Vec<_> = self.segments.borrow().values().cloned().collect();
        for segment in segments.iter().filter(|segment| segment.is_sealed.get()) {
            self.wait_until_finished(segment).await?;
        }
        let _derived = self.derived_order.take().await;
        let live: Rc<Path> = self.shard.directory.join(self.identity().folder()).into();
        let named = async {
            io::directory::rename(&self.folder.path(), &live).await?;
            self.folder.set(Rc::clone(&live));
            self.shard.flushes.names(&self.shard.directory).await
        };
        let failed = |error| LogError::io(format!("naming {}", live.display()), error);
        let named = named.await.map_err(failed);
        named.inspect_err(|error| self.shard.health.judge(error))?;
        self.is_future.set(false);
        Ok(())
    }
}
