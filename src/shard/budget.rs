//! Memory for request and response bodies in flight on one shard (`coreline.requests.bytes`).
//!
//! Two parts. The **common** part is taken by whoever asks, as bytes arrive. The **kept** part is
//! lent whole to one reader at a time, so that one frame of the largest accepted size can always be
//! finished, however full the common part is. A reader that has the kept part and receives nothing
//! for [`KEPT_SHARE_IDLE_MAX`] loses it, and with it its frame: half-sent ones block nobody. Those
//! in the common part are given up too once they have stood still for a second and somebody waits.
//!
//! Answers to fetches hold memory for as long as a client leaves them unread. They get no more than
//! [`ANSWERS_PERCENT_MAX`] of the common part, so that frames always find some. While less than
//! half of that is taken one answer gets up to a quarter of what is left of the half, then
//! [`ANSWER_BYTES_MIN`]: it takes thousands of them to use it up, each of a connection of its own.
//!
//! While the process is near its cap there is less of the common part to take
//! ([`left_of`](crate::io::memory::left_of)); what is held stays held.
//!
//! Pure bookkeeping: who waits, and for how long, is the connection's affair.

use std::time::Duration;

use crate::base::limits::KIB;
use crate::io::memory::left_of;

/// How long the holder of the kept share may go without a byte.
pub const KEPT_SHARE_IDLE_MAX: Duration = Duration::from_secs(1);
/// What answers may take of the common part.
pub const ANSWERS_PERCENT_MAX: usize = 75;
/// What an answer is granted at the least, or nothing.
pub const ANSWER_BYTES_MIN: usize = 64 * KIB;
/// The part of the generous half's rest that one answer may take.
const ANSWER_PART: usize = 4;

/// What is held for a frame, or for an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Held {
    common_bytes: usize,
    /// Those of the common bytes that an answer holds.
    answer_bytes: usize,
    kept: bool,
    overdrawn: bool,
}

impl Held {
    /// Whether this is the one frame that is finished from the kept share.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Whether this is the one answer that may be larger than what is there.
    #[must_use]
    pub fn is_overdrawn(&self) -> bool {
        self.overdrawn
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
        let answer_bytes = common_bytes.min(self.answer_bytes);
        self.answer_bytes -= answer_bytes;
        Self {
            common_bytes,
            answer_bytes,
            ..Self::default()
        }
    }
}

impl Held {
    /// Holds what `other` holds too; there is one kept share, so that at most one of them has it.
    pub fn merge(&mut self, other: Self) {
        self.common_bytes += other.common_bytes;
        self.answer_bytes += other.answer_bytes;
        self.kept |= other.kept;
        self.overdrawn |= other.overdrawn;
    }

    /// Splits off the kept share and the right to overdraw.
    #[must_use]
    pub fn split_rights(&mut self) -> Self {
        Self {
            kept: std::mem::take(&mut self.kept),
            overdrawn: std::mem::take(&mut self.overdrawn),
            ..Self::default()
        }
    }
}

