//! The whole batches of a finished segment, a buffer at a time.

use bytes::Bytes;

use crate::base::ids::Offset;
use crate::base::limits::BLOCK_BYTES;
use crate::io::File;
use crate::log::error::LogError;
use crate::log::journal::Result;
use crate::log::scan::read_exactly;
use crate::log::segment::Segment;
use crate::wire::record_batch::{BatchHeader, HEADER_BYTES};

/// A walk over one segment.
pub(crate) struct Chunks<'a> {
    segment: &'a Segment,
    file: File,
    position: u64,
    limits: ChunkLimits,
}

/// Memory that a walk takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkLimits {
    /// Bytes read at a time.
    pub(crate) buffer_bytes: usize,
    /// Of one batch. Its length is not covered by its checksum: a damaged one must not ask for a
    /// segment's worth of memory.
    pub(crate) batch_bytes_max: usize,
}

impl<'a> Chunks<'a> {
    /// From the segment's beginning. The file stays open as long as this lives, whatever becomes
    /// of its name.
    pub(crate) async fn new(segment: &'a Segment, limits: ChunkLimits) -> Result<Self> {
        Ok(Self {
            file: segment
                .passing_reader()
                .await
                .map_err(|error| of_gone(segment, error))?,
            segment,
            position: 0,
            limits,
        })
    }

    /// Whether all was answered.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position >= self.segment.size.get()
    }

    /// The next whole batches: as many as the buffer holds, or one that is larger.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        let left = self.segment.size.get().saturating_sub(self.position);
        if left == 0 {
            return Ok(None);
        }
        let buffer_bytes = self.limits.buffer_bytes.max(BLOCK_BYTES) as u64;
        let mut wanted = buffer_bytes.min(left) as usize;
        loop {
            let read = read_exactly(&self.file, self.position, wanted).await;
            let bytes = read.map_err(|error| {
                let error = self.segment.failed("reading", error);
                of_gone(self.segment, error)
            })?;
            match whole_batches(&bytes) {
                Whole::Batches(length) => {
                    self.position += length as u64;
                    return Ok(Some(bytes.slice(..length)));
                }
                Whole::Needs(needed) if needed > self.limits.batch_bytes_max => {
                    let max = self.limits.batch_bytes_max;
                    return Err(self.damaged(&format!("a batch of {needed} bytes, at most {max}")));
                }
                Whole::Needs(needed) if needed as u64 <= left => wanted = needed,
                Whole::Needs(needed) => {
                    return Err(self.damaged(&format!("a batch of {needed} bytes, {left} left")));
                }
                Whole::Invalid(what) => return Err(self.damaged(&what)),
            }
        }
    }

    /// The segment holds something else than batches at the walk's position.
    pub(crate) fn damaged(&self, what: &str) -> LogError {
        let (path, position) = (self.segment.path(), self.position);
        LogError::Damaged(format!("{} at byte {position}: {what}", path.display()))
    }
}

/// Retention, or whoever cuts the log, has taken the segment away: no failure of the disk.
fn of_gone(segment: &Segment, error: LogError) -> LogError {
    match segment.is_gone() {
        true => LogError::Closed,
        false => error,
    }
}

/// What stands at the front of some bytes.
#[derive(Debug, PartialEq, Eq)]
enum Whole {
    /// Whole batches of so many bytes.
    Batches(usize),
    /// The first batch needs so many.
    Needs(usize),
    Invalid(String),
}

fn whole_batches(bytes: &[u8]) -> Whole {
    let mut length = 0;
    while let Some(rest) = bytes
        .get(length..)
        .filter(|rest| rest.len() >= HEADER_BYTES)
    {
        match BatchHeader::parse(rest) {
            Err(error) if length == 0 => return Whole::Invalid(error.to_string()),
            Err(_) => break,
            Ok(header) if header.total_bytes() > rest.len() => {
                if length == 0 {
                    return Whole::Needs(header.total_bytes());
                }
                break;
            }
            Ok(header) => length += header.total_bytes(),
        }
    }
    match length {
        0 => Whole::Needs(HEADER_BYTES.max(bytes.len() + 1)),
        length => Whole::Batches(length),
    }
}

/// The batches of a chunk, each with its header.
pub(crate) fn batches(chunk: &[u8]) -> impl Iterator<Item = (BatchHeader, &[u8])> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        let header = BatchHeader::parse(rest).ok()?;
        let (batch, behind) = rest.split_at_checked(header.total_bytes())?;
        rest = behind;
        Some((header, batch))
    })
}

/// Whether a batch's offsets can be: above all before, and in order.
pub(crate) fn is_in_order(header: &BatchHeader, next: Offset) -> bool {
    header.last_offset_delta >= 0 && header.base_offset >= next
}
