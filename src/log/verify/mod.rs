//! Every byte of a stopped data directory, read and held against whatever says what it should be
//! (`coreline log verify`). Nothing is written, and memory is bounded: a window of a segment, a
//! batch, and the indexes of one segment at a time.
//!
//! | File | What |
//! |---|---|
//! | `report` | problems with file and position, and what was counted |
//! | `root` | the directory's own files |
//! | `journals` | what the journals of a life that was killed hold, as recovery would read them |
//! | `partition`, `segment` | a folder; one segment of it |
//! | `view` | a segment's bytes with the journal's over them |
//! | `walk` | batch by batch: checksum, records, codec |
//! | `order` | what a batch's checksum does not cover: offsets and leader epochs |
//! | `indexes`, `extents`, `small_files` | what stands beside the batches |
//!
//! What the last life was not known to have made durable may end in a torn append; that is told
//! and is no problem. Everything below is: it is never taken for a tear.
//!
//! Absent: the metadata log's meaning (`cluster::metadata_log::verify`), any repair.

mod extents;
mod indexes;
mod journals;
mod order;
mod partition;
mod report;
mod root;
mod segment;
mod small_files;
mod view;
mod walk;

#[cfg(all(test, feature = "sim"))]
mod emptied_test;
#[cfg(all(test, feature = "sim"))]
mod verify_test;

use std::path::Path;

use super::cleaner::CleanedMark;
use super::error::LogError;
use super::format::file_names::CLEAN_SHUTDOWN;
use super::recovery::{Access, Folder, find_folders, is_retired};
use crate::base::ids::Offset;
use crate::io;
use journals::Journals;
use root::Root;

pub use partition::{Expected, Journalled, Left, check_folder};
pub use report::{PROBLEMS_MAX, Problem, Report};

/// Reads a directory that no broker uses; `tell` gets a report of each partition, in the order of
/// their folders. Answers that of the directory itself.
///
/// # Errors
/// [`LogError::Refused`] where it is no data directory; what the file system answers to listings.
pub async fn verify(directory: &Path, mut tell: impl FnMut(Report)) -> Result<Report, LogError> {
    let folders = find_folders(directory, Access::Look).await?;
    let mut report = Report::new(directory.display().to_string());
    let root = Root::read(directory, &mut report).await?;
    let mut journals = Journals::read(directory, &folders, &mut report).await?;
    let clean = io::directory::metadata(&directory.join(CLEAN_SHUTDOWN)).await;
    let is_clean = clean.is_ok() && !journals.is_in_force();
    if is_clean {
        root.check_closed(directory, &folders, &mut report).await;
    }
    let has_lost_journal = !is_clean && !journals.is_in_force() && !is_retired(directory).await?;
    for folder in &folders {
        let name = folder_name(folder);
        let plan = journals.plan_of(folder);
        let known = root.recovery_point(folder);
        let journalled = plan.map(|(plan, ring)| Journalled {
            plan,
            ring: journals.files(ring),
        });
        let left = match &journalled {
            Some(journalled) => Left::Journalled(journalled),
            None if is_clean => Left::Closed(known),
            None if journals.is_in_force() => Left::AtRest(known.unwrap_or_default()),
            None => Left::Killed(known.unwrap_or_default()),
        };
        let mark = CleanedMark::read(&folder.path).await?.unwrap_or_default();
        let expected = Expected {
            folder: &folder.path,
            left,
            gaps_below: root.cleaned_to(folder).max(mark.holes_below),
            log_start: root.log_start(folder),
            has_indexes: true,
        };
        let mut of_folder = check_folder(&name, &expected).await?;
        if has_lost_journal && folder.has_id() {
            let what = "the log was in use, and the journal that held what followed is missing";
            of_folder.add(Problem::of(&*folder.path, what));
        }
        tell(of_folder);
    }
    Ok(report)
}

fn folder_name(folder: &Folder) -> String {
    format!("{}-{}", folder.topic, folder.partition)
}

/// The offset that a file gives a partition.
fn offset_of(
    offsets: &super::format::checkpoint_files::PartitionOffsets,
    folder: &Folder,
) -> Option<Offset> {
    let key = (folder.topic.clone(), folder.partition);
    offsets.get(&key).copied()
}
