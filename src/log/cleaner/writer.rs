//! The files of a segment that is made of others: under `.cleaned` names until they are whole.

use std::path::{Path, PathBuf};

use crate::base::ids::Offset;
use crate::base::limits::BLOCK_BYTES;
use crate::base::time::TimestampMs;
use crate::io::{self, AlignedBuffer, Durability, File, FlushGroup, OpenOptions};
use crate::log::error::LogError;
use crate::log::format::file_names::{FileState, LogFileKind, LogFileName};
use crate::log::format::index_sums::IndexSums;
use crate::log::format::transaction_index::{AbortedTransaction, TransactionIndex};
use crate::log::journal::Result;
use crate::log::segment::{SegmentIndex, floor_to_block};
use crate::wire::record_batch::BatchHeader;

/// What kinds of file a segment has; snapshots belong to the log.
pub(crate) const SEGMENT_KINDS: [LogFileKind; 5] = [
    LogFileKind::OffsetIndex,
    LogFileKind::TimeIndex,
    LogFileKind::TransactionIndex,
    LogFileKind::IndexSums,
    LogFileKind::Log,
];

/// The path of one of a segment's files in a state of its life.
pub(crate) fn path_in(folder: &Path, base: Offset, kind: LogFileKind, state: FileState) -> PathBuf {
    let name = LogFileName {
        offset: base,
        kind,
        state,
    };
    folder.join(name.to_string())
}

/// A new segment, whole and durable under its `.cleaned` names.
pub(crate) struct Cleaned {
    pub(crate) base: Offset,
    pub(crate) bytes: u64,
    pub(crate) index: SegmentIndex,
    pub(crate) first_timestamp: Option<TimestampMs>,
}

/// A new segment being written.
pub(crate) struct CleanedWriter<'a> {
    folder: &'a Path,
    base: Offset,
    index_interval_bytes: u64,
    file: File,
    written: u64,
    /// Bytes behind `written`.
    rest: Vec<u8>,
    index: SegmentIndex,
    first_timestamp: Option<TimestampMs>,
    /// What its file is to say of when it was changed.
    modified: Option<TimestampMs>,
}

impl<'a> CleanedWriter<'a> {
    /// Begins the segment.
    pub(crate) async fn create(folder: &'a Path, base: Offset, interval: u64) -> Result<Self> {
        let path = path_in(folder, base, LogFileKind::Log, FileState::Cleaned);
        let options = OpenOptions {
            write: true,
            direct: true,
            create_new: true,
            ..OpenOptions::default()
        };
        let file = File::open(&path, options).await;
        Ok(Self {
            file: file.map_err(|error| failed("creating", &path, error))?,
            folder,
            base,
            index_interval_bytes: interval,
            written: 0,
            rest: Vec::new(),
            index: SegmentIndex::new(base),
            first_timestamp: None,
            modified: None,
        })
    }

    /// The new file is to have the time of this one: retention goes by it where no record has a
    /// time, and what was cleaned is no younger for that.
    pub(crate) async fn is_as_old_as(&mut self, old: &Path) {
        let described = io::directory::metadata(old).await;
        self.modified = described.ok().map(|described| described.modified);
    }

    /// Takes in whole batches.
    pub(crate) async fn append(&mut self, batches: &[u8]) -> Result<()> {
        let mut position = self.written + self.rest.len() as u64;
        for (header, bytes) in super::chunks::batches(batches) {
            self.note(&header, position);
            position += bytes.len() as u64;
        }
        self.rest.extend_from_slice(batches);
        let whole = floor_to_block(self.rest.len() as u64) as usize;
        if whole == 0 {
            return Ok(());
        }
        let behind = self.rest.split_off(whole);
        let blocks = std::mem::replace(&mut self.rest, behind);
        self.write(&blocks).await
    }

    fn note(&mut self, header: &BatchHeader, position: u64) {
        self.index
            .append(header, position, self.index_interval_bytes);
        self.first_timestamp.get_or_insert(header.max_timestamp);
    }

    async fn write(&mut self, blocks: &[u8]) -> Result<()> {
        let mut buffer = AlignedBuffer::with_capacity(blocks.len().next_multiple_of(BLOCK_BYTES));
        buffer.extend_from_slice(blocks);
        buffer.pad_to_block();
        let written = self
            .file
            .write_at(self.written, buffer, Durability::Written)
            .await;
        written.0.map_err(|error| self.failed("writing", error))?;
        self.written += blocks.len() as u64;
        Ok(())
    }

    /// Writes what is left, cuts the file to the byte, writes the indexes and makes all of it
    /// durable.
    pub(crate) async fn finish(
        mut self,
        aborted: Vec<AbortedTransaction>,
        flushes: &FlushGroup,
    ) -> Result<Cleaned> {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.write(&rest).await?;
        }
        let cut = self.file.truncate(self.written).await;
        cut.map_err(|error| self.failed("cutting", error))?;
        if let Some(modified) = self.modified {
            let path = path_in(self.folder, self.base, LogFileKind::Log, FileState::Cleaned);
            // What it costs is a later deletion of a segment without records.
            let _ = io::directory::set_modified(&path, modified).await;
        }
        let synced = flushes.file(&self.file).await;
        synced.map_err(|error| self.failed("syncing", error))?;
        self.index.seal();
        let files = self.derived(aborted);
        let written = flushes.write_files(vec![files]).await;
        written.map_err(|error| self.failed("writing the indexes of", error))?;
        Ok(Cleaned {
            base: self.base,
            bytes: self.written,
            index: self.index,
            first_timestamp: self.first_timestamp,
        })
    }

    fn derived(&self, aborted: Vec<AbortedTransaction>) -> Vec<(PathBuf, Vec<u8>)> {
        let (offsets, times) = (self.index.offsets.encode(), self.index.times.encode());
        let sums = IndexSums::of(&offsets, &times).encode();
        let path = |kind| path_in(self.folder, self.base, kind, FileState::Cleaned);
        let mut files = vec![
            (path(LogFileKind::OffsetIndex), offsets),
            (path(LogFileKind::TimeIndex), times),
            (path(LogFileKind::IndexSums), sums),
        ];
        if !aborted.is_empty() {
            let mut index = TransactionIndex::default();
            for entry in aborted {
                index.append(entry);
            }
            files.push((path(LogFileKind::TransactionIndex), index.encode()));
        }
        files
    }

    fn failed(&self, what: &str, error: std::io::Error) -> LogError {
        let path = path_in(self.folder, self.base, LogFileKind::Log, FileState::Cleaned);
        failed(what, &path, error)
    }
}

fn failed(what: &str, path: &Path, error: std::io::Error) -> LogError {
    LogError::io(format!("{what} {}", path.display()), error)
}

/// Removes what a cleaning that did not come to its end has written.
pub(crate) async fn remove_cleaned(folder: &Path, base: Offset) -> Result<()> {
    for kind in SEGMENT_KINDS {
        let path = path_in(folder, base, kind, FileState::Cleaned);
        match io::directory::remove_file(&path).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed("removing", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}
