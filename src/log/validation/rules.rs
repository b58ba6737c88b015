//! The rules for one batch.

use super::error::{RECORD_ERRORS_MAX, RecordFault, RecordFaultKind, ValidationError};
use crate::base::ids::Offset;
use crate::base::limits::KIB;
use crate::base::time::{TimestampMs, TimestampType};
use crate::log::config::{AppendOrigin, LogConfig};
use crate::wire::compression::{Codec, DecodeLimits, Decoder};
use crate::wire::record::RecordIter;
use crate::wire::record_batch::{self as batch, BatchError, BatchHeader, HEADER_BYTES};
use crate::wire::record_walk::{RecordSummary, RecordWalker, WalkError};

/// Compressed batches up to this size are walked where they are; larger ones off the shard.
pub const INLINE_WALK_BYTES_MAX: usize = 64 * KIB;

/// What a batch is judged by.
#[derive(Clone, Copy, Debug)]
pub struct ValidationOptions<'a> {
    /// Who appends.
    pub origin: AppendOrigin,
    /// The topic's settings.
    pub config: &'a LogConfig,
    /// The broker's time.
    pub now: TimestampMs,
}

/// A batch that may be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidatedBatch {
    /// The header as it stands in the batch now.
    pub header: BatchHeader,
    /// The broker's time, where the topic keeps that; for the answer. Else -1.
    pub log_append_time: TimestampMs,
    /// Whether anything inside the checksum was changed.
    pub is_rewritten: bool,
}

/// Whether to judge this batch off the shard: a large one that must be decompressed.
#[must_use]
pub fn is_heavy(header: &BatchHeader, config: &LogConfig) -> bool {
    let codec = header.attributes.codec().unwrap_or_default();
    let is_walked = codec != Codec::None && config.validate_compressed;
    let is_recompressed = super::wants_recompression(header, config).is_some();
    (is_walked || is_recompressed) && header.total_bytes() > INLINE_WALK_BYTES_MAX
}

/// Judges one batch and makes it what will be stored, but for its offset and leader epoch. After an
/// error the batch is as it came. Of a replica's batch only length and checksum are judged: its
/// leader has done the rest, perhaps under other settings, and the copy must be equal.
///
/// # Errors
/// [`ValidationError`] with Kafka's code.
pub fn validate(
    bytes: &mut [u8],
    options: &ValidationOptions<'_>,
) -> Result<ValidatedBatch, ValidationError> {
    let header = BatchHeader::parse(bytes).map_err(ValidationError::Corrupt)?;
    check_size(bytes, &header, options)?;
    batch::verify_crc(bytes).map_err(ValidationError::Corrupt)?;
    if options.origin == AppendOrigin::Replica {
        return Ok(ValidatedBatch {
            header,
            log_append_time: TimestampMs::NONE,
            is_rewritten: false,
        });
    }
    let codec = header.attributes.codec().map_err(|error| match error {
        BatchError::UnknownCodec(id) => ValidationError::UnknownCodec(id),
        error => ValidationError::Corrupt(error),
    })?;
    if options.origin == AppendOrigin::Client {
        check_header(&header)?;
    }
    let records = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let largest = match codec {
        Codec::None => {
            let records = RecordIter::new(records, header.record_count).map(|record| {
                record
                    .map(|record| RecordSummary::from(&record))
                    .map_err(WalkError::from)
            });
            walk(records, &header, options)?
        }
        _ if options.config.validate_compressed => {
            let limits = DecodeLimits::for_message_bytes_max(options.config.max_message_bytes);
            let decoder = Decoder::new(codec, records, limits)?;
            walk(
                RecordWalker::new(decoder, header.record_count),
                &header,
                options,
            )?
        }
        // Nobody has looked at the records: the header is all there is.
        _ => header.max_timestamp,
    };
    Ok(store_timestamps(bytes, &header, largest, options))
}

fn check_size(
    bytes: &[u8],
    header: &BatchHeader,
    options: &ValidationOptions<'_>,
) -> Result<(), ValidationError> {
    let (have, need) = (bytes.len(), header.total_bytes());
    if have != need {
        return Err(ValidationError::Corrupt(BatchError::Truncated {
            have,
            need,
        }));
    }
    if options.origin == AppendOrigin::Replica {
        return Ok(());
    }
    if options.origin == AppendOrigin::Client && header.base_offset != Offset(0) {
        return Err(ValidationError::Header("the batch's base offset must be 0"));
    }
    let limit = options.config.max_message_bytes;
    if have > limit {
        return Err(ValidationError::TooLarge { bytes: have, limit });
    }
    let limit = options.config.segment_bytes;
    if have as u64 > limit {
        return Err(ValidationError::LargerThanSegment { bytes: have, limit });
    }
    Ok(())
}

