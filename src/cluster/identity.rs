//! Who this node is: `meta.properties` at the root of every log directory. Made at the first start
//! with the directory; afterwards the directory belongs to that cluster and node, and has an id of
//! its own (KIP-858). Nothing is written before all of them are known to belong together
//! (`MetaPropertiesEnsemble`).

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::base::ids::{BrokerId, Uuid};
use crate::base::random::Random;
use crate::io::directory;
use crate::log::format::FormatError;
use crate::log::format::file_names::{FolderState, parse_partition_folder};
use crate::log::format::known_directories::{self, KNOWN_DIRECTORIES, KnownDirectories};
use crate::log::format::meta_properties::MetaProperties;

/// Its name.
pub const META_PROPERTIES_FILE: &str = "meta.properties";

const META_PROPERTIES_BYTES_MAX: usize = 64 * 1024;

/// More than all paths that a line of settings can name.
const KNOWN_DIRECTORIES_BYTES_MAX: usize = 1024 * 1024;

/// What the files say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// `cluster.id`.
    pub cluster_id: String,
    /// `node.id`.
    pub node_id: BrokerId,
    /// `directory.id` of each directory whose file could be read and written.
    pub directory_ids: BTreeMap<PathBuf, Uuid>,
    /// The other directories, with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

/// Why the files are of no use.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The one of the metadata log cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// One says nothing that can be understood.
    #[error("{} is not understood: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: FormatError,
    },
    /// It is gone, though the directory holds data: of which cluster, nothing says.
    #[error(
        "{} is missing although the data folder holds {data}: put the file back, or write one \
         with the lines version=1, cluster.id=(the cluster's id) and node.id={node_id}; for a \
         new, empty broker set log.dirs to another folder",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// A folder that holds data.
        data: String,
        /// Who this is.
        node_id: BrokerId,
    },
    /// A directory belongs to another cluster than the others.
    #[error(
        "Invalid cluster.id in: {}. Expected {expected}, but read {found}",
        path.display()
    )]
    OtherCluster {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose the others are.
        expected: String,
    },
    /// A directory belongs to another node.
    #[error(
        "Stored node id {found} doesn't match previous node id {expected} in {}: set \
         node.id={found}, or log.dirs to another folder",
        path.display()
    )]
    OtherNode {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: BrokerId,
        /// Who this is.
        expected: BrokerId,
    },
    /// Two directories have the same id: one is a copy of the other.
    #[error("Duplicate directory ID {id} found. It was the ID of {}, but also of {}",
        first.display(), second.display())]
    SameId {
        /// The id.
        id: Uuid,
        /// A directory that has it.
        first: PathBuf,
        /// Another.
        second: PathBuf,
    },
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> IdentityError {
    let path = path.to_owned();
    move |source| IdentityError::Io {
        action,
        path,
        source,
    }
}

/// Reads who this node is from its directories, that of the metadata log first, and makes what is
/// not there from `random`.
///
/// # Errors
/// [`IdentityError`]. A directory that cannot be read or written is left out, but for the first.
pub async fn load_or_create(
    directories: &[PathBuf],
    node_id: BrokerId,
    random: &mut Random,
) -> Result<NodeIdentity, IdentityError> {
    let mut failed = Vec::new();
    let mut read = Vec::with_capacity(directories.len());
    for (number, log_dir) in directories.iter().enumerate() {
        match read_properties(log_dir).await {
            Err(IdentityError::Io { path, source, .. }) if number > 0 => {
                let reason = format!("cannot read {}: {source}", path.display());
                failed.push((log_dir.clone(), reason));
            }
            outcome => read.push((log_dir.as_path(), outcome?)),
        }
    }
    let known = verify(&read, node_id)?;
    let cluster_id = match known {
        Some(cluster_id) => cluster_id,
        None => {
            for (log_dir, _) in &read {
                check_empty(log_dir, node_id).await?;
            }
            random.next_uuid().to_string()
        }
    };
    let before = read_known(directories).await?;
    let mut directory_ids = BTreeMap::new();
    for (number, (log_dir, properties)) in read.into_iter().enumerate() {
        if let (None, Some(id)) = (&properties, before.get(log_dir).filter(|_| number > 0)) {
            failed.push((log_dir.to_owned(), unmounted(log_dir, *id)));
            continue;
        }
        let known = properties.and_then(|properties| properties.directory_id);
        let directory_id = match known.filter(|id| !id.is_reserved()) {
            Some(directory_id) => directory_id,
            None => {
                let directory_id = random.next_uuid();
                let written = write_properties(log_dir, (&cluster_id, node_id), directory_id);
                match written.await {
                    Err(error) if number > 0 => {
                        failed.push((log_dir.to_owned(), error.to_string()));
                        continue;
                    }
                    outcome => outcome?,
                }
                directory_id
            }
        };
        directory_ids.insert(log_dir.to_owned(), directory_id);
    }
    remember(directories, before, &directory_ids).await?;
    Ok(NodeIdentity {
        cluster_id,
        node_id,
        directory_ids,
        failed,
    })
}

