//! Batches of the metadata log: taken apart and put together. Pure.

use bytes::{Bytes, BytesMut};

use super::error::MetadataLogError;
use crate::base::ids::{LeaderEpoch, Offset};
use crate::base::time::TimestampMs;
use crate::cluster::records::MetadataRecord;
use crate::wire::compression::Codec;
use crate::wire::record::RecordIter;
use crate::wire::record_batch::{
    BatchBuilder, BatchHeader, ControlRecordType, HEADER_BYTES, NewRecord, parse_control_key,
    verify_crc,
};

/// Largest batch of the log, in bytes (`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`).
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What stands at the start of a window over a file.
#[derive(Debug)]
pub enum Scan {
    /// A whole, undamaged batch of this header.
    Batch(BatchHeader),
    /// As many bytes are needed to tell.
    More(usize),
    /// No batch, and no further byte would make it one.
    Bad(String),
}

/// Looks at the start of `window`.
#[must_use]
pub fn scan(window: &[u8]) -> Scan {
    if window.len() < HEADER_BYTES {
        return Scan::More(HEADER_BYTES);
    }
    let header = match BatchHeader::parse(window) {
        Ok(header) => header,
        Err(fault) => return Scan::Bad(fault.to_string()),
    };
    let len = header.total_bytes();
    if len > BATCH_BYTES_MAX {
        return Scan::Bad(format!("a batch claims {len} bytes"));
    }
    let Some(batch) = window.get(..len) else {
        return Scan::More(len);
    };
    match verify_crc(batch) {
        Ok(()) => Scan::Batch(header),
        Err(fault) => Scan::Bad(fault.to_string()),
    }
}

/// Whether a whole batch with an offset past `from` stands anywhere in `bytes`.
#[must_use]
pub fn holds_a_batch_past(bytes: &[u8], from: Offset) -> bool {
    (0..bytes.len().saturating_sub(HEADER_BYTES)).any(|at| {
        let window = bytes.get(at..).unwrap_or_default();
        let near = from..=from.plus(i64::from(i32::MAX));
        let is_near = BatchHeader::parse(window).is_ok_and(|head| near.contains(&head.base_offset));
        is_near && matches!(scan(window), Scan::Batch(_))
    })
}

/// One record of a batch.
#[derive(Debug)]
pub enum Entry {
    /// A metadata record.
    Data(Offset, MetadataRecord),
    /// A record that KRaft keeps for itself.
    Control(Offset, ControlRecordType, Bytes),
}

/// The records of a whole batch whose checksum is right.
pub fn entries(
    header: &BatchHeader,
    batch: &Bytes,
) -> Result<Result<Vec<Entry>, String>, MetadataLogError> {
    if !matches!(header.attributes.codec(), Ok(Codec::None)) {
        return Ok(Err("a batch is compressed".to_owned()));
    }
    let records = batch.get(HEADER_BYTES..).unwrap_or_default();
    let mut entries = Vec::new();
    for record in RecordIter::new(records, header.record_count) {
        let record = match record {
            Ok(record) => record,
            Err(fault) => return Ok(Err(fault.to_string())),
        };
        let offset = header.base_offset.plus(i64::from(record.offset_delta));
        let value = batch.slice_ref(record.value.unwrap_or_default());
        if header.attributes.is_control() {
            let kind = record.key.and_then(parse_control_key);
            let kind = kind.unwrap_or(ControlRecordType::Unknown(-1));
            entries.push(Entry::Control(offset, kind, value));
        } else {
            let record = MetadataRecord::decode(value)
                .map_err(|source| MetadataLogError::Record { offset, source })?;
            entries.push(Entry::Data(offset, record));
        }
    }
    Ok(Ok(entries))
}

/// One batch of `records`, the first of which gets `base_offset`.
pub fn build(
    base_offset: Offset,
    epoch: LeaderEpoch,
    now: TimestampMs,
    records: &[MetadataRecord],
) -> Result<BytesMut, MetadataLogError> {
    let values = records.iter().map(MetadataRecord::encode);
    let values: Vec<Bytes> = values.collect::<Result<_, _>>()?;
    of_values(base_offset, epoch, now, &values)
}

/// One batch of records that are encoded.
pub fn of_values(
    base_offset: Offset,
    epoch: LeaderEpoch,
    now: TimestampMs,
    values: &[Bytes],
) -> Result<BytesMut, MetadataLogError> {
    let mut builder = BatchBuilder::new(base_offset).leader_epoch(epoch);
    for value in values {
        builder.append(NewRecord {
            timestamp: now,
            key: None,
            value: Some(value),
            headers: &[],
        });
    }
    let limit = BATCH_BYTES_MAX;
    let bytes = builder.uncompressed_bytes().saturating_add(HEADER_BYTES);
    if bytes > limit {
        return Err(MetadataLogError::TooLarge { bytes, limit });
    }
    // Only a codec's library could fail, and there is none.
    builder
        .build()
        .map_err(|_| MetadataLogError::TooLarge { bytes, limit })
}

#[cfg(test)]
#[path = "batch_test.rs"]
mod batch_test;
