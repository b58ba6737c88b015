//! Seeded pseudo-random numbers (SplitMix64): for jitter, ids and simulation. Whoever needs secrets
//! must not use this; whoever needs unique ids seeds it from the system's entropy.

use super::ids::Uuid;

/// A generator; equal seeds give equal streams on every machine.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator whose whole stream follows from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            ((self.next_u64() as u128 * bound as u128) >> 64) as u64
        }
    }

    /// True in `numerator` of `denominator` cases.
    pub const fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// The next 128 bits.
    pub const fn next_u128(&mut self) -> u128 {
        ((self.next_u64() as u128) << 64) | self.next_u64() as u128
    }

    /// A version-4 id that Kafka does not keep for itself (`Uuid.randomUuid`).
    pub fn next_uuid(&mut self) -> Uuid {
        loop {
            let mut bytes = self.next_u128().to_be_bytes();
            if let Some(version) = bytes.get_mut(6) {
                *version = (*version & 0x0f) | 0x40;
            }
            if let Some(variant) = bytes.get_mut(8) {
                *variant = (*variant & 0x3f) | 0x80;
            }
            let id = Uuid(bytes);
            if !id.is_reserved() {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_every_value() {
        let mut random = Random::new(7);
        let mut seen = [false; 6];
        for _ in 0..1_000 {
            seen[random.below(6) as usize] = true;
        }
        assert_eq!(seen, [true; 6]);
        assert_eq!(random.below(0), 0);
    }
}
