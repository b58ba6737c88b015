//! Which segments become one (`Cleaner.groupSegmentsBySize`). Pure.

use crate::base::ids::Offset;

/// Bytes of the largest entry of an index: the time index's.
const INDEX_ENTRY_BYTES: u64 = 12;

/// One segment to be cleaned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) base_offset: Offset,
    pub(crate) bytes: u64,
    /// The beginning of the next one.
    pub(crate) end: Offset,
}

/// What a segment may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLimits {
    pub(crate) segment_bytes: u64,
    pub(crate) index_bytes: u64,
    pub(crate) index_interval_bytes: u64,
}

/// How many of the members, in their order, go into each new segment. A member alone is never too
/// large.
pub(crate) fn group(members: &[Member], limits: GroupLimits) -> Vec<usize> {
    let index_bytes = |bytes: u64| bytes / limits.index_interval_bytes.max(1) * INDEX_ENTRY_BYTES;
    let mut groups = Vec::new();
    let mut rest = members;
    while let Some((first, mut others)) = rest.split_first() {
        let (mut count, mut bytes) = (1, first.bytes);
        while let Some((next, behind)) = others.split_first() {
            let span = next.end.0 - 1 - first.base_offset.0;
            let is_too_far = next.bytes > 0 && span > i64::from(i32::MAX);
            let sum = bytes + next.bytes;
            if sum > limits.segment_bytes || index_bytes(sum) > limits.index_bytes || is_too_far {
                break;
            }
            (count, bytes, others) = (count + 1, sum, behind);
        }
        groups.push(count);
        rest = others;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(sizes: &[u64], span: i64) -> Vec<Member> {
        let member = |(place, bytes): (usize, &u64)| Member {
            base_offset: Offset(place as i64 * span),
            bytes: *bytes,
            end: Offset((place as i64 + 1) * span),
        };
        sizes.iter().enumerate().map(member).collect()
    }

    const LIMITS: GroupLimits = GroupLimits {
        segment_bytes: 1_000,
        index_bytes: 1_000_000,
        index_interval_bytes: 4_096,
    };

    #[test]
    fn segments_are_joined_up_to_each_limit() {
        assert_eq!(group(&members(&[500, 500, 1], 10), LIMITS), [2, 1]);
        assert_eq!(group(&members(&[500, 501, 400], 10), LIMITS), [1, 2]);
        assert_eq!(group(&members(&[5_000, 0, 10], 10), LIMITS), [1, 2]);
        assert_eq!(group(&[], LIMITS), [0; 0]);
        let indexed = GroupLimits {
            index_interval_bytes: 1,
            index_bytes: 12 * 20,
            ..LIMITS
        };
        assert_eq!(group(&members(&[10, 10, 1], 10), indexed), [2, 1]);
    }

    #[test]
    fn offsets_of_one_segment_lie_within_31_bits() {
        let half = i64::from(i32::MAX / 2) + 1;
        assert_eq!(group(&members(&[1, 1, 1], half), LIMITS), [2, 1]);
        assert_eq!(group(&members(&[1, 1, 1], half + 1), LIMITS), [1, 1, 1]);
        assert_eq!(group(&members(&[1, 0, 0], half + 1), LIMITS), [3]);
    }
}
