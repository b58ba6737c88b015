//! How large writes are: counts by size, in steps that people know.

use std::cell::Cell;

/// Upper bounds of the steps, in bytes; what is larger has a step of its own.
pub const SIZE_STEPS: [u64; 7] = [
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
];
const STEPS: usize = SIZE_STEPS.len() + 1;

/// Sizes on one shard, since the start.
#[derive(Debug, Default)]
pub struct Sizes {
    counts: [Cell<u64>; STEPS],
    bytes: Cell<u64>,
}

/// A copy of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeCounts {
    /// How many fell into each of [`SIZE_STEPS`], and past the last.
    pub counts: [u64; STEPS],
    /// All bytes together.
    pub bytes: u64,
}

impl Sizes {
    /// Counts one.
    pub fn record(&self, bytes: u64) {
        let step = SIZE_STEPS.partition_point(|bound| *bound < bytes);
        if let Some(count) = self.counts.get(step) {
            count.set(count.get().wrapping_add(1));
        }
        self.bytes.set(self.bytes.get().wrapping_add(bytes));
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> SizeCounts {
        SizeCounts {
            counts: self.counts.each_ref().map(Cell::get),
            bytes: self.bytes.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_falls_into_the_step_that_it_does_not_exceed() {
        let sizes = Sizes::default();
        for bytes in [0, 4_096, 4_097, 16 << 20, (16 << 20) + 1, 1 << 40] {
            sizes.record(bytes);
        }
        let told = sizes.counts();
        assert_eq!(told.counts, [2, 1, 0, 0, 0, 0, 1, 2]);
        assert_eq!(
            told.bytes,
            4_096 + 4_097 + (16 << 20) + (16 << 20) + 1 + (1 << 40)
        );
    }
}
