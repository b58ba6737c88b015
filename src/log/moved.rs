//! What a start makes of the folders of one partition in several log directories: a life before has
//! died in the middle of a move ([`super::moving`]), or an operator has moved folders by hand.
//!
//! Runs after recovery, when no journal names a log any more, and before any log is opened.

use std::io::Result as IoResult;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::format::file_names::{
    FolderState, marked_partition_folder, parse_partition_folder, partition_folder,
};
use crate::base::ids::Uuid;
use crate::io::directory;

/// A folder of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundCopy {
    /// The directory that it is in.
    pub directory: Uuid,
    /// Whether it is a copy that had not got the partition's name.
    pub is_future: bool,
    /// Whether its mark of a move names the directory in which the metadata has the partition.
    pub is_given_up: bool,
    /// Of a copy that had not got the partition's name: whether records of it are damaged.
    pub is_damaged: bool,
}

/// What becomes of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFate {
    /// It serves.
    Serve,
    /// It gets the partition's name and serves.
    Promote,
    /// It is removed.
    Remove,
    /// It stays as it is, and does not serve.
    Keep,
}

/// What becomes of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// One a folder, in their order.
    pub fates: Vec<CopyFate>,
    /// Where the move goes on, from its beginning.
    pub move_to: Option<Uuid>,
}

/// Two folders would serve, and nothing says which counts (`LogManager.loadLog`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("two folders of one partition")]
pub struct TwoFolders {
    /// Their places among those found.
    pub places: (usize, usize),
}

/// Decides for a partition that the metadata has in `assigned`; `is_online` says whether that
/// directory is at hand.
///
/// # Errors
/// [`TwoFolders`].
pub fn decide(
    assigned: Option<Uuid>,
    is_online: bool,
    found: &[FoundCopy],
) -> Result<Fates, TwoFolders> {
    let is_void = |copy: &FoundCopy| copy.is_given_up && Some(copy.directory) != assigned;
    let first = |wanted: &dyn Fn(&FoundCopy) -> bool| found.iter().position(wanted);
    let mut live = (found.iter().zip(0..)).filter(|(copy, _)| !copy.is_future && !is_void(copy));
    let whole = live.next().map(|(_, place)| place);
    if let (Some(one), Some((_, other))) = (whole, live.next()) {
        return Err(TwoFolders {
            places: (one, other),
        });
    }
    let is_named = |copy: &FoundCopy| copy.is_future && Some(copy.directory) == assigned;
    let sound = first(&|copy| is_named(copy) && !copy.is_damaged);
    // The folder that counts is damaged, and has not served yet, or it was taken away by hand:
    // rather what was given up.
    let left = is_online.then(|| first(&|copy| !copy.is_future)).flatten();
    let home = whole.or(sound).or(left).or_else(|| first(&is_named));
    let fate = |(copy, place): (&FoundCopy, usize)| match home {
        None => CopyFate::Keep,
        Some(home) if home != place => CopyFate::Remove,
        Some(_) if copy.is_future => CopyFate::Promote,
        Some(_) => CopyFate::Serve,
    };
    let fates: Vec<CopyFate> = found.iter().zip(0..).map(fate).collect();
    let unfinished = found.iter().zip(0..).find(|(copy, place)| {
        copy.is_future && home.is_some_and(|home| home != *place && !is_same(found, home, copy))
    });
    Ok(Fates {
        fates,
        move_to: unfinished.map(|(copy, _)| copy.directory),
    })
}

/// Does with `folder` what was decided, durably. A removal takes the folder's name away first, as a
/// whole: half a folder might lack the mark that says that it is void. `unique` is random.
///
/// # Errors
/// What the file system answers.
pub async fn carry_out(folder: &Path, fate: CopyFate, unique: u128) -> IoResult<()> {
    match fate {
        CopyFate::Serve | CopyFate::Keep => Ok(()),
        CopyFate::Promote => rename(folder, FolderState::Live, unique).await.map(|_| ()),
        CopyFate::Remove => {
            let marked = rename(folder, FolderState::Delete, unique).await?;
            directory::remove_all(&marked).await
        }
    }
}

