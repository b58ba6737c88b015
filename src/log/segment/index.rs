//! A segment's offset and time index in memory and on disk. The files of an active segment are
//! written at snapshots, at roll and at close; recovery rebuilds what lies behind.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::index_charge::IndexCharge;
use super::segment_path;
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::io;
use crate::io::flush_group::NewFile;
use crate::log::format::file_names::LogFileKind;
use crate::log::format::index_sums::{INDEX_SUMS_BYTES, IndexSums};
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

/// The checksums of both.
pub(crate) fn sums_path(folder: &Path, base_offset: Offset) -> PathBuf {
    segment_path(folder, base_offset, LogFileKind::IndexSums)
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
    charge: IndexCharge,
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
            charge: IndexCharge::default(),
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

    /// Charges what it takes now to its shard's cache.
    pub(crate) fn charge_to(&mut self, total: &Rc<Cell<usize>>) {
        let bytes = self.offsets.memory_bytes() + self.times.memory_bytes();
        self.charge.settle(total, bytes);
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

    /// Reads the files.
    ///
    /// # Errors
    /// [`IndexFault`] where one is missing, is not what was written, or holds no entries.
    pub(crate) async fn load(
        folder: &Path,
        base_offset: Offset,
    ) -> Result<LoadedIndex, IndexFault> {
        let offsets_path = index_path(folder, base_offset);
        let times_path = timeindex_path(folder, base_offset);
        let offset_bytes = read(&offsets_path).await?;
        let time_bytes = read(&times_path).await?;
        let sums_path = sums_path(folder, base_offset);
        let noted = io::directory::read_file(&sums_path, INDEX_SUMS_BYTES).await;
        let noted = noted.ok().and_then(|bytes| IndexSums::decode(&bytes).ok());
        let sums = IndexSums::of(&offset_bytes, &time_bytes);
        if let Some(noted) = noted {
            let differs = |path| Err(IndexFault::damaged(path, "is not what was written"));
            if noted.offsets != sums.offsets {
                return differs(offsets_path);
            }
            if noted.times != sums.times {
                return differs(times_path);
            }
        }
        let offsets = OffsetIndex::decode(base_offset, &offset_bytes)
            .map_err(|error| IndexFault::damaged(offsets_path, error.to_string()))?;
        let times = TimeIndex::decode(base_offset, &time_bytes)
            .map_err(|error| IndexFault::damaged(times_path, error.to_string()))?;
        let last = times.last();
        let index = Self {
            max_timestamp: last.map_or(TimestampMs::NONE, |last| last.timestamp),
            max_timestamp_offset: last.map_or(base_offset, |last| last.offset),
            offsets,
            times,
            bytes_since_entry: 0,
            charge: IndexCharge::default(),
        };
        Ok(LoadedIndex {
            index,
            sums,
            is_vouched: noted.is_some(),
        })
    }

    /// What cannot be, of a segment of `size` bytes whose records lie below `end`: the file, and
    /// what is wrong with it. Pure.
    pub(crate) fn fault(&self, folder: &Path, size: u64, end: Offset) -> Option<IndexFault> {
        let base_offset = self.offsets.base_offset();
        let last = self.offsets.last();
        if last.is_some_and(|last| u64::from(last.position) >= size || last.offset >= end) {
            let path = index_path(folder, base_offset);
            return Some(IndexFault::damaged(path, "leads past its segment's end"));
        }
        if self.times.last().is_some_and(|last| last.offset >= end) {
            let path = timeindex_path(folder, base_offset);
            return Some(IndexFault::damaged(path, "leads past its segment's end"));
        }
        None
    }

    /// What a walk found wrong with the entries.
    pub(crate) fn leads_astray(&self, folder: &Path) -> IndexFault {
        let path = index_path(folder, self.offsets.base_offset());
        IndexFault::damaged(path, "it or its time index does not agree with the segment")
    }

    /// Records behind the last entry are newer than it says.
    pub(crate) fn ends_early(&self, folder: &Path) -> IndexFault {
        let path = timeindex_path(folder, self.offsets.base_offset());
        IndexFault::damaged(path, "lacks its last entry")
    }

    /// Both files and their checksums, to be put in place in `folder`.
    pub(crate) fn files(&self, folder: &Path, base_offset: Offset) -> Vec<NewFile> {
        let (offsets, times) = (self.offsets.encode(), self.times.encode());
        let sums = IndexSums::of(&offsets, &times);
        vec![
            (index_path(folder, base_offset), offsets),
            (timeindex_path(folder, base_offset), times),
            (sums_path(folder, base_offset), sums.encode()),
        ]
    }
}

/// Indexes that were read.
pub(crate) struct LoadedIndex {
    pub(crate) index: SegmentIndex,
    /// Of the files as they are.
    pub(crate) sums: IndexSums,
    /// Their checksums were noted when they were written. Apache Kafka notes none.
    pub(crate) is_vouched: bool,
}

/// An index that is missing or wrong.
#[derive(Debug)]
pub(crate) struct IndexFault {
    pub(crate) path: PathBuf,
    pub(crate) what: String,
    pub(crate) is_missing: bool,
}

impl IndexFault {
    pub(crate) fn damaged(path: PathBuf, what: impl Into<String>) -> Self {
        Self {
            path,
            what: what.into(),
            is_missing: false,
        }
    }
}

impl std::fmt::Display for IndexFault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match self.is_missing {
            true => write!(out, "{path} is missing"),
            false => write!(out, "{path} is damaged ({})", self.what),
        }
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, IndexFault> {
    let read = io::directory::read_file(path, INDEX_BYTES_MAX).await;
    read.map_err(|error| IndexFault {
        path: path.to_owned(),
        is_missing: error.kind() == std::io::ErrorKind::NotFound,
        what: error.to_string(),
    })
}
