//! Snappy as Kafka frames it: xerial's `SnappyOutputStream`, a 16-byte header and then raw blocks,
//! each after its compressed length as a big-endian i32. Without that header the bytes are one raw
//! block (`SnappyInputStream` reads both), as librdkafka and Go clients send. Bytes at the end that
//! are too few for a length are passed over, as xerial does.

use snap::raw::{Decoder as RawDecoder, Encoder as RawEncoder, decompress_len};

use super::Codec;
use super::decoder::DecompressError;
use super::limits::DecodeLimits;

/// Magic, version 1, compatible with version 1.
const HEADER: [u8; 16] = *b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01";
const MAGIC_LEN: usize = 8;
/// What xerial's writer takes per block (`SnappyOutputStream.DEFAULT_BLOCK_SIZE`).
const BLOCK_BYTES: usize = 32 * 1024;
/// A raw block cannot become longer than this many times its length: its densest element makes 64
/// bytes of 3. Whatever claims more is refused before its output is allocated.
const EXPANSION_MAX: usize = 22;
/// Where a second header follows in the stream, the length before its block reads as its magic.
const CONCATENATED: i32 = i32::from_be_bytes([0x82, b'S', b'N', b'A']);

/// Decodes block by block; holds one block's output.
#[derive(Debug)]
pub(super) struct SnappyReader<'a> {
    input: &'a [u8],
    is_framed: bool,
    is_started: bool,
    block: Vec<u8>,
    start: usize,
    limits: DecodeLimits,
}

impl<'a> SnappyReader<'a> {
    pub(super) fn new(input: &'a [u8], limits: DecodeLimits) -> Self {
        let magic = HEADER.get(..MAGIC_LEN).unwrap_or_default();
        let (is_framed, input) = match input.split_at_checked(HEADER.len()) {
            Some((header, blocks)) if header.starts_with(magic) => (true, blocks),
            _ => (false, input),
        };
        Self {
            input,
            is_framed,
            is_started: false,
            block: Vec::new(),
            start: 0,
            limits,
        }
    }

    /// The decoded bytes at hand; empty at the end. Decodes a block where none are.
    pub(super) fn fill(&mut self) -> Result<&[u8], DecompressError> {
        while self.start >= self.block.len() {
            if self.input.is_empty() && self.is_started {
                return Ok(&[]);
            }
            // Nothing at all is no stream.
            self.is_started = true;
            let compressed = if self.is_framed {
                self.next_block()?
            } else {
                Some(self.rest())
            };
            let Some(compressed) = compressed else {
                return Ok(&[]);
            };
            self.decode(compressed)?;
        }
        Ok(self.block.get(self.start..).unwrap_or_default())
    }

    pub(super) fn consume(&mut self, len: usize) {
        self.start += len;
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.input)
    }

    fn next_block(&mut self) -> Result<Option<&'a [u8]>, DecompressError> {
        loop {
            let Some((len, blocks)) = self.input.split_first_chunk::<4>() else {
                self.input = &[];
                return Ok(None);
            };
            self.input = blocks;
            let len = i32::from_be_bytes(*len);
            if len != CONCATENATED {
                let len = usize::try_from(len).map_err(|_| corrupt("a negative block length"))?;
                return self.take(len).map(Some);
            }
            self.take(HEADER.len() - size_of::<i32>())?;
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecompressError> {
        let split = self.input.split_at_checked(len);
        let (taken, rest) = split.ok_or_else(|| corrupt("a block reaches past the end"))?;
        self.input = rest;
        Ok(taken)
    }

    fn decode(&mut self, compressed: &[u8]) -> Result<(), DecompressError> {
        let len = decompress_len(compressed).map_err(|error| corrupt(&error.to_string()))?;
        if len > compressed.len().saturating_mul(EXPANSION_MAX) {
            return Err(corrupt("a block claims more than it can hold"));
        }
        if len > self.limits.window_bytes_max {
            return Err(DecompressError::TooLarge {
                limit: self.limits.window_bytes_max as u64,
            });
        }
        self.block.clear();
        self.block.resize(len, 0);
        self.start = 0;
        RawDecoder::new()
            .decompress(compressed, &mut self.block)
            .map_err(|error| corrupt(&error.to_string()))?;
        Ok(())
    }
}

fn corrupt(what: &str) -> DecompressError {
    DecompressError::Corrupt {
        codec: Codec::Snappy,
        what: what.to_owned(),
    }
}

/// Appends `input` in xerial's framing.
pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<(), snap::Error> {
    out.extend_from_slice(&HEADER);
    let mut encoder = RawEncoder::new();
    let mut block = vec![0; snap::raw::max_compress_len(BLOCK_BYTES.min(input.len()))];
    for chunk in input.chunks(BLOCK_BYTES) {
        let len = encoder.compress(chunk, &mut block)?;
        let compressed = block.get(..len).unwrap_or_default();
        out.extend_from_slice(&(len as i32).to_be_bytes());
        out.extend_from_slice(compressed);
    }
    Ok(())
}
