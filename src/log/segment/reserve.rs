//! Blocks kept for a segment ahead of its appends (JOURNAL §4): reserved without changing the
//! file's size, and that reservation synced, so that write-back never asks for room.

use std::rc::Rc;

use super::Segment;
use crate::base::limits::{BLOCK_BYTES, KIB, MIB};
use crate::io::{self, FlushGroup};

/// The first reservation and the largest step; each step doubles.
pub(crate) const STEP_BYTES_MIN: u64 = 128 * KIB as u64;
const STEP_BYTES_MAX: u64 = 64 * MIB as u64;

/// What a segment is given next: as much as it holds, between 128 KiB and 64 MiB, never past what
/// it may still grow to, but always what is needed now. Pure.
pub(crate) fn next_reservation(
    reserved: u64,
    needed: u64,
    segment_bytes: u64,
    step_max: u64,
) -> u64 {
    let step = step_of(reserved, step_max);
    let wanted = (reserved + step).min(segment_bytes.next_multiple_of(BLOCK_BYTES as u64));
    wanted.max(needed.next_multiple_of(BLOCK_BYTES as u64))
}

fn step_of(reserved: u64, step_max: u64) -> u64 {
    let step_max = step_max.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
    reserved.clamp(STEP_BYTES_MIN, step_max)
}

impl Segment {
    /// Whether the blocks up to `end` are reserved.
    pub(crate) fn is_reserved(&self, end: u64) -> bool {
        self.reserved.get() >= end.next_multiple_of(BLOCK_BYTES as u64)
    }

    /// Whether it is time to reserve ahead: half of the last step is used up.
    pub(crate) fn wants_reservation(&self, step_max: u64) -> bool {
        let left = self.reserved.get().saturating_sub(self.size.get());
        let step = step_of(self.reserved.get(), step_max);
        !self.is_reserving.get() && left < step / 2
    }

    /// Reserves blocks up to `end` and beyond, durably. Whoever comes meanwhile waits for the same.
    ///
    /// # Errors
    /// What the file system answers; ENOSPC is no failure of the directory.
    pub(crate) async fn reserve(
        self: &Rc<Self>,
        end: u64,
        segment_bytes: u64,
        step_max: u64,
        flushes: &FlushGroup,
    ) -> std::io::Result<()> {
        loop {
            let free = || (!self.is_reserving.get()).then_some(());
            self.health
                .race(&self.waiters, free)
                .await
                .map_err(std::io::Error::other)?;
            if self.is_reserved(end) && !self.wants_reservation(step_max) {
                return Ok(());
            }
            self.is_reserving.set(true);
            let outcome = self
                .reserve_once(end, segment_bytes, step_max, flushes)
                .await;
            self.is_reserving.set(false);
            self.waiters.wake_all();
            outcome?;
            if self.is_reserved(end) {
                return Ok(());
            }
        }
    }

    async fn reserve_once(
        &self,
        end: u64,
        segment_bytes: u64,
        step_max: u64,
        flushes: &FlushGroup,
    ) -> std::io::Result<()> {
        let reserved = self.reserved.get();
        let target = next_reservation(reserved, end, segment_bytes, step_max);
        if target <= reserved {
            return Ok(());
        }
        let file = self.writer(false).await.map_err(std::io::Error::other)?;
        file.preallocate(reserved, target - reserved).await?;
        if let Err(error) = flushes.file(&file).await {
            self.fail("flushing", &error);
            return Err(error);
        }
        self.reserved.set(target);
        Ok(())
    }
}

/// At most this part of the disk is reserved in one step.
const DISK_DIVISOR: u64 = 64;

/// The largest step that the disk of `path` allows.
pub(crate) async fn step_max_for(path: &std::path::Path) -> u64 {
    match io::directory::space(path).await {
        Ok(space) => space.total_bytes / DISK_DIVISOR,
        Err(_) => STEP_BYTES_MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_double_between_their_bounds() {
        let large = 1024 * MIB as u64;
        assert_eq!(next_reservation(0, 1, large, u64::MAX), 128 * KIB as u64);
        assert_eq!(
            next_reservation(128 * 1024, 1, large, u64::MAX),
            256 * KIB as u64
        );
        let half = 512 * MIB as u64;
        assert_eq!(
            next_reservation(half, half + 1, large, u64::MAX),
            576 * MIB as u64
        );
        assert_eq!(
            next_reservation(half, half + 1, half, u64::MAX),
            half + 4096
        );
        assert_eq!(
            next_reservation(MIB as u64, 1, large, 0),
            MIB as u64 + 128 * 1024
        );
        assert_eq!(
            next_reservation(0, 10 * MIB as u64 + 1, large, 0),
            10 * MIB as u64 + 4096
        );
    }
}
