//! Who this node is: `meta.properties` at the root of the log directory. Made at the first start;
//! afterwards the directory belongs to that cluster and node.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::base::ids::{BrokerId, Uuid};
use crate::base::random::Random;
use crate::io::directory;
use crate::log::format::FormatError;
use crate::log::format::file_names::{FolderState, parse_partition_folder};
use crate::log::format::meta_properties::MetaProperties;

/// Its name.
pub const META_PROPERTIES_FILE: &str = "meta.properties";

const META_PROPERTIES_BYTES_MAX: usize = 64 * 1024;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// `cluster.id`.
    pub cluster_id: String,
    /// `node.id`.
    pub node_id: BrokerId,
    /// `directory.id`.
    pub directory_id: Uuid,
}

/// Why the file is of no use.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// It cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It says nothing that can be understood.
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
    /// The directory belongs to another node.
    #[error(
        "the data folder belongs to node.id {found} ({}), but node.id is set to {expected}; set \
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
}

/// Reads the identity of `log_dir`, or makes a new one from `random` when there is none.
pub async fn load_or_create(
    log_dir: &Path,
    node_id: BrokerId,
    random: &mut Random,
) -> Result<NodeIdentity, IdentityError> {
    let path = log_dir.join(META_PROPERTIES_FILE);
    let io = |action: &'static str| {
        let path = path.clone();
        move |source| IdentityError::Io {
            action,
            path,
            source,
        }
    };
    let found = match directory::read_file(&path, META_PROPERTIES_BYTES_MAX).await {
        Ok(bytes) => Some(MetaProperties::decode(&bytes).map_err(|source| {
            let path = path.clone();
            IdentityError::Format { path, source }
        })?),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let Some(data) = data_in(log_dir).await.map_err(io("look for"))? {
                return Err(IdentityError::Missing {
                    path,
                    data,
                    node_id,
                });
            }
            None
        }
        Err(error) => return Err(io("read")(error)),
    };
    let mut properties = found.unwrap_or_else(|| MetaProperties {
        cluster_id: random.next_uuid().to_string(),
        node_id,
        directory_id: None,
    });
    if properties.node_id != node_id {
        return Err(IdentityError::OtherNode {
            found: properties.node_id,
            expected: node_id,
            path,
        });
    }
    let known = properties.directory_id.filter(|id| !id.is_reserved());
    let directory_id = known.unwrap_or_else(|| random.next_uuid());
    if known.is_none() {
        properties.directory_id = Some(directory_id);
        directory::write_file_durably(&path, &properties.encode())
            .await
            .map_err(io("write"))?;
    }
    Ok(NodeIdentity {
        cluster_id: properties.cluster_id,
        node_id,
        directory_id,
    })
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
mod tests {
    use super::*;
    use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};

    #[test]
    fn an_identity_is_made_once_and_kept() {
        let disk = SimDisk::new(SimDiskOptions::default(), 1);
        let mut runtime = SimRuntime::new(&disk, 1);
        let lives = runtime.block_on(async {
            let folder = Path::new("/data");
            directory::create_all(folder).await.unwrap();
            let first = load_or_create(folder, BrokerId(3), &mut Random::new(1)).await;
            let second = load_or_create(folder, BrokerId(3), &mut Random::new(2)).await;
            let other = load_or_create(folder, BrokerId(4), &mut Random::new(2)).await;
            (first.unwrap(), second.unwrap(), other.unwrap_err())
        });
        let (first, second, other) = lives.unwrap();
        assert_eq!(first, second);
        assert!(!first.directory_id.is_reserved());
        assert_eq!(
            Uuid::parse(&first.cluster_id).unwrap().to_string(),
            first.cluster_id
        );
        let told = other.to_string();
        assert!(
            told.contains("node.id=3") && told.contains("set to 4"),
            "{told}"
        );
    }

    /// As Kafka, which would not know either whose data it is.
    #[test]
    fn data_without_an_identity_is_refused() {
        for name in [
            "__cluster_metadata-0",
            "topic-7",
            "topic-7.0123-delete",
            "notes",
        ] {
            let disk = SimDisk::new(SimDiskOptions::default(), 1);
            let made = SimRuntime::new(&disk, 1).block_on(async move {
                let folder = Path::new("/data");
                directory::create_all(&folder.join(name)).await.unwrap();
                load_or_create(folder, BrokerId(3), &mut Random::new(1)).await
            });
            let is_data = ["__cluster_metadata-0", "topic-7"].contains(&name);
            match made.unwrap() {
                Ok(_) => assert!(!is_data, "{name}"),
                Err(refused) => {
                    let told = refused.to_string();
                    assert!(is_data && told.contains(name), "{told}");
                    assert!(told.contains("node.id=3"), "{told}");
                    assert!(disk.contents("/data/meta.properties").is_err());
                }
            }
        }
    }

    #[test]
    fn a_directory_of_an_older_kafka_gets_an_id() {
        let disk = SimDisk::new(SimDiskOptions::default(), 1);
        let mut runtime = SimRuntime::new(&disk, 1);
        let lives = runtime.block_on(async {
            let folder = Path::new("/data");
            directory::create_all(folder).await.unwrap();
            let path = folder.join(META_PROPERTIES_FILE);
            let text = b"#\n#Mon Nov 30 01:11:16 UTC 2026\nnode.id=1\nversion=1\ncluster.id=abc\n";
            directory::write_file_durably(&path, text).await.unwrap();
            let first = load_or_create(folder, BrokerId(1), &mut Random::new(1)).await;
            let second = load_or_create(folder, BrokerId(1), &mut Random::new(2)).await;
            directory::write_file_durably(&path, b"version=2\n")
                .await
                .unwrap();
            let bad = load_or_create(folder, BrokerId(1), &mut Random::new(2)).await;
            (first.unwrap(), second.unwrap(), bad.unwrap_err())
        });
        let (first, second, bad) = lives.unwrap();
        assert_eq!(first, second);
        assert_eq!(first.cluster_id, "abc");
        assert!(matches!(bad, IdentityError::Format { .. }));
    }
}
