//! `shard-NNNN/files`: the ring files that may hold cycles of an incarnation, so that recovery
//! notices one that is gone. Written durably before the first cycle goes into a file.
//!
//! 8 bytes of magic, 16 incarnation, the names with a line end after each, and CRC-32C over what
//! precedes.

use std::path::{Path, PathBuf};

use super::Result;
use super::writer::JournalOptions;
use crate::base::ids::Uuid;
use crate::io;
use crate::log::error::LogError;

const MAGIC: [u8; 8] = *b"CLFILES1";
const FILE_BYTES_MAX: usize = 1 << 20;
/// The files of a ring are named so.
pub(crate) const RING_FILE_NAME: &str = "ring-";

/// The path of the list in a shard's folder.
pub(crate) fn list_path(shard_folder: &Path) -> PathBuf {
    shard_folder.join("files")
}

fn encode(incarnation: Uuid, names: &[String]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&incarnation.0);
    for name in names {
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_be_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<(Uuid, Vec<String>)> {
    let (checked, checksum) = bytes.split_last_chunk::<4>()?;
    if u32::from_be_bytes(*checksum) != crc32c::crc32c(checked) {
        return None;
    }
    let (incarnation, names) = checked.strip_prefix(&MAGIC)?.split_first_chunk::<16>()?;
    let names = std::str::from_utf8(names).ok()?;
    Some((
        Uuid(*incarnation),
        names.lines().map(str::to_owned).collect(),
    ))
}

/// Lists durably what is in the folder of a ring.
pub(super) async fn store(options: &JournalOptions, folder: &Path) -> Result<()> {
    let path = list_path(folder);
    let failed = |error| LogError::io(format!("writing {}", path.display()), error);
    let entries = io::directory::list(folder).await.map_err(failed)?;
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    names.retain(|name| name.starts_with(RING_FILE_NAME));
    let bytes = encode(options.identity.incarnation, &names);
    let written = io::directory::write_file_durably(&path, &bytes).await;
    written.map_err(failed)
}

/// The files that the ring in `folder` had in this incarnation; `None` where no list of it is.
pub(crate) async fn load(folder: &Path, incarnation: Uuid) -> Result<Option<Vec<String>>> {
    let path = list_path(folder);
    match io::directory::read_file(&path, FILE_BYTES_MAX).await {
        Ok(bytes) => Ok(decode(&bytes)
            .filter(|(written_by, _)| *written_by == incarnation)
            .map(|(_, names)| names)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::io(format!("reading {}", path.display()), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_comes_back_and_every_flipped_bit_is_noticed() {
        let names = vec!["ring-0000".to_owned(), "ring-1003".to_owned()];
        let bytes = encode(Uuid([5; 16]), &names);
        assert_eq!(decode(&bytes), Some((Uuid([5; 16]), names)));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(decode(&[]), None);
    }
}
