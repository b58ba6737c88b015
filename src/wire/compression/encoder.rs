//! Encoding, whole: batches that are recompressed because a topic's `compression.type` says so.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use flate2::Compression;
use flate2::write::GzEncoder;
use thiserror::Error;

use super::{Codec, lz4, snappy};

/// `compression.gzip.level` where none is set (`GzipCompression.DEFAULT_LEVEL`: zlib's choice, 6).
const GZIP_LEVEL_DEFAULT: i32 = -1;
/// `compression.zstd.level` where none is set.
const ZSTD_LEVEL_DEFAULT: i32 = 3;
/// `compression.lz4.level` where none is set.
const LZ4_LEVEL_DEFAULT: i32 = 9;

/// Why bytes could not be compressed: only ever a lack of memory or a level out of range.
#[derive(Debug, Error)]
#[error("compressing with {} failed: {what}", codec.name())]
pub struct CompressError {
    /// The codec.
    pub codec: Codec,
    /// What the library says.
    pub what: String,
}

/// The levels that Kafka's settings allow for a codec (KIP-390), and the default; `None` where a
/// codec has no levels. gzip also takes -1, zlib's own choice.
#[must_use]
pub fn level_range(codec: Codec) -> Option<(RangeInclusive<i32>, i32)> {
    match codec {
        Codec::None | Codec::Snappy => None,
        Codec::Gzip => Some((1..=9, GZIP_LEVEL_DEFAULT)),
        Codec::Lz4 => Some((1..=17, LZ4_LEVEL_DEFAULT)),
        Codec::Zstd => Some((zstd::compression_level_range(), ZSTD_LEVEL_DEFAULT)),
    }
}

/// Appends `input` to `out`, compressed in Kafka's framing. `level` `None` is the codec's default.
/// LZ4's levels are accepted and mean nothing here: there is one encoder, the fast one, which is
/// also Kafka's default.
///
/// # Errors
/// [`CompressError`] when the library refuses.
pub fn compress(
    codec: Codec,
    level: Option<i32>,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    let failed = |what: String| CompressError { codec, what };
    match codec {
        Codec::None => out.extend_from_slice(input),
        Codec::Snappy => {
            snappy::compress(input, out).map_err(|error| failed(error.to_string()))?;
        }
        Codec::Lz4 => lz4::compress(input, out).map_err(|error| failed(error.to_string()))?,
        Codec::Gzip => gzip(level, input, out).map_err(|error| failed(error.to_string()))?,
        Codec::Zstd => {
            let level = level.unwrap_or(ZSTD_LEVEL_DEFAULT);
            zstd::stream::copy_encode(input, &mut *out, level)
                .map_err(|error| failed(error.to_string()))?;
        }
    }
    Ok(())
}

fn gzip(level: Option<i32>, input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let level = match level.unwrap_or(GZIP_LEVEL_DEFAULT) {
        level @ 0..=9 => Compression::new(level.unsigned_abs()),
        _ => Compression::default(),
    };
    let mut encoder = GzEncoder::new(out, level);
    encoder.write_all(input)?;
    encoder.finish()?;
    Ok(())
}
