//! The metadata log held against itself, and the partitions' folders against what it says
//! (`coreline log verify`). Nothing is written.

use std::path::Path;

use super::error::MetadataLogError;
use super::load::{load, read_synced_point};
use super::names::{METADATA_FOLDER, SnapshotId, segment_name};
use super::quorum_state::{QUORUM_STATE_BYTES_MAX, QUORUM_STATE_FILE, QuorumState};
use super::replay::Replay;
use super::snapshot_file;
use super::synced_point::SYNCED_POINT_FILE;
use crate::base::ids::{BrokerId, Offset};
use crate::base::limits::KIB;
use crate::cluster::image::Image;
use crate::io::directory;
use crate::log::LogError;
use crate::log::format::file_names::{
    CLEAN_SHUTDOWN, FolderState, PARTITION_METADATA, parse_partition_folder,
};
use crate::log::format::partition_metadata;
use crate::log::verify::{Expected, Left, Problem, Report, check_folder};

/// A `partition.metadata` holds two short lines.
const PARTITION_METADATA_BYTES_MAX: usize = 4 * KIB;

/// Reads the metadata log of a directory; `None` where it has none. Answers what the log adds up to
/// as well, if it can be read to its end.
///
/// # Errors
/// Only where the folder cannot be listed.
pub async fn verify(log_dir: &Path) -> Result<Option<(Report, Option<Image>)>, LogError> {
    let folder = log_dir.join(METADATA_FOLDER);
    if directory::metadata(&folder).await.is_err() {
        return Ok(None);
    }
    let is_clean = directory::metadata(&log_dir.join(CLEAN_SHUTDOWN))
        .await
        .is_ok();
    let left = match is_clean || is_all_synced(&folder).await {
        true => Left::Closed(None),
        false => Left::Killed(Offset(0)),
    };
    let expected = Expected {
        folder: &folder,
        left,
        gaps_below: Offset(-1),
        log_start: Offset(-1),
        has_indexes: false,
    };
    let mut report = check_folder(METADATA_FOLDER, &expected).await?;
    check_own_files(&folder, &mut report).await?;
    let image = match load(&folder, &empty()).await {
        Ok(loaded) => Some(loaded.replay.image),
        Err(error) => {
            let problem = problem(&folder, error);
            let is_known = |known: &Problem| {
                (&known.file, known.position) == (&problem.file, problem.position)
            };
            if !report.problems.iter().any(is_known) {
                report.add(problem);
            }
            None
        }
    };
    Ok(Some((report, image)))
}

/// What a log is replayed on whose owner does not matter.
fn empty() -> Image {
    Image::new("", BrokerId(-1))
}

/// Whether the log is known to be durable to its last byte.
async fn is_all_synced(folder: &Path) -> bool {
    let Ok(Some(point)) = read_synced_point(folder).await else {
        return false;
    };
    let segment = directory::metadata(&folder.join(segment_name(point.segment))).await;
    segment.is_ok_and(|segment| segment.len == point.position)
}

fn problem(folder: &Path, error: MetadataLogError) -> Problem {
    match error {
        MetadataLogError::Damaged {
            path,
            position,
            reason,
        } => Problem::at(path, position, reason),
        MetadataLogError::Gap {
            path,
            expected,
            found,
        } => {
            let what = format!("it begins at offset {found}, where {expected} should come next");
            Problem::at(path, 0, what)
        }
        other => Problem::of(folder, other.to_string()),
    }
}

/// Snapshots, the synced point, the quorum's state.
async fn check_own_files(folder: &Path, report: &mut Report) -> Result<(), LogError> {
    let failed = |error| LogError::io(format!("listing {}", folder.display()), error);
    for entry in directory::list(folder).await.map_err(failed)? {
        let path = folder.join(&entry.name);
        if let Some(id) = SnapshotId::parse(&entry.name) {
            let mut replay = Replay::new(empty());
            if let Err(error) = snapshot_file::read(folder, id, &mut replay).await {
                report.add(problem(folder, error));
            }
        } else if entry.name == SYNCED_POINT_FILE {
            let read = read_synced_point(folder).await;
            if !matches!(read, Ok(Some(_))) {
                let what = "it is not what was written; the log is read as if it were not there";
                report.add(Problem::at(&path, 0, what));
            }
        } else if entry.name == QUORUM_STATE_FILE {
            let text = directory::read_file(&path, QUORUM_STATE_BYTES_MAX).await;
            let text = text.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            if text.as_deref().and_then(QuorumState::parse).is_none() {
                report.add(Problem::at(&path, 0, "it names no leader and epoch"));
            }
        }
    }
    Ok(())
}

/// Holds each partition's folder against the topics: whose it is.
///
/// # Errors
/// Only where the directory cannot be listed.
pub async fn check_owners(
    log_dir: &Path,
    image: &Image,
    report: &mut Report,
) -> Result<(), LogError> {
    let failed = |error| LogError::io(format!("listing {}", log_dir.display()), error);
    for entry in directory::list(log_dir).await.map_err(failed)? {
        let parsed = parse_partition_folder(&entry.name)
            .filter(|parsed| entry.is_directory && parsed.state == FolderState::Live);
        let Some(parsed) = parsed.filter(|_| entry.name != METADATA_FOLDER) else {
            continue;
        };
        let path = log_dir.join(&entry.name).join(PARTITION_METADATA);
        let bytes = directory::read_file(&path, PARTITION_METADATA_BYTES_MAX).await;
        // One that cannot be read is told of with its folder.
        let owner = bytes
            .ok()
            .and_then(|bytes| partition_metadata::decode(&bytes).ok());
        let Some(owner) = owner else { continue };
        let topic = image.topics().by_name(&parsed.topic);
        match topic {
            Some(topic) if topic.id == owner => {}
            Some(topic) => {
                let what = format!("it names topic {owner}, the metadata log {}", topic.id);
                report.add(Problem::of(path, what));
            }
            None => report.notes.push(format!(
                "{} belongs to no topic of the metadata log: the next start sets it aside",
                entry.name
            )),
        }
    }
    Ok(())
}