async fn rename(folder: &Path, state: FolderState, unique: u128) -> IoResult<PathBuf> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let (Some(parsed), Some(parent)) = (parse_partition_folder(&name), folder.parent()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let (topic, partition) = (parsed.topic.as_str(), parsed.partition);
    let renamed = parent.join(match state {
        FolderState::Live => partition_folder(topic, partition),
        state => marked_partition_folder(topic, partition, unique, state),
    });
    directory::rename(folder, &renamed).await?;
    directory::sync(parent).await?;
    Ok(renamed)
}

fn is_same(found: &[FoundCopy], home: usize, copy: &FoundCopy) -> bool {
    found
        .get(home)
        .is_some_and(|home| home.directory == copy.directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use CopyFate::{Keep, Promote, Remove, Serve};

    const A: Uuid = Uuid([1; 16]);
    const B: Uuid = Uuid([2; 16]);
    const C: Uuid = Uuid([3; 16]);

    fn live(directory: Uuid) -> FoundCopy {
        FoundCopy {
            directory,
            is_future: false,
            is_given_up: false,
            is_damaged: false,
        }
    }

    fn given_up(directory: Uuid) -> FoundCopy {
        FoundCopy {
            is_given_up: true,
            ..live(directory)
        }
    }

    fn future(directory: Uuid) -> FoundCopy {
        FoundCopy {
            is_future: true,
            ..live(directory)
        }
    }

    fn fates(assigned: Uuid, found: &[FoundCopy]) -> (Vec<CopyFate>, Option<Uuid>) {
        let decided = decide(Some(assigned), true, found).unwrap();
        (decided.fates, decided.move_to)
    }

    #[test]
    fn a_folder_serves_wherever_it_is() {
        assert_eq!(fates(A, &[live(A)]), (vec![Serve], None));
        assert_eq!(fates(A, &[live(B)]), (vec![Serve], None));
        assert_eq!(fates(A, &[]), (vec![], None));
        let two = decide(Some(A), true, &[live(A), live(B)]);
        assert_eq!(two, Err(TwoFolders { places: (0, 1) }));
    }

    #[test]
    fn a_copy_that_the_metadata_does_not_name_is_begun_anew() {
        let begun = [live(A), future(B)];
        assert_eq!(fates(A, &begun), (vec![Serve, Remove], Some(B)));
        // The mark of a move that did not come to its end.
        let marked = [live(A), future(B)];
        assert_eq!(fates(A, &marked), (vec![Serve, Remove], Some(B)));
        let of_two_moves = [future(B), live(A), future(C)];
        let (told, again) = fates(A, &of_two_moves);
        assert_eq!((told, again), (vec![Remove, Serve, Remove], Some(B)));
        // In the directory that the log is in already nothing is to be done.
        assert_eq!(fates(A, &[live(A), future(A)]), (vec![Serve, Remove], None));
    }

    #[test]
    fn a_copy_that_the_metadata_names_takes_over() {
        let named = [given_up(A), future(B)];
        assert_eq!(fates(B, &named), (vec![Remove, Promote], None));
        assert_eq!(
            fates(B, &[given_up(A), live(B)]),
            (vec![Remove, Serve], None)
        );
        // The source's disk is away.
        assert_eq!(fates(B, &[future(B)]), (vec![Promote], None));
    }

    #[test]
    fn a_damaged_copy_that_has_not_served_gives_way_to_its_source() {
        let damaged = FoundCopy {
            is_damaged: true,
            ..future(B)
        };
        let found = [given_up(A), damaged];
        assert_eq!(fates(B, &found), (vec![Serve, Remove], Some(B)));
        assert_eq!(fates(B, &[damaged]), (vec![Promote], None));
    }

    #[test]
    fn what_has_been_given_up_never_serves_again() {
        let without_target = decide(Some(B), false, &[given_up(A)]).unwrap();
        assert_eq!(without_target.fates, [Keep]);
        // Unless what it was given up for was taken away by hand.
        assert_eq!(fates(B, &[given_up(A)]), (vec![Serve], None));
        // A mark that names what the metadata does not says nothing, and is not told.
        let without_target = decide(Some(B), false, &[live(A)]).unwrap();
        assert_eq!(without_target.fates, [Serve]);
    }

    #[test]
    fn a_copy_without_its_source_waits_for_it() {
        let without_source = decide(Some(A), false, &[future(B)]).unwrap();
        assert_eq!(
            (without_source.fates, without_source.move_to),
            (vec![Keep], None)
        );
    }
}
