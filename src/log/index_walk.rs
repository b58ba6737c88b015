//! A segment's batches against its indexes: what the indexes should be, and whether those that are
//! there lead right. Pure.

use super::segment::SegmentIndex;
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::wire::record_batch::BatchHeader;

/// A walk over all batches of a segment, in order.
pub(crate) struct IndexWalk<'a> {
    /// The indexes that these batches give.
    pub(crate) made: SegmentIndex,
    interval: u64,
    found: Option<&'a SegmentIndex>,
    next_offset_entry: usize,
    next_time_entry: usize,
    leads_right: bool,
}

impl<'a> IndexWalk<'a> {
    /// With the indexes that were found, if any.
    pub(crate) fn new(base_offset: Offset, interval: u64, found: Option<&'a SegmentIndex>) -> Self {
        Self {
            made: SegmentIndex::new(base_offset),
            interval,
            found,
            next_offset_entry: 0,
            next_time_entry: 0,
            leads_right: found.is_some(),
        }
    }

    /// The next batch.
    pub(crate) fn batch(&mut self, header: &BatchHeader, position: u64) {
        let largest_before = self.made.max_timestamp;
        self.made.append(header, position, self.interval);
        if let Some(found) = self.found {
            self.leads_right &= self.check(found, header, (position, largest_before));
        }
    }

    /// Entries are judged by what they are used for, since Apache Kafka's versions differ in what
    /// they write. A read for an entry's offset or a later one may begin at its position. A search
    /// for a later time than an entry's may begin at its offset.
    fn check(
        &mut self,
        found: &SegmentIndex,
        header: &BatchHeader,
        (position, largest_before): (u64, TimestampMs),
    ) -> bool {
        if let Some(entry) = found.offsets.entry(self.next_offset_entry)
            && u64::from(entry.position) <= position
        {
            let is_here = u64::from(entry.position) == position;
            if !is_here || header.base_offset > entry.offset {
                return false;
            }
            self.next_offset_entry += 1;
        }
        while let Some(entry) = found.times.entry(self.next_time_entry)
            && entry.offset <= header.last_offset()
        {
            if largest_before > entry.timestamp || self.made.max_timestamp < entry.timestamp {
                return false;
            }
            self.next_time_entry += 1;
        }
        true
    }

    /// After the last batch: the indexes as they should be, and whether the found ones lead right
    /// everywhere.
    pub(crate) fn end(mut self) -> (SegmentIndex, bool) {
        self.made.seal();
        let is_right = self.leads_right
            && self.found.is_some_and(|found| {
                found.offsets.entry(self.next_offset_entry).is_none()
                    && found.times.entry(self.next_time_entry).is_none()
                    && found.max_timestamp == self.made.max_timestamp
            });
        (self.made, is_right)
    }
}