/// Where the ids of all directories are kept; one alone needs no such file.
fn known_path(directories: &[PathBuf]) -> Option<PathBuf> {
    let (metadata, others) = directories.split_first()?;
    (!others.is_empty()).then(|| metadata.join(KNOWN_DIRECTORIES))
}

async fn read_known(directories: &[PathBuf]) -> Result<KnownDirectories, IdentityError> {
    let Some(path) = known_path(directories) else {
        return Ok(KnownDirectories::new());
    };
    match directory::read_file(&path, KNOWN_DIRECTORIES_BYTES_MAX).await {
        Ok(bytes) => known_directories::decode(&bytes)
            .map_err(|source| IdentityError::Format { path, source }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(KnownDirectories::new()),
        Err(error) => Err(io_error("read", &path)(error)),
    }
}

fn unmounted(log_dir: &Path, id: Uuid) -> String {
    format!(
        "{} is missing in what was the log directory {id}: is its disk mounted? To take the folder \
         as a new log directory, run kafka-storage.sh format --ignore-formatted",
        log_dir.join(META_PROPERTIES_FILE).display()
    )
}

/// Writes down the ids of a start, those of directories that are not there among them.
async fn remember(
    directories: &[PathBuf],
    before: KnownDirectories,
    now: &BTreeMap<PathBuf, Uuid>,
) -> Result<(), IdentityError> {
    let mut known = before.clone();
    known.extend(now.iter().map(|(path, id)| (path.clone(), *id)));
    let Some(path) = known_path(directories).filter(|_| known != before) else {
        return Ok(());
    };
    let bytes = known_directories::encode(&known);
    let written = directory::write_file_durably(&path, &bytes).await;
    written.map_err(io_error("write", &path))
}

async fn read_properties(log_dir: &Path) -> Result<Option<MetaProperties>, IdentityError> {
    let path = log_dir.join(META_PROPERTIES_FILE);
    match directory::read_file(&path, META_PROPERTIES_BYTES_MAX).await {
        Ok(bytes) => match MetaProperties::decode(&bytes) {
            Ok(properties) => Ok(Some(properties)),
            Err(source) => Err(IdentityError::Format { path, source }),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", &path)(error)),
    }
}

async fn write_properties(
    log_dir: &Path,
    (cluster_id, node_id): (&str, BrokerId),
    directory_id: Uuid,
) -> Result<(), IdentityError> {
    let properties = MetaProperties {
        cluster_id: cluster_id.to_owned(),
        node_id,
        directory_id: Some(directory_id),
    };
    let path = log_dir.join(META_PROPERTIES_FILE);
    let written = directory::write_file_durably(&path, &properties.encode()).await;
    written.map_err(io_error("write", &path))
}

/// Whether all that was read belongs to one cluster and to this node, each directory with an id of
/// its own; answers the cluster's id, if there is one yet. Pure.
fn verify(
    read: &[(&Path, Option<MetaProperties>)],
    node_id: BrokerId,
) -> Result<Option<String>, IdentityError> {
    let mut cluster_id: Option<&str> = None;
    let mut ids = BTreeMap::new();
    let found = read.iter();
    let found = found.filter_map(|(log_dir, found)| Some((log_dir, found.as_ref()?)));
    for (log_dir, properties) in found {
        let path = log_dir.join(META_PROPERTIES_FILE);
        let expected = *cluster_id.get_or_insert(&properties.cluster_id);
        if properties.cluster_id != expected {
            return Err(IdentityError::OtherCluster {
                path,
                found: properties.cluster_id.clone(),
                expected: expected.to_owned(),
            });
        }
        if properties.node_id != node_id {
            return Err(IdentityError::OtherNode {
                path,
                found: properties.node_id,
                expected: node_id,
            });
        }
        let Some(id) = properties.directory_id.filter(|id| !id.is_reserved()) else {
            continue;
        };
        if let Some(first) = ids.insert(id, log_dir) {
            return Err(IdentityError::SameId {
                id,
                first: first.to_path_buf(),
                second: log_dir.to_path_buf(),
            });
        }
    }
    Ok(cluster_id.map(str::to_owned))
}

/// A new cluster begins only where no data is.
async fn check_empty(log_dir: &Path, node_id: BrokerId) -> Result<(), IdentityError> {
    let path = log_dir.join(META_PROPERTIES_FILE);
    match data_in(log_dir)
        .await
        .map_err(io_error("look for", &path))?
    {
        None => Ok(()),
        Some(data) => Err(IdentityError::Missing {
            path,
            data,
            node_id,
        }),
    }
}

/// A folder of the metadata log or of a partition. One that its deletion has renamed is no data.
async fn data_in(log_dir: &Path) -> std::io::Result<Option<String>> {
    let is_data = |name: &str| {
        parse_partition_folder(name).is_some_and(|folder| folder.state == FolderState::Live)
    };
    let entries = directory::list(log_dir).await?;
    let mut folders = entries.into_iter().filter(|entry| entry.is_directory);
    let found = folders.find(|entry| is_data(&entry.name));
    Ok(found.map(|entry| entry.name))
}

#[cfg(test)]
#[path = "identity_test.rs"]
mod identity_test;
