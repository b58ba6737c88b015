//! The metadata log: Kafka's folder `__cluster_metadata-0`, in Kafka's layout, with what a single
//! KRaft voter needs to carry it on.
//!
//! | File | What it holds |
//! |---|---|
//! | `<offset>.log` | segments of record batches |
//! | `<0>-<0>.checkpoint` | what the cluster began with: `kraft.version`, voter, feature levels |
//! | `<offset>-<epoch>.checkpoint` | a snapshot: all that the log told before that offset |
//! | `quorum-state` | the epoch that this node leads |
//! | `leader-epoch-checkpoint` | where each epoch begins |
//! | `partition.metadata` | Kafka's fixed id of this topic |
//! | `coreline-synced-point` | how far the log is durable |
//!
//! One change is one batch: written and made durable (`RWF_DSYNC`) before anybody hears of it, on
//! the control executor's own driver and never through a shard's journal. After a write that failed
//! for want of space the log is cut back and goes on; after any other failure it takes nothing
//! more.
//!
//! Snapshots are taken, and what lies before them is dropped, by Kafka's settings and rules
//! ([`keep`]); a start reads the newest snapshot and what follows ([`load`]).
//!
//! No index is kept: Kafka rebuilds those of this log whenever it opens it.

pub(super) mod batch;
mod create;
mod error;
mod keep;
mod load;
mod names;
mod open;
mod quorum_state;
mod reader;
mod replay;
mod retention;
mod snapshot_file;
mod synced_point;
pub mod verify;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::BytesMut;

use crate::base::config::MetadataLogSettings;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, Uuid};
use crate::base::time::TimestampMs;
use crate::cluster::image::Image;
use crate::cluster::records::MetadataRecord;
use crate::io::{AlignedBuffer, Durability, File, OpenOptions, directory};
use crate::wire::record_batch::ControlRecord;

pub use error::MetadataLogError;
pub use names::METADATA_FOLDER;
pub use replay::Replay;

use names::{SnapshotId, segment_name};
use retention::KeptSnapshot;
use synced_point::{SYNCED_POINT_FILE, SyncedPoint};

/// How long a dead process's last write may take to land.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// How the log is opened.
#[derive(Clone, Debug)]
pub struct MetadataLogOptions {
    /// The log directory that holds it.
    pub log_dir: PathBuf,
    /// `cluster.id`.
    pub cluster_id: String,
    /// `node.id`.
    pub node_id: BrokerId,
    /// `directory.id` of that directory.
    pub directory_id: Uuid,
    /// Where Kafka's controller would be reached, should it carry this log on.
    pub controller: ControllerEndpoint,
    /// When segments end, snapshots are taken and old ones go.
    pub settings: MetadataLogSettings,
}

/// The controller listener that the log's voter record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerEndpoint {
    /// Listener name.
    pub name: String,
    /// Host.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Default for ControllerEndpoint {
    /// That of Kafka's sample settings.
    fn default() -> Self {
        Self {
            name: "CONTROLLER".to_owned(),
            host: "localhost".to_owned(),
            port: 9093,
        }
    }
}

/// The log, open for appends by the one who leads it.
#[derive(Debug)]
pub struct MetadataLog {
    folder: PathBuf,
    file: File,
    synced_file: File,
    segment: Offset,
    position: u64,
    next_offset: Offset,
    epoch: LeaderEpoch,
    kraft_version: i16,
    settings: MetadataLogSettings,
    failed: bool,
    /// When the first batch of the segment was appended.
    began: Option<TimestampMs>,
    /// When the last batch was appended.
    last_timestamp: TimestampMs,
    /// The segments before this one, with their sizes where they are known yet.
    closed: Vec<(Offset, Option<u64>)>,
    snapshots: Vec<SnapshotFile>,
    bytes_since_snapshot: u64,
    /// What a snapshot says for KRaft.
    quorum_records: Vec<ControlRecord>,
}

/// A snapshot that is there.
#[derive(Clone, Copy, Debug)]
struct SnapshotFile {
    id: SnapshotId,
    /// What retention goes by, once it has been read.
    known: Option<KeptSnapshot>,
}

/// A log just opened, with all that it has told.
#[derive(Debug)]
pub struct Opened {
    /// The log, in a new epoch that this node leads.
    pub log: MetadataLog,
    /// The image of its records.
    pub image: Image,
    /// What a new cluster is to begin with; to be appended when the image has no levels.
    pub bootstrap: Vec<MetadataRecord>,
    /// Whether an unfinished transaction of an earlier writer is to be aborted first.
    pub abort_transaction: bool,
    /// Bytes of a torn append that were cut.
    pub torn_bytes: u64,
}

impl MetadataLog {
    /// Where the first segment begins.
    fn log_start(&self) -> Offset {
        self.closed.first().map_or(self.segment, |(base, _)| *base)
    }

    /// The offset that the next record gets.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// Whether a write has failed: nothing is taken any more.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The level of `kraft.version` with which the log began.
    #[must_use]
    pub fn kraft_version(&self) -> i16 {
        self.kraft_version
    }

