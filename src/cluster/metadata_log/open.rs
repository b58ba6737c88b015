//! Opening the log: what is there is read, what was torn is cut, and a new epoch begins.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::load::{self, Loaded, Tail};
use super::names::{self, SnapshotId, segment_name};
use super::quorum_state::{QUORUM_STATE_BYTES_MAX, QUORUM_STATE_FILE, QuorumState};
use super::synced_point::SYNCED_POINT_FILE;
use super::{
    METADATA_FOLDER, MetadataLog, MetadataLogError, MetadataLogOptions, Opened, Replay,
    SnapshotFile, create, cut, open_file, open_locked, snapshot_file,
};
use crate::base::ids::{BrokerId, LeaderEpoch};
use crate::base::time::TimestampMs;
use crate::cluster::image::Image;
use crate::io::{File, directory};

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
        remove_leftovers(&folder).await?;
        let empty = Image::new(&options.cluster_id, options.node_id);
        let loaded = load::load(&folder, &empty).await?;
        check_voters(&loaded.replay, options.node_id)?;
        let tail = loaded.tail.unwrap_or(Tail {
            segment: loaded.replay.next_offset,
            position: 0,
            torn_bytes: 0,
            began: None,
        });
        let path = folder.join(segment_name(tail.segment));
        let file = match locked {
            Some(file) => file,
            None => open_locked(&path).await?,
        };
        if tail.torn_bytes > 0 {
            cut(&file, &path, tail.position).await?;
        }
        let mut log = Self::of_files(file, (folder, tail), options, &loaded).await?;
        let Loaded {
            mut replay,
            bootstrap,
            damaged,
            ..
        } = loaded;
        log.begin_epoch(options, &mut replay, now).await?;
        log.set_aside(&damaged).await;
        Ok(Opened {
            log,
            abort_transaction: replay.is_in_transaction(),
            image: replay.image,
            bootstrap,
            torn_bytes: tail.torn_bytes,
        })
    }

    /// The log as it was found, its epoch not begun yet.
    async fn of_files(
        file: File,
        (folder, tail): (PathBuf, Tail),
        options: &MetadataLogOptions,
        loaded: &Loaded,
    ) -> Result<Self, MetadataLogError> {
        let replay = &loaded.replay;
        let before = loaded.segments.iter().filter(|base| **base < tail.segment);
        let snapshots = loaded.snapshots.iter();
        let log = Self {
            epoch: next_epoch(&folder, replay.epoch).await?,
            synced_file: open_file(&folder.join(SYNCED_POINT_FILE)).await?,
            file,
            segment: tail.segment,
            position: tail.position,
            next_offset: replay.next_offset,
            settings: options.settings,
            failed: false,
            began: tail.began,
            last_timestamp: replay.last_timestamp,
            closed: before.map(|base| (*base, None)).collect(),
            snapshots: snapshots
                .map(|id| SnapshotFile {
                    id: *id,
                    known: None,
                })
                .collect(),
            bytes_since_snapshot: replay.bytes_since_snapshot,
            kraft_version: replay.kraft_version,
            quorum_records: create::quorum_records(options, replay.kraft_version)?,
            folder,
        };
        directory::sync(&log.folder)
            .await
            .map_err(MetadataLogError::io("sync", &log.folder))?;
        Ok(log)
    }

    /// Gives damaged snapshots, which nothing is missed without, a name under which neither this
    /// node nor Kafka comes upon them again.
    async fn set_aside(&self, damaged: &[SnapshotId]) {
        for id in damaged {
            let path = self.folder.join(id.file_name());
            let aside = self.folder.join(id.damaged_name());
            match directory::rename(&path, &aside).await {
                Ok(()) => tracing::warn!(
                    "what the snapshot held is in the log; it is kept as {}",
                    aside.display()
                ),
                Err(error) => tracing::warn!("cannot rename {}: {error}", path.display()),
            }
        }
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
        let mut records = vec![create::leader_change(options)];
        records.extend(self.quorum_records.iter().cloned());
        let batch = create::control_batch(self.next_offset, self.epoch, now, &records)?;
        self.write(batch, records.len(), now).await?;
        replay.image.advance_to(self.next_offset, self.epoch);
        let starts = create::epoch_starts_from(self.log_start(), &replay.epoch_starts);
        let text = create::epoch_checkpoint(&starts);
        self.replace(create::EPOCH_CHECKPOINT_FILE, &text).await
    }
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

/// Removes what an earlier process left of a snapshot that it did not finish.
async fn remove_leftovers(folder: &Path) -> Result<(), MetadataLogError> {
    let entries = directory::list(folder)
        .await
        .map_err(MetadataLogError::io("list", folder))?;
    for entry in entries
        .iter()
        .filter(|entry| names::is_leftover(&entry.name))
    {
        snapshot_file::remove_if_there(&folder.join(&entry.name)).await?;
    }
    Ok(())
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