fn check_header(header: &BatchHeader) -> Result<(), ValidationError> {
    let fault = |what| Err(ValidationError::Header(what));
    if header.last_offset_delta < 0 {
        return fault("the batch's last offset lies before its first");
    }
    if header.record_count <= 0 {
        return fault("the batch declares no records");
    }
    if i64::from(header.record_count) != i64::from(header.last_offset_delta) + 1 {
        return fault("the batch's offsets do not go with its number of records");
    }
    if header.attributes.is_control() {
        return fault("clients may not write control records");
    }
    if header.has_producer_id() && header.base_sequence.0 < 0 {
        return fault("a batch with producer id needs a sequence");
    }
    Ok(())
}

/// Walks all records and gives their largest timestamp.
fn walk(
    records: impl Iterator<Item = Result<RecordSummary, WalkError>>,
    header: &BatchHeader,
    options: &ValidationOptions<'_>,
) -> Result<TimestampMs, ValidationError> {
    let is_append_time = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
    let mut largest = TimestampMs::NONE;
    let mut faults = Vec::new();
    for (record, index) in records.zip(0i32..) {
        let record = record?;
        if record.offset_delta != index {
            return Err(ValidationError::OffsetDelta {
                index,
                found: record.offset_delta,
            });
        }
        // Under LogAppendTime readers take the batch's timestamp for every record.
        let timestamp = if is_append_time {
            header.max_timestamp
        } else {
            TimestampMs(header.base_timestamp.0.wrapping_add(record.timestamp_delta))
        };
        largest = largest.max(timestamp);
        let fault = record_fault(record, timestamp, is_append_time, options);
        if let Some(kind) = fault.filter(|_| faults.len() < RECORD_ERRORS_MAX) {
            faults.push(RecordFault {
                batch_index: index,
                kind,
            });
        }
    }
    if faults.is_empty() {
        Ok(largest)
    } else {
        Err(ValidationError::RecordFaults(faults))
    }
}

fn record_fault(
    record: RecordSummary,
    timestamp: TimestampMs,
    is_append_time: bool,
    options: &ValidationOptions<'_>,
) -> Option<RecordFaultKind> {
    let config = options.config;
    if config.compacted && !record.has_key {
        return Some(RecordFaultKind::MissingKey);
    }
    let is_judged =
        config.timestamp_type == TimestampType::CreateTime && timestamp != TimestampMs::NONE;
    if !is_judged {
        return is_append_time.then_some(RecordFaultKind::TimestampType);
    }
    let oldest = TimestampMs(options.now.0.saturating_sub(config.timestamp_before_max_ms));
    let newest = TimestampMs(options.now.0.saturating_add(config.timestamp_after_max_ms));
    let is_within = oldest <= timestamp && timestamp <= newest;
    (!is_within).then_some(RecordFaultKind::Timestamp {
        timestamp,
        oldest,
        newest,
    })
}

/// Writes timestamp type and largest timestamp, and the checksum if either changed.
fn store_timestamps(
    bytes: &mut [u8],
    header: &BatchHeader,
    largest: TimestampMs,
    options: &ValidationOptions<'_>,
) -> ValidatedBatch {
    let is_append_time = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
    let wants_append_time = options.config.timestamp_type == TimestampType::LogAppendTime;
    let timestamp = if wants_append_time {
        options.now
    } else {
        largest
    };
    let is_rewritten = is_append_time != wants_append_time || header.max_timestamp != timestamp;
    if is_rewritten {
        if wants_append_time {
            batch::set_log_append_time(bytes, timestamp);
        } else {
            batch::clear_timestamp_type(bytes);
            batch::set_max_timestamp(bytes, timestamp);
        }
        batch::recompute_crc(bytes);
    }
    ValidatedBatch {
        // What was just written is a header.
        header: BatchHeader::parse(bytes).unwrap_or(*header),
        log_append_time: if wants_append_time {
            options.now
        } else {
            TimestampMs::NONE
        },
        is_rewritten,
    }
}
