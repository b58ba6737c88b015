//! What is checked of a partition's records before they leave the connection that read them
//! (`ProduceRequest.validateRecords`, `ByteBufferLogInputStream`).

use super::error::ValidationError;
use crate::base::ids::ApiVersion;
use crate::wire::compression::Codec;
use crate::wire::record_batch::{
    BATCH_OVERHEAD_BYTES, BatchError, BatchHeader, LENGTH_AT, MAGIC_AT,
};

/// zstd is allowed from this Produce version on (KIP-110).
const ZSTD_FROM: ApiVersion = ApiVersion(7);
/// Kafka takes no batch length below the smallest record of its oldest format
/// (`LegacyRecord.RECORD_OVERHEAD_V0`).
const LENGTH_MIN: i32 = 14;
/// The newest format that Kafka knows.
const MAGIC_MAX: i8 = 2;

/// Checks the records of one partition in a Produce request: exactly one whole batch of format v2.
/// Gives its header. Bytes after it that are no whole batch are allowed and are to be cut off, as
/// Kafka does: the batch's length is [`BatchHeader::total_bytes`].
///
/// # Errors
/// [`ValidationError`] with Kafka's code.
pub fn check_produced(
    records: Option<&[u8]>,
    version: ApiVersion,
) -> Result<BatchHeader, ValidationError> {
    let records = records.ok_or(ValidationError::NullRecords)?;
    let (batch, rest) = next_batch(records)?.ok_or(ValidationError::NoBatch)?;
    if let Some(magic @ (0 | 1)) = batch.get(MAGIC_AT) {
        return Err(ValidationError::OldMagic(magic.cast_signed()));
    }
    let header = BatchHeader::parse(batch).map_err(ValidationError::Corrupt)?;
    if version < ZSTD_FROM && header.attributes.codec() == Ok(Codec::Zstd) {
        return Err(ValidationError::ZstdTooEarly);
    }
    if next_batch(rest)?.is_some() {
        return Err(ValidationError::SeveralBatches);
    }
    Ok(header)
}

/// Checks that a transactional batch comes in a request with a transactional id. Kafka looks at
/// this before anything else and then refuses the whole request.
///
/// # Errors
/// [`ValidationError::TransactionalIdMissing`].
pub fn check_transactional(
    header: &BatchHeader,
    transactional_id: Option<&str>,
) -> Result<(), ValidationError> {
    if header.attributes.is_transactional() && transactional_id.is_none() {
        return Err(ValidationError::TransactionalIdMissing);
    }
    Ok(())
}

/// A batch and what follows it.
type Split<'a> = (&'a [u8], &'a [u8]);

/// The batch at the start of `bytes`, by its claimed length, and what follows. `None` when the
/// bytes end before it does.
fn next_batch(bytes: &[u8]) -> Result<Option<Split<'_>>, ValidationError> {
    if bytes.len() < BATCH_OVERHEAD_BYTES {
        return Ok(None);
    }
    let length = bytes.get(LENGTH_AT..BATCH_OVERHEAD_BYTES);
    let length = length
        .and_then(|length| length.try_into().ok())
        .map(i32::from_be_bytes);
    let length = length.unwrap_or_default();
    if length < LENGTH_MIN {
        return Err(ValidationError::Corrupt(BatchError::Length(length)));
    }
    let Some(magic) = bytes.get(MAGIC_AT).map(|magic| magic.cast_signed()) else {
        return Ok(None);
    };
    if !(0..=MAGIC_MAX).contains(&magic) {
        return Err(ValidationError::Corrupt(BatchError::Magic(magic)));
    }
    let total = usize::try_from(length)
        .unwrap_or(usize::MAX)
        .saturating_add(BATCH_OVERHEAD_BYTES);
    Ok(bytes.split_at_checked(total))
}
