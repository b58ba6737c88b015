//! The mark in the folder of a log that moves to another log directory: once the metadata says that
//! the partition is in that one, this folder holds nothing that counts ([`crate::log::moving`]).
//! Ours; Apache Kafka ignores it.
//!
//! ```text
//! coreline-moving-to 1
//! directory 3FMdUHuRSm6cQHMUZvDY6w
//! crc32c 9a0c1d2e
//! ```
//!
//! The checksum covers the lines before it, their line ends included.

use super::FormatError;
use super::text::{lines, utf8};
use crate::base::ids::Uuid;

const HEAD: &str = "coreline-moving-to 1";

/// The file's bytes.
#[must_use]
pub fn encode(directory: Uuid) -> Vec<u8> {
    let text = format!("{HEAD}\ndirectory {directory}\n");
    let crc = crc32c::crc32c(text.as_bytes());
    format!("{text}crc32c {crc:08x}\n").into_bytes()
}

/// The directory that the file names.
///
/// # Errors
/// [`FormatError`] where it is not what [`encode`] writes.
pub fn decode(bytes: &[u8]) -> Result<Uuid, FormatError> {
    let text = utf8(bytes)?;
    let named = lines(text).find_map(|(_, line)| line.strip_prefix("directory "));
    let directory = named.and_then(Uuid::parse);
    let directory =
        directory.ok_or_else(|| FormatError::new(0, "a move's mark has no directory"))?;
    match encode(directory) == bytes {
        true => Ok(directory),
        false => Err(FormatError::new(0, "a move's mark has a wrong checksum")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back_and_every_flipped_bit_is_noticed() {
        let directory = Uuid([7; 16]);
        let bytes = encode(directory);
        assert_eq!(decode(&bytes).unwrap(), directory);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
}
