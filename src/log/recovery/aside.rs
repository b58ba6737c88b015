//! Ring files that hold damage or unreplayed bytes go out of the way of the next ring, for whoever
//! repairs; Apache Kafka ignores the plain files.
//!
//! They may be moved neither before the new incarnation is in force, since a crash then repeats the
//! recovery from them, nor without a trace after it, since the shards would write over them. So the
//! new incarnation and the rings are noted durably first: a start that finds the note, and its
//! incarnation in force, moves what is still to be moved.
//!
//! `coreline-journal/aside`: 8 bytes of magic, 16 incarnation, 2 for each ring's shard, CRC-32C.

use std::path::{Path, PathBuf};

use super::seal::list_or_nothing;
use super::{RecoveryReport, current};
use crate::base::ids::{ShardId, Uuid};
use crate::io;
use crate::log::error::LogError;
use crate::log::journal::{JOURNAL_FOLDER, shard_folder};
use crate::log::open::read_small;

const MAGIC: [u8; 8] = *b"CLASIDE1";
/// Ring files that hold damage are renamed so, in the log directory itself.
const ASIDE_PREFIX: &str = "coreline-damaged-";

fn path(directory: &Path) -> PathBuf {
    directory.join(JOURNAL_FOLDER).join("aside")
}

fn encode(incarnation: Uuid, rings: &[ShardId]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&incarnation.0);
    rings
        .iter()
        .for_each(|ring| out.extend_from_slice(&ring.0.to_be_bytes()));
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_be_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<(Uuid, Vec<ShardId>)> {
    let (covered, checksum) = bytes.split_last_chunk::<4>()?;
    let (incarnation, rings) = covered.strip_prefix(&MAGIC)?.split_first_chunk::<16>()?;
    let (rings, rest) = rings.as_chunks::<2>();
    let rings = rings.iter().map(|ring| ShardId(u16::from_be_bytes(*ring)));
    (*checksum == crc32c::crc32c(covered).to_be_bytes() && rest.is_empty())
        .then(|| (Uuid(*incarnation), rings.collect()))
}

/// Notes the rings that the incarnation which is about to be in force sets aside.
pub(super) async fn note(
    directory: &Path,
    incarnation: Uuid,
    rings: &[ShardId],
) -> Result<(), LogError> {
    if rings.is_empty() {
        return forget(directory).await;
    }
    let path = path(directory);
    let written = io::directory::write_file_durably(&path, &encode(incarnation, rings)).await;
    written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))
}

async fn forget(directory: &Path) -> Result<(), LogError> {
    let path = path(directory);
    let failed = |error| LogError::io(format!("removing {}", path.display()), error);
    match io::directory::remove_file(&path).await {
        Ok(()) => {
            let folder = path.parent().unwrap_or(directory);
            io::directory::sync(folder).await.map_err(failed)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Moves the rings of the note if the incarnation that it names is in force: then their cycles are
/// of one that is over, and no shard has opened since. Nothing else is looked at before.
pub(super) async fn set_aside(
    directory: &Path,
    report: &mut RecoveryReport,
) -> Result<(), LogError> {
    let Some(bytes) = read_small(&path(directory)).await? else {
        return Ok(());
    };
    let Some((incarnation, rings)) = decode(&bytes) else {
        let path = path(directory);
        return Err(LogError::Refused(format!(
            "{} is damaged: it named the journals with damage that were to be kept. Move them out \
             of {} yourself if you want them, and remove that file",
            path.display(),
            directory.join(JOURNAL_FOLDER).display()
        )));
    };
    if current::read(directory).await? != Some(incarnation) {
        return Ok(());
    }
    let failed = |error| LogError::io(format!("setting aside in {}", directory.display()), error);
    for ring in rings {
        let folder = shard_folder(directory, ring);
        let shard = folder.file_name().map(|name| name.to_string_lossy());
        let shard = shard.unwrap_or_default().into_owned();
        for name in list_or_nothing(&folder).await.map_err(failed)? {
            let now = io::wall_clock().0;
            let target = directory.join(format!("{ASIDE_PREFIX}{now}-{shard}-{name}"));
            let moved = io::directory::rename(&folder.join(&name), &target).await;
            moved.map_err(failed)?;
            let notice = format!("{} is set aside", target.display());
            report.notices.push(notice);
        }
        io::directory::sync(directory).await.map_err(failed)?;
    }
    forget(directory).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_comes_back_and_every_flipped_bit_is_noticed() {
        let bytes = encode(Uuid([5; 16]), &[ShardId(0), ShardId(300)]);
        let rings = vec![ShardId(0), ShardId(300)];
        assert_eq!(decode(&bytes), Some((Uuid([5; 16]), rings)));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
    }
}
