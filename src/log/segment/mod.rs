//! One segment of a log: its file, how far it is written, and its indexes.
//!
//! ```text
//! 0 ──── flushed ──── written ──── issued ──── size ──── reserved
//!        on stable    in the       writes      in        blocks that the
//!        storage      file         under way   memory    disk keeps for it
//! ```
//!
//! All but `size` are multiples of a block until the segment is sealed and finished.

mod index;
mod index_charge;
mod indexing;
mod reserve;
mod writes;

pub(crate) use index::{IndexFault, LoadedIndex, SegmentIndex, sums_path};
pub(crate) use indexing::Indexing;
pub(crate) use reserve::{STEP_BYTES_MIN, step_max_for};

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;

use super::error::LogError;
use super::folder_place::FolderPlace;
use super::health::Health;
use super::journal::Result;
use super::wait::Waiters;
use crate::base::ids::Offset;
use crate::base::limits::BLOCK_BYTES;
use crate::base::time::TimestampMs;
use crate::io::{File, FileUse, OpenOptions};
use crate::log::format::file_names::{LogFileKind, LogFileName};

/// How long the lock of a segment's descriptor is waited for.
pub(crate) const LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(10);

/// The largest multiple of a block at or below `position`.
pub(crate) fn floor_to_block(position: u64) -> u64 {
    position - position % BLOCK_BYTES as u64
}

/// The path of one of a segment's files.
pub(crate) fn segment_path(folder: &Path, base_offset: Offset, kind: LogFileKind) -> PathBuf {
    folder.join(LogFileName::live(base_offset, kind).to_string())
}

/// One segment.
pub(crate) struct Segment {
    pub(crate) base_offset: Offset,
    pub(crate) folder: FolderPlace,
    pub(crate) health: Rc<Health>,
    pub(crate) waiters: Rc<Waiters>,
    writer: RefCell<Option<File>>,
    reader: RefCell<Option<File>>,
    /// Bytes appended.
    pub(crate) size: Cell<u64>,
    pub(crate) issued: Cell<u64>,
    pub(crate) written: Cell<u64>,
    pub(crate) flushed: Cell<u64>,
    /// The partial block is durable in the file up to here; 0: it is not.
    pub(crate) partial_end: Cell<u64>,
    /// How often the segment was cut: what a flush from before a cut says no longer counts.
    pub(crate) cuts: Cell<u32>,
    /// Blocks up to here are reserved, durably.
    pub(crate) reserved: Cell<u64>,
    is_reserving: Cell<bool>,
    /// The file has its name, durably.
    pub(crate) is_named: Cell<bool>,
    /// Nothing is appended any more.
    pub(crate) is_sealed: Cell<bool>,
    /// Cut to the byte, synced, its indexes durable.
    pub(crate) is_finished: Cell<bool>,
    /// The last bytes are being written and the file is cut to them: no other write may begin.
    pub(crate) is_ending: Cell<bool>,
    /// A partial block is being written: nobody else writes meanwhile.
    is_writing_partial: Cell<bool>,
    writes_in_flight: Cell<u32>,
    completed: RefCell<Vec<(u64, u64)>>,
    /// Where this life of the segment began, and the file's bytes from the block before up to
    /// there.
    pub(crate) head_start: Cell<u64>,
    pub(crate) head_block: RefCell<Bytes>,
    /// `None`: of a closed segment, not read yet.
    pub(crate) index: RefCell<Option<SegmentIndex>>,
    /// Timestamp of the first batch, by which `segment.ms` counts; `None` while empty.
    pub(crate) first_timestamp: Cell<Option<TimestampMs>>,
    /// Of a finished segment whose index is not in memory, once it was looked up.
    pub(crate) largest_timestamp: Cell<Option<TimestampMs>>,
    /// `segment.jitter.ms` for this segment.
    pub(crate) jitter_ms: Cell<u64>,
    /// Of a finished segment: what is known of its indexes.
    pub(crate) indexing: Indexing,
}

impl Segment {
    /// A segment whose file holds `size` bytes, all durable.
    pub(crate) fn new(
        base_offset: Offset,
        folder: impl Into<FolderPlace>,
        health: &Rc<Health>,
        size: u64,
    ) -> Rc<Self> {
        let at_block = floor_to_block(size);
        Rc::new(Self {
            base_offset,
            folder: folder.into(),
            health: Rc::clone(health),
            waiters: health.waiters(),
            writer: RefCell::default(),
            reader: RefCell::default(),
            size: Cell::new(size),
            issued: Cell::new(at_block),
            written: Cell::new(at_block),
            flushed: Cell::new(at_block),
            partial_end: Cell::new(0),
            cuts: Cell::new(0),
            reserved: Cell::new(at_block),
            is_reserving: Cell::new(false),
            is_named: Cell::new(true),
            is_sealed: Cell::new(false),
            is_finished: Cell::new(false),
            is_ending: Cell::new(false),
            is_writing_partial: Cell::new(false),
            writes_in_flight: Cell::new(0),
            completed: RefCell::default(),
            head_start: Cell::new(size),
            head_block: RefCell::default(),
            index: RefCell::default(),
            first_timestamp: Cell::default(),
            largest_timestamp: Cell::default(),
            jitter_ms: Cell::new(0),
            indexing: Indexing::default(),
        })
    }