/// The two parts and what is left of them.
#[derive(Debug)]
pub struct Budget {
    common_bytes_max: usize,
    common_bytes_free: usize,
    answer_bytes_max: usize,
    answer_bytes_used: usize,
    kept_bytes: usize,
    kept_lent: bool,
    overdrawn: bool,
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
            answer_bytes_max: common_bytes_max / 100 * ANSWERS_PERCENT_MAX,
            answer_bytes_used: 0,
            kept_bytes,
            kept_lent: false,
            overdrawn: false,
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
        if self.take_common(held, bytes) {
            return true;
        }
        if self.kept_lent {
            return false;
        }
        self.kept_lent = true;
        held.kept = true;
        true
    }

    /// Takes `bytes` from the common part alone, or nothing.
    pub fn take_common(&mut self, held: &mut Held, bytes: usize) -> bool {
        let used = self.common_bytes_used();
        let enough = bytes <= left_of(self.common_bytes_max).saturating_sub(used);
        if enough {
            self.common_bytes_free -= bytes;
            held.common_bytes += bytes;
        }
        enough
    }

    /// Takes up to `bytes` for an answer; `None` when there is not even [`ANSWER_BYTES_MIN`], it
    /// wants as much, and another one has that already beyond what there is. Who holds the right to
    /// overdraw has it for this too.
    pub fn take_for_answer(&mut self, held: &mut Held, bytes: usize) -> Option<usize> {
        let generous = left_of(self.answer_bytes_max) / 2;
        let generous = generous.saturating_sub(self.answer_bytes_used);
        let share = (generous / ANSWER_PART).max(ANSWER_BYTES_MIN);
        let taken = bytes.min(share);
        if self.take_whole_answer(held, taken) {
            return Some(taken);
        }
        // Frames that stand still must not starve answers: one at a time gets the least.
        let least = bytes.min(ANSWER_BYTES_MIN);
        self.may_overdraw(held).then_some(least)
    }

    /// Takes `bytes` for an answer whose size is known, or nothing. One answer at a time may be
    /// larger than what is there: a batch may be larger than all that answers get.
    pub fn take_batch_answer(&mut self, held: &mut Held, bytes: usize) -> bool {
        self.take_whole_answer(held, bytes) || self.may_overdraw(held)
    }

    fn may_overdraw(&mut self, held: &mut Held) -> bool {
        held.overdrawn |= !self.overdrawn;
        self.overdrawn = true;
        held.overdrawn
    }

    fn take_whole_answer(&mut self, held: &mut Held, bytes: usize) -> bool {
        let free = left_of(self.answer_bytes_max).saturating_sub(self.answer_bytes_used);
        let taken = bytes <= free && self.take_common(held, bytes);
        if taken {
            self.answer_bytes_used += bytes;
            held.answer_bytes += bytes;
        }
        taken
    }

    /// Gives back all that is held, after the answer has left or the connection has closed.
    pub fn give_back(&mut self, held: Held) {
        self.common_bytes_free += held.common_bytes;
        self.answer_bytes_used -= held.answer_bytes;
        if held.kept {
            self.kept_lent = false;
        }
        if held.overdrawn {
            self.overdrawn = false;
        }
    }

    /// Bytes of the common part that are free.
    #[must_use]
    pub fn common_bytes_free(&self) -> usize {
        self.common_bytes_free
    }

    /// Bytes of the common part.
    #[must_use]
    pub fn common_bytes_max(&self) -> usize {
        self.common_bytes_max
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
    fn answers_leave_a_part_to_frames_and_shrink_before_they_run_out() {
        const MIB: usize = 1024 * KIB;
        let mut budget = Budget::new(150 * MIB, 50 * MIB);
        let answers_max = 100 * MIB / 100 * ANSWERS_PERCENT_MAX;
        let mut held = Held::default();
        let first = budget.take_for_answer(&mut held, usize::MAX);
        assert_eq!(first, Some(answers_max / 2 / ANSWER_PART));
        let mut count = 1;
        while !held.is_overdrawn() {
            assert!(budget.take_for_answer(&mut held, usize::MAX).is_some());
            count += 1;
        }
        assert!(count > 500, "{count} answers use it up");
        let least = Some(ANSWER_BYTES_MIN);
        let more = budget.take_for_answer(&mut held, usize::MAX);
        assert_eq!(more, least, "who overdraws may do so again");
        assert!(budget.take_batch_answer(&mut held, MIB));
        let mut other = Held::default();
        assert_eq!(budget.take_for_answer(&mut other, usize::MAX), None);
        assert!(!budget.take_batch_answer(&mut other, MIB));
        budget.give_back(held.split_rights());
        let left = answers_max - budget.answer_bytes_used;
        assert!(left < ANSWER_BYTES_MIN);
        assert!(budget.take_whole_answer(&mut held, left), "the limit");
        assert!(!budget.take_whole_answer(&mut held, 1), "one past it");
        let (mut large, mut second) = (Held::default(), Held::default());
        assert!(budget.take_batch_answer(&mut large, 200 * MIB), "one alone");
        assert!(!budget.take_batch_answer(&mut second, 1));
        budget.give_back(large);
        assert!(budget.take_batch_answer(&mut second, 1), "the next one");
        budget.give_back(second);
        let mut frame = Held::default();
        assert!(budget.take(&mut frame, 100 * MIB - answers_max));
        assert!(!frame.is_kept(), "a frame finds common memory");
        budget.give_back(held);
        budget.give_back(frame);
        assert_eq!(budget.common_bytes_used() + budget.answer_bytes_used, 0);
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
                        budget.take_for_answer(&mut held, random.below(4_000) as usize);
                        holders.push(held.split_common(random.below(4_000) as usize));
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
                let answers: usize = holders.iter().map(|held| held.answer_bytes).sum();
                assert_eq!(answers, budget.answer_bytes_used);
                assert!(answers <= budget.answer_bytes_max);
                let kept = holders.iter().filter(|held| held.is_kept()).count();
                assert_eq!(kept, usize::from(budget.is_kept_lent()));
            }
        }
    }
}
