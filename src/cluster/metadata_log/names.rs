//! Names of the log's files: segments by base offset, snapshots by end offset and epoch
//! (`LogFileUtils`, `Snapshots`).

use crate::base::ids::{LeaderEpoch, Offset};

/// The folder of the metadata log in the log directory.
pub const METADATA_FOLDER: &str = "__cluster_metadata-0";

/// Suffix of a segment's records.
pub const LOG_SUFFIX: &str = ".log";

/// Suffix of a snapshot.
pub const SNAPSHOT_SUFFIX: &str = ".checkpoint";

/// Suffix of a snapshot that is not finished.
const PART_SUFFIX: &str = ".part";

/// A snapshot's name: the offset after the last one that it contains, and that one's epoch. The
/// snapshot `(0, 0)` holds what a new cluster begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId {
    /// Exclusive end.
    pub end_offset: Offset,
    /// Epoch of the last offset contained.
    pub epoch: LeaderEpoch,
}

impl SnapshotId {
    /// What a new cluster begins with.
    pub const BOOTSTRAP: Self = Self {
        end_offset: Offset(0),
        epoch: LeaderEpoch(0),
    };

    /// The file's name.
    #[must_use]
    pub fn file_name(self) -> String {
        let Self { end_offset, epoch } = self;
        format!("{:020}-{:010}{SNAPSHOT_SUFFIX}", end_offset.0, epoch.0)
    }

    /// The file's name while it is written.
    #[must_use]
    pub fn part_name(self) -> String {
        format!("{}{PART_SUFFIX}", self.file_name())
    }

    /// The file's name once it was found to be damaged; Kafka leaves it alone.
    #[must_use]
    pub fn damaged_name(self) -> String {
        format!("{}.damaged", self.file_name())
    }

    /// Reads a file's name; `None` when it names no finished snapshot.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (end_offset, epoch) = name.strip_suffix(SNAPSHOT_SUFFIX)?.split_once('-')?;
        if end_offset.len() != 20 || epoch.len() != 10 {
            return None;
        }
        Some(Self {
            end_offset: Offset(end_offset.parse().ok()?),
            epoch: LeaderEpoch(epoch.parse().ok()?),
        })
    }
}

/// Whether a file is the beginning of a snapshot that was not finished, or one that Kafka has not
/// come to remove.
#[must_use]
pub fn is_leftover(name: &str) -> bool {
    let stem = name.strip_suffix(PART_SUFFIX);
    let stem = stem.or_else(|| name.strip_suffix(".deleted"));
    stem.is_some_and(|stem| stem.ends_with(SNAPSHOT_SUFFIX))
}

/// What Kafka keeps beside a segment.
#[must_use]
pub fn sibling_names(base_offset: Offset) -> [String; 4] {
    ["index", "timeindex", "txnindex", "snapshot"]
        .map(|suffix| format!("{:020}.{suffix}", base_offset.0))
}

/// The name of a segment's records.
#[must_use]
pub fn segment_name(base_offset: Offset) -> String {
    format!("{:020}{LOG_SUFFIX}", base_offset.0)
}

/// Base offset of the segment whose records have that name.
#[must_use]
pub fn parse_segment_name(name: &str) -> Option<Offset> {
    let digits = name.strip_suffix(LOG_SUFFIX)?;
    if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().map(Offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kafkas() {
        let name = SnapshotId::BOOTSTRAP.file_name();
        assert_eq!(name, "00000000000000000000-0000000000.checkpoint");
        assert_eq!(SnapshotId::parse(&name), Some(SnapshotId::BOOTSTRAP));
        assert_eq!(SnapshotId::parse(&format!("{name}.part")), None);
        assert!(is_leftover(&SnapshotId::BOOTSTRAP.part_name()));
        // As Kafka names them.
        assert!(is_leftover(&format!("{}-123.checkpoint.part", &name[..31])));
        assert!(is_leftover(&format!("{name}.deleted")));
        assert!(!is_leftover(&name));
        assert!(!is_leftover(&SnapshotId::BOOTSTRAP.damaged_name()));
        assert_eq!(segment_name(Offset(12)), "00000000000000000012.log");
        assert_eq!(
            parse_segment_name("00000000000000000012.log"),
            Some(Offset(12))
        );
        for name in [
            "12.log",
            "00000000000000000012.index",
            "-0000000000000000012.log",
        ] {
            assert_eq!(parse_segment_name(name), None);
        }
    }
}
