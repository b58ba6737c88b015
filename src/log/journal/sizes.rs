//! How large a shard's ring and its shares are (JOURNAL §3). Pure arithmetic.

use crate::base::limits::{
    BLOCK_BYTES, CYCLE_BYTES_MAX, DIRECT_BYTES, JOURNAL_BYTES_MIN, KIB, MIB,
};

/// A new ring has at most this much; it grows in the background.
const RING_BYTES_AT_START: u64 = 64 * MIB as u64;
/// Files that a ring has at least.
pub(crate) const RING_FILES_MIN: usize = 4;
/// Cycles of one journal that may be under way.
pub(crate) const CYCLES_IN_FLIGHT_MAX: usize = 4;
/// No cycle is made smaller than this for the sake of memory.
const CYCLE_BYTES_LEAST: usize = 128 * KIB;
/// The ring takes at most this part of the disk.
const DISK_DIVISOR: u64 = 16;

/// Sizes of one shard's ring, in bytes; all multiples of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// One file.
    pub file_bytes: u64,
    /// Files once the ring has grown.
    pub files_max: usize,
    /// Largest cycle, header and padding included.
    pub cycle_bytes_max: usize,
    /// From here on an append may go straight to its segment.
    pub direct_bytes: usize,
    /// Kept for control records.
    pub control_bytes: u64,
    /// What the release of one file may copy forward.
    pub copy_bytes: u64,
    /// What it may write into the ring altogether: less than the file that it frees.
    pub release_bytes: u64,
    /// Appends that one direct write takes; one that is larger goes alone.
    pub run_bytes_max: usize,
    /// Bytes of direct writes in flight from which on no other begins.
    pub direct_in_flight_max: usize,
}

/// Why a disk or setting is too small for a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the journal of each shard needs {needed} bytes but gets {available}: coreline.journal.bytes \
     and a sixteenth of the disk, divided by the shards, are both to be larger than that"
)]
pub struct RingTooSmall {
    /// The least that works.
    pub needed: u64,
    /// What the setting and the disk give.
    pub available: u64,
}

/// The bytes of each shard's ring: `journal_bytes` (all shards) or a sixteenth of the disk.
///
/// # Errors
/// [`RingTooSmall`] below 2 MiB.
pub fn ring_bytes(journal_bytes: u64, disk_bytes: u64, shards: u16) -> Result<u64, RingTooSmall> {
    let all = journal_bytes.min(disk_bytes / DISK_DIVISOR);
    let available = all / u64::from(shards.max(1));
    let needed = JOURNAL_BYTES_MIN as u64;
    if available < needed {
        return Err(RingTooSmall { needed, available });
    }
    Ok(available)
}

impl RingSizes {
    /// Sizes for a ring that may grow to `ring_bytes` (at least 2 MiB; less counts as that).
    #[must_use]
    pub fn for_ring(ring_bytes: u64) -> Self {
        let ring_bytes = ring_bytes.max(JOURNAL_BYTES_MIN as u64);
        let start = ring_bytes.min(RING_BYTES_AT_START);
        let block = BLOCK_BYTES as u64;
        let file_bytes = start / RING_FILES_MIN as u64 / block * block;
        let quarter = usize::try_from(file_bytes / 4).unwrap_or(CYCLE_BYTES_MAX);
        let cycle_bytes_max = quarter.min(CYCLE_BYTES_MAX) / BLOCK_BYTES * BLOCK_BYTES;
        Self {
            file_bytes,
            files_max: usize::try_from(ring_bytes / file_bytes).unwrap_or(RING_FILES_MIN),
            cycle_bytes_max,
            direct_bytes: cycle_bytes_max.min(DIRECT_BYTES),
            control_bytes: start / 16,
            copy_bytes: file_bytes / 4,
            release_bytes: file_bytes / 2,
            run_bytes_max: CYCLE_BYTES_MAX,
            direct_in_flight_max: usize::MAX,
        }
    }

