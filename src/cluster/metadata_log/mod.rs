//! The metadata log: Kafka's folder `__cluster_metadata-0`, in Kafka's layout, with what a single
//! KRaft voter needs to carry it on.
//!
//! | File | What it holds |
//! |---|---|
//! | `<offset>.log` | segments of record batches |
//! | `<0>-<0>.checkpoint` | what the cluster began with: `kraft.version`, voter, feature levels |
//! | `<offset>-<epoch>.checkpoint` | a snapshot (written by Kafka only; read here) |
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
//! No index is kept: Kafka rebuilds those of this log whenever it opens it. Absent: snapshots taken
//! here, so that the log grows by each start's and each change's records.

pub(super) mod batch;
mod create;
mod error;
mod load;
mod names;
mod quorum_state;
mod replay;
mod synced_point;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::BytesMut;

use crate::base::ids::{BrokerId, LeaderEpoch, Offset, Uuid};
use crate::base::time::TimestampMs;
use crate::cluster::image::Image;
use crate::cluster::records::MetadataRecord;
use crate::io::{AlignedBuffer, Durability, File, OpenOptions, directory};

pub use error::MetadataLogError;
pub use names::METADATA_FOLDER;
pub use replay::Replay;

use load::{Loaded, Tail};
use names::segment_name;
use quorum_state::{QUORUM_STATE_BYTES_MAX, QUORUM_STATE_FILE, QuorumState};
use synced_point::{SYNCED_POINT_FILE, SyncedPoint};

/// Bytes after which a segment is closed (`metadata.log.segment.bytes`).
pub const SEGMENT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// How long a dead process's last write may take to land.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// How the log is opened.
#[derive(Clone, Debug)]
pub struct MetadataLogOptions {
    /// The log directory.
    pub log_dir: PathBuf,
    /// `cluster.id`.
    pub cluster_id: String,
    /// `node.id`.
    pub node_id: BrokerId,
    /// `directory.id` of the log directory.
    pub directory_id: Uuid,
    /// Where Kafka's controller would be reached, should it carry this log on.
    pub controller: ControllerEndpoint,
    /// Bytes after which a segment is closed.
    pub segment_bytes_max: u64,
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
    segment_bytes_max: u64,
    failed: bool,
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
    /// Opens the log, creating it when there is none, and begins a new epoch with this node as the
    /// leader.
    pub async fn open(
        options: &MetadataLogOptions,
        now: TimestampMs,
    ) -> Result<Opened, MetadataLogError> {
        let folder = options.log_dir.join(METADATA_FOLDER);
        create::create_missing(&folder, options, now).await?;
        let locked = lock_last_segment(&folder).await?;
        let mut replay = Replay::new(Image::new(&options.cluster_id, options.node_id));
        let Loaded { bootstrap, tail } = load::load(&folder, &mut replay).await?;
        check_voters(&replay, options.node_id)?;
        let tail = tail.unwrap_or(Tail {
            segment: replay.next_offset,
            position: 0,
            torn_bytes: 0,
        });
        let file = match locked {
            Some(file) => file,
            None => open_locked(&folder.join(segment_name(tail.segment))).await?,
        };
        if tail.torn_bytes > 0 {
            cut(
                &file,
                &folder.join(segment_name(tail.segment)),
                tail.position,
            )
            .await?;
        }
        let epoch = next_epoch(&folder, replay.epoch).await?;
        let mut log = Self {
            synced_file: open_file(&folder.join(SYNCED_POINT_FILE)).await?,
            file,
            segment: tail.segment,
            position: tail.position,
            next_offset: replay.next_offset,
            epoch,
            segment_bytes_max: options.segment_bytes_max,
            failed: false,
            folder,
        };
        directory::sync(&log.folder)
            .await
            .map_err(MetadataLogError::io("sync", &log.folder))?;
        log.begin_epoch(options, &mut replay, now).await?;
        Ok(Opened {
            log,
            abort_transaction: replay.is_in_transaction(),
            image: replay.image,
            bootstrap,
            torn_bytes: tail.torn_bytes,
        })
    }

