//! `….coreline-indexes` beside a segment: length and CRC-32C of its two indexes as they were
//! written. Ours.
//!
//! An index has no checksum of its own, and most wrong bits in one still make a plausible entry:
//! a time index that promises too little lets a search start too late, which nothing that is read
//! afterwards shows. Kafka passes over the file and leaves it behind, also where it carries the
//! segment on.
//!
//! ```text
//! 8 magic, 4 bytes of .index, 4 its CRC-32C, 4 bytes of .timeindex, 4 its CRC-32C,
//! 4 CRC-32C over what precedes
//! ```

use super::FormatError;

const MAGIC: [u8; 8] = *b"CLINDEX1";
const CHECKSUM_BYTES: usize = 4;
/// Bytes of the file.
pub const INDEX_SUMS_BYTES: usize = 28;

/// What one file was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSum {
    bytes: u32,
    crc: u32,
}

impl FileSum {
    /// Of a file's content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self {
            bytes: u32::try_from(content.len()).unwrap_or(u32::MAX),
            crc: crc32c::crc32c(content),
        }
    }

    /// Whether `content` begins with this file and goes on behind it.
    #[must_use]
    pub fn is_continued_by(&self, content: &[u8]) -> bool {
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let head = content.get(..bytes).filter(|_| content.len() > bytes);
        head.is_some_and(|head| Self::of(head) == *self)
    }
}

/// What both indexes of a segment were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSums {
    /// The `.index` file.
    pub offsets: FileSum,
    /// The `.timeindex` file.
    pub times: FileSum,
}

impl IndexSums {
    /// Of both files' contents.
    #[must_use]
    pub fn of(offsets: &[u8], times: &[u8]) -> Self {
        Self {
            offsets: FileSum::of(offsets),
            times: FileSum::of(times),
        }
    }

    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for sum in [self.offsets, self.times] {
            out.extend_from_slice(&sum.bytes.to_be_bytes());
            out.extend_from_slice(&sum.crc.to_be_bytes());
        }
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_be_bytes());
        out
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`FormatError`] where it is no such file or its checksum is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let fault = |at| FormatError::new(at, "these are no checksums of indexes");
        let end = INDEX_SUMS_BYTES - CHECKSUM_BYTES;
        if bytes.len() != INDEX_SUMS_BYTES || bytes.get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(fault(0));
        }
        let (covered, checksum) = bytes.split_at_checked(end).ok_or_else(|| fault(0))?;
        if checksum != crc32c::crc32c(covered).to_be_bytes() {
            return Err(fault(end));
        }
        let int = |at| super::offset_index::int_at(covered, MAGIC.len() + at);
        let sum = |at| FileSum {
            bytes: int(at),
            crc: int(at + 4),
        };
        Ok(Self {
            offsets: sum(0),
            times: sum(8),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_file_comes_back_and_every_flipped_bit_is_noticed() {
        let sums = IndexSums::of(b"offsets", b"");
        let bytes = sums.encode();
        assert_eq!(IndexSums::decode(&bytes), Ok(sums));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(IndexSums::decode(&flipped).is_err(), "bit {bit}");
        }
        assert!(IndexSums::decode(&bytes[..27]).is_err());
        assert!(IndexSums::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn a_file_goes_on_where_it_begins_with_what_was_written() {
        let sum = FileSum::of(b"index");
        assert!(sum.is_continued_by(b"index and more"));
        for other in [&b"index"[..], b"inde", b"Index and more", b""] {
            assert!(!sum.is_continued_by(other), "{other:?}");
        }
        assert!(FileSum::of(b"").is_continued_by(b"i"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>, is_ours: bool) {
            if is_ours {
                bytes.resize(16, 7);
                bytes.splice(0..0, MAGIC);
                bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
            }
            if let Ok(read) = IndexSums::decode(&bytes) {
                prop_assert_eq!(read.encode(), bytes);
            }
        }
    }
}
