//! The part of the LZ4 frame format that Kafka reads and writes (`KafkaLZ4BlockInputStream`,
//! `KafkaLZ4BlockOutputStream`): one frame, each block decoded on its own.
//!
//! As in Kafka: the header's checksum and block checksums are verified, the content's checksum is
//! skipped, the content's size is not looked at, a dictionary is refused, and so are frames whose
//! blocks may copy from the one before them: no Java consumer could read those.

use twox_hash::XxHash32;

use super::Codec;
use super::decoder::DecompressError;
use crate::base::limits::{KIB, MIB};

const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
/// Magic, flags, block descriptor, header checksum.
const HEADER_BYTES_MIN: usize = 7;
const CONTENT_SIZE_BYTES: usize = 8;
const FLAG_RESERVED: u8 = 0x03;
const FLAG_CONTENT_CHECKSUM: u8 = 0x04;
const FLAG_CONTENT_SIZE: u8 = 0x08;
const FLAG_BLOCK_CHECKSUM: u8 = 0x10;
const FLAG_INDEPENDENT: u8 = 0x20;
const VERSION_MASK: u8 = 0xc0;
const VERSION_1: u8 = 0x40;
/// The top bit of a block's length: the block is stored as it is.
const STORED: u32 = 0x8000_0000;
/// LZ4 makes at most 255 bytes of one, and a few more of its first.
const EXPANSION_MAX: usize = 255;
const EXPANSION_SLACK: usize = 64;
/// What Kafka writes: 64 KiB blocks.
const WRITTEN_BLOCK_BYTES: usize = 64 * KIB;
const WRITTEN_DESCRIPTOR: u8 = 4 << 4;

/// Decodes block by block; holds one block's output, at most 4 MiB.
#[derive(Debug)]
pub(super) struct Lz4Reader<'a> {
    input: &'a [u8],
    flags: u8,
    block_bytes_max: usize,
    is_started: bool,
    is_finished: bool,
    decoded: Vec<u8>,
    /// A stored block is served from the input itself.
    stored: Option<&'a [u8]>,
    start: usize,
}

impl<'a> Lz4Reader<'a> {
    pub(super) const fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            flags: 0,
            block_bytes_max: 0,
            is_started: false,
            is_finished: false,
            decoded: Vec::new(),
            stored: None,
            start: 0,
        }
    }

    /// The decoded bytes at hand; empty at the end of the frame. What follows it is not looked at.
    pub(super) fn fill(&mut self) -> Result<&[u8], DecompressError> {
        if !self.is_started {
            self.read_header()?;
            self.is_started = true;
        }
        while !self.is_finished && self.at_hand().is_empty() {
            self.read_block()?;
        }
        Ok(self.at_hand())
    }

    pub(super) fn consume(&mut self, len: usize) {
        self.start += len;
    }

    fn at_hand(&self) -> &[u8] {
        let block = self.stored.unwrap_or(&self.decoded);
        block.get(self.start..).unwrap_or_default()
    }

    fn read_header(&mut self) -> Result<(), DecompressError> {
        if self.input.len() < HEADER_BYTES_MIN {
            return Err(corrupt("the frame's header is cut short"));
        }
        if self.take(MAGIC.len())? != MAGIC {
            return Err(corrupt("the bytes are no LZ4 frame"));
        }
        let described = self.input;
        let (flags, descriptor) = match self.take(2)? {
            [flags, descriptor] => (*flags, *descriptor),
            _ => return Err(corrupt("the frame's header is cut short")),
        };
        if flags & VERSION_MASK != VERSION_1 || flags & FLAG_RESERVED != 0 {
            return Err(corrupt("the frame's version or flags are not supported"));
        }
        if flags & FLAG_INDEPENDENT == 0 {
            return Err(corrupt("the frame's blocks depend on each other"));
        }
        self.flags = flags;
        self.block_bytes_max = match descriptor {
            0x40 => 64 * KIB,
            0x50 => 256 * KIB,
            0x60 => MIB,
            0x70 => 4 * MIB,
            _ => return Err(corrupt("the frame's block size does not exist")),
        };
        let mut described_len = 2;
        if flags & FLAG_CONTENT_SIZE != 0 {
            self.take(CONTENT_SIZE_BYTES)?;
            described_len += CONTENT_SIZE_BYTES;
        }
        let described = described.get(..described_len).unwrap_or_default();
        let expected = (XxHash32::oneshot(0, described) >> 8) as u8;
        if self.take(1)? != [expected] {
            return Err(corrupt("the frame's header has a wrong checksum"));
        }
        Ok(())
    }

    fn read_block(&mut self) -> Result<(), DecompressError> {
        let word = self.take_u32()?;
        let is_stored = word & STORED != 0;
        let len = (word & !STORED) as usize;
        if len == 0 {
            self.is_finished = true;
            if self.flags & FLAG_CONTENT_CHECKSUM != 0 {
                self.take(size_of::<u32>())?;
            }
            return Ok(());
        }
        if len > self.block_bytes_max {
            return Err(corrupt("a block is longer than the frame allows"));
        }
        let block = self.take(len)?;
        self.start = 0;
        if is_stored {
            self.stored = Some(block);
        } else {
            self.stored = None;
            self.decode(block)?;
        }
        if self.flags & FLAG_BLOCK_CHECKSUM != 0 && self.take_u32()? != XxHash32::oneshot(0, block)
        {
            return Err(corrupt("a block has a wrong checksum"));
        }
        Ok(())
    }

    fn decode(&mut self, block: &[u8]) -> Result<(), DecompressError> {
        let possible = block
            .len()
            .saturating_mul(EXPANSION_MAX)
            .saturating_add(EXPANSION_SLACK);
        self.decoded.clear();
        self.decoded.resize(self.block_bytes_max.min(possible), 0);
        let len = lz4_flex::block::decompress_into(block, &mut self.decoded)
            .map_err(|error| corrupt(&error.to_string()))?;
        self.decoded.truncate(len);
        Ok(())
    }

    fn take_u32(&mut self) -> Result<u32, DecompressError> {
        let bytes = self.take(size_of::<u32>())?;
        bytes
            .try_into()
            .map(u32::from_le_bytes)
            .map_err(|_| corrupt("the frame is cut short"))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecompressError> {
        let split = self.input.split_at_checked(len);
        let (taken, rest) = split.ok_or_else(|| corrupt("the frame is cut short"))?;
        self.input = rest;
        Ok(taken)
    }
}

fn corrupt(what: &str) -> DecompressError {
    DecompressError::Corrupt {
        codec: Codec::Lz4,
        what: what.to_owned(),
    }
}

/// Appends `input` as one frame in Kafka's form: independent 64 KiB blocks, no checksums.
pub(super) fn compress(
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), lz4_flex::block::CompressError> {
    let described = [VERSION_1 | FLAG_INDEPENDENT, WRITTEN_DESCRIPTOR];
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&described);
    out.push((XxHash32::oneshot(0, &described) >> 8) as u8);
    let len_max = lz4_flex::block::get_maximum_output_size(WRITTEN_BLOCK_BYTES.min(input.len()));
    let mut block = vec![0; len_max];
    for chunk in input.chunks(WRITTEN_BLOCK_BYTES) {
        let len = lz4_flex::block::compress_into(chunk, &mut block)?;
        // A block that does not shrink is stored as it is.
        let (word, bytes) = match block.get(..len) {
            Some(compressed) if len < chunk.len() => (len as u32, compressed),
            _ => (chunk.len() as u32 | STORED, chunk),
        };
        out.extend_from_slice(&word.to_le_bytes());
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(&0u32.to_le_bytes());
    Ok(())
}
