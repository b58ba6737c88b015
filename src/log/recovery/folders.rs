//! The partitions' folders of a log directory, and the recovery of one that a journal knows.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use super::apply::LogRecovery;
use super::checkpoints::Checkpoints;
use super::rebuild::rebuild;
use super::replay::{LogPlan, Place};
use super::ring_reader::{Access, RingContents};
use crate::base::ids::{Offset, PartitionIndex, Uuid};
use crate::io::{self, FlushGroup};
use crate::log::damage::{describe, mark_after, mark_damage, whole_prefix};
use crate::log::error::LogError;
use crate::log::format::damage_mark::DamageMark;
use crate::log::format::file_names::{
    CLUSTER_METADATA_FOLDER, FolderState, LOG_ID, LogFileKind, LogFileName, parse_partition_folder,
};
use crate::log::limited::for_each_limited;
use crate::log::log_id_file::LogIdFile;
use crate::log::open::read_small;

/// Log ids read at the same time.
const IDS_READ_AT_ONCE: usize = 64;

/// One partition's folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) topic: String,
    pub(crate) partition: PartitionIndex,
    pub(crate) path: Rc<Path>,
    /// The bytes of its log id file.
    id: Option<Vec<u8>>,
}

/// Whether a journal knows the folder.
pub(crate) enum FolderId {
    /// It has an id of this incarnation.
    Current(LogIdFile),
    /// Nothing was written to it in this incarnation.
    AtRest,
    /// Its id cannot be read: the log must not serve.
    Unreadable,
}

impl Folder {
    /// Whether a log id file is in it, of whatever incarnation.
    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// What the file says.
    pub(super) fn log_id(&self) -> Option<LogIdFile> {
        self.id.as_deref().and_then(LogIdFile::decode)
    }

    pub(crate) fn id_of(&self, incarnation: Uuid) -> FolderId {
        let Some(bytes) = &self.id else {
            return FolderId::AtRest;
        };
        match LogIdFile::decode(bytes) {
            Some(id) if id.incarnation == incarnation => FolderId::Current(id),
            Some(_) => FolderId::AtRest,
            None => FolderId::Unreadable,
        }
    }
}

/// The folders of partitions but the metadata log's: those that serve, and copies on their way into
/// the directory. Folders of a deletion that was under way
/// are removed.
pub(super) async fn list_folders(directory: &Path) -> Result<Vec<Folder>, LogError> {
    find_folders(directory, Access::Recover).await
}

/// The same; nothing is removed by whoever only looks.
pub(crate) async fn find_folders(
    directory: &Path,
    access: Access,
) -> Result<Vec<Folder>, LogError> {
    let failed = |error| LogError::io(format!("listing {}", directory.display()), error);
    let mut live = Vec::new();
    for entry in io::directory::list(directory).await.map_err(failed)? {
        if !entry.is_directory || entry.name == CLUSTER_METADATA_FOLDER {
            continue;
        }
        let Some(parsed) = parse_partition_folder(&entry.name) else {
            continue;
        };
        let path: Rc<Path> = directory.join(&entry.name).into();
        match parsed.state {
            // A copy that has not taken over has records in the journal too.
            FolderState::Live | FolderState::Future => {
                live.push((parsed.topic, parsed.partition, path));
            }
            FolderState::Delete if access == Access::Recover => {
                io::directory::remove_all(&path).await.map_err(failed)?;
            }
            FolderState::Delete | FolderState::Stray => {}
        }
    }
    read_ids(live).await
}

/// The folders with their log ids, in the order of their paths.
async fn read_ids(live: Vec<(String, PartitionIndex, Rc<Path>)>) -> Result<Vec<Folder>, LogError> {
    let folders = Rc::new(RefCell::new(Vec::with_capacity(live.len())));
    let read = Rc::clone(&folders);
    for_each_limited(live, IDS_READ_AT_ONCE, move |(topic, partition, path)| {
        let read = Rc::clone(&read);
        async move {
            let id = read_small(&path.join(LOG_ID)).await?;
            read.borrow_mut().push(Folder {
                topic,
                partition,
                path,
                id,
            });
            Ok(())
        }
    })
    .await?;
    let mut folders = folders.take();
    folders.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(folders)
}

/// A folder whose id is damaged is marked and named.
pub(super) async fn mark_unreadable_id(folder: &Folder) -> Result<String, LogError> {
    let mark = DamageMark {
        file: LOG_ID.to_owned(),
        position: 0,
        offset: Offset(0),
        durable_end: Offset(0),
        cause: "the log's id cannot be read, so its journal records are not known".to_owned(),
    };
    mark_damage(&folder.path, &mark).await?;
    Ok(format!(
        "{}: {}",
        folder.path.join(LOG_ID).display(),
        mark.cause
    ))
}

/// One log to be recovered from its journal.
pub(super) struct Job {
    pub(super) folder: Folder,
    pub(super) plan: LogPlan,
    pub(super) ring: usize,
}

/// What all recoveries of a directory's logs share.
pub(super) struct Shared {
    pub(super) rings: Vec<RingContents>,
    pub(super) checkpoints: Rc<RefCell<Checkpoints>>,
    pub(super) notices: RefCell<Vec<String>>,
    pub(super) flushes: FlushGroup,
}

/// Brings one log to rest.
pub(super) async fn recover_job(mut job: Job, shared: &Shared) -> Result<(), LogError> {
    let Shared { notices, .. } = shared;
    let folder = &job.folder;
    if job.plan.is_deleted {
        let removed = io::directory::remove_all(&folder.path).await;
        return removed
            .map_err(|error| LogError::io(format!("deleting {}", folder.path.display()), error));
    }
    let ring = shared
        .rings
        .get(job.ring)
        .map(|ring| ring.files.as_slice())
        .unwrap_or_default();
    let recovery = LogRecovery {
        folder: &folder.path,
        plan: &mut job.plan,
        ring,
        flushes: &shared.flushes,
    };
    let applied = recovery.run().await?;
    notices.borrow_mut().extend(applied.notices);
    let (recovery_point, log_start) = (job.plan.recovery_point, job.plan.log_start);
    let served = applied
        .damage
        .as_ref()
        .map_or(applied.end, |(place, _)| *place);
    let log_end = match rebuild(&folder.path, recovery_point, served, &shared.flushes).await {
        Ok(log_end) => log_end.max(log_start),
        Err(LogError::Damaged(what)) => {
            let prefix = whole_prefix(&folder.path, Some(served)).await?;
            let mark = mark_after(&folder.path, prefix, job.plan.durable_end, &what).await?;
            notices.borrow_mut().push(describe(&folder.path, &mark));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if let Some((place, what)) = applied.damage {
        let mark = mark_of(place, log_end, job.plan.durable_end, &what);
        mark_damage(&folder.path, &mark).await?;
        notices.borrow_mut().push(describe(&folder.path, &mark));
    }
    let mut checkpoints = shared.checkpoints.borrow_mut();
    checkpoints.set_recovery_point(folder, log_end);
    checkpoints.set_log_start(folder, log_start);
    Ok(())
}

fn mark_of(place: Place, offset: Offset, durable_end: Offset, what: &str) -> DamageMark {
    DamageMark {
        file: LogFileName::live(Offset(place.0), LogFileKind::Log).to_string(),
        position: place.1,
        offset,
        durable_end,
        cause: what.to_owned(),
    }
}