    /// Says durably that this node leads a new epoch: the file first, so that no epoch is led
    /// twice, then the control records, then where it begins.
    async fn begin_epoch(
        &mut self,
        options: &MetadataLogOptions,
        replay: &mut Replay,
        now: TimestampMs,
    ) -> Result<(), MetadataLogError> {
        let state = QuorumState {
            leader: options.node_id,
            epoch: self.epoch,
        };
        let text = state.text(replay.kraft_version);
        self.replace(QUORUM_STATE_FILE, &text).await?;
        replay.epoch_starts.push((self.epoch, self.next_offset));
        let records = create::epoch_records(options, replay.kraft_version)?;
        let count = records.len();
        let batch = create::control_batch(self.next_offset, self.epoch, now, &records)?;
        self.write(batch, count).await?;
        replay.image.advance_to(self.next_offset, self.epoch);
        let text = create::epoch_checkpoint(&replay.epoch_starts);
        self.replace(create::EPOCH_CHECKPOINT_FILE, &text).await
    }

    /// The offset that the next record gets.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.next_offset
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
        self.write(batch, records.len()).await
    }

    async fn write(&mut self, batch: BytesMut, count: usize) -> Result<(), MetadataLogError> {
        if self.failed {
            return Err(MetadataLogError::Failed);
        }
        if self.position > 0 && self.position + batch.len() as u64 > self.segment_bytes_max {
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

    async fn roll(&mut self) -> Result<(), MetadataLogError> {
        let path = self.folder.join(segment_name(self.next_offset));
        let file = open_locked(&path).await?;
        cut(&file, &path, 0).await?;
        directory::sync(&self.folder)
            .await
            .map_err(MetadataLogError::io("sync", &self.folder))?;
        self.file = file;
        self.segment = self.next_offset;
        self.position = 0;
        Ok(())
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

/// The last segment, locked, before anything is read; `None` when there is none.
async fn lock_last_segment(folder: &Path) -> Result<Option<File>, MetadataLogError> {
    let entries = directory::list(folder)
        .await
        .map_err(MetadataLogError::io("list", folder))?;
    let bases = (entries.iter()).filter_map(|entry| names::parse_segment_name(&entry.name));
    match bases.max() {
        Some(base) => open_locked(&folder.join(segment_name(base)))
            .await
            .map(Some),
        None => Ok(None),
    }
}

async fn cut(file: &File, path: &Path, len: u64) -> Result<(), MetadataLogError> {
    file.truncate(len)
        .await
        .map_err(MetadataLogError::io("cut", path))?;
    file.sync_all()
        .await
        .map_err(MetadataLogError::io("sync", path))
}

/// Only a log whose one voter is this node can be carried on without asking anybody.
fn check_voters(replay: &Replay, node: BrokerId) -> Result<(), MetadataLogError> {
    if replay.voters.is_empty() || replay.voters == [node] {
        return Ok(());
    }
    Err(MetadataLogError::Quorum {
        voters: replay.voters.iter().map(|voter| voter.0).collect(),
        node,
    })
}

/// An epoch above all that this node has seen.
async fn next_epoch(folder: &Path, in_log: LeaderEpoch) -> Result<LeaderEpoch, MetadataLogError> {
    let path = folder.join(QUORUM_STATE_FILE);
    let seen = match directory::read_file(&path, QUORUM_STATE_BYTES_MAX).await {
        Ok(bytes) => QuorumState::parse(&String::from_utf8_lossy(&bytes))
            .map(|state| state.epoch)
            .ok_or(MetadataLogError::Damaged {
                path,
                position: 0,
                reason: "it is no quorum state".to_owned(),
            })?,
        Err(error) if error.kind() == ErrorKind::NotFound => LeaderEpoch(0),
        Err(error) => return Err(MetadataLogError::io("read", &path)(error)),
    };
    Ok(LeaderEpoch(seen.max(in_log).0.saturating_add(1)))
}

#[cfg(test)]
mod log_test;
#[cfg(test)]
mod snapshot_test;
