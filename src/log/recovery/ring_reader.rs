//! Finding the cycles of one incarnation in the ring files of one shard. Each file is read under
//! the lock of a descriptor that could write it (JOURNAL §7.1).

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use super::chain::{FoundCycle, FoundRecord};
use crate::base::ids::{Offset, Uuid};
use crate::base::limits::{BLOCK_BYTES, CYCLE_BYTES_MAX, MIB};
use crate::io::{self, AlignedBuffer, File, OpenOptions};
use crate::log::error::LogError;
use crate::log::journal::cycle::{CYCLE_HEADER_BYTES, CycleHeader, FoundHeader, read_whole};
use crate::log::journal::record::{RecordHeader, RecordKind};
use crate::log::seeded::{SeededBug, is_seeded};

/// How long a dead process's writes are waited for.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// Bytes of a file in memory at once; a whole cycle always fits.
const WINDOW_BYTES: usize = 8 * MIB;
const _: () = assert!(WINDOW_BYTES >= 2 * CYCLE_BYTES_MAX);
/// Bytes of one read.
const READ_BYTES: usize = MIB;

/// What a directory is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Files will be written.
    Recover,
    /// Nothing is written, whatever is found.
    Look,
}

/// The open files of one shard's ring and the cycles in them.
#[derive(Default)]
pub(crate) struct RingContents {
    pub(crate) files: Vec<File>,
    /// Of the files, in the same order.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) cycles: Vec<FoundCycle>,
}

/// Opens a file for writing under its lock.
pub(crate) async fn open_locked(path: &Path) -> Result<File, LogError> {
    open_under_lock(path, Access::Recover).await
}

/// The same, for writing only where something will be.
pub(crate) async fn open_under_lock(path: &Path, access: Access) -> Result<File, LogError> {
    let failed = |error| LogError::io(format!("locking {}", path.display()), error);
    let options = OpenOptions {
        write: access == Access::Recover,
        direct: true,
        ..OpenOptions::default()
    };
    let file = File::open(path, options).await.map_err(failed)?;
    if !is_seeded(SeededBug::LateWriteAfterRecovery) {
        file.lock_exclusive(LOCK_WAIT).await.map_err(failed)?;
    }
    Ok(file)
}

/// Reads all ring files of a shard's folder. Nothing is written.
pub(crate) async fn read_ring(
    folder: &Path,
    incarnation: Uuid,
    access: Access,
) -> Result<RingContents, LogError> {
    let failed = |error| LogError::io(format!("reading {}", folder.display()), error);
    let mut contents = RingContents::default();
    for entry in io::directory::list(folder).await.map_err(failed)? {
        if entry.is_directory || !entry.name.starts_with("ring-") {
            continue;
        }
        let path = folder.join(&entry.name);
        let file = open_under_lock(&path, access).await?;
        let number = contents.files.len();
        let scan = FileScan {
            file: &file,
            number,
            incarnation,
        };
        scan.run(&mut contents.cycles).await.map_err(failed)?;
        contents.files.push(file);
        contents.paths.push(path);
    }
    Ok(contents)
}

struct FileScan<'a> {
    file: &'a File,
    number: usize,
    incarnation: Uuid,
}

impl FileScan<'_> {
    async fn run(&self, cycles: &mut Vec<FoundCycle>) -> std::io::Result<()> {
        let len = self.file.len().await?;
        let mut position = 0;
        while position < len {
            let window = self.read_window(position, len).await?;
            let is_last = position + window.len() as u64 >= len;
            let mut at = 0;
            while at + BLOCK_BYTES <= window.len() {
                // A cycle that reaches past the window is read again from its start.
                if !is_last && at + CYCLE_BYTES_MAX > window.len() && at > 0 {
                    break;
                }
                at += self.look_at(&window, at, position, cycles);
            }
            position += at.max(BLOCK_BYTES) as u64;
        }
        Ok(())
    }

    async fn read_window(&self, position: u64, len: u64) -> std::io::Result<Bytes> {
        let length = usize::try_from(len - position)
            .unwrap_or(WINDOW_BYTES)
            .min(WINDOW_BYTES);
        let mut window = Vec::with_capacity(length);
        while window.len() < length {
            let wanted = (length - window.len())
                .min(READ_BYTES)
                .next_multiple_of(BLOCK_BYTES);
            let at = position + window.len() as u64;
            let (result, mut buffer) = self.file.read_at(at, AlignedBuffer::zeroed(wanted)).await;
            let read = result?;
            if read == 0 {
                break;
            }
            buffer.resize_within_capacity(read);
            window.extend_from_slice(&buffer);
        }
        Ok(Bytes::from(window))
    }

    /// Looks for a cycle at a block; answers how far to go on.
    fn look_at(
        &self,
        window: &Bytes,
        at: usize,
        position: u64,
        cycles: &mut Vec<FoundCycle>,
    ) -> usize {
        let bytes = window.get(at..).unwrap_or_default();
        let Some(found) = CycleHeader::peek(bytes) else {
            return BLOCK_BYTES;
        };
        let is_ours = found.header.incarnation == self.incarnation
            || is_seeded(SeededBug::StaleIncarnationAccepted);
        if !is_ours {
            return BLOCK_BYTES;
        }
        let is_header_intact = found.is_intact(bytes);
        let records = self.records(&found, bytes, position + at as u64);
        let whole_bytes = match &records {
            Some(_) => (found.header.length as usize).next_multiple_of(BLOCK_BYTES),
            None => BLOCK_BYTES,
        };
        let readable = match &records {
            Some(_) => Vec::new(),
            None => readable_headers(&found, bytes),
        };
        cycles.push(FoundCycle {
            place: (self.number, position + at as u64),
            header: found.header,
            checksum: found.checksum,
            is_header_intact,
            records,
            readable,
        });
        whole_bytes
    }

    fn records(&self, found: &FoundHeader, bytes: &[u8], at: u64) -> Option<Vec<FoundRecord>> {
        let placed = read_whole(found, bytes)?;
        let record = |placed: crate::log::journal::cycle::PlacedRecord| FoundRecord {
            header: placed.header,
            file: self.number,
            inline_at: at + placed.inline_at as u64,
            watermark: watermark(&placed.header, bytes.get(placed.inline_at..)),
        };
        Some(placed.into_iter().map(record).collect())
    }
}

/// The record headers of a cycle that is not whole, up to where the walk breaks.
fn readable_headers(found: &FoundHeader, bytes: &[u8]) -> Vec<Option<RecordHeader>> {
    let promised = found.header.record_count as usize;
    let present = bytes.len().saturating_sub(CYCLE_HEADER_BYTES) / RECORD_BYTES;
    let mut headers: Vec<Option<RecordHeader>> =
        found.records(bytes).take(promised.min(present)).collect();
    if headers.len() < promised {
        headers.push(None);
    }
    headers
}

const RECORD_BYTES: usize = crate::log::journal::record::RECORD_HEADER_BYTES;

fn watermark(header: &RecordHeader, inline: Option<&[u8]>) -> Option<(Offset, Offset)> {
    if header.kind != RecordKind::Watermark {
        return None;
    }
    let (log_start, rest) = inline?.split_first_chunk::<8>()?;
    let (recovery_point, _) = rest.split_first_chunk::<8>()?;
    let offset = |bytes: &[u8; 8]| Offset(i64::from_be_bytes(*bytes));
    Some((offset(log_start), offset(recovery_point)))
}
