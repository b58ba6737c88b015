//! `coreline-journal/current`: names the incarnation whose cycles count. Replacing it, by one
//! rename and directory sync, retires all journals that were found (JOURNAL §7.6).
//!
//! 28 bytes: 8 of magic, 16 incarnation, CRC-32C over what precedes.

use std::path::{Path, PathBuf};

use crate::base::ids::Uuid;
use crate::io;
use crate::log::error::LogError;
use crate::log::journal::JOURNAL_FOLDER;

const MAGIC: [u8; 8] = *b"CLCURRN1";
const FILE_BYTES_MAX: usize = 4096;

pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(JOURNAL_FOLDER).join("current")
}

fn encode(incarnation: Uuid) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&incarnation.0);
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_be_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<Uuid> {
    let (checked, checksum) = bytes.split_at_checked(24)?;
    let checksum = u32::from_be_bytes(checksum.try_into().ok()?);
    let id = checked.strip_prefix(&MAGIC)?;
    (checksum == crc32c::crc32c(checked)).then_some(Uuid(id.try_into().ok()?))
}

/// The incarnation in force; `None` where no journal is.
pub(crate) async fn read(directory: &Path) -> Result<Option<Uuid>, LogError> {
    let path = path(directory);
    match io::directory::read_file(&path, FILE_BYTES_MAX).await {
        Ok(bytes) => decode(&bytes).map(Some).ok_or_else(|| {
            LogError::Refused(format!(
                "{} is damaged, and it alone says which journal counts. Restore the file from a \
                 copy; or move the folder {} away: then every log that was in use serves what its \
                 own files hold, marked as damaged, and takes no more",
                path.display(),
                directory.join(JOURNAL_FOLDER).display()
            ))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::io(format!("reading {}", path.display()), error)),
    }
}

/// Puts an incarnation in force, durably.
pub(super) async fn write(directory: &Path, incarnation: Uuid) -> Result<(), LogError> {
    let folder = directory.join(JOURNAL_FOLDER);
    let failed = |error| LogError::io(format!("writing {}", folder.display()), error);
    io::directory::create_all(&folder).await.map_err(failed)?;
    let path = path(directory);
    io::directory::write_file_durably(&path, &encode(incarnation))
        .await
        .map_err(failed)?;
    io::directory::sync(directory).await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_comes_back_and_every_flipped_bit_is_noticed() {
        let bytes = encode(Uuid([5; 16]));
        assert_eq!(decode(&bytes), Some(Uuid([5; 16])));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
    }
}