    /// The epoch that this node leads.
    #[must_use]
    pub fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// Appends one batch and returns once it is durable.
    pub async fn append(
        &mut self,
        records: &[MetadataRecord],
        now: TimestampMs,
    ) -> Result<(), MetadataLogError> {
        if records.is_empty() {
            return Ok(());
        }
        let batch = batch::build(self.next_offset, self.epoch, now, records)?;
        self.write(batch, records.len(), now).await
    }

    /// Whether a batch of so many bytes is to begin another segment.
    fn must_roll(&self, bytes: usize, now: TimestampMs) -> bool {
        let age = self.began.map_or(0, |began| now.0.saturating_sub(began.0));
        let is_full = self.position + bytes as u64 > self.settings.segment_bytes_max;
        self.position > 0 && (is_full || age > self.settings.segment_ms_max.max(1))
    }

    async fn write(
        &mut self,
        batch: BytesMut,
        count: usize,
        now: TimestampMs,
    ) -> Result<(), MetadataLogError> {
        if self.failed {
            return Err(MetadataLogError::Failed);
        }
        if self.must_roll(batch.len(), now) {
            self.roll().await?;
        }
        let mut buffer = AlignedBuffer::with_capacity(batch.len());
        buffer.extend_from_slice(&batch);
        let written = self
            .file
            .write_at(self.position, buffer, Durability::Stable)
            .await;
        if let (Err(error), _) = written {
            let path = self.folder.join(segment_name(self.segment));
            // What a failed write or flush left behind is not known; only a full disk is, once the
            // file has been cut back.
            self.failed = error.kind() != ErrorKind::StorageFull
                || cut(&self.file, &path, self.position).await.is_err();
            return Err(MetadataLogError::io("write", &path)(error));
        }
        self.position += batch.len() as u64;
        self.bytes_since_snapshot += batch.len() as u64;
        self.began.get_or_insert(now);
        self.last_timestamp = now;
        self.next_offset = self.next_offset.plus(count as i64);
        self.note_synced().await;
        Ok(())
    }

    /// Notes how far the log is durable; a hint, whose failure costs nothing but precision.
    async fn note_synced(&self) {
        let point = SyncedPoint {
            segment: self.segment,
            position: self.position,
        };
        let mut buffer = AlignedBuffer::with_capacity(1);
        buffer.extend_from_slice(&point.encode());
        let (result, _) = self
            .synced_file
            .write_at(0, buffer, Durability::Written)
            .await;
        if let Err(error) = result {
            tracing::debug!(%error, "cannot note how far the metadata log is durable");
        }
    }

    /// Begins another segment. One that was begun and cannot be used must not stay: the next start
    /// would take it for the log's last.
    async fn roll(&mut self) -> Result<(), MetadataLogError> {
        let path = self.folder.join(segment_name(self.next_offset));
        let file = match self.begin_segment(&path).await {
            Ok(file) => file,
            Err(fault) => {
                self.failed = snapshot_file::remove_if_there(&path).await.is_err();
                return Err(fault);
            }
        };
        self.closed.push((self.segment, Some(self.position)));
        self.file = file;
        self.segment = self.next_offset;
        self.position = 0;
        self.began = None;
        Ok(())
    }

    async fn begin_segment(&self, path: &Path) -> Result<File, MetadataLogError> {
        let file = open_locked(path).await?;
        cut(&file, path, 0).await?;
        directory::sync(&self.folder)
            .await
            .map_err(MetadataLogError::io("sync", &self.folder))?;
        Ok(file)
    }

    /// Makes the hint durable too, so that after an orderly stop every damage is known as such.
    pub async fn close(self) -> Result<(), MetadataLogError> {
        let path = self.folder.join(SYNCED_POINT_FILE);
        self.synced_file
            .sync_data()
            .await
            .map_err(MetadataLogError::io("sync", &path))
    }

    async fn replace(&self, name: &str, text: &str) -> Result<(), MetadataLogError> {
        create::replace(&self.folder, name, text.as_bytes()).await
    }
}

async fn open_file(path: &Path) -> Result<File, MetadataLogError> {
    let options = OpenOptions {
        write: true,
        create: true,
        ..OpenOptions::default()
    };
    File::open(path, options)
        .await
        .map_err(MetadataLogError::io("open", path))
}

/// Opens a segment once no earlier process writes to it any more: a write that was under way when
/// its process died holds the lock until it has landed.
async fn open_locked(path: &Path) -> Result<File, MetadataLogError> {
    let file = open_file(path).await?;
    file.lock_exclusive(LOCK_WAIT)
        .await
        .map_err(MetadataLogError::io("lock", path))?;
    Ok(file)
}

async fn cut(file: &File, path: &Path, len: u64) -> Result<(), MetadataLogError> {
    file.truncate(len)
        .await
        .map_err(MetadataLogError::io("cut", path))?;
    file.sync_all()
        .await
        .map_err(MetadataLogError::io("sync", path))
}

#[cfg(test)]
mod crash_test;
#[cfg(test)]
mod keep_test;
#[cfg(test)]
mod log_test;
#[cfg(test)]
mod snapshot_test;
