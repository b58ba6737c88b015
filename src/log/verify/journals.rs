//! The journals of a life that did not end in order, read as recovery reads them.

use std::path::Path;

use super::report::{Problem, Report};
use crate::base::ids::Uuid;
use crate::io::File;
use crate::log::error::LogError;
use crate::log::journal::JOURNAL_FOLDER;
use crate::log::recovery::{
    Access, AllPlans, Folder, FolderId, LogPlan, RingContents, read_incarnation, replay_rings,
};

/// What was found.
#[derive(Default)]
pub(super) struct Journals {
    incarnation: Option<Uuid>,
    rings: Vec<RingContents>,
    plans: Option<AllPlans>,
}

impl Journals {
    /// Reads the journals that count, if there are any, and tells what is damaged in them.
    pub(super) async fn read(
        directory: &Path,
        folders: &[Folder],
        report: &mut Report,
    ) -> Result<Self, LogError> {
        let incarnation = match read_incarnation(directory).await {
            Ok(None) => return Ok(Self::default()),
            Ok(Some(incarnation)) => incarnation,
            Err(error) => {
                let path = directory.join(JOURNAL_FOLDER).join("current");
                report.add(Problem::at(path, 0, error.to_string()));
                return Ok(Self::default());
            }
        };
        let read = replay_rings(directory, incarnation, folders, Access::Look).await;
        let (rings, plans) = match read {
            Ok(read) => read,
            Err(error) => {
                report.add(Problem::of(
                    directory.join(JOURNAL_FOLDER),
                    error.to_string(),
                ));
                return Ok(Self::default());
            }
        };
        for (file, position, what) in &plans.damages {
            report.add(Problem {
                file: file.clone(),
                position: *position,
                what: what.clone(),
            });
        }
        for loss in plans.losses() {
            report.add(Problem::of(directory.join(JOURNAL_FOLDER), loss));
        }
        for stranger in plans.strangers() {
            let id = Uuid(*stranger);
            let what = format!("it names a log, {id}, that no folder carries");
            report.add(Problem::of(directory.join(JOURNAL_FOLDER), what));
        }
        Ok(Self {
            incarnation: Some(incarnation),
            rings,
            plans: Some(plans),
        })
    }

    /// Whether the last life was killed and left journals.
    pub(super) const fn is_in_force(&self) -> bool {
        self.incarnation.is_some()
    }

    /// What they say of a log, and in which ring its records lie; `None` of one that had nothing to
    /// write in that life.
    pub(super) fn plan_of(&mut self, folder: &Folder) -> Option<(LogPlan, usize)> {
        let (incarnation, plans) = (self.incarnation?, self.plans.as_mut()?);
        match folder.id_of(incarnation) {
            FolderId::Current(id) => Some(plans.take(&id)),
            // The id file itself is told of as unreadable.
            FolderId::AtRest | FolderId::Unreadable => None,
        }
    }

    /// The files of a ring.
    pub(super) fn files(&self, ring: usize) -> &[File] {
        self.rings
            .get(ring)
            .map(|ring| ring.files.as_slice())
            .unwrap_or_default()
    }
}
