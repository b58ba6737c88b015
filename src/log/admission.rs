//! Admission implies room (JOURNAL §4): before an append is fixed in its order, everything that it
//! will need is reserved. A full disk is answered at once; for ring and memory an append waits in
//! order, until its own deadline.

use std::rc::Rc;

use super::checked_batch::CheckedBatch;
use super::config::AppendContext;
use super::error::{AppendError, LogError};
use super::journal::record::LogId;
use super::journal::reservation;
use super::log_id_file::LogIdFile;
use super::partition_log::Log;
use crate::base::ids::Offset;
use crate::base::limits::BLOCK_BYTES;
use crate::log::format::file_names::LOG_ID;

/// What was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) ring_bytes: u64,
}

impl Log {
    /// Sees to it that all room is there; the caller has the log's turn.
    pub(crate) async fn admit(
        self: &Rc<Self>,
        checked: &CheckedBatch,
        context: &AppendContext,
    ) -> Result<Admitted, AppendError> {
        let admitted = match self.check_reserve(context.origin) {
            Ok(()) => self.find_room(checked, context).await,
            Err(refused) => Err(refused),
        };
        self.note_admission(&admitted);
        admitted
    }

    async fn find_room(
        self: &Rc<Self>,
        checked: &CheckedBatch,
        context: &AppendContext,
    ) -> Result<Admitted, AppendError> {
        if self.log_id().is_none() {
            self.begin_life().await.map_err(full_or_failed)?;
        }
        if self.must_roll(checked) {
            self.roll().await.map_err(full_or_failed)?;
        }
        let segment = self.active_segment();
        let end = segment.size.get() + checked.batch.len() as u64;
        if !segment.is_reserved(end) {
            let (segment_bytes, step_max) =
                (self.config().segment_bytes, self.shard.reserve_step_max());
            let reserved = segment
                .reserve(end, segment_bytes, step_max, &self.shard.flushes)
                .await;
            reserved.map_err(|error| full_or_failed(segment.failed("reserving", error)))?;
        }
        self.admit_to_ring_and_memory(checked.batch.len(), context)
            .await
    }

    async fn admit_to_ring_and_memory(
        self: &Rc<Self>,
        length: usize,
        context: &AppendContext,
    ) -> Result<Admitted, AppendError> {
        let journal = &self.shard.journal;
        // A batch that no cycle holds goes direct: its record alone is written.
        let is_inline = journal.sizes().fits_a_cycle(length);
        let inline = if is_inline { length } else { BLOCK_BYTES };
        // Asked at every try: a release may write the partial block while this waits.
        let ring_bytes = || {
            let prefix = u64::from(self.needs_prefix.get()) * reservation(BLOCK_BYTES);
            reservation(inline) + prefix
        };
        let charge = context.buffer_bytes.part.max(length) + context.buffer_bytes.abandoned;
        let try_now = || {
            if self.shard.health.is_offline() || self.is_closed() {
                return Some(false);
            }
            if self.shard.cache.is_under_pressure() {
                self.shard.relieve_memory();
            }
            if !self.shard.cache.has_room(charge) {
                self.shard.write_partial_blocks(charge);
            } else if journal.try_reserve(ring_bytes()) {
                return Some(true);
            }
            // Ring files come round when sealed segments are finished, and those wait for the disk.
            self.shard.is_short_of_disk().then_some(false)
        };
        let is_first = self.shard.admission.is_idle();
        let is_admitted = match is_first.then(&try_now).flatten() {
            Some(is_admitted) => is_admitted,
            None => {
                let turn = self.shard.admission.take_until(context.deadline).await;
                let _turn = turn.ok_or(AppendError::TimedOut)?;
                let admitted = journal.room.wait_until(context.deadline, try_now).await;
                admitted.ok_or(AppendError::TimedOut)?
            }
        };
        self.check_writable()?;
        if !is_admitted {
            let what = "the files of closed segments have none, and the journal keeps their bytes";
            return Err(AppendError::StorageFull(what.to_owned()));
        }
        Ok(Admitted {
            ring_bytes: ring_bytes(),
        })
    }

    /// Gives the log its id in this incarnation's journals, durably, before its first record.
    pub(crate) async fn begin_life(self: &Rc<Self>) -> Result<(), LogError> {
        self.active_segment().writer(false).await?;
        let log_id = self.shard.next_uuid().0;
        self.write_life_at_rest(log_id).await?;
        self.set_log_id(log_id);
        Ok(())
    }

    /// Says, durably, that the log ends where its files do.
    pub(crate) async fn write_life_at_rest(&self, log_id: LogId) -> Result<(), LogError> {
        let segment = self.active_segment();
        let place = (segment.base_offset, segment.size.get());
        self.write_life(log_id, place, self.log_end_offset()).await
    }

    /// Says, durably, where the log stands: what its records are read from on. All below `place`
    /// is durable in segments, all below `log_end` there or in the journal.
    pub(crate) async fn write_life(
        &self,
        log_id: LogId,
        (segment_base, position): (Offset, u64),
        log_end: Offset,
    ) -> Result<(), LogError> {
        let file = LogIdFile {
            incarnation: self.shard.incarnation,
            shard: self.shard.shard,
            log_id,
            segment_base,
            position,
            log_end,
            log_start: self.log_start_offset(),
            recovery_point: self.recovery_point.get(),
        };
        let path = self.folder.join(LOG_ID);
        let written = self.shard.flushes.write_file(&path, &file.encode()).await;
        written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))
    }
}

/// A full disk is the producer's to know at once; anything else is told as it is.
fn full_or_failed(error: LogError) -> AppendError {
    match error {
        LogError::Io { what, source } if source.kind() == std::io::ErrorKind::StorageFull => {
            AppendError::StorageFull(format!("{what}: {source}"))
        }
        other => AppendError::Log(other),
    }
}
