//! Compressing a batch anew, where a topic's `compression.type` names another codec than the
//! producer used. CPU work, to be done off the shard for large batches.

use bytes::BytesMut;

use super::error::ValidationError;
use crate::base::time::{TimestampMs, TimestampType};
use crate::log::config::LogConfig;
use crate::wire::compression::{Codec, DecodeLimits, Decoder};
use crate::wire::record::RecordIter;
use crate::wire::record_batch::{BatchBuilder, BatchHeader, HEADER_BYTES, NewHeader, NewRecord};

/// The codec that the topic wants, where it is not the batch's own. Control batches stay as they
/// are.
#[must_use]
pub fn wants_recompression(header: &BatchHeader, config: &LogConfig) -> Option<Codec> {
    let wanted = config.compression.and_then(Codec::from_id)?;
    let is_other = header.attributes.codec() != Ok(wanted);
    (is_other && !header.attributes.is_control()).then_some(wanted)
}

/// Compresses a validated batch anew with `codec`. Base offset, leader epoch, producer, flags and
/// timestamps stay; records and headers keep their order.
///
/// # Errors
/// [`ValidationError::TooLarge`] when the new batch is larger than `max.message.bytes`, as in
/// Kafka; those of decoding, where the batch had not been validated.
pub fn recompress(
    bytes: &[u8],
    codec: Codec,
    config: &LogConfig,
) -> Result<BytesMut, ValidationError> {
    let header = BatchHeader::parse(bytes).map_err(ValidationError::Corrupt)?;
    let own = header
        .attributes
        .codec()
        .map_err(ValidationError::Corrupt)?;
    let compressed = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let limits = DecodeLimits::for_message_bytes_max(config.max_message_bytes);
    let mut records = Vec::new();
    Decoder::new(own, compressed, limits)?.read_to_end(&mut records)?;

    let mut builder = builder_like(&header).compressed(codec, config.compression_level);
    let mut headers: Vec<NewHeader<'_>> = Vec::new();
    for record in RecordIter::new(&records, header.record_count) {
        let record = record.map_err(ValidationError::Records)?;
        headers.clear();
        headers.extend(record.headers.iter());
        let timestamp = header.base_timestamp.0.wrapping_add(record.timestamp_delta);
        builder.append_at(
            record.offset_delta,
            NewRecord {
                timestamp: TimestampMs(timestamp),
                key: record.key,
                value: record.value,
                headers: &headers,
            },
        );
    }
    let batch = builder.build()?;
    let limit = config.max_message_bytes;
    if batch.len() > limit {
        return Err(ValidationError::TooLarge {
            bytes: batch.len(),
            limit,
        });
    }
    Ok(batch)
}

fn builder_like(header: &BatchHeader) -> BatchBuilder {
    let mut builder = BatchBuilder::new(header.base_offset)
        .leader_epoch(header.leader_epoch)
        .producer(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
        )
        .base_timestamp(header.base_timestamp);
    if header.attributes.is_transactional() {
        builder = builder.transactional();
    }
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        builder = builder.log_append_time(header.max_timestamp);
    }
    builder
}
