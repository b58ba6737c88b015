//! The files of the directory itself.

use std::path::Path;

use super::report::{Problem, Report};
use super::{folder_name, offset_of, small_files};
use crate::base::ids::Offset;
use crate::io;
use crate::log::closed::Difference;
use crate::log::error::LogError;
use crate::log::format::checkpoint_files::{self, PartitionOffsets};
use crate::log::format::clean_shutdown;
use crate::log::format::closed_segments::ClosedSegments;
use crate::log::format::file_names::{
    CLEAN_SHUTDOWN, CLEANER_CHECKPOINT, CLOSED_SEGMENTS, CLUSTER_METADATA_FOLDER, FolderState,
    HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, LogFileKind, META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT, parse_partition_folder,
};
use crate::log::format::meta_properties::MetaProperties;
use crate::log::open::{list_folder, read_small};
use crate::log::recovery::Folder;
use crate::log::segment::segment_path;

const EMPTIED: &str = "it is empty: a clean shutdown writes it";

/// What the files say of the partitions.
pub(super) struct Root {
    recovery_points: PartitionOffsets,
    cleaned: PartitionOffsets,
    log_starts: PartitionOffsets,
}

impl Root {
    /// Reads and checks them all.
    ///
    /// # Errors
    /// [`LogError::Refused`] where it is no data directory at all.
    pub(super) async fn read(directory: &Path, report: &mut Report) -> Result<Self, LogError> {
        let names = names(directory, report).await?;
        let has = |name: &str| names.iter().any(|known| known == name);
        if !has(META_PROPERTIES) {
            let is_used = has(CLUSTER_METADATA_FOLDER) || has(RECOVERY_POINT_CHECKPOINT);
            if !is_used {
                let what = format!("{} is no data directory", directory.display());
                return Err(LogError::Refused(what));
            }
            let what = "it is missing: whose the directory is stands in it";
            report.add(Problem::of(directory.join(META_PROPERTIES), what));
        }
        let path = |name: &str| directory.join(name);
        small_files::decode(&path(META_PROPERTIES), report, MetaProperties::decode).await;
        small_files::decode(&path(CLEAN_SHUTDOWN), report, clean_shutdown::decode).await;
        let mut read = async |name: &str| {
            let offsets = small_files::decode(&path(name), report, checkpoint_files::decode).await;
            offsets.unwrap_or_default()
        };
        read(HIGH_WATERMARK_CHECKPOINT).await;
        Ok(Self {
            recovery_points: read(RECOVERY_POINT_CHECKPOINT).await,
            cleaned: read(CLEANER_CHECKPOINT).await,
            log_starts: read(LOG_START_CHECKPOINT).await,
        })
    }

    /// The offset below which all of a log was flushed when that was last written down.
    pub(super) fn recovery_point(&self, folder: &Folder) -> Option<Offset> {
        offset_of(&self.recovery_points, folder)
    }

    /// The offset up to which Kafka's cleaner came.
    pub(super) fn cleaned_to(&self, folder: &Folder) -> Offset {
        offset_of(&self.cleaned, folder).unwrap_or(Offset(-1))
    }

    /// Where a log starts; -1 where it is not written down.
    pub(super) fn log_start(&self, folder: &Folder) -> Offset {
        offset_of(&self.log_starts, folder).unwrap_or(Offset(-1))
    }

    /// Holds the segments against the list that a clean shutdown left, and looks for the files that
    /// it writes.
    pub(super) async fn check_closed(
        &self,
        directory: &Path,
        folders: &[Folder],
        report: &mut Report,
    ) {
        check_written(directory, folders, report).await;
        let path = directory.join(CLOSED_SEGMENTS);
        let closed = small_files::decode(&path, report, ClosedSegments::decode).await;
        let clean = directory.join(CLEAN_SHUTDOWN);
        let bytes = small_files::read(&clean, report).await;
        if closed.is_some() && bytes.as_deref().is_some_and(<[u8]>::is_empty) {
            report.add(Problem::of(clean, EMPTIED));
        }
        let epoch = bytes.and_then(|bytes| clean_shutdown::decode(&bytes).ok().flatten());
        let Some(closed) = closed.filter(|closed| Some(closed.broker_epoch) == epoch) else {
            return;
        };
        for ((topic, _, partition), segments) in &closed.logs {
            let name = format!("{topic}-{partition}");
            let found = folders.iter().find(|folder| folder_name(folder) == name);
            let sizes = match found {
                Some(folder) => list_folder(&folder.path).await.map(|found| found.segments),
                None => Ok(Default::default()),
            };
            let Ok(sizes) = sizes else { continue };
            if let Some(difference) = Difference::find(segments, &sizes) {
                let folder = directory.join(&name);
                let path = segment_path(&folder, difference.base(), LogFileKind::Log);
                report.add(Problem::of(path, difference.cause()));
            }
        }
    }
}

/// Coreline and Apache Kafka make the checkpoints empty and write them at every clean shutdown.
async fn check_written(directory: &Path, folders: &[Folder], report: &mut Report) {
    for name in [RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT] {
        let path = directory.join(name);
        match read_small(&path).await {
            Ok(Some(bytes)) if bytes.is_empty() => report.add(Problem::of(path, EMPTIED)),
            Ok(None) if !folders.is_empty() => {
                report.add(Problem::of(
                    path,
                    "it is missing: a clean shutdown writes it",
                ));
            }
            // What cannot be read was told when it was.
            _ => {}
        }
    }
}

/// What stands in the directory; folders that no partition serves are named.
async fn names(directory: &Path, report: &mut Report) -> Result<Vec<String>, LogError> {
    let failed = |error| LogError::io(format!("listing {}", directory.display()), error);
    let mut names = Vec::new();
    for entry in io::directory::list(directory).await.map_err(failed)? {
        let marked = parse_partition_folder(&entry.name).filter(|parsed| {
            entry.is_directory && matches!(parsed.state, FolderState::Delete | FolderState::Stray)
        });
        if marked.is_some() {
            let name = &entry.name;
            report
                .notes
                .push(format!("{name} belongs to no partition and is not read"));
        }
        names.push(entry.name);
    }
    Ok(names)
}
