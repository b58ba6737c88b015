//! Producer snapshots: at every roll, every 64 MiB and at close. Recovery reads batch headers only
//! from the last one on.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::LogError;
use super::format::file_names::LogFileKind;
use super::format::producer_snapshot;
use super::format::producer_state::ProducerStates;
use super::journal::Result;
use super::partition_log::Log;
use super::segment::segment_path;
use crate::base::ids::Offset;
use crate::base::limits::MIB;
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

    /// Writes the file durably.
    pub(crate) async fn store(&self, folder: &Path) -> Result<()> {
        let path = Self::path(folder, self.offset);
        let written = io::directory::write_file_durably(&path, &self.bytes).await;
        written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))
    }
}

impl Log {
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
        let index = segment.index.borrow().clone();
        let log = Rc::clone(self);
        io::spawn(TaskClass::Background, async move {
            // Indexes first: recovery trusts them below the snapshot's offset.
            let outcome = match index {
                Some(index) => index.store(&log.folder, segment.base_offset).await,
                None => Ok(()),
            };
            let outcome = match outcome {
                Ok(()) => log.store_epochs().await,
                Err(error) => Err(error),
            };
            let outcome = match outcome {
                Ok(()) => snapshot.store(&log.folder).await,
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                tracing::warn!(%error, "no producer snapshot this time");
            }
            log.is_snapshot_under_way.set(false);
            log.waiters.wake_all();
        });
    }
}
