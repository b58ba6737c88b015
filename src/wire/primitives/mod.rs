//! The protocol's primitive types: fixed integers, varints, strings, bytes, arrays, tagged fields,
//! each bounded before anything is allocated for it.
//!
//! Stricter than Kafka 4.4, which ignores bytes after the last field, puts replacement characters
//! for bytes that are no UTF-8, and takes some lengths below -1 for null: here they are errors, and
//! so a sign of a peer that does not speak the protocol. As lenient: a varint may be longer than
//! it needs to be, within its 5 bytes, and tags may come in any order.

mod error;
mod reader;
mod types;
mod writer;

#[cfg(test)]
mod primitives_test;

pub use error::{DecodeError, EncodeError};
pub use reader::Reader;
pub use types::{Float64, NullableWireType, RecordSlices, Version, WireType};
pub use writer::Writer;

use crate::base::limits::{FRAME_BYTES_MAX_OTHER, MIB};

/// Longest string in bytes (`Short.MAX_VALUE`, which Kafka also applies to compact strings).
pub const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// Most elements of one array. Far above any real request (a broker's partitions are fewer), far
/// below what a frame of one-byte elements could count.
pub const ARRAY_LEN_MAX: usize = 1 << 17;

/// Memory that a decoded message may take whatever its size on the wire.
pub const DECODED_BYTES_FLOOR: usize = MIB;

/// Memory that a decoded message may take for each of its bytes on the wire. Honest messages stay
/// below: a fetch of 100,000 partitions takes a little more than twice its frame.
pub const DECODED_BYTES_PER_BYTE: usize = 4;

/// Memory that the largest message may take when decoded, record bytes aside: those are slices.
pub const DECODED_BYTES_MAX: usize = DECODED_BYTES_PER_BYTE * FRAME_BYTES_MAX_OTHER;

/// Piece of record bytes from which on a response shares it instead of copying it: below, one
/// more entry of the vectored write costs more than the copy.
pub const SHARED_BYTES_MIN: usize = 256;

const _: () = assert!(DECODED_BYTES_FLOOR <= DECODED_BYTES_MAX);

/// Memory that a message of `wire_bytes` may take when decoded, arrays and strings together.
#[must_use]
pub const fn decoded_bytes_max(wire_bytes: usize) -> usize {
    let by_size = wire_bytes.saturating_mul(DECODED_BYTES_PER_BYTE);
    if by_size < DECODED_BYTES_FLOOR {
        DECODED_BYTES_FLOOR
    } else if by_size > DECODED_BYTES_MAX {
        DECODED_BYTES_MAX
    } else {
        by_size
    }
}
