//! The bytes of a segment as recovery would make them: the file, and over it what the journal still
//! holds. Nothing is written for that.

use std::path::PathBuf;

use bytes::{Bytes, BytesMut};

use crate::base::limits::BLOCK_BYTES;
use crate::io::{AlignedBuffer, File};
use crate::log::recovery::PlannedRange;
use crate::log::scan::read_exactly;
use crate::log::segment::floor_to_block;

/// Bytes in a journal file that belong into the segment.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    ring_file: usize,
    ring_position: u64,
}

/// One segment's bytes from 0 to `end`.
pub(super) struct SegmentView<'a> {
    pub(super) path: PathBuf,
    file: File,
    ring: &'a [File],
    /// In the order of their starts; of two at one place the later record's comes later.
    pieces: Vec<Piece>,
    longest: u64,
    /// Exclusive.
    pub(super) end: u64,
}

impl<'a> SegmentView<'a> {
    pub(super) fn new((path, file): (PathBuf, File), end: u64) -> Self {
        Self {
            path,
            file,
            ring: &[],
            pieces: Vec::new(),
            longest: 0,
            end,
        }
    }

    /// Lays what the ranges' records hold over the file.
    pub(super) fn over(mut self, ranges: &[PlannedRange], ring: &'a [File]) -> Self {
        self.ring = ring;
        let pieces = ranges.iter().filter_map(|range| {
            let header = &range.record.header;
            let inline = u64::from(header.inline_length);
            let start = header.position + u64::from(header.length) - inline;
            (inline > 0 && start < range.end).then_some(Piece {
                start,
                end: range.end.min(start + inline),
                ring_file: range.record.file,
                ring_position: range.record.inline_at,
            })
        });
        self.pieces = pieces.collect();
        self.pieces.sort_by_key(|piece| piece.start);
        let lengths = self.pieces.iter().map(|piece| piece.end - piece.start);
        self.longest = lengths.max().unwrap_or(0);
        self
    }

    /// `length` bytes at `position`, or fewer where the segment ends.
    pub(super) async fn read(&self, position: u64, length: usize) -> std::io::Result<Bytes> {
        let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
        let length = length.min(left);
        let from = floor_to_block(position);
        let skip = (position - from) as usize;
        let buffer = AlignedBuffer::zeroed((skip + length).next_multiple_of(BLOCK_BYTES));
        let (result, mut buffer) = self.file.read_at(from, buffer).await;
        let read = result?;
        if self.pieces.is_empty() {
            buffer.resize_within_capacity(read.min(skip + length));
            let bytes = buffer.freeze();
            return Ok(bytes.slice(skip.min(bytes.len())..));
        }
        let mut bytes = BytesMut::zeroed(length);
        let in_file = read.saturating_sub(skip).min(length);
        if let (Some(to), Some(from)) = (bytes.get_mut(..in_file), buffer.get(skip..skip + in_file))
        {
            to.copy_from_slice(from);
        }
        self.lay_over(position, &mut bytes).await?;
        Ok(bytes.freeze())
    }

    async fn lay_over(&self, position: u64, bytes: &mut BytesMut) -> std::io::Result<()> {
        let end = position + bytes.len() as u64;
        let earliest = position.saturating_sub(self.longest);
        let first = self.pieces.partition_point(|piece| piece.start < earliest);
        for piece in self.pieces.get(first..).unwrap_or_default() {
            if piece.start >= end {
                break;
            }
            let (from, to) = (piece.start.max(position), piece.end.min(end));
            let Some(ring) = self.ring.get(piece.ring_file).filter(|_| from < to) else {
                continue;
            };
            let at = piece.ring_position + (from - piece.start);
            let held = read_exactly(ring, at, (to - from) as usize).await?;
            let place = (from - position) as usize..(to - position) as usize;
            if let Some(place) = bytes.get_mut(place) {
                place.copy_from_slice(&held);
            }
        }
        Ok(())
    }
}
