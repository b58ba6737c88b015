//! `shard-NNNN/files`: the ring files that may hold cycles of an incarnation and their lengths, so
//! that recovery notices one that is gone or was cut short. Written durably before the first cycle
//! goes into a file.
//!
//! 8 bytes of magic, 16 incarnation, for each file its bytes, a space, its name and a line end, and
//! CRC-32C over what precedes.

use std::path::{Path, PathBuf};

use super::Result;
use super::writer::JournalOptions;
use crate::base::ids::Uuid;
use crate::io;
use crate::log::error::LogError;

const MAGIC: [u8; 8] = *b"CLFILES2";
const FILE_BYTES_MAX: usize = 1 << 20;
/// The files of a ring are named so.
pub(crate) const RING_FILE_NAME: &str = "ring-";

/// A file that a ring must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

/// The path of the list in a shard's folder.
pub(crate) fn list_path(shard_folder: &Path) -> PathBuf {
    shard_folder.join("files")
}

fn encode(incarnation: Uuid, files: &[ListedFile]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&incarnation.0);
    for file in files {
        out.extend_from_slice(format!("{} {}\n", file.bytes, file.name).as_bytes());
    }
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_be_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<(Uuid, Vec<ListedFile>)> {
    let (checked, checksum) = bytes.split_last_chunk::<4>()?;
    if u32::from_be_bytes(*checksum) != crc32c::crc32c(checked) {
        return None;
    }
    let (incarnation, lines) = checked.strip_prefix(&MAGIC)?.split_first_chunk::<16>()?;
    let lines = std::str::from_utf8(lines).ok()?;
    let files: Option<Vec<ListedFile>> = lines.lines().map(decode_line).collect();
    Some((Uuid(*incarnation), files?))
}

fn decode_line(line: &str) -> Option<ListedFile> {
    let (bytes, name) = line.split_once(' ')?;
    Some(ListedFile {
        name: name.to_owned(),
        bytes: bytes.parse().ok()?,
    })
}

/// Lists durably what is in the folder of a ring.
pub(super) async fn store(options: &JournalOptions, folder: &Path) -> Result<()> {
    let path = list_path(folder);
    let failed = |error| LogError::io(format!("writing {}", path.display()), error);
    let mut files = Vec::new();
    for entry in io::directory::list(folder).await.map_err(failed)? {
        if entry.name.starts_with(RING_FILE_NAME) {
            let metadata = io::directory::metadata(&folder.join(&entry.name)).await;
            files.push(ListedFile {
                name: entry.name,
                bytes: metadata.map_err(failed)?.len,
            });
        }
    }
    let bytes = encode(options.identity.incarnation, &files);
    let written = io::directory::write_file_durably(&path, &bytes).await;
    written.map_err(failed)
}

/// The files that the ring in `folder` had in this incarnation; `None` where no list of it is.
pub(crate) async fn load(folder: &Path, incarnation: Uuid) -> Result<Option<Vec<ListedFile>>> {
    let path = list_path(folder);
    match io::directory::read_file(&path, FILE_BYTES_MAX).await {
        Ok(bytes) => Ok(decode(&bytes)
            .filter(|(written_by, _)| *written_by == incarnation)
            .map(|(_, files)| files)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::io(format!("reading {}", path.display()), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_comes_back_and_every_flipped_bit_is_noticed() {
        let file = |name: &str, bytes| ListedFile {
            name: name.to_owned(),
            bytes,
        };
        let files = vec![file("ring-0000", 786_432), file("ring-1003", 786_432)];
        let bytes = encode(Uuid([5; 16]), &files);
        assert_eq!(decode(&bytes), Some((Uuid([5; 16]), files)));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(decode(&[]), None);
    }
}
