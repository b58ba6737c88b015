//! Walking the batches of a segment file in order, by large reads: headers alone, or with every
//! batch's checksum.

use bytes::Bytes;

use crate::base::limits::{BLOCK_BYTES, KIB, MIB};
use crate::io::{AlignedBuffer, File};
use crate::log::segment::floor_to_block;
use crate::wire::record_batch::{BatchHeader, HEADER_BYTES, verify_crc};

/// Bytes read at once when batches are small beside it.
const READ_BYTES: usize = 256 * KIB;
/// No batch is larger: its length is an i32.
const BATCH_BYTES_MAX: usize = i32::MAX as usize;
const _: () = assert!(READ_BYTES.is_multiple_of(BLOCK_BYTES) && READ_BYTES <= MIB);

/// Why a walk ended.
#[derive(Debug)]
pub(crate) enum ScanEnd {
    /// All bytes were whole batches.
    Complete,
    /// The bytes at the walk's position are no valid batch.
    Invalid(String),
    /// They could not be read.
    Failed(std::io::Error),
}

/// One batch found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedBatch {
    pub(crate) header: BatchHeader,
    pub(crate) position: u64,
}

/// A walk over `[position, end)` of a file.
pub(crate) struct Scanner<'a> {
    file: &'a File,
    position: u64,
    end: u64,
    checks_crc: bool,
    window: Bytes,
    window_at: u64,
}

impl<'a> Scanner<'a> {
    /// Headers only.
    pub(crate) fn headers(file: &'a File, position: u64, end: u64) -> Self {
        Self {
            file,
            position,
            end,
            checks_crc: false,
            window: Bytes::new(),
            window_at: 0,
        }
    }

    /// With checksums.
    pub(crate) fn whole(file: &'a File, position: u64, end: u64) -> Self {
        Self {
            checks_crc: true,
            ..Self::headers(file, position, end)
        }
    }

    /// Where the next batch begins: after the last valid one.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next batch, or why there is none.
    pub(crate) async fn next(&mut self) -> Result<ScannedBatch, ScanEnd> {
        let left = self.end.saturating_sub(self.position);
        if left == 0 {
            return Err(ScanEnd::Complete);
        }
        if left < HEADER_BYTES as u64 {
            return Err(ScanEnd::Invalid(format!("{left} bytes are no batch")));
        }
        let bytes = self.bytes(HEADER_BYTES).await?;
        let header =
            BatchHeader::parse(&bytes).map_err(|error| ScanEnd::Invalid(error.to_string()))?;
        let length = header.total_bytes();
        if length as u64 > left || header.last_offset_delta < 0 {
            let what = format!("a batch of {length} bytes where {left} are left");
            return Err(ScanEnd::Invalid(what));
        }
        if self.checks_crc {
            let batch = self.bytes(length).await?;
            verify_crc(&batch).map_err(|error| ScanEnd::Invalid(error.to_string()))?;
        }
        let position = self.position;
        self.position += length as u64;
        Ok(ScannedBatch { header, position })
    }

    /// `length` bytes at the walk's position, from the window or by another read.
    async fn bytes(&mut self, length: usize) -> Result<Bytes, ScanEnd> {
        let skip = self.position.wrapping_sub(self.window_at);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let end = skip.saturating_add(length);
        if skip > self.window.len() || end > self.window.len() {
            let wanted = length.min(BATCH_BYTES_MAX) + BLOCK_BYTES;
            self.read_window(wanted.max(READ_BYTES)).await?;
            return self.bytes_of_window(length);
        }
        Ok(self.window.slice(skip..end))
    }

    fn bytes_of_window(&self, length: usize) -> Result<Bytes, ScanEnd> {
        let skip = (self.position - self.window_at) as usize;
        if skip + length > self.window.len() {
            return Err(ScanEnd::Invalid("the file ends within a batch".into()));
        }
        Ok(self.window.slice(skip..skip + length))
    }

    async fn read_window(&mut self, wanted: usize) -> Result<(), ScanEnd> {
        self.window_at = floor_to_block(self.position);
        let to_end = usize::try_from(self.end - self.window_at).unwrap_or(usize::MAX);
        let length = wanted.min(to_end).next_multiple_of(BLOCK_BYTES);
        let (result, mut buffer) = self
            .file
            .read_at(self.window_at, AlignedBuffer::zeroed(length))
            .await;
        let read = result.map_err(ScanEnd::Failed)?;
        buffer.resize_within_capacity(read.min(to_end));
        self.window = buffer.freeze();
        Ok(())
    }
}

/// Reads `[position, position + length)`, which need not be aligned; `UnexpectedEof` where the
/// file ends before.
pub(crate) async fn read_exactly(
    file: &File,
    position: u64,
    length: usize,
) -> std::io::Result<Bytes> {
    let from = floor_to_block(position);
    let skip = (position - from) as usize;
    let buffer = AlignedBuffer::zeroed((skip + length).next_multiple_of(BLOCK_BYTES));
    let (result, mut buffer) = file.read_at(from, buffer).await;
    if result? < skip + length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    buffer.resize_within_capacity(skip + length);
    Ok(buffer.freeze().slice(skip..))
}
