//! A segment's indexes held against its batches, as these come by. An entry of which a search makes
//! no mistake may still not be what was written; what is told here would lead a search astray, or
//! names what is not there. Pure.

use std::collections::VecDeque;
use std::path::Path;

use super::report::Problem;
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::log::format::FormatError;
use crate::log::format::offset_index::{OFFSET_ENTRY_BYTES, OffsetIndex, OffsetPosition};
use crate::log::format::time_index::{TIME_ENTRY_BYTES, TimeIndex, TimestampOffset};
use crate::log::format::transaction_index::{
    ABORTED_TRANSACTION_BYTES, AbortedTransaction, TransactionIndex,
};
use crate::wire::record_batch::BatchHeader;

/// What is wrong, and at which byte.
pub(super) type Found = Vec<(u64, String)>;

/// Entries in the order of their file, with their place in it.
struct Entries<T> {
    left: VecDeque<(u64, T)>,
}

impl<T> Entries<T> {
    fn new(entries: impl Iterator<Item = T>, bytes: usize) -> Self {
        let placed = |(number, entry)| (number as u64 * bytes as u64, entry);
        Self {
            left: entries.enumerate().map(placed).collect(),
        }
    }

    /// The next entry if it is `due`.
    fn next_if(&mut self, due: impl Fn(&T) -> bool) -> Option<(u64, T)> {
        let is_due = self.left.front().is_some_and(|(_, entry)| due(entry));
        if is_due { self.left.pop_front() } else { None }
    }
}

/// `.index`: each entry names the beginning of a batch and the last offset of that or, where
/// several came in one append, of a later one.
pub(super) struct OffsetCheck {
    entries: Entries<OffsetPosition>,
    /// Whose batch has begun and whose offset has not come yet.
    open: VecDeque<(u64, Offset)>,
    /// Entries that name the end of a later batch than the one that begins at their position, and
    /// where the first of them stands.
    loose: (u64, u64),
}

impl OffsetCheck {
    pub(super) fn decode(base: Offset, bytes: &[u8]) -> Result<(Self, Vec<u64>), FormatError> {
        let index = OffsetIndex::decode(base, bytes)?;
        let places = index.entries().map(|entry| u64::from(entry.position));
        let places = places.collect();
        let check = Self {
            entries: Entries::new(index.entries(), OFFSET_ENTRY_BYTES),
            open: VecDeque::new(),
            loose: (0, 0),
        };
        Ok((check, places))
    }

    pub(super) fn batch(&mut self, header: &BatchHeader, position: u64, found: &mut Found) {
        while let Some((at, entry)) = self
            .entries
            .next_if(|entry| u64::from(entry.position) < position)
        {
            found.push((at, no_batch(&entry)));
        }
        let here = |entry: &OffsetPosition| u64::from(entry.position) == position;
        if let Some((at, entry)) = self.entries.next_if(here) {
            if entry.offset > header.last_offset() {
                let (count, first) = self.loose;
                self.loose = (count + 1, if count == 0 { at } else { first });
            }
            self.open.push_back((at, entry.offset));
        }
        while let Some((at, offset)) = self.open.front().copied()
            && offset <= header.last_offset()
        {
            if offset < header.last_offset() {
                found.push((at, format!("names offset {offset}, where no batch ends")));
            }
            self.open.pop_front();
        }
    }

    /// The segment is at its end.
    pub(super) fn end(&mut self, found: &mut Found) {
        while let Some((at, entry)) = self.entries.next_if(|_| true) {
            found.push((at, no_batch(&entry)));
        }
        for (at, offset) in self.open.drain(..) {
            found.push((at, format!("names offset {offset}, past the segment's end")));
        }
    }
}

fn no_batch(entry: &OffsetPosition) -> String {
    format!("names position {}, where no batch begins", entry.position)
}

/// `.timeindex`: each entry names the largest timestamp so far and the batch that has it.
pub(super) struct TimeCheck {
    entries: Entries<TimestampOffset>,
    is_emptied: bool,
    largest: TimestampMs,
}

impl TimeCheck {
    /// A cut takes entries away, and those that are left may be none: where a checksum says that
    /// the file is what was written (`is_noted`), an empty one is as good as another.
    pub(super) fn decode(base: Offset, bytes: &[u8], is_noted: bool) -> Result<Self, FormatError> {
        let index = TimeIndex::decode(base, bytes)?;
        let entries = Entries::new(index.entries(), TIME_ENTRY_BYTES);
        Ok(Self {
            is_emptied: !is_noted && entries.left.is_empty(),
            entries,
            largest: TimestampMs::NONE,
        })
    }

    pub(super) fn batch(&mut self, header: &BatchHeader, found: &mut Found) {
        self.largest = self.largest.max(header.max_timestamp);
        let last_offset = header.last_offset();
        while let Some((at, entry)) = self.entries.next_if(|entry| entry.offset <= last_offset) {
            let is_right = entry.offset == last_offset
                && entry.timestamp == header.max_timestamp
                && entry.timestamp == self.largest;
            if !is_right {
                let (time, offset) = (entry.timestamp.0, entry.offset);
                let largest = self.largest.0;
                found.push((
                    at,
                    format!(
                        "names time {time} at offset {offset}; the largest by then is {largest}"
                    ),
                ));
            }
        }
    }

