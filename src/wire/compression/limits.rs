//! How much a compressed batch may make of itself.
//!
//! Kafka limits neither: it decodes whatever a client sent, on a request thread. A shard cannot:
//! 1 MiB of zeros in gzip's or zstd's clothes is 1 GiB and more. What is limited is what costs:
//!
//! - **Output** (CPU): [`OUTPUT_RATIO_MAX`] times `max.message.bytes`, at least
//!   [`OUTPUT_BYTES_MIN`]. That is 32 MiB with Kafka's default of 1 MiB: about 40 ms of one core in
//!   the slowest codec, and thirty times what a producer's `batch.size` allows by default. A ratio
//!   of output to input would be no measure, since honest records of zeros reach 1:1000 as well.
//!   The answer is MESSAGE_TOO_LARGE: a Java producer then splits the batch and sends the halves,
//!   so that even an honest batch beyond the limit arrives.
//! - **Window** (memory): what a decoder keeps to copy from. [`WINDOW_BYTES_MIN`], or twice
//!   `max.message.bytes` where that is more. A zstd frame with a larger window, as levels 20 to 22
//!   declare, is decoded as long as its output stays within the window limit.

use crate::base::limits::MIB;

/// Bytes of output per byte of `max.message.bytes`.
pub const OUTPUT_RATIO_MAX: u64 = 32;
/// The output limit is never below this.
pub const OUTPUT_BYTES_MIN: u64 = 32 * MIB as u64;
/// The window limit is never below this: what RFC 8878 asks of every zstd decoder.
pub const WINDOW_BYTES_MIN: usize = 8 * MIB;

const _: () = assert!(WINDOW_BYTES_MIN as u64 <= OUTPUT_BYTES_MIN);

/// The limits of one decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Most bytes that a batch's records may decode to.
    pub output_bytes_max: u64,
    /// Most bytes of output that a decoder may hold at once.
    pub window_bytes_max: usize,
}

impl DecodeLimits {
    /// The limits that go with a topic's `max.message.bytes`.
    #[must_use]
    pub fn for_message_bytes_max(message_bytes_max: usize) -> Self {
        let output = (message_bytes_max as u64).saturating_mul(OUTPUT_RATIO_MAX);
        Self {
            output_bytes_max: output.max(OUTPUT_BYTES_MIN),
            window_bytes_max: message_bytes_max.saturating_mul(2).max(WINDOW_BYTES_MIN),
        }
    }

    /// What either of them allows.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            output_bytes_max: self.output_bytes_max.max(other.output_bytes_max),
            window_bytes_max: self.window_bytes_max.max(other.window_bytes_max),
        }
    }
}

impl Default for DecodeLimits {
    /// The limits for Kafka's default `max.message.bytes`.
    fn default() -> Self {
        Self::for_message_bytes_max(MIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_grow_with_the_message_size_and_have_floors() {
        let small = DecodeLimits::for_message_bytes_max(0);
        assert_eq!(small.output_bytes_max, OUTPUT_BYTES_MIN);
        assert_eq!(small.window_bytes_max, WINDOW_BYTES_MIN);
        let large = DecodeLimits::for_message_bytes_max(16 * MIB);
        assert_eq!(large.output_bytes_max, 512 * MIB as u64);
        assert_eq!(large.window_bytes_max, 32 * MIB);
        assert!(DecodeLimits::for_message_bytes_max(usize::MAX).output_bytes_max > 0);
    }
}
