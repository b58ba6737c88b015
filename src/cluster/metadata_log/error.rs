//! What can go wrong with the metadata log.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::base::ids::{BrokerId, Offset};
use crate::cluster::image::ImageError;
use crate::cluster::records::RecordError;
use crate::wire::primitives::EncodeError;

/// A fault of the metadata log.
#[derive(Debug, Error)]
pub enum MetadataLogError {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Bytes that were durable are not what was written. Nothing past them can be trusted.
    #[error(
        "{} is damaged at position {position}: {reason}. The metadata before it is whole; restore \
         the file from a copy, or move the data directory away to begin anew",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it the damage begins, in bytes.
        position: u64,
        /// What is wrong.
        reason: String,
    },
    /// A file that must follow on another does not.
    #[error("{} begins at offset {found}, but offset {expected} is missing", path.display())]
    Gap {
        /// The file.
        path: PathBuf,
        /// The offset that should come next.
        expected: Offset,
        /// The offset that it begins with.
        found: Offset,
    },
    /// A snapshot tells of more than the log, which it can only have been taken of.
    #[error(
        "the metadata log in {} ends at offset {end}, but its snapshot reaches to {snapshot_end}: \
         segments are missing; restore them from a copy",
        folder.display()
    )]
    EndsEarly {
        /// The log's folder.
        folder: PathBuf,
        /// Where the log ends.
        end: Offset,
        /// Where the snapshot ends.
        snapshot_end: Offset,
    },
    /// A record that this node does not understand.
    #[error("the metadata log holds at offset {offset} what this version cannot read: {source}")]
    Record {
        /// Its offset.
        offset: Offset,
        /// What is wrong with it.
        source: RecordError,
    },
    /// A record that does not fit those before it.
    #[error("the metadata log contradicts itself at offset {offset}: {source}")]
    Image {
        /// Its offset.
        offset: Offset,
        /// What does not fit.
        source: ImageError,
    },
    /// The log belongs to a quorum in which this node is not the only voter.
    #[error(
        "the metadata log belongs to a quorum of {voters:?}; this node is {node} and can only \
         carry on a log whose one voter it is itself"
    )]
    Quorum {
        /// Who may vote.
        voters: Vec<i32>,
        /// This node.
        node: BrokerId,
    },
    /// The log is at a metadata version that this node does not know.
    #[error(
        "the metadata log is at {name} {level}; this version of Coreline knows levels {min} to \
         {max}"
    )]
    Feature {
        /// The feature.
        name: String,
        /// Its level in the log.
        level: i16,
        /// The lowest level known.
        min: i16,
        /// The highest level known.
        max: i16,
    },
    /// Records that make a batch larger than any reader accepts.
    #[error("a change of {bytes} bytes does not fit one batch of the metadata log ({limit} bytes)")]
    TooLarge {
        /// Size of the batch.
        bytes: usize,
        /// The largest that may be.
        limit: usize,
    },
    /// A record that its schema cannot carry: a bug here.
    #[error("a metadata record does not encode: {0}")]
    Encode(#[from] EncodeError),
    /// An earlier write failed, and what it left behind is not known.
    #[error("the metadata log takes no more records: an earlier write failed")]
    Failed,
}

impl MetadataLogError {
    /// An error of `action` on `path`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
