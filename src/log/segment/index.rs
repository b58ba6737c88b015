//! A segment's offset and time index in memory and on disk. The files of an active segment are
//! written at snapshots, at roll and at close; recovery rebuilds what lies behind.

use std::path::{Path, PathBuf};

use super::segment_path;
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::io;
use crate::io::flush_group::NewFile;
use crate::log::format::file_names::LogFileKind;
use crate::log::format::offset_index::OffsetIndex;
use crate::log::format::time_index::TimeIndex;
use crate::wire::record_batch::BatchHeader;

/// Largest index file that is read (`segment.index.bytes` is an i32).
const INDEX_BYTES_MAX: usize = i32::MAX as usize;

/// The `.index` file.
pub(crate) fn index_path(folder: &Path, base_offset: Offset) -> PathBuf {
    segment_path(folder, base_offset, LogFileKind::OffsetIndex)
}

/// The `.timeindex` file.
pub(crate) fn timeindex_path(folder: &Path, base_offset: Offset) -> PathBuf {
    segment_path(folder, base_offset, LogFileKind::TimeIndex)
}

/// Both indexes and what the next entries are made from (`LogSegment`).
#[derive(Clone, Debug)]
pub(crate) struct SegmentIndex {
    pub(crate) offsets: OffsetIndex,
    pub(crate) times: TimeIndex,
    /// The largest timestamp so far and the last offset of its batch.
    pub(crate) max_timestamp: TimestampMs,
    pub(crate) max_timestamp_offset: Offset,
    bytes_since_entry: u64,
}

impl SegmentIndex {
    /// Of an empty segment.
    pub(crate) fn new(base_offset: Offset) -> Self {
        Self {
            offsets: OffsetIndex::new(base_offset),
            times: TimeIndex::new(base_offset),
            max_timestamp: TimestampMs::NONE,
            max_timestamp_offset: base_offset,
            bytes_since_entry: 0,
        }
    }

    /// Takes in a batch at `position` (`LogSegment.append`).
    pub(crate) fn append(&mut self, header: &BatchHeader, position: u64, interval: u64) {
        let last_offset = header.last_offset();
        if header.max_timestamp > self.max_timestamp {
            self.max_timestamp = header.max_timestamp;
            self.max_timestamp_offset = last_offset;
        }
        if self.bytes_since_entry > interval {
            self.offsets
                .append(last_offset, u32::try_from(position).unwrap_or(u32::MAX));
            self.times
                .maybe_append(self.max_timestamp, self.max_timestamp_offset);
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.total_bytes() as u64;
    }

    /// Drops what lies at or past `offset` or the file position `end`, to be read again.
    pub(crate) fn truncate_to(&mut self, offset: Offset, end: u64) {
        self.offsets.truncate_to(offset);
        while self
            .offsets
            .last()
            .is_some_and(|last| u64::from(last.position) >= end)
        {
            let Some(last) = self.offsets.last() else {
                break;
            };
            self.offsets.truncate_to(last.offset);
        }
        self.times.truncate_to(offset);
        let last = self.times.last();
        self.max_timestamp = last.map_or(TimestampMs::NONE, |last| last.timestamp);
        self.max_timestamp_offset = last.map_or(self.max_timestamp_offset, |last| last.offset);
        self.bytes_since_entry = 0;
    }

    /// The last entry of the time index, at roll and at close.
    pub(crate) fn seal(&mut self) {
        self.times
            .maybe_append(self.max_timestamp, self.max_timestamp_offset);
    }

    /// Whether `segment.index.bytes` allows no more entries.
    pub(crate) fn is_full(&self, index_bytes_max: u64) -> bool {
        let bytes = usize::try_from(index_bytes_max).unwrap_or(usize::MAX);
        self.offsets.is_full(bytes) || self.times.is_full(bytes)
    }

    /// Reads the files; `None` where they are missing or not to be trusted.
    pub(crate) async fn load(folder: &Path, base_offset: Offset) -> Option<Self> {
        let read = |path: PathBuf| async move {
            io::directory::read_file(&path, INDEX_BYTES_MAX).await.ok()
        };
        let offsets = read(index_path(folder, base_offset)).await?;
        let times = read(timeindex_path(folder, base_offset)).await?;
        let offsets = OffsetIndex::decode(base_offset, &offsets).ok()?;
        let times = TimeIndex::decode(base_offset, &times).ok()?;
        let last = times.last();
        Some(Self {
            max_timestamp: last.map_or(TimestampMs::NONE, |last| last.timestamp),
            max_timestamp_offset: last.map_or(base_offset, |last| last.offset),
            offsets,
            times,
            bytes_since_entry: 0,
        })
    }

    /// Both files, to be put in place in `folder`.
    pub(crate) fn files(&self, folder: &Path, base_offset: Offset) -> Vec<NewFile> {
        vec![
            (index_path(folder, base_offset), self.offsets.encode()),
            (timeindex_path(folder, base_offset), self.times.encode()),
        ]
    }
}
