//! Names of files and folders in a log directory (`LogFileUtils`, `LogManager`, `UnifiedLog`).

use std::fmt;

use crate::base::ids::{Offset, PartitionIndex};

/// In a log directory: cluster, node and directory ids.
pub const META_PROPERTIES: &str = "meta.properties";
/// In a log directory: written last by a clean shutdown.
pub const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
/// In a log directory: the segments as a clean shutdown left them, ours
/// ([`super::closed_segments`]).
pub const CLOSED_SEGMENTS: &str = "coreline-closed";
/// In a log directory: locked by the broker that uses it.
pub const LOCK: &str = ".lock";
/// In a log directory: per partition the offset below which all is flushed.
pub const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// In a log directory: per partition the high watermark.
pub const HIGH_WATERMARK_CHECKPOINT: &str = "replication-offset-checkpoint";
/// In a log directory: per partition the log start offset, where records were deleted.
pub const LOG_START_CHECKPOINT: &str = "log-start-offset-checkpoint";
/// In a log directory: per partition how far the cleaner came.
pub const CLEANER_CHECKPOINT: &str = "cleaner-offset-checkpoint";
/// In a log directory: the metadata log's folder.
pub const CLUSTER_METADATA_FOLDER: &str = "__cluster_metadata-0";
/// In a partition's folder: leader epochs and their first offsets.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// In a partition's folder: the topic's id.
pub const PARTITION_METADATA: &str = "partition.metadata";
/// In a partition's folder: the log's id in the journal, ours.
pub const LOG_ID: &str = "coreline.log-id";
/// In a partition's folder: the next segment's file before it has a base offset, ours.
pub const NEXT_SEGMENT: &str = "coreline.next-segment";
/// In a partition's folder: known damage, ours ([`super::damage_mark`]).
pub const DAMAGE_MARK: &str = "coreline.damage";
/// In a partition's folder: below which offset a cleaning may have left holes, ours.
pub const CLEANED_MARK: &str = "coreline.cleaned";
/// In a partition's folder: the directory to which its log moves, ours ([`super::move_mark`]).
pub const MOVE_MARK: &str = "coreline.moving-to";
/// Appended to a checkpoint's name while it is written.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// Digits of a base offset in a file's name.
const OFFSET_DIGITS: usize = 20;
/// Longest name of a file or folder (`UnifiedLog`, and every file system here).
pub const NAME_BYTES_MAX: usize = 255;

/// What a file of a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogFileKind {
    /// Record batches.
    Log,
    /// Offsets to positions.
    OffsetIndex,
    /// Timestamps to offsets.
    TimeIndex,
    /// Aborted transactions.
    TransactionIndex,
    /// Producers' state below the offset in the name.
    ProducerSnapshot,
    /// Checksums of both indexes, ours ([`super::index_sums`]).
    IndexSums,
}

impl LogFileKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Log,
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::TransactionIndex,
        Self::ProducerSnapshot,
        Self::IndexSums,
    ];

    /// The ending of such a file, dot included.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TransactionIndex => ".txnindex",
            Self::ProducerSnapshot => ".snapshot",
            Self::IndexSums => ".coreline-indexes",
        }
    }
}

/// Where a file stands in its life; shown by a second ending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileState {
    /// In use.
    #[default]
    Live,
    /// About to be deleted.
    Deleted,
    /// Being written by the cleaner: worth nothing after a crash.
    Cleaned,
    /// Written whole by the cleaner, about to replace what it was made of.
    Swap,
}

impl FileState {
    const ALL: [Self; 4] = [Self::Live, Self::Deleted, Self::Cleaned, Self::Swap];

    /// The second ending, dot included; empty for a live file.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Deleted => ".deleted",
            Self::Cleaned => ".cleaned",
            Self::Swap => ".swap",
        }
    }
}

/// The name of a file that belongs to a segment or, for snapshots, to an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogFileName {
    /// The segment's base offset, or a snapshot's end offset (exclusive).
    pub offset: Offset,
    /// What it holds.
    pub kind: LogFileKind,
    /// Where it stands in its life.
    pub state: FileState,
}

impl LogFileName {
    /// The name of a live file.
    #[must_use]
    pub const fn live(offset: Offset, kind: LogFileKind) -> Self {
        Self {
            offset,
            kind,
            state: FileState::Live,
        }
    }

    /// Reads a name; `None` when it is none of these. Nothing can lie at the last offset there is,
    /// since the one after it is none: a file of that name is not the broker's.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (digits, endings) = name.split_at_checked(name.find('.')?)?;
        if digits.len() != OFFSET_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let offset = digits.parse().ok().filter(|offset| *offset < i64::MAX)?;
        let offset = Offset(offset);
        for kind in LogFileKind::ALL {
            let Some(rest) = endings.strip_prefix(kind.suffix()) else {
                continue;
            };
            // `.log` is no prefix of another ending, but `.index` and the like must end there.
            if let Some(state) = FileState::ALL
                .into_iter()
                .find(|state| state.suffix() == rest)
            {
                return Some(Self {
                    offset,
                    kind,
                    state,
                });
            }
        }
        None
    }
}

impl fmt::Display for LogFileName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, state) = (self.kind.suffix(), self.state.suffix());
        write!(out, "{:0OFFSET_DIGITS$}{kind}{state}", self.offset.0)
    }
}

/// Where a partition's folder stands in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FolderState {
    /// In use.
    #[default]
    Live,
    /// About to be deleted.
    Delete,
    /// Being copied from another log directory.
    Future,
    /// Found at start without belonging to the broker.
    Stray,
}

