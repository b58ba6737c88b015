//! Whom Linux tells that a write-back has failed (`errseq_t`, since 4.13; for a whole file system
//! since 5.8): every descriptor that was open at the time, once each; one opened later only if
//! nobody had been told by then.

use std::io;

use super::tree::error;

/// Failed write-backs of one file or of the whole file system.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    count: u64,
    is_told: bool,
}

impl Failures {
    pub(super) fn add(&mut self) {
        self.count += 1;
        self.is_told = false;
    }

    /// What a descriptor opened now counts as told.
    pub(super) fn known_at_open(&self) -> u64 {
        if self.is_told {
            self.count
        } else {
            self.count.saturating_sub(1)
        }
    }

    /// Tells a descriptor that was told of `told` failures.
    pub(super) fn tell(&mut self, told: &mut u64) -> io::Result<()> {
        if *told == self.count {
            return Ok(());
        }
        *told = self.count;
        self.is_told = true;
        Err(error(libc::EIO))
    }
}
