//! Searching by timestamp (`UnifiedLog.fetchOffsetByTimestamp`, ListOffsets).

use std::rc::Rc;

use bytes::Bytes;

use super::config::{ReadLimit, TimestampedOffset};
use super::error::{LogError, ReadError};
use super::partition_log::Log;
use super::segment::Segment;
use crate::base::ids::Offset;
use crate::base::limits::MIB;
use crate::base::time::{TimestampMs, TimestampType};
use crate::io;
use crate::wire::compression::{Codec, DecodeLimits, Decoder};
use crate::wire::record_batch::{BatchHeader, HEADER_BYTES};
use crate::wire::record_walk::RecordWalker;

/// Bytes read at a time while searching.
const SEARCH_BYTES: usize = MIB;

impl Log {
    /// The first record at or after `timestamp`, below `end`.
    ///
    /// # Errors
    /// [`ReadError::Log`] when the log cannot be read.
    pub async fn offset_for_timestamp(
        self: &Rc<Self>,
        timestamp: TimestampMs,
        end: Offset,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        self.search(timestamp, end, Within::Log).await
    }

    async fn search(
        self: &Rc<Self>,
        timestamp: TimestampMs,
        end: Offset,
        within: Within,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        let first = || match within {
            Within::Log => self.log_start_offset(),
            Within::Segments => Offset(0),
        };
        let mut from = self.search_start(timestamp).await?.max(first());
        while from < end.min(self.log_end_offset()) {
            let limit = ReadLimit {
                max_bytes: SEARCH_BYTES,
                memory_max: usize::MAX,
                first_batch_max: usize::MAX,
                end,
            };
            let read = match within {
                Within::Log => self.read(from, limit).await,
                Within::Segments => self.read_stored(from, limit).await,
            };
            let read = match read {
                Err(ReadError::OutOfRange { start, .. })
                    if from < start && within == Within::Log =>
                {
                    from = start;
                    continue;
                }
                read => read?,
            };
            if read.bytes == 0 {
                break;
            }
            for batch in read.slices.iter().flat_map(batches) {
                let (header, bytes) = batch;
                from = header.next_offset();
                if header.max_timestamp < timestamp {
                    continue;
                }
                // The log may start within the batch.
                let sought = Sought {
                    timestamp,
                    first: first(),
                };
                if let Some(found) = first_of(header, bytes, sought).await {
                    return Ok((found.offset < end).then_some(found));
                }
            }
        }
        Ok(None)
    }

    /// The record with the largest timestamp below `end` (ListOffsets -3): the first of those with
    /// that timestamp. As in Kafka it may lie below the log's start, in the segment that holds the
    /// start: its segments are looked at as wholes.
    ///
    /// # Errors
    /// [`ReadError::Log`] when the log cannot be read.
    pub async fn offset_of_max_timestamp(
        self: &Rc<Self>,
        end: Offset,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        let mut largest = TimestampMs::NONE;
        for segment in self.all_segments() {
            largest = largest.max(self.max_timestamp_of(&segment).await?);
        }
        if largest == TimestampMs::NONE {
            return Ok(None);
        }
        match self.search(largest, end, Within::Segments).await {
            // Its segment has gone since.
            Err(ReadError::OutOfRange { .. }) => self.offset_for_timestamp(largest, end).await,
            found => found,
        }
    }

    pub(crate) fn all_segments(&self) -> Vec<Rc<Segment>> {
        self.segments.borrow().values().cloned().collect()
    }

    /// An offset before the first record of at least `timestamp`, by the time indexes.
    async fn search_start(&self, timestamp: TimestampMs) -> Result<Offset, LogError> {
        for segment in self.all_segments() {
            // Of those that are passed over no index stays in memory.
            if self.max_timestamp_of(&segment).await? < timestamp {
                continue;
            }
            self.load_index(&segment).await?;
            let index = segment.index.borrow();
            let Some(index) = index.as_ref() else {
                return Ok(segment.base_offset);
            };
            // The entry before: its offset's batch is older than what is sought.
            let before = index
                .times
                .lookup(TimestampMs(timestamp.0.saturating_sub(1)));
            return Ok(before.offset.max(segment.base_offset));
        }
        Ok(self.log_end_offset())
    }
}

/// The batches of a slice, each with its header.
fn batches(slice: &Bytes) -> Vec<(BatchHeader, Bytes)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(Ok(header)) = slice.get(at..).map(BatchHeader::parse) {
        let end = at + header.total_bytes();
        if end > slice.len() {
            break;
        }
        found.push((header, slice.slice(at..end)));
        at = end;
    }
    found
}

/// What is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// From the log's start on.
    Log,
    /// All that the segments hold.
    Segments,
}

/// A record of at least this timestamp, from this offset on.
#[derive(Clone, Copy)]
struct Sought {
    timestamp: TimestampMs,
    first: Offset,
}

/// The first record sought within a batch. Off the shard: it may decompress.
async fn first_of(header: BatchHeader, batch: Bytes, sought: Sought) -> Option<TimestampedOffset> {
    let answer = |timestamp, offset| TimestampedOffset {
        timestamp,
        offset,
        leader_epoch: header.leader_epoch,
    };
    let is_append_time = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
    // Of a compacted batch the first record may be gone.
    let is_whole = i64::from(header.record_count) == i64::from(header.last_offset_delta) + 1;
    if is_append_time && is_whole && header.base_offset >= sought.first {
        return Some(answer(header.max_timestamp, header.base_offset));
    }
    let found = io::run_on_pool(move || {
        let codec = header.attributes.codec().ok()?;
        let records = batch.get(HEADER_BYTES..)?;
        let found = if codec == Codec::None {
            let records = RecordWalker::new(records, header.record_count);
            find(records, &header, sought)
        } else {
            let decoder = Decoder::new(codec, records, DecodeLimits::default()).ok()?;
            let records = RecordWalker::new(decoder, header.record_count);
            find(records, &header, sought)
        };
        Some(found)
    });
    let (timestamp, offset) = found.await.ok()???;
    Some(answer(timestamp, offset))
}

type WalkItem =
    Result<crate::wire::record_walk::RecordSummary, crate::wire::record_walk::WalkError>;

fn find(
    mut records: impl Iterator<Item = WalkItem>,
    header: &BatchHeader,
    sought: Sought,
) -> Option<(TimestampMs, Offset)> {
    let base = header.base_timestamp.0;
    records.find_map(|record| {
        let record = record.ok()?;
        let at = match header.attributes.timestamp_type() {
            TimestampType::LogAppendTime => header.max_timestamp,
            TimestampType::CreateTime => TimestampMs(base.saturating_add(record.timestamp_delta)),
        };
        let offset = header.base_offset.plus(i64::from(record.offset_delta));
        (at >= sought.timestamp && offset >= sought.first).then_some((at, offset))
    })
}
