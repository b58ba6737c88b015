//! Kafka's checkpoint files of a log directory: recovery points, log start offsets and high
//! watermarks. Recovery and a clean shutdown write the first two, a running broker all three from
//! time to time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::folders::Folder;
use crate::base::ids::{Offset, PartitionIndex};
use crate::io;
use crate::log::error::LogError;
use crate::log::format::checkpoint_files::{PartitionOffsets, decode, encode};
use crate::log::format::file_names::{
    CLEANER_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT,
};
use crate::log::open::read_small;
use crate::log::shard_logs::ClosedLog;

/// Kafka's checkpoint files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckpointFile {
    /// `recovery-point-offset-checkpoint`
    RecoveryPoints,
    /// `log-start-offset-checkpoint`
    LogStarts,
    /// `replication-offset-checkpoint`
    HighWatermarks,
    /// `cleaner-offset-checkpoint`
    Cleaned,
}

impl CheckpointFile {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::RecoveryPoints,
        Self::LogStarts,
        Self::HighWatermarks,
        Self::Cleaned,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::RecoveryPoints => RECOVERY_POINT_CHECKPOINT,
            Self::LogStarts => LOG_START_CHECKPOINT,
            Self::HighWatermarks => HIGH_WATERMARK_CHECKPOINT,
            Self::Cleaned => CLEANER_CHECKPOINT,
        }
    }
}

/// Writes the offsets of the open logs durably; of others, those lines stay whose folder is there.
/// Answers whether some did: such a log may be one whose folder is about to go.
///
/// # Errors
/// What the file system answers.
pub async fn write_checkpoint(
    directory: &Path,
    file: CheckpointFile,
    open: &PartitionOffsets,
) -> Result<bool, LogError> {
    let failed = |error| LogError::io(format!("listing {}", directory.display()), error);
    let path = directory.join(file.name());
    let before = read_small(&path).await?;
    let mut offsets = decode_or_none(before.as_deref());
    offsets.retain(|key, _| !open.contains_key(key));
    if !offsets.is_empty() {
        let entries = io::directory::list(directory).await.map_err(failed)?;
        let folders: BTreeSet<String> = entries.into_iter().map(|entry| entry.name).collect();
        offsets.retain(|(topic, partition), _| folders.contains(&format!("{topic}-{partition}")));
    }
    let has_others = !offsets.is_empty();
    offsets.extend(open.clone());
    if file == CheckpointFile::LogStarts {
        // As in Kafka, a log that starts at 0 has no line.
        offsets.retain(|_, offset| *offset > Offset(0));
    }
    let after = encode(&offsets);
    if before.as_deref() != Some(after.as_ref()) {
        let written = io::directory::write_file_durably(&path, &after).await;
        written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))?;
    }
    Ok(has_others)
}

/// Both files that recovery needs, in memory.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    recovery_points: PartitionOffsets,
    log_starts: PartitionOffsets,
}

/// The log start offsets of a directory.
pub(crate) async fn read_log_starts(
    directory: &Path,
) -> Result<BTreeMap<(String, PartitionIndex), Offset>, LogError> {
    let read = read_file(directory, LOG_START_CHECKPOINT).await?;
    Ok(read.into_iter().collect())
}

/// The recovery points of a directory.
pub(crate) async fn read_recovery_points(
    directory: &Path,
) -> Result<BTreeMap<(String, PartitionIndex), Offset>, LogError> {
    let read = read_file(directory, RECOVERY_POINT_CHECKPOINT).await?;
    Ok(read.into_iter().collect())
}

async fn read_file(directory: &Path, name: &str) -> Result<PartitionOffsets, LogError> {
    let bytes = read_small(&directory.join(name)).await?;
    Ok(decode_or_none(bytes.as_deref()))
}

/// Kafka too goes on without a checkpoint that it cannot read: it only costs time.
fn decode_or_none(bytes: Option<&[u8]>) -> PartitionOffsets {
    bytes
        .and_then(|bytes| decode(bytes).ok())
        .unwrap_or_default()
}

impl Checkpoints {
    pub(super) async fn read(directory: &Path) -> Result<Self, LogError> {
        Ok(Self {
            recovery_points: read_file(directory, RECOVERY_POINT_CHECKPOINT).await?,
            log_starts: read_file(directory, LOG_START_CHECKPOINT).await?,
        })
    }

    pub(super) async fn write(&self, directory: &Path) -> Result<(), LogError> {
        for (name, offsets) in [
            (RECOVERY_POINT_CHECKPOINT, &self.recovery_points),
            (LOG_START_CHECKPOINT, &self.log_starts),
        ] {
            let path = directory.join(name);
            let written = io::directory::write_file_durably(&path, &encode(offsets)).await;
            written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))?;
        }
        Ok(())
    }

    /// Leaves out logs without a folder: deleted ones, whose lines no look has taken out yet.
    pub(super) fn keep_only(&mut self, folders: &[Folder]) {
        let there: BTreeSet<_> = folders
            .iter()
            .map(|folder| (folder.topic.clone(), folder.partition))
            .collect();
        self.recovery_points.retain(|key, _| there.contains(key));
        self.log_starts.retain(|key, _| there.contains(key));
    }

    pub(super) fn recovery_point(&self, folder: &Folder) -> Offset {
        let key = (folder.topic.clone(), folder.partition);
        self.recovery_points.get(&key).copied().unwrap_or_default()
    }

    pub(super) fn set_recovery_point(&mut self, folder: &Folder, offset: Offset) {
        self.recovery_points
            .insert((folder.topic.clone(), folder.partition), offset);
    }

    pub(super) fn set_log_start(&mut self, folder: &Folder, offset: Offset) {
        self.note_log_start((folder.topic.clone(), folder.partition), offset);
    }

    /// Takes in a log that its shard has closed.
    pub(super) fn set_closed(&mut self, closed: &ClosedLog) {
        let key = (closed.topic.clone(), closed.partition);
        self.recovery_points
            .insert(key.clone(), closed.recovery_point);
        self.note_log_start(key, closed.log_start_offset);
    }

    /// As Kafka does, a log that starts at 0 has no line.
    fn note_log_start(&mut self, key: (String, PartitionIndex), offset: Offset) {
        if offset > Offset(0) {
            self.log_starts.insert(key, offset);
        } else {
            self.log_starts.remove(&key);
        }
    }
}
