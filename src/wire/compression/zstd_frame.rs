//! Zstandard: the reader, and what a frame's header says about the memory it asks for (RFC 8878).

use std::io::Read;

use super::Codec;
use super::decoder::DecompressError;

const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// The largest window that zstd's own tools and Kafka's decoder take: 128 MiB.
pub(super) const WINDOW_LOG_MAX: u32 = 27;
/// The smallest that zstd lets one set as a limit.
const WINDOW_LOG_MIN: u32 = 10;

/// A streaming decoder over `input`, which may hold several frames.
///
/// Frames that ask for more than `window_bytes_max` are refused; zstd counts in powers of two, so
/// that is rounded up to one.
pub(super) fn reader<'a>(
    input: &'a [u8],
    window_bytes_max: u64,
) -> Result<Box<dyn Read + 'a>, DecompressError> {
    let corrupt = |error: std::io::Error| DecompressError::Corrupt {
        codec: Codec::Zstd,
        what: error.to_string(),
    };
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(corrupt)?;
    let window_log = window_bytes_max.next_power_of_two().ilog2();
    let window_log = window_log.clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX);
    decoder.window_log_max(window_log).map_err(corrupt)?;
    Ok(Box::new(decoder))
}

/// The window of the frame at the start of `input`, in bytes; 0 where there is no such header.
pub(super) fn window_bytes(input: &[u8]) -> u64 {
    let Some(rest) = input.strip_prefix(&MAGIC) else {
        return 0;
    };
    let Some((descriptor, rest)) = rest.split_first() else {
        return 0;
    };
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = rest.first().copied().unwrap_or_default();
        let base = 1u64 << (WINDOW_LOG_MIN + u32::from(window >> 3));
        return base + base / 8 * u64::from(window & 7);
    }
    // Without a window byte the window is the whole content, whose size then stands in the header.
    let dictionary_len = match descriptor & 3 {
        0 => 0,
        1 => 1,
        2 => 2,
        _ => 4,
    };
    let sized = |len: usize| {
        let field = rest
            .get(dictionary_len..dictionary_len + len)
            .unwrap_or_default();
        field
            .iter()
            .rev()
            .fold(0u64, |value, byte| value << 8 | u64::from(*byte))
    };
    match descriptor >> 6 {
        0 => sized(1),
        1 => sized(2) + 256,
        2 => sized(4),
        _ => sized(8),
    }
}
