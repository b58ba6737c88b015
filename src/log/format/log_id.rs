//! The file that gives a log its identity in the journal (JOURNAL §2): random 128 bits, new at
//! every creation, move or reset. Ours; Apache Kafka never sees it, since a clean shutdown removes
//! it.
//!
//! 28 bytes: 8 of magic, 16 of id, 4 of CRC-32C over what precedes.

use std::fmt;

use super::FormatError;

const MAGIC: [u8; 8] = *b"CORELOG1";
const ID_AT: usize = MAGIC.len();
const CRC_AT: usize = ID_AT + 16;
/// Bytes of the file.
pub const LOG_ID_FILE_BYTES: usize = CRC_AT + 4;

/// The identity of one life of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct LogId(pub u128);

impl fmt::Display for LogId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// The file's bytes.
#[must_use]
pub fn encode(id: LogId) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&id.0.to_be_bytes());
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_be_bytes());
    out
}

/// Reads the file.
///
/// # Errors
/// [`FormatError`] where length, magic or checksum are not those of such a file: the log must not
/// serve.
pub fn decode(bytes: &[u8]) -> Result<LogId, FormatError> {
    if bytes.len() != LOG_ID_FILE_BYTES {
        return Err(FormatError::new(bytes.len(), "a log id has another length"));
    }
    let (covered, crc) = bytes.split_at_checked(CRC_AT).unwrap_or_default();
    if !covered.starts_with(&MAGIC) {
        return Err(FormatError::new(0, "the file is no log id"));
    }
    let crc = crc.try_into().map(u32::from_be_bytes).unwrap_or_default();
    if crc != crc32c::crc32c(covered) {
        return Err(FormatError::new(CRC_AT, "a log id has a wrong checksum"));
    }
    let id = covered
        .get(ID_AT..)
        .and_then(|id| id.try_into().ok())
        .map(u128::from_be_bytes);
    Ok(LogId(id.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_is_read_and_every_flipped_bit_is_seen(id: u128, flip in 0usize..28 * 8) {
            let mut bytes = encode(LogId(id));
            prop_assert_eq!(bytes.len(), LOG_ID_FILE_BYTES);
            prop_assert_eq!(decode(&bytes), Ok(LogId(id)));
            bytes[flip / 8] ^= 1 << (flip % 8);
            prop_assert!(decode(&bytes).is_err());
        }

        #[test]
        fn other_lengths_are_refused(bytes: Vec<u8>) {
            prop_assert!(decode(&bytes).is_err());
            prop_assert!(decode(&encode(LogId(1))[..27]).is_err());
        }
    }
}
