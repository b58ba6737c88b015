//! `coreline.cleaned` in a log's folder: below which offset a cleaning may have left holes, and up
//! to where cleanings came to their end. Ours; text, so that an operator can read it.
//!
//! ```text
//! coreline-cleaned 1
//! holes below 417
//! cleaned to 380
//! crc32c 9a0c1d2e
//! ```
//!
//! Above the first a hole is damage. The second is what counts at a start, not Kafka's
//! `cleaner-offset-checkpoint`: that goes by names, so that of a topic that was deleted and made
//! again it can say what was true of the old one, and what is wrongly taken for clean keeps old
//! values beyond their tombstones. Of a folder without the file everything is gone through again.

use std::path::Path;

use crate::base::ids::Offset;
use crate::io::FlushGroup;
use crate::log::error::LogError;
use crate::log::format::file_names::CLEANED_MARK;
use crate::log::journal::Result;
use crate::log::open::read_small;

const HEAD: &str = "coreline-cleaned 1";

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CleanedMark {
    /// Below it there may be holes.
    pub(crate) holes_below: Offset,
    /// Up to where it was cleaned; 0 and less: nowhere.
    pub(crate) cleaned_to: Offset,
}

impl CleanedMark {
    fn encode(self) -> Vec<u8> {
        let (below, to) = (self.holes_below, self.cleaned_to);
        let text = format!("{HEAD}\nholes below {below}\ncleaned to {to}\n");
        let crc = crc32c::crc32c(text.as_bytes());
        format!("{text}crc32c {crc:08x}\n").into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.lines().skip(1);
        let mut offset = |name| Some(Offset(lines.next()?.strip_prefix(name)?.parse().ok()?));
        let mark = Self {
            holes_below: offset("holes below ")?,
            cleaned_to: offset("cleaned to ")?,
        };
        (mark.encode() == bytes).then_some(mark)
    }

    /// What the file of a folder says; `None` where there is none, or one that cannot be read.
    pub(crate) async fn read(folder: &Path) -> Result<Option<Self>> {
        let bytes = read_small(&folder.join(CLEANED_MARK)).await?;
        Ok(bytes.and_then(|bytes| Self::decode(&bytes)))
    }

    /// Writes it durably.
    pub(crate) async fn write(self, folder: &Path, flushes: &FlushGroup) -> Result<()> {
        let path = folder.join(CLEANED_MARK);
        let written = flushes.write_file(&path, &self.encode()).await;
        written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_writes_and_nothing_else() {
        let mark = CleanedMark {
            holes_below: Offset(417),
            cleaned_to: Offset(380),
        };
        assert_eq!(CleanedMark::decode(&mark.encode()), Some(mark));
        for at in 0..mark.encode().len() {
            let mut wrong = mark.encode();
            wrong[at] ^= 1;
            assert_eq!(CleanedMark::decode(&wrong), None, "byte {at}");
        }
        assert_eq!(CleanedMark::decode(b""), None);
    }
}
