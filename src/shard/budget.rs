//! Memory for request and response bodies in flight on one shard (`coreline.requests.bytes`).
//!
//! Two parts. The **common** part is taken by whoever asks, as bytes arrive. The **kept** part is
//! lent whole to one reader at a time, so that one frame of the largest accepted size can always be
//! finished, however full the common part is. A reader that has the kept part and receives nothing
//! for [`KEPT_SHARE_IDLE_MAX`] loses it, and with it its frame: half-sent frames block nobody.
//!
//! Pure bookkeeping: who waits, and for how long, is the connection's affair.

use std::time::Duration;

/// How long the holder of the kept share may go without a byte.
pub const KEPT_SHARE_IDLE_MAX: Duration = Duration::from_secs(1);

/// What a reader holds for the frame that it is reading.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Held {
    common_bytes: usize,
    kept: bool,
}

impl Held {
    /// Whether this is the one frame that is finished from the kept share.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Bytes taken from the common part.
    #[must_use]
    pub fn common_bytes(&self) -> usize {
        self.common_bytes
    }

    /// Splits off what `bytes` of a finished frame hold: the kept share goes with it, so that it
    /// comes back only when that frame has been answered.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let mut split = self.split_common(bytes);
        split.kept = std::mem::take(&mut self.kept);
        split
    }

    /// Splits off up to `bytes` of the common part alone.
    #[must_use]
    pub fn split_common(&mut self, bytes: usize) -> Self {
        let common_bytes = bytes.min(self.common_bytes);
        self.common_bytes -= common_bytes;
        Self {
            common_bytes,
            kept: false,
        }
    }
}

impl Held {
    /// Holds what `other` holds too; there is one kept share, so that at most one of them has it.
    pub fn merge(&mut self, other: Self) {
        self.common_bytes += other.common_bytes;
        self.kept |= other.kept;
    }
}

/// The two parts and what is left of them.
#[derive(Debug)]
pub struct Budget {
    common_bytes_max: usize,
    common_bytes_free: usize,
    kept_bytes: usize,
    kept_lent: bool,
}

impl Budget {
    /// `total` bytes, of which the kept share is what the largest frame needs but at most half.
    #[must_use]
    pub fn new(total: usize, frame_bytes_max: usize) -> Self {
        let kept_bytes = frame_bytes_max.min(total / 2);
        let common_bytes_max = total - kept_bytes;
        Self {
            common_bytes_max,
            common_bytes_free: common_bytes_max,
            kept_bytes,
            kept_lent: false,
        }
    }

    /// The largest frame that can always be finished.
    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        self.kept_bytes
    }

    /// Takes `bytes` more for a frame being read: from the common part, else by the right to the
    /// kept share, which covers all that the frame still needs. False: wait.
    pub fn take(&mut self, held: &mut Held, bytes: usize) -> bool {
        if held.kept {
            return true;
        }
        if bytes <= self.common_bytes_free {
            self.common_bytes_free -= bytes;
            held.common_bytes += bytes;
            return true;
        }
        if self.kept_lent {
            return false;
        }
        self.kept_lent = true;
        held.kept = true;
        true
    }

    /// Takes up to `bytes` from the common part alone, for a response; answers what it got.
    pub fn take_up_to(&mut self, held: &mut Held, bytes: usize) -> usize {
        let taken = bytes.min(self.common_bytes_free);
        self.common_bytes_free -= taken;
        held.common_bytes += taken;
        taken
    }

    /// Gives back all that is held, after the answer has left or the connection has closed.
    pub fn give_back(&mut self, held: Held) {
        self.common_bytes_free += held.common_bytes;
        if held.kept {
            self.kept_lent = false;
        }
    }

    /// Bytes of the common part that are free.
    #[must_use]
    pub fn common_bytes_free(&self) -> usize {
        self.common_bytes_free
    }

    /// Bytes of the common part that are in use.
    #[must_use]
    pub fn common_bytes_used(&self) -> usize {
        self.common_bytes_max - self.common_bytes_free
    }

    /// Whether the kept share is lent.
    #[must_use]
    pub fn is_kept_lent(&self) -> bool {
        self.kept_lent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn the_kept_share_finishes_one_frame_when_the_common_part_is_full() {
        let mut budget = Budget::new(1_000, 400);
        assert_eq!(budget.frame_bytes_max(), 400);
        let (mut hog, mut first, mut second) = (Held::default(), Held::default(), Held::default());
        assert!(budget.take(&mut hog, 600), "the limit itself");
        assert!(!hog.is_kept());
        assert!(budget.take(&mut first, 1), "one past it takes the right");
        assert!(first.is_kept());
        assert!(budget.take(&mut first, 399), "and may go on");
        assert!(!budget.take(&mut second, 1), "the next one waits");
        budget.give_back(first);
        assert!(budget.take(&mut second, 1));
        assert!(second.is_kept());
        budget.give_back(hog);
        budget.give_back(second);
        assert_eq!(budget.common_bytes_used(), 0);
        assert!(!budget.is_kept_lent());
    }

    #[test]
    fn a_small_budget_keeps_half_for_the_largest_frame() {
        assert_eq!(Budget::new(1_000, 4_000).frame_bytes_max(), 500);
    }

    #[test]
    fn nothing_is_lost_or_made_over_random_takes() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut budget = Budget::new(10_000, 3_000);
            let mut holders: Vec<Held> = Vec::new();
            for _ in 0..500 {
                match random.below(3) {
                    0 => {
                        let mut held = Held::default();
                        if budget.take(&mut held, random.below(4_000) as usize) {
                            let split = held.split(random.below(4_000) as usize);
                            holders.push(split);
                            holders.push(held);
                        }
                    }
                    1 => {
                        let mut held = Held::default();
                        budget.take_up_to(&mut held, random.below(4_000) as usize);
                        holders.push(held);
                    }
                    _ if !holders.is_empty() => {
                        let which = random.below(holders.len() as u64) as usize;
                        budget.give_back(holders.swap_remove(which));
                    }
                    _ => {}
                }
                let held: usize = holders.iter().map(Held::common_bytes).sum();
                assert_eq!(held, budget.common_bytes_used());
                let kept = holders.iter().filter(|held| held.is_kept()).count();
                assert_eq!(kept, usize::from(budget.is_kept_lent()));
            }
        }
    }
}
