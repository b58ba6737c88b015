//! How a fetch's bytes are shared out among the shards that it asks.

use crate::base::ids::ShardId;

/// What each owner may read: a share by its number of partitions, so that all together stay within
/// `bytes`. One owner gets everything.
#[must_use]
pub fn shares(counts: &[(ShardId, usize)], bytes: usize) -> Vec<usize> {
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    if counts.len() <= 1 {
        return counts.iter().map(|_| bytes).collect();
    }
    let counts = counts.iter();
    counts
        .map(|(_, count)| (bytes as u128 * *count as u128 / all.max(1) as u128) as usize)
        .collect()
}

/// Which answers of `sizes` are kept, in request order, so that their sum stays within `bytes`;
/// the first that is not empty is kept whatever its size (KIP-74).
#[must_use]
pub fn kept(sizes: impl IntoIterator<Item = usize>, bytes: usize) -> Vec<bool> {
    let mut sum = 0usize;
    let sizes = sizes.into_iter();
    sizes
        .map(|size| {
            let keep = size == 0 || sum == 0 || sum.saturating_add(size) <= bytes;
            if keep {
                sum = sum.saturating_add(size);
            }
            keep
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_gets_all_and_several_a_share() {
        assert_eq!(shares(&[(ShardId(3), 9)], 1_000), [1_000]);
        let shared = shares(&[(ShardId(0), 3), (ShardId(1), 1)], 4 << 20);
        assert_eq!(shared, [3 << 20, 1 << 20]);
        assert_eq!(shares(&[(ShardId(0), 1), (ShardId(1), 1)], 100), [50, 50]);
    }

    #[test]
    fn the_first_answer_may_exceed_the_limit_and_later_ones_may_not() {
        assert_eq!(kept([0, 500, 0, 1], 100), [true, true, true, false]);
        assert_eq!(kept([40, 60, 1], 100), [true, true, false]);
        assert_eq!(kept([40, 61, 60], 100), [true, false, true]);
    }
}
