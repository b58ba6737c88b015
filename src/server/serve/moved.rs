//! What a start does about moves between log directories that a life before has not ended: the
//! folders are settled as `log::moved` decides, and moves that had not come to their end begin
//! anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::publisher::Publisher;
use crate::base::ids::{TopicPartition, Uuid};
use crate::base::limits::KIB;
use crate::base::random::Random;
use crate::cluster::image::Image;
use crate::io::directory;
use crate::log::format::file_names::{DAMAGE_MARK, MOVE_MARK};
use crate::log::format::move_mark;
use crate::log::moved::{self, CopyFate, FoundCopy, TwoFolders};
use crate::server::moves::{Moves, Whose};
use crate::server::node::Node;
use crate::shard::Shard;

/// A mark holds three short lines.
const MARK_BYTES_MAX: usize = KIB;

/// A folder of a partition of this broker.
#[derive(Clone, Debug)]
pub struct Found {
    /// The partition.
    pub partition: TopicPartition,
    /// The directory that it is in.
    pub directory: Uuid,
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is a copy that had not taken over.
    pub is_future: bool,
}

/// Where the partitions are now.
#[derive(Debug, Default)]
pub struct Settled {
    /// The directory of each whose folder serves.
    pub homes: BTreeMap<TopicPartition, Uuid>,
    /// Moves that go on, from their beginning.
    pub moves: Vec<(TopicPartition, Uuid)>,
}

/// Leaves each partition one folder. `online` are the directories that are at hand.
///
/// # Errors
/// What keeps the broker from starting, for the operator.
pub async fn settle(
    found: Vec<Found>,
    image: &Image,
    online: &[Uuid],
    random: &mut Random,
) -> Result<Settled, String> {
    let mut by_partition: BTreeMap<TopicPartition, Vec<Found>> = BTreeMap::new();
    for folder in found {
        let of = by_partition.entry(folder.partition).or_default();
        of.push(folder);
    }
    let mut settled = Settled::default();
    for (id, folders) in by_partition {
        let assigned = assigned(image, id);
        let mut copies = Vec::with_capacity(folders.len());
        for folder in &folders {
            copies.push(look(folder, assigned).await?);
        }
        let is_online = assigned.is_some_and(|assigned| online.contains(&assigned));
        let decided = moved::decide(assigned, is_online, &copies);
        let decided = decided.map_err(|two| in_two(two, &folders))?;
        for (folder, fate) in folders.iter().zip(decided.fates) {
            let unique = u128::from_be_bytes(random.next_uuid().0);
            let path = folder.path.display();
            moved::carry_out(&folder.path, fate, unique)
                .await
                .map_err(|error| format!("cannot settle a move at {path}: {error}"))?;
            match fate {
                CopyFate::Serve | CopyFate::Promote => {
                    settled.homes.insert(id, folder.directory);
                }
                CopyFate::Remove => tracing::info!("{path} is what a move has left: removed"),
                CopyFate::Keep => tracing::warn!(
                    "{path} does not serve: a move has given it up, or it is a copy that is not \
                     whole, and the log directory of the other is not at hand"
                ),
            }
        }
        settled.moves.extend(decided.move_to.map(|to| (id, to)));
    }
    Ok(settled)
}

/// The directory in which the metadata has the partition, where it names one.
fn assigned(image: &Image, id: TopicPartition) -> Option<Uuid> {
    let topic = image.topics().by_id(id.topic_id)?;
    let directory = topic.partition(id.partition)?.directory(image.node_id())?;
    (!directory.is_reserved()).then_some(directory)
}

/// Reads a mark where it could say something.
async fn look(folder: &Found, assigned: Option<Uuid>) -> Result<FoundCopy, String> {
    let is_elsewhere = assigned.is_some_and(|assigned| assigned != folder.directory);
    let is_given_up = match is_elsewhere && !folder.is_future {
        true => is_given_up_for(&folder.path, assigned).await?,
        false => false,
    };
    Ok(FoundCopy {
        directory: folder.directory,
        is_future: folder.is_future,
        is_given_up,
        is_damaged: folder.is_future && is_damaged(&folder.path).await,
    })
}

async fn is_damaged(folder: &Path) -> bool {
    directory::metadata(&folder.join(DAMAGE_MARK)).await.is_ok()
}

/// Whether the folder's mark names that directory; one that cannot be read may.
async fn is_given_up_for(folder: &Path, assigned: Option<Uuid>) -> Result<bool, String> {
    let path = folder.join(MOVE_MARK);
    match directory::read_file(&path, MARK_BYTES_MAX).await {
        Ok(bytes) => {
            let named = move_mark::decode(&bytes);
            Ok(named.map_or(true, |named| Some(named) == assigned))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn in_two(TwoFolders { places }: TwoFolders, folders: &[Found]) -> String {
    let path = |place: usize| folders.get(place).map_or(Path::new("?"), |one| &one.path);
    let (one, other) = (path(places.0), path(places.1));
    let name = one.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "the partition {name} is in two log directories, as {} and as {}: move the folder away \
         that is not to be served; if one of the disks has failed before, that one's",
        one.display(),
        other.display()
    )
}

/// Begins the moves anew; answers when their copies are there.
pub async fn go_on(publisher: &Publisher, moves: &[(TopicPartition, Uuid)]) {
    if moves.is_empty() {
        return;
    }
    for shard in publisher.shards() {
        let moves = moves.to_vec();
        let begin = move |shard: Rc<Shard>| async move {
            let Some(node) = shard.attachment::<Node>() else {
                return;
            };
            let here = moves.into_iter();
            let here = here
                .filter(|(id, _)| shard.partition(*id).is_some())
                .collect();
            Moves::alter_all(&node, here, Whose::Start).await;
        };
        publisher.run(shard, begin).await.await;
    }
}
