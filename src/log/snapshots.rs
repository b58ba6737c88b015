//! Producer snapshots: at every roll, every 64 MiB and at close. Recovery reads batch headers only
//! from the last one on.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::LogError;
use super::format::file_names::LogFileKind;
use super::format::producer_snapshot;
use super::format::producer_state::ProducerStates;
use super::journal::{Result, Signal};
use super::partition_log::Log;
use super::segment::{Segment, segment_path};
use crate::base::ids::Offset;
use crate::base::limits::MIB;
use crate::io::flush_group::NewFile;
use crate::io::{self, TaskClass};

/// Bytes appended between two snapshots.
const SNAPSHOT_BYTES: u64 = 64 * MIB as u64;

/// The producers' state below an offset, as bytes.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) offset: Offset,
    bytes: Vec<u8>,
}

impl Snapshot {
    /// The state at the log's end `offset`.
    pub(crate) fn of(offset: Offset, producers: &ProducerStates) -> Self {
        Self {
            offset,
            bytes: producer_snapshot::encode(producers),
        }
    }

    /// The file of a snapshot at `offset`.
    pub(crate) fn path(folder: &Path, offset: Offset) -> PathBuf {
        segment_path(folder, offset, LogFileKind::ProducerSnapshot)
    }

    /// The file, to be put in place in `folder`.
    pub(crate) fn file(&self, folder: &Path) -> NewFile {
        (Self::path(folder, self.offset), self.bytes.clone())
    }
}

impl Log {
    /// The files derived from a segment, in stages: indexes and epochs first, for recovery trusts
    /// them below the snapshot's offset.
    pub(crate) fn derived_files(
        &self,
        segment: &Segment,
        snapshot: &Snapshot,
    ) -> Vec<Vec<NewFile>> {
        let mut first = match &*segment.index.borrow() {
            Some(index) => index.files(&self.folder.path(), segment.base_offset),
            None => Vec::new(),
        };
        first.push(self.epochs_file());
        vec![first, vec![snapshot.file(&self.folder.path())]]
    }

    /// Writes the active segment's indexes before the log is used.
    pub(crate) async fn store_active_index(&self) -> Result<()> {
        let segment = self.active_segment();
        let files = match &*segment.index.borrow() {
            Some(index) => index.files(&self.folder.path(), segment.base_offset),
            None => return Ok(()),
        };
        self.put_in_place(vec![files]).await
    }

    /// Writes derived files durably, stage by stage.
    pub(crate) async fn put_in_place(&self, files: Vec<Vec<NewFile>>) -> Result<()> {
        let _turn = self.derived_order.take().await;
        let written = self.shard.flushes.write_files(files).await;
        let failed = |error| LogError::io(format!("writing in {}", self.folder.display()), error);
        written.map_err(failed)
    }

    /// Takes a snapshot in the background once enough was appended since the last.
    pub(crate) fn snapshot_if_due(self: &Rc<Self>) {
        if self.bytes_since_snapshot.get() < SNAPSHOT_BYTES
            || self.is_snapshot_under_way.replace(true)
        {
            return;
        }
        self.bytes_since_snapshot.set(0);
        let snapshot = Snapshot::of(self.log_end_offset(), &self.producers.borrow());
        let segment = self.active_segment();
        let place = (segment.base_offset, segment.size.get(), snapshot.offset);
        let files = self.derived_files(&segment, &snapshot);
        let log = Rc::clone(self);
        io::spawn(TaskClass::Background, async move {
            match log.put_in_place(files).await {
                Ok(()) => log.confirm_snapshot(&segment, place).await,
                Err(error) => {
                    tracing::warn!(%error, "no producer snapshot this time");
                    log.shard.health.judge(&error);
                }
            }
            log.is_snapshot_under_way.set(false);
            log.waiters.wake_all();
        });
    }

    /// A snapshot is durable. So are the bytes below it now, and a WATERMARK says so: recovery
    /// looks at none of them again, however much went direct since the journal came round last.
    async fn confirm_snapshot(self: &Rc<Self>, segment: &Segment, place: (Offset, u64, Offset)) {
        self.snapshot_place.set(Some(place));
        // Of a sealed segment the roll's own task takes care. A failure is told where it happens.
        if !segment.is_sealed.get() && segment.flush().await.is_ok() {
            self.queue_watermark(&Signal::new(&self.shard.health));
        }
    }

    /// Moves the recovery point to the last snapshot once all below that is durable in its
    /// segments: those before are finished, and the one of the snapshot is flushed so far.
    pub(crate) fn advance_to_snapshot(&self) {
        let Some((base, position, offset)) = self.snapshot_place.get() else {
            return;
        };
        let segments = self.segments.borrow();
        let mut unfinished = segments
            .values()
            .filter(|segment| !segment.is_finished.get());
        if let Some(segment) = unfinished.next()
            && segment.base_offset == base
            && segment.flushed.get() >= position
        {
            self.recovery_point
                .set(self.recovery_point.get().max(offset));
            self.snapshot_place.set(None);
        }
    }
}
