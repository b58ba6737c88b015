//! `coreline.cleaned` in a log's folder: below which offset a cleaning may have left holes. Ours;
//! text, so that an operator can read it. Above it a hole is damage.
//!
//! ```text
//! coreline-cleaned 1
//! below 417
//! crc32c 9a0c1d2e
//! ```

use std::path::Path;

use crate::base::ids::Offset;
use crate::io::FlushGroup;
use crate::log::error::LogError;
use crate::log::format::file_names::CLEANED_MARK;
use crate::log::journal::Result;
use crate::log::open::read_small;

const HEAD: &str = "coreline-cleaned 1";

fn encode(below: Offset) -> Vec<u8> {
    let text = format!("{HEAD}\nbelow {below}\n");
    let crc = crc32c::crc32c(text.as_bytes());
    format!("{text}crc32c {crc:08x}\n").into_bytes()
}

fn decode(bytes: &[u8]) -> Option<Offset> {
    let text = std::str::from_utf8(bytes).ok()?;
    let line = text.lines().nth(1)?;
    let below = Offset(line.strip_prefix("below ")?.parse().ok()?);
    (encode(below) == bytes).then_some(below)
}

/// What the file of a folder says; one that cannot be read says nothing.
pub(crate) async fn read_holes(folder: &Path) -> Result<Offset> {
    let bytes = read_small(&folder.join(CLEANED_MARK)).await?;
    Ok(bytes.and_then(|bytes| decode(&bytes)).unwrap_or_default())
}

/// Writes it durably.
pub(crate) async fn write_holes(folder: &Path, below: Offset, flushes: &FlushGroup) -> Result<()> {
    let path = folder.join(CLEANED_MARK);
    let written = flushes.write_file(&path, &encode(below)).await;
    written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_writes_and_nothing_else() {
        assert_eq!(decode(&encode(Offset(417))), Some(Offset(417)));
        let mut wrong = encode(Offset(417));
        wrong[25] ^= 1;
        assert_eq!(decode(&wrong), None);
        assert_eq!(decode(b""), None);
    }
}
