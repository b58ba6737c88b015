//! Folders at start that belong to no partition of this broker: a topic was deleted and the broker
//! died before its folders were, or the topic's name was given to a new one meanwhile.
//!
//! As in Kafka (`LogManager.isStrayKraftReplica`, KIP-858) they are renamed to end in `-stray`,
//! named in the log and kept: only an operator deletes what metadata does not ask to be deleted. A
//! folder in which no file is finished is what a crash left of a creation, and is removed.
//!
//! The copies of logs on their way into the directory (`log::moving`) are found here too; one whose
//! partition is not this broker's is removed, for it is nobody's only copy.
//!
//! Runs after recovery, when no journal names a log any more, and before any log is opened.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use crate::base::ids::{PartitionIndex, TopicPartition, Uuid};
use crate::base::limits::KIB;
use crate::base::random::Random;
use crate::cluster::image::Image;
use crate::io::directory;
use crate::log::format::file_names::{
    CLUSTER_METADATA_FOLDER, FolderState, PARTITION_METADATA, marked_partition_folder,
    parse_partition_folder,
};
use crate::log::format::partition_metadata;

/// How files end that are being written (`directory::write_file_durably`).
const UNFINISHED: &str = ".tmp";
/// A `partition.metadata` holds two short lines.
const PARTITION_METADATA_BYTES_MAX: usize = 4 * KIB;

/// A partition's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belonging {
    /// The partition.
    pub partition: TopicPartition,
    /// The folder's name.
    pub name: String,
    /// Whether it is a copy that had not taken over.
    pub is_future: bool,
}

/// Sets aside what does not belong to `image`; answers what does.
pub async fn set_aside(
    folder: &Path,
    image: &Image,
    random: &mut Random,
) -> Result<Vec<Belonging>> {
    let (mut count, mut belonging) = (0, Vec::new());
    for entry in directory::list(folder).await? {
        let parsed = parse_partition_folder(&entry.name)
            .filter(|parsed| matches!(parsed.state, FolderState::Live | FolderState::Future))
            .filter(|_| entry.is_directory && entry.name != CLUSTER_METADATA_FOLDER);
        let Some(parsed) = parsed else { continue };
        let path = folder.join(&entry.name);
        let is_future = parsed.state == FolderState::Future;
        let found = |partition| Belonging {
            partition,
            name: entry.name.clone(),
            is_future,
        };
        let named = named(image, (&parsed.topic, parsed.partition));
        // One that cannot be read is no stray: its partition is offline and says so.
        let Some(topic_id) = read_topic_id(&path).await? else {
            belonging.extend(named.map(found));
            continue;
        };
        // Before anything is appended a folder names its topic's id, so that one without an id
        // holds nothing.
        if let Some(named) = named.filter(|named| topic_id == Some(named.topic_id)) {
            belonging.push(found(named));
            continue;
        }
        if is_future || topic_id.is_none() && is_only_begun(&path).await? {
            directory::remove_all(&path).await?;
            continue;
        }
        let (partition, unique) = (parsed.partition, random.next_uuid());
        let unique = u128::from_be_bytes(unique.0);
        let name = marked_partition_folder(&parsed.topic, partition, unique, FolderState::Stray);
        directory::rename(&path, &folder.join(&name)).await?;
        tracing::warn!(
            "{} belongs to no partition of this broker and is now {name}; it may be deleted",
            path.display()
        );
        count += 1;
    }
    if count > 0 {
        directory::sync(folder).await?;
    }
    Ok(belonging)
}

/// Whether nothing is in the folder but files that never got their names.
async fn is_only_begun(path: &Path) -> Result<bool> {
    let entries = directory::list(path).await?;
    Ok(entries.iter().all(|entry| entry.name.ends_with(UNFINISHED)))
}

/// The topic id that a partition's folder names: `Some(None)` where it names none, `None` where
/// that cannot be read.
async fn read_topic_id(path: &Path) -> Result<Option<Option<Uuid>>> {
    let path = path.join(PARTITION_METADATA);
    match directory::read_file(&path, PARTITION_METADATA_BYTES_MAX).await {
        Ok(bytes) => Ok(partition_metadata::decode(&bytes).ok().map(Some)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(None)),
        Err(error) => Err(Error::other(format!("{}: {error}", path.display()))),
    }
}

/// The partition of this broker that has this name.
fn named(image: &Image, (topic, index): (&str, PartitionIndex)) -> Option<TopicPartition> {
    let topic = image.topics().by_name(topic)?;
    let is_here = topic.partition(index)?.replicas.contains(&image.node_id());
    is_here.then_some(TopicPartition {
        topic_id: topic.id,
        partition: index,
    })
}
