//! The durable mark of damage in a log (JOURNAL §7): bytes below what was durable are not what was
//! written. Later starts obey it and do not serve past it; only repair or an operator's explicit
//! choice removes it. Ours; text, so that an operator can read it.
//!
//! ```text
//! coreline-damage 1
//! file 00000000000000000000.log
//! position 81920
//! offset 417
//! durable-end 650
//! cause the batch at this position has a wrong checksum
//! crc32c 9a0c1d2e
//! ```
//!
//! The checksum covers the lines before it, their line ends included.

use super::FormatError;
use super::text::{lines, utf8};
use crate::base::ids::Offset;

const HEAD: &str = "coreline-damage 1";
/// A longer cause is cut: the file must stay small.
pub const CAUSE_BYTES_MAX: usize = 1024;

/// Where a log is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamageMark {
    /// The name of the file that holds the damage.
    pub file: String,
    /// The first bad byte in it.
    pub position: u64,
    /// The first offset that cannot be served.
    pub offset: Offset,
    /// The log's durable end as recorded: what lies between is lost or unproven.
    pub durable_end: Offset,
    /// What was found, in words.
    pub cause: String,
}

impl DamageMark {
    /// The file's bytes. Line ends in the texts become spaces.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let one_line = |text: &str| text.replace(['\n', '\r'], " ");
        let mut len = self.cause.len().min(CAUSE_BYTES_MAX);
        while !self.cause.is_char_boundary(len) {
            len -= 1;
        }
        let text = format!(
            "{HEAD}\nfile {}\nposition {}\noffset {}\ndurable-end {}\ncause {}\n",
            one_line(&self.file),
            self.position,
            self.offset,
            self.durable_end,
            one_line(self.cause.get(..len).unwrap_or_default()),
        );
        let crc = crc32c::crc32c(text.as_bytes());
        format!("{text}crc32c {crc:08x}\n").into_bytes()
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`FormatError`] where it is no such file or its checksum is wrong. The log must not serve
    /// then either: somebody marked it.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let text = utf8(bytes)?;
        let end = text.rfind("crc32c ").unwrap_or(text.len());
        let (covered, last) = text.split_at_checked(end).unwrap_or_default();
        let stored = last
            .strip_prefix("crc32c ")
            .map(|crc| crc.trim_end_matches('\n'));
        let computed = format!("{:08x}", crc32c::crc32c(covered.as_bytes()));
        if stored != Some(computed.as_str()) {
            return Err(FormatError::new(end, "a damage mark has a wrong checksum"));
        }
        let mut fields = lines(covered);
        if fields.next().map(|(_, head)| head) != Some(HEAD) {
            return Err(FormatError::new(0, "the file is no damage mark"));
        }
        let mut field = |name: &str| {
            let (at, line) = fields.next().unwrap_or((covered.len(), ""));
            let value = line
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(' '));
            value
                .map(|value| (at, value.to_owned()))
                .ok_or_else(|| FormatError::new(at, format!("a damage mark lacks its {name}")))
        };
        let (_, file) = field("file")?;
        let position = number(field("position")?)?;
        let offset = Offset(number(field("offset")?)?);
        let durable_end = Offset(number(field("durable-end")?)?);
        let (_, cause) = field("cause")?;
        Ok(Self {
            file,
            position,
            offset,
            durable_end,
            cause,
        })
    }
}

fn number<T: std::str::FromStr>((at, text): (usize, String)) -> Result<T, FormatError> {
    text.parse()
        .map_err(|_| FormatError::new(at, "a damage mark holds no number here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(cause: String, position: u64, offset: i64) -> DamageMark {
        DamageMark {
            file: "00000000000000000000.log".to_owned(),
            position,
            offset: Offset(offset),
            durable_end: Offset(offset.saturating_add(10)),
            cause,
        }
    }

    proptest! {
        #[test]
        fn a_mark_is_read_and_every_flipped_bit_is_seen(
            cause in "[^\r\n]{0,80}",
            position: u64,
            offset: i64,
            flip: proptest::sample::Index,
        ) {
            let mark = mark(cause, position, offset);
            let mut bytes = mark.encode();
            prop_assert_eq!(DamageMark::decode(&bytes), Ok(mark));
            // The last byte is a line end that nothing depends on.
            let bit = flip.index((bytes.len() - 1) * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(DamageMark::decode(&bytes).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            prop_assert!(DamageMark::decode(&bytes).is_err());
        }
    }

    #[test]
    fn causes_are_cut_at_their_limit_and_keep_one_line() {
        let at = mark("é".repeat(CAUSE_BYTES_MAX / 2), 1, 1);
        assert_eq!(DamageMark::decode(&at.encode()), Ok(at));
        let past = mark("é".repeat(CAUSE_BYTES_MAX / 2 + 1), 1, 1);
        let read = DamageMark::decode(&past.encode()).unwrap();
        assert_eq!(read.cause.len(), CAUSE_BYTES_MAX);
        let read = DamageMark::decode(&mark("a\nb".to_owned(), 1, 1).encode()).unwrap();
        assert_eq!(read.cause, "a b");
    }
}