    /// Keeps the buffers of all writes in flight within `bytes`: half of it for cycles, a quarter
    /// for direct writes, a quarter for write-back.
    #[must_use]
    pub fn within_buffers(mut self, bytes: usize) -> Self {
        let cycle_bytes_max = bytes / 2 / CYCLES_IN_FLIGHT_MAX / BLOCK_BYTES * BLOCK_BYTES;
        self.cycle_bytes_max = self
            .cycle_bytes_max
            .min(cycle_bytes_max.max(CYCLE_BYTES_LEAST));
        self.direct_bytes = self.cycle_bytes_max.min(self.direct_bytes);
        self.run_bytes_max = self.run_bytes_max.min(bytes / 8).max(self.direct_bytes);
        self.direct_in_flight_max = bytes / 4;
        self
    }

    /// Whether an append of `bytes` fits a cycle, beside the block that may have to precede it in
    /// the journal; a larger one always goes direct. Admission and the cycle's plan both ask this:
    /// what the one takes for too large must not be left waiting for room by the other.
    #[must_use]
    pub fn fits_a_cycle(&self, bytes: usize) -> bool {
        bytes + BLOCK_BYTES <= self.cycle_bytes_max
    }

    /// What a file surely holds: a cycle that no longer fits leaves its end unused.
    #[must_use]
    pub fn usable_file_bytes(&self) -> u64 {
        self.file_bytes - self.cycle_bytes_max as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_in_flight_stay_within_their_buffers() {
        for mib in [2, 3, 8, 32, 64] {
            let bytes = mib * MIB;
            let sizes = RingSizes::for_ring(1024 * MIB as u64).within_buffers(bytes);
            let cycles = sizes.cycle_bytes_max * CYCLES_IN_FLIGHT_MAX;
            // The last direct write begins just below the limit.
            let directs = sizes.direct_in_flight_max + sizes.run_bytes_max;
            assert!(cycles <= bytes / 2, "{mib} MiB");
            assert!(directs <= bytes / 8 * 3, "{mib} MiB: {sizes:?}");
            assert!(sizes.direct_bytes <= sizes.cycle_bytes_max);
        }
    }

    #[test]
    fn an_append_fits_a_cycle_with_a_block_to_spare() {
        let sizes = RingSizes::for_ring(2 * MIB as u64);
        assert!(sizes.fits_a_cycle(124 * KIB));
        assert!(!sizes.fits_a_cycle(124 * KIB + 1));
    }

    #[test]
    fn two_mib_is_enough_and_a_byte_less_is_not() {
        let disk = 64 * 1024 * MIB as u64;
        assert_eq!(ring_bytes(4 * MIB as u64, disk, 2), Ok(2 * MIB as u64));
        let short = ring_bytes(4 * MIB as u64 - 1, disk, 2);
        assert_eq!(
            short,
            Err(RingTooSmall {
                needed: 2 * MIB as u64,
                available: 2 * MIB as u64 - 1
            })
        );
        assert_eq!(ring_bytes(u64::MAX, 64 * MIB as u64, 1), Ok(4 * MIB as u64));
        assert!(ring_bytes(u64::MAX, 31 * MIB as u64, 1).is_err());
    }

    #[test]
    fn sizes_scale_with_the_ring() {
        let small = RingSizes::for_ring(2 * MIB as u64);
        assert_eq!(small.file_bytes, 512 * KIB as u64);
        assert_eq!(small.files_max, 4);
        assert_eq!(small.cycle_bytes_max, 128 * KIB);
        assert_eq!(small.direct_bytes, 128 * KIB);
        let large = RingSizes::for_ring(1024 * MIB as u64);
        assert_eq!(large.file_bytes, 16 * MIB as u64);
        assert_eq!(large.files_max, 64);
        assert_eq!(large.cycle_bytes_max, 4 * MIB);
        assert_eq!(large.direct_bytes, 256 * KIB);
    }
}
