//! Decoding as a stream: a window of output at a time, never all of it.

use std::fmt;
use std::io::Read;

use thiserror::Error;

use super::Codec;
use super::gzip::GzipReader;
use super::limits::DecodeLimits;
use super::lz4::Lz4Reader;
use super::snappy::SnappyReader;
use super::zstd_frame;

/// Output at hand between reads, for the codecs that decode into a buffer of ours.
const BUFFER_BYTES: usize = 16 * 1024;

/// Why compressed bytes give no records.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecompressError {
    /// The bytes are not what the codec writes.
    #[error("{} data is corrupt: {what}", codec.name())]
    Corrupt {
        /// The codec.
        codec: Codec,
        /// What is wrong, for the log.
        what: String,
    },
    /// The output passes a limit ([`DecodeLimits`]).
    #[error("the records decompress to more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
}

/// Bytes that come in chunks, whichever sizes their source finds handy.
pub trait ByteSource {
    /// The bytes at hand, at least one unless the source is at its end.
    ///
    /// # Errors
    /// [`DecompressError`] when the source cannot go on.
    fn fill(&mut self) -> Result<&[u8], DecompressError>;

    /// Drops the first `len` of the bytes that [`ByteSource::fill`] gave.
    fn consume(&mut self, len: usize);
}

impl ByteSource for &[u8] {
    fn fill(&mut self) -> Result<&[u8], DecompressError> {
        Ok(self)
    }

    fn consume(&mut self, len: usize) {
        *self = self.get(len..).unwrap_or_default();
    }
}

/// Decodes the records of one batch, within limits.
pub struct Decoder<'a> {
    inner: Inner<'a>,
    codec: Codec,
    /// Bytes that have been consumed.
    consumed: u64,
    output_bytes_max: u64,
}

enum Inner<'a> {
    Plain(&'a [u8]),
    Snappy(SnappyReader<'a>),
    Lz4(Lz4Reader<'a>),
    Stream {
        reader: Box<dyn Read + 'a>,
        buffer: Vec<u8>,
        start: usize,
        end: usize,
    },
}

impl fmt::Debug for Decoder<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Decoder")
            .field("codec", &self.codec)
            .field("consumed", &self.consumed)
            .finish_non_exhaustive()
    }
}

impl<'a> Decoder<'a> {
    /// Starts to decode `input`, the bytes after a batch's header.
    ///
    /// # Errors
    /// [`DecompressError`] when the codec refuses the input at once.
    pub fn new(
        codec: Codec,
        input: &'a [u8],
        limits: DecodeLimits,
    ) -> Result<Self, DecompressError> {
        let mut output_bytes_max = limits.output_bytes_max;
        let inner = match codec {
            Codec::None => Inner::Plain(input),
            Codec::Snappy => Inner::Snappy(SnappyReader::new(input, limits)),
            Codec::Lz4 => Inner::Lz4(Lz4Reader::new(input)),
            Codec::Gzip => stream(Box::new(GzipReader::new(input))),
            // zstd takes no bytes for a stream of no frames, the library for a frame cut short.
            Codec::Zstd if input.is_empty() => Inner::Plain(input),
            Codec::Zstd => {
                let mut window_bytes_max = limits.window_bytes_max as u64;
                if zstd_frame::window_bytes(input) > window_bytes_max {
                    // The decoder's ring is touched only as far as output goes, so that a large
                    // window with little output costs no more than a small one.
                    output_bytes_max = output_bytes_max.min(window_bytes_max);
                    window_bytes_max = 1 << zstd_frame::WINDOW_LOG_MAX;
                }
                stream(zstd_frame::reader(input, window_bytes_max)?)
            }
        };
        Ok(Self {
            inner,
            codec,
            consumed: 0,
            output_bytes_max,
        })
    }

    /// Decodes all that is left, for those who need it in memory.
    ///
    /// # Errors
    /// [`DecompressError`] when the input is corrupt or a limit is passed.
    pub fn read_to_end(&mut self, out: &mut Vec<u8>) -> Result<(), DecompressError> {
        loop {
            let chunk = self.fill()?;
            if chunk.is_empty() {
                return Ok(());
            }
            let len = chunk.len();
            out.extend_from_slice(chunk);
            self.consume(len);
        }
    }
}

fn stream<'a>(reader: Box<dyn Read + 'a>) -> Inner<'a> {
    Inner::Stream {
        reader,
        buffer: vec![0; BUFFER_BYTES],
        start: 0,
        end: 0,
    }
}

impl ByteSource for Decoder<'_> {
    fn fill(&mut self) -> Result<&[u8], DecompressError> {
        let codec = self.codec;
        let chunk = match &mut self.inner {
            Inner::Plain(rest) => *rest,
            Inner::Snappy(reader) => reader.fill()?,
            Inner::Lz4(reader) => reader.fill()?,
            Inner::Stream {
                reader,
                buffer,
                start,
                end,
            } => {
                if start >= end {
                    *start = 0;
                    *end = reader
                        .read(buffer)
                        .map_err(|error| DecompressError::Corrupt {
                            codec,
                            what: error.to_string(),
                        })?;
                }
                buffer.get(*start..*end).unwrap_or_default()
            }
        };
        if codec != Codec::None && self.consumed + chunk.len() as u64 > self.output_bytes_max {
            return Err(DecompressError::TooLarge {
                limit: self.output_bytes_max,
            });
        }
        Ok(chunk)
    }

    fn consume(&mut self, len: usize) {
        self.consumed += len as u64;
        match &mut self.inner {
            Inner::Plain(rest) => rest.consume(len),
            Inner::Snappy(reader) => reader.consume(len),
            Inner::Lz4(reader) => reader.consume(len),
            Inner::Stream { start, .. } => *start += len,
        }
    }
}
