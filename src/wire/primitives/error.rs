//! What can be wrong with bytes that came, and with a message that is to leave.

use thiserror::Error;

/// Why bytes are not the message they claim to be. The peer is at fault: the connection closes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end before the value does; also what a length beyond the end is called.
    #[error("the bytes end before the value does")]
    Truncated,
    /// A varint is longer than its type allows (5 bytes for 32 bits, 10 for 64).
    #[error("a varint is longer than its type allows")]
    VarintTooLong,
    /// A length or count is below -1.
    #[error("length {0} is negative")]
    NegativeLength(i64),
    /// A null stands where this version allows none.
    #[error("a null where the version allows none")]
    UnexpectedNull,
    /// A string is longer than `STRING_BYTES_MAX`.
    #[error("a string of {0} bytes is too long")]
    StringTooLong(usize),
    /// A string is not UTF-8.
    #[error("a string is not UTF-8")]
    InvalidUtf8,
    /// An array counts more than `ARRAY_LEN_MAX` elements.
    #[error("an array of {0} elements is too long")]
    ArrayTooLong(usize),
    /// The decoded form would be larger than the bytes justify (`decoded_bytes_max`).
    #[error("the decoded message would take too much memory")]
    DecodedTooLarge,
    /// A tagged field's value does not fill the size it was announced with.
    #[error("tagged field {0} does not fill its size")]
    TaggedFieldSize(u32),
    /// Bytes are left over after the last field.
    #[error("{0} bytes are left after the last field")]
    TrailingBytes(usize),
    /// The message has no such version here.
    #[error("version {0} is not supported")]
    UnsupportedVersion(i16),
}

/// Why a message cannot be written in a version. Always a fault of this program, not of a peer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum EncodeError {
    /// The message has no such version here.
    #[error("version {0} is not supported")]
    UnsupportedVersion(i16),
    /// A field holds something that the version cannot carry and that may not be left out.
    #[error("{field} cannot be carried in version {version}")]
    FieldNotInVersion {
        /// Struct and field.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A field is null in a version that allows none.
    #[error("{field} is null, which version {version} does not allow")]
    UnexpectedNull {
        /// Struct and field.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A string, byte field, array or frame is too long for its length field.
    #[error("a length of {0} does not fit its field")]
    TooLong(usize),
}
