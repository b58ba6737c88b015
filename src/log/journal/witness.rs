//! `shard-NNNN/flushed`: the highest cycle that was on stable storage at most a second ago, so that
//! recovery notices a ring whose newest part is gone, which the bytes that are left cannot tell.
//!
//! Only a cycle whose flush has completed is named, so that whatever becomes of the file in a power
//! cut, what it names is on the disk: it is never flushed itself, and an older content says less.
//! Without it nothing is missed but that notice; what goes wrong with it is passed over.
//!
//! 36 bytes: 8 of magic, 16 incarnation, 8 sequence, CRC-32C over what precedes.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::ring::shard_folder;
use super::writer::Journal;
use crate::base::ids::Uuid;
use crate::io::{self, AlignedBuffer, Durability, File, OpenOptions};
use crate::log::open::read_small;

const MAGIC: [u8; 8] = *b"CLFLUSH1";
/// How far it may lag behind: it is written so often at most, and when nothing follows.
pub(super) const WITNESS_INTERVAL: Duration = Duration::from_secs(1);

fn path(shard_folder: &Path) -> PathBuf {
    shard_folder.join("flushed")
}

fn encode(incarnation: Uuid, sequence: u64) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&incarnation.0);
    out.extend_from_slice(&sequence.to_be_bytes());
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_be_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<(Uuid, u64)> {
    let (covered, checksum) = bytes.split_last_chunk::<4>()?;
    let (incarnation, rest) = covered.strip_prefix(&MAGIC)?.split_first_chunk::<16>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    (*checksum == crc32c::crc32c(covered).to_be_bytes() && rest.is_empty())
        .then(|| (Uuid(*incarnation), u64::from_be_bytes(*sequence)))
}

/// The highest cycle of this incarnation that is known to have been on the disk; 0 where nothing
/// is known.
pub(crate) async fn load(shard_folder: &Path, incarnation: Uuid) -> u64 {
    let found = read_small(&path(shard_folder)).await.unwrap_or_default();
    let named = found.as_deref().and_then(decode);
    let named = named.filter(|(written_by, _)| *written_by == incarnation);
    named.map_or(0, |(_, sequence)| sequence)
}

/// A new file: a write of a killed process may still land in the one that it left.
async fn create(path: &Path) -> std::io::Result<File> {
    let options = OpenOptions {
        write: true,
        create_new: true,
        ..OpenOptions::default()
    };
    File::open(path, options).await
}

impl Journal {
    /// Names what is flushed for as long as the journal runs.
    pub(super) async fn witness_loop(self: Rc<Self>) {
        let identity = &self.options.identity;
        let folder = shard_folder(&self.options.directory, identity.shard);
        let Ok(file) = create(&path(&folder)).await else {
            return;
        };
        let mut named = 0;
        loop {
            let flushed = || self.state.borrow().flushed_sequence;
            let is_due = || (self.is_stopped() || flushed() > named).then_some(());
            self.wait_for_progress(is_due).await;
            if self.is_stopped() {
                return;
            }
            named = flushed();
            let mut buffer = AlignedBuffer::with_capacity(MAGIC.len() * 5);
            buffer.extend_from_slice(&encode(identity.incarnation, named));
            let (written, _) = file.write_at(0, buffer, Durability::Written).await;
            if written.is_err() {
                return;
            }
            io::sleep(WITNESS_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_comes_back_and_every_flipped_bit_is_noticed() {
        let bytes = encode(Uuid([5; 16]), 77);
        assert_eq!(decode(&bytes), Some((Uuid([5; 16]), 77)));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), None);
        }
    }
}
