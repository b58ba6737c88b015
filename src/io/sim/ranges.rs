//! A set of block numbers kept as disjoint ranges: what a file has allocated.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint, non-adjacent ranges by their start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// How many numbers are in the set.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let before = self.ranges.range(..=number).next_back();
        before.is_some_and(|(_, end)| number < *end)
    }

    /// How many of `range` are not in the set yet.
    pub fn missing(&self, range: &Range<u64>) -> u64 {
        let mut present = 0;
        for (start, end) in self.ranges.range(..range.end) {
            let from = (*start).max(range.start);
            present += (*end).min(range.end).saturating_sub(from);
        }
        (range.end.saturating_sub(range.start)) - present
    }

    /// Adds `range`.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        let touching: Vec<u64> = self
            .ranges
            .range(..=end)
            .filter(|(_, other_end)| **other_end >= start)
            .map(|(other_start, _)| *other_start)
            .collect();
        for other in touching {
            if let Some(other_end) = self.ranges.remove(&other) {
                start = start.min(other);
                end = end.max(other_end);
            }
        }
        self.ranges.insert(start, end);
    }

    /// Removes everything at or past `from`.
    pub fn cut(&mut self, from: u64) {
        self.ranges.split_off(&from);
        if let Some(mut last) = self.ranges.last_entry() {
            let end = (*last.get()).min(from);
            *last.get_mut() = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_count_and_cut() {
        let mut set = RangeSet::default();
        set.insert(10..20);
        set.insert(30..40);
        assert_eq!(set.missing(&(5..35)), 15);
        set.insert(20..30);
        assert_eq!(set.ranges.len(), 1);
        assert_eq!(set.len(), 30);
        set.cut(15);
        assert_eq!(set.len(), 5);
        assert!(set.contains(14) && !set.contains(15) && !set.contains(9));
        set.cut(10);
        assert_eq!(set, RangeSet::default());
    }
}