    /// The segment is at its end.
    pub(super) fn end(&mut self, found: &mut Found) {
        while let Some((at, entry)) = self.entries.next_if(|_| true) {
            found.push((
                at,
                format!("names offset {}, which is not there", entry.offset),
            ));
        }
        if self.is_emptied && self.largest > TimestampMs::NONE {
            let largest = self.largest.0;
            found.push((0, format!("it is empty; time {largest} is in its segment")));
        }
    }
}

/// `.txnindex`: each entry names the marker that aborted a transaction.
pub(super) struct TransactionCheck {
    entries: Entries<AbortedTransaction>,
}

impl TransactionCheck {
    pub(super) fn decode(base: Offset, bytes: &[u8]) -> Result<Self, FormatError> {
        let index = TransactionIndex::decode(base, bytes)?;
        let entries = index.entries().iter().copied();
        Ok(Self {
            entries: Entries::new(entries, ABORTED_TRANSACTION_BYTES),
        })
    }

    pub(super) fn batch(&mut self, header: &BatchHeader, found: &mut Found) {
        let last_offset = header.last_offset();
        while let Some((at, entry)) = self
            .entries
            .next_if(|entry| entry.last_offset <= last_offset)
        {
            let is_right = entry.last_offset == last_offset
                && header.attributes.is_control()
                && header.producer_id == entry.producer_id
                && entry.first_offset < entry.last_offset
                && entry.last_stable_offset <= entry.last_offset.plus(1);
            if !is_right {
                let (offset, producer) = (entry.last_offset, entry.producer_id);
                found.push((
                    at,
                    format!("names a marker of producer {producer} at offset {offset}: none such"),
                ));
            }
        }
    }

    /// The segment is at its end.
    pub(super) fn end(&mut self, found: &mut Found) {
        while let Some((at, entry)) = self.entries.next_if(|_| true) {
            let offset = entry.last_offset;
            found.push((
                at,
                format!("names a marker at offset {offset}, which is not there"),
            ));
        }
    }
}

/// All indexes of a segment.
#[derive(Default)]
pub(super) struct IndexChecks {
    offsets: Option<OffsetCheck>,
    times: Option<TimeCheck>,
    transactions: Option<TransactionCheck>,
    found: [Found; 3],
}

impl IndexChecks {
    /// Takes in the files' bytes, in the order `.index`, `.timeindex`, `.txnindex`; what is missing
    /// is not held against anything. `is_noted`: their checksums are known. Answers the positions
    /// that the offset index names.
    pub(super) fn decode(
        &mut self,
        base: Offset,
        files: [Option<&[u8]>; 3],
        is_noted: bool,
    ) -> Vec<u64> {
        let [offsets, times, transactions] = files;
        let mut places = Vec::new();
        let fault = |error: FormatError| (error.position, error.what);
        match offsets
            .map(|bytes| OffsetCheck::decode(base, bytes))
            .transpose()
        {
            Ok(read) => {
                if let Some((check, named)) = read {
                    self.offsets = Some(check);
                    places = named;
                }
            }
            Err(error) => self.found[0].push(fault(error)),
        }
        match times
            .map(|bytes| TimeCheck::decode(base, bytes, is_noted))
            .transpose()
        {
            Ok(check) => self.times = check,
            Err(error) => self.found[1].push(fault(error)),
        }
        let read = transactions.map(|bytes| TransactionCheck::decode(base, bytes));
        match read.transpose() {
            Ok(check) => self.transactions = check,
            Err(error) => self.found[2].push(fault(error)),
        }
        places
    }

    pub(super) fn batch(&mut self, header: &BatchHeader, position: u64) {
        let [offsets, times, transactions] = &mut self.found;
        if let Some(check) = &mut self.offsets {
            check.batch(header, position, offsets);
        }
        if let Some(check) = &mut self.times {
            check.batch(header, times);
        }
        if let Some(check) = &mut self.transactions {
            check.batch(header, transactions);
        }
    }

    /// What is unusual and leads no search astray.
    pub(super) fn note(&self, path: &Path) -> Option<String> {
        let (count, first) = self.offsets.as_ref()?.loose;
        (count > 0).then(|| {
            format!(
                "{} at byte {first}: {count} entries name the end of a later batch than theirs, as \
                 Apache Kafka wrote them for appends of several batches",
                path.display()
            )
        })
    }

    /// What was found, for the files in the same order. Of a segment that could not be read to its
    /// end only what came by is held against anything.
    pub(super) fn end(mut self, is_whole: bool, paths: [&Path; 3]) -> Vec<Problem> {
        if is_whole {
            let [offsets, times, transactions] = &mut self.found;
            self.offsets.iter_mut().for_each(|check| check.end(offsets));
            self.times.iter_mut().for_each(|check| check.end(times));
            let checks = self.transactions.iter_mut();
            checks.for_each(|check| check.end(transactions));
        }
        let found = self.found.into_iter().zip(paths);
        let problems = found.flat_map(|(found, path)| {
            let problem = |(at, what)| Problem::at(path, at, what);
            found.into_iter().map(problem).collect::<Vec<_>>()
        });
        problems.collect()
    }
}