    /// A closed segment: everything is in its file.
    pub(crate) fn new_finished(
        base_offset: Offset,
        folder: impl Into<FolderPlace>,
        health: &Rc<Health>,
        size: u64,
    ) -> Rc<Self> {
        let segment = Self::new(base_offset, folder, health, size);
        for position in [&segment.issued, &segment.written, &segment.flushed] {
            position.set(size);
        }
        segment.is_sealed.set(true);
        segment.is_finished.set(true);
        segment
    }

    /// An empty segment in a file that was made for it and has not got its name yet.
    pub(crate) fn new_prepared(
        base_offset: Offset,
        folder: impl Into<FolderPlace>,
        health: &Rc<Health>,
        (file, reserved): (File, u64),
    ) -> Rc<Self> {
        let segment = Self::new(base_offset, folder, health, 0);
        *segment.writer.borrow_mut() = Some(file);
        segment.reserved.set(reserved);
        segment.is_named.set(false);
        segment
    }

    /// Waits until the file has its name, durably.
    pub(crate) async fn wait_until_named(&self) -> Result<()> {
        let named = || self.is_named.get().then_some(());
        self.health.race(&self.waiters, named).await
    }

    /// The `.log` file.
    pub(crate) fn path(&self) -> PathBuf {
        segment_path(&self.folder.path(), self.base_offset, LogFileKind::Log)
    }

    /// What was being done, with the path, for an error.
    pub(crate) fn failed(&self, what: &str, error: std::io::Error) -> LogError {
        LogError::io(format!("{what} {}", self.path().display()), error)
    }

    /// The writing descriptor, which also holds the file's lock; opened at first use.
    pub(crate) async fn writer(&self, create_new: bool) -> Result<File> {
        if let Some(file) = self.writer.borrow().clone() {
            return Ok(file);
        }
        let options = OpenOptions {
            write: true,
            direct: true,
            create_new,
            ..OpenOptions::default()
        };
        let open = async {
            let file = File::open(&self.path(), options).await?;
            file.lock_exclusive(LOCK_WAIT).await?;
            Ok(file)
        };
        let file: File = open.await.map_err(|error| self.failed("opening", error))?;
        *self.writer.borrow_mut() = Some(file.clone());
        Ok(file)
    }

    /// A descriptor to read by.
    pub(crate) async fn reader(&self) -> Result<File> {
        self.reader_or_open().await.map(|(file, _)| file)
    }

    /// A descriptor to read by, and whether it was opened just now.
    pub(crate) async fn reader_or_open(&self) -> Result<(File, bool)> {
        if let Some(file) = self
            .writer
            .borrow()
            .clone()
            .or(self.reader.borrow().clone())
        {
            return Ok((file, false));
        }
        let file = self.passing_reader().await?;
        *self.reader.borrow_mut() = Some(file.clone());
        Ok((file, true))
    }

    /// A descriptor to read by for one walk: where none is open, it is closed with the walk.
    pub(crate) async fn passing_reader(&self) -> Result<File> {
        let open = self.writer.borrow().clone();
        if let Some(file) = open.or_else(|| self.reader.borrow().clone()) {
            return Ok(file);
        }
        let options = OpenOptions {
            direct: true,
            ..OpenOptions::default()
        };
        let file = File::open(&self.path(), options).await;
        file.map_err(|error| self.failed("opening", error))
    }

    /// Keeps a reading descriptor open whatever becomes of the file's name, until
    /// [`Self::close_files`].
    pub(crate) async fn hold_open(&self) -> Result<()> {
        let file = self.reader().await?;
        *self.writer.borrow_mut() = Some(file);
        Ok(())
    }

    /// The same, of a file that has not got the segment's name.
    pub(crate) async fn hold_open_at(&self, path: &Path) -> Result<()> {
        let options = OpenOptions {
            direct: true,
            ..OpenOptions::default()
        };
        let file = File::open(path, options).await;
        let file = file.map_err(|error| self.failed("opening", error))?;
        *self.writer.borrow_mut() = Some(file);
        Ok(())
    }

    /// The descriptors by which the segment may be read now.
    pub(crate) fn uses(&self) -> Vec<FileUse> {
        let files = [&self.writer, &self.reader];
        let open = files
            .iter()
            .filter_map(|file| file.borrow().as_ref().map(File::usage));
        open.collect()
    }

    /// Closes the descriptors.
    pub(crate) fn close_files(&self) {
        *self.writer.borrow_mut() = None;
        *self.reader.borrow_mut() = None;
    }

    /// Of a closed segment: its indexes are read again at the next use.
    pub(crate) fn drop_index(&self) {
        if self.is_finished.get()
            && let Ok(mut index) = self.index.try_borrow_mut()
        {
            index.take();
        }
    }

    /// Closes the reading descriptor alone, when too many are open.
    pub(crate) fn close_reader(&self) {
        *self.reader.borrow_mut() = None;
    }
}
