//! The small files of a partition's folder.

use std::path::Path;

use super::partition::{Expected, Left};
use super::report::{Problem, Report};
use crate::base::ids::Offset;
use crate::log::format::FormatError;
use crate::log::format::damage_mark::DamageMark;
use crate::log::format::epoch_cache::EpochCache;
use crate::log::format::file_names::{
    DAMAGE_MARK, LEADER_EPOCH_CHECKPOINT, LOG_ID, PARTITION_METADATA,
};
use crate::log::format::{partition_metadata, producer_snapshot};
use crate::log::log_id_file::LogIdFile;
use crate::log::open::{FolderListing, read_small};
use crate::log::snapshots::Snapshot;

/// The bytes of a file; a problem where they cannot be had. `None` where there is none.
pub(super) async fn read(path: &Path, report: &mut Report) -> Option<Vec<u8>> {
    match read_small(path).await {
        Ok(bytes) => bytes,
        Err(error) => {
            report.add(Problem::of(path, error.to_string()));
            None
        }
    }
}

/// The same, decoded.
pub(super) async fn decode<T>(
    path: &Path,
    report: &mut Report,
    decode: impl Fn(&[u8]) -> Result<T, FormatError>,
) -> Option<T> {
    let bytes = read(path, report).await?;
    match decode(&bytes) {
        Ok(decoded) => Some(decoded),
        Err(error) => {
            report.add(Problem::format(path, &error));
            None
        }
    }
}

/// Checks all but the snapshots; answers the log's epochs.
pub(super) async fn check(
    expected: &Expected<'_>,
    listing: &FolderListing,
    report: &mut Report,
) -> EpochCache {
    let folder = expected.folder;
    let metadata = folder.join(PARTITION_METADATA);
    if listing.names.iter().any(|name| name == PARTITION_METADATA) {
        decode(&metadata, report, partition_metadata::decode).await;
    } else if listing.is_new() {
        let folder = folder.display();
        report
            .notes
            .push(format!("{folder} was only begun when its broker ended"));
    } else {
        report.add(Problem::of(
            &metadata,
            "it is missing: whose the folder is stands in it",
        ));
    }
    let id = folder.join(LOG_ID);
    if let Some(bytes) = read(&id, report).await
        && LogIdFile::decode(&bytes).is_none()
    {
        report.add(Problem::at(
            &id,
            0,
            "it is not what was written: the log would not serve",
        ));
    }
    if let Some(mark) = decode(&folder.join(DAMAGE_MARK), report, DamageMark::decode).await {
        let what = format!(
            "marked as damaged from offset {} on: {}",
            mark.offset, mark.cause
        );
        report.add(Problem::at(folder.join(&mark.file), mark.position, what));
    }
    let epochs = folder.join(LEADER_EPOCH_CHECKPOINT);
    let epochs = decode(&epochs, report, EpochCache::decode).await;
    epochs.unwrap_or_default()
}

/// The producers' snapshots: whole, and of what the log holds.
pub(super) async fn check_snapshots(
    expected: &Expected<'_>,
    listing: &FolderListing,
    end: Option<Offset>,
    report: &mut Report,
) {
    for offset in &listing.snapshots {
        let path = Snapshot::path(expected.folder, *offset);
        let Some(states) = decode(&path, report, producer_snapshot::decode).await else {
            continue;
        };
        let is_closed = matches!(expected.left, Left::Closed(_));
        if is_closed && end.is_some_and(|end| *offset > end) {
            report.add(Problem::of(&path, "it lies past the log's end"));
        }
        for (producer, entry) in states.producers() {
            let past = entry.batches().find(|batch| batch.last_offset >= *offset);
            if let Some(batch) = past {
                let last = batch.last_offset;
                let what =
                    format!("producer {producer} has offset {last} in a snapshot at {offset}");
                report.add(Problem::of(&path, what));
            }
        }
    }
}