impl FolderState {
    const MARKED: [Self; 3] = [Self::Delete, Self::Future, Self::Stray];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Delete => "-delete",
            Self::Future => "-future",
            Self::Stray => "-stray",
        }
    }
}

/// What the name of a partition's folder says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionFolder {
    /// The topic's name; of a folder to be deleted perhaps only its beginning.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// Where it stands in its life.
    pub state: FolderState,
}

/// The name of a live partition's folder.
#[must_use]
pub fn partition_folder(topic: &str, partition: PartitionIndex) -> String {
    format!("{topic}-{partition}")
}

/// The name of a folder in another state; `unique` (random) keeps it apart from later ones of the
/// same partition. The topic's name is cut where the whole would be too long (KAFKA-5163).
#[must_use]
pub fn marked_partition_folder(
    topic: &str,
    partition: PartitionIndex,
    unique: u128,
    state: FolderState,
) -> String {
    let end = marked_end(partition, unique, state);
    let mut len = topic.len().min(NAME_BYTES_MAX.saturating_sub(end.len()));
    while !topic.is_char_boundary(len) {
        len -= 1;
    }
    format!("{}{end}", topic.get(..len).unwrap_or_default())
}

fn marked_end(partition: PartitionIndex, unique: u128, state: FolderState) -> String {
    format!("-{partition}.{unique:032x}{}", state.suffix())
}

/// Bytes of a marked folder's name that has the topic's whole name.
#[must_use]
pub fn marked_partition_folder_bytes(
    topic: &str,
    partition: PartitionIndex,
    state: FolderState,
) -> usize {
    topic.len() + marked_end(partition, 0, state).len()
}

/// Reads the name of a partition's folder (`UnifiedLog.parseTopicPartitionName`); `None` when it is
/// none.
#[must_use]
pub fn parse_partition_folder(name: &str) -> Option<PartitionFolder> {
    let mut state = FolderState::Live;
    let mut rest = name;
    for marked in FolderState::MARKED {
        if let Some(unmarked) = name.strip_suffix(marked.suffix())
            && let Some((before, unique)) = unmarked.rsplit_once('.')
            && !unique.is_empty()
        {
            state = marked;
            rest = before;
        }
    }
    let (topic, partition) = rest.rsplit_once('-')?;
    if topic.is_empty() || !partition.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let partition = PartitionIndex(partition.parse().ok()?);
    Some(PartitionFolder {
        topic: topic.to_owned(),
        partition,
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_kafkas() {
        let name = LogFileName::live(Offset(42), LogFileKind::Log).to_string();
        assert_eq!(name, "00000000000000000042.log");
        let largest = LogFileName::live(Offset(i64::MAX), LogFileKind::TimeIndex).to_string();
        assert_eq!(largest, "09223372036854775807.timeindex");
        assert_eq!(partition_folder("a-topic", PartitionIndex(3)), "a-topic-3");
        for other in [
            "42.log",
            "00000000000000000042",
            "00000000000000000042.lo",
            "00000000000000000042.logs",
            "00000000000000000042.log.old",
            "99999999999999999999.log",
            "0000000000000000004x.log",
            "09223372036854775807.log",
            "+0000000000000000042.log",
            "leader-epoch-checkpoint",
            "",
        ] {
            assert_eq!(LogFileName::parse(other), None, "{other}");
        }
    }

    #[test]
    fn folders_of_every_state_are_read() {
        let live = parse_partition_folder("with-dash.and.dot-12").unwrap();
        assert_eq!(live.topic, "with-dash.and.dot");
        assert_eq!(
            (live.partition, live.state),
            (PartitionIndex(12), FolderState::Live)
        );
        let kafkas = "t-0.0f1e2d3c4b5a69788796a5b4c3d2e1f0-delete";
        let folder = parse_partition_folder(kafkas).unwrap();
        assert_eq!(
            (folder.topic.as_str(), folder.state),
            ("t", FolderState::Delete)
        );
        // A topic may itself be called like a marked folder.
        let folder = parse_partition_folder("t--1").unwrap();
        assert_eq!(
            (folder.topic.as_str(), folder.partition),
            ("t-", PartitionIndex(1))
        );
        let folder = parse_partition_folder("x-delete-0").unwrap();
        assert_eq!(
            (folder.topic.as_str(), folder.state),
            ("x-delete", FolderState::Live)
        );
        for other in ["", "plain", "-1", "t-", "t-x", "t-99999999999", "t-delete"] {
            assert_eq!(parse_partition_folder(other), None, "{other}");
        }
    }

    #[test]
    fn long_topics_are_cut_in_marked_folders() {
        let topic = "t".repeat(249);
        let name = marked_partition_folder(&topic, PartitionIndex(7), 1, FolderState::Delete);
        assert_eq!(name.len(), NAME_BYTES_MAX);
        let folder = parse_partition_folder(&name).unwrap();
        assert!(topic.starts_with(&folder.topic));
        assert_eq!(
            (folder.partition, folder.state),
            (PartitionIndex(7), FolderState::Delete)
        );
    }

    proptest! {
        #[test]
        fn names_come_back(offset in 0..i64::MAX, kind in 0usize..5, state in 0usize..4) {
            let name = LogFileName {
                offset: Offset(offset),
                kind: LogFileKind::ALL[kind],
                state: FileState::ALL[state],
            };
            prop_assert_eq!(LogFileName::parse(&name.to_string()), Some(name));
        }

        #[test]
        fn any_text_is_read_or_refused(name: String) {
            let _ = LogFileName::parse(&name);
            let _ = parse_partition_folder(&name);
        }
    }
}
