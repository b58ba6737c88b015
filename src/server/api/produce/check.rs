//! What the header of a partition's records must be (`ProduceRequest.validateRecords`).

use crate::base::error_code::ErrorCode;

/// Bytes before what a batch's length counts.
const LOG_OVERHEAD: usize = 12;
/// Shortest length of any batch (`LegacyRecord.RECORD_OVERHEAD_V0`).
const LENGTH_MIN: i32 = 14;
const MAGIC_AT: usize = 16;
const ATTRIBUTES_AT: usize = 21;
const ZSTD: u8 = 4;
const TRANSACTIONAL: u8 = 0x10;

/// Exactly one whole batch of magic 2, zstd only from version 7; the log judges the rest.
pub fn check_records(version: i16, records: &[u8]) -> Result<(), ErrorCode> {
    let Some(length) = records
        .get(8..LOG_OVERHEAD)
        .and_then(|bytes| bytes.try_into().ok())
    else {
        return Err(ErrorCode::INVALID_RECORD);
    };
    let length = i32::from_be_bytes(length);
    if length < LENGTH_MIN {
        return Err(ErrorCode::CORRUPT_MESSAGE);
    }
    let whole = usize::try_from(length).unwrap_or(0) + LOG_OVERHEAD;
    if records.len() < whole {
        return Err(ErrorCode::INVALID_RECORD);
    }
    if records.get(MAGIC_AT) != Some(&2) {
        return Err(ErrorCode::INVALID_RECORD);
    }
    let Some(attributes) = records
        .get(ATTRIBUTES_AT..)
        .and_then(<[u8]>::first_chunk::<2>)
    else {
        return Err(ErrorCode::CORRUPT_MESSAGE);
    };
    let attributes = attributes[1];
    if attributes & 0x07 == ZSTD && version < 7 {
        return Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    }
    if records.len() > whole {
        return Err(ErrorCode::INVALID_RECORD);
    }
    if attributes & TRANSACTIONAL != 0 {
        return Err(ErrorCode::INVALID_TXN_STATE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(magic: u8, attributes: u8) -> Vec<u8> {
        let mut bytes = vec![0; 61];
        bytes[8..12].copy_from_slice(&49i32.to_be_bytes());
        bytes[MAGIC_AT] = magic;
        bytes[22] = attributes;
        bytes
    }

    #[test]
    fn exactly_one_whole_batch_of_magic_2_passes() {
        assert_eq!(check_records(3, &batch(2, 0)), Ok(()));
        assert_eq!(check_records(9, &[]), Err(ErrorCode::INVALID_RECORD));
        let short = batch(2, 0);
        let cut = check_records(9, &short[..60]);
        assert_eq!(cut, Err(ErrorCode::INVALID_RECORD));
        let mut long = batch(2, 0);
        long.push(0);
        assert_eq!(check_records(9, &long), Err(ErrorCode::INVALID_RECORD));
        assert_eq!(
            check_records(9, &batch(1, 0)),
            Err(ErrorCode::INVALID_RECORD)
        );
    }

    #[test]
    fn a_length_below_the_smallest_record_is_corrupt() {
        let mut bytes = batch(2, 0);
        bytes[8..12].copy_from_slice(&13i32.to_be_bytes());
        assert_eq!(check_records(9, &bytes), Err(ErrorCode::CORRUPT_MESSAGE));
        bytes[8..12].copy_from_slice(&(-1i32).to_be_bytes());
        assert_eq!(check_records(9, &bytes), Err(ErrorCode::CORRUPT_MESSAGE));
        // At the limit there are no attributes to look at.
        bytes[8..12].copy_from_slice(&14i32.to_be_bytes());
        assert_eq!(check_records(9, &bytes), Err(ErrorCode::INVALID_RECORD));
    }

    #[test]
    fn zstd_needs_version_7_and_transactions_are_not_there() {
        let zstd = batch(2, ZSTD);
        assert_eq!(
            check_records(6, &zstd),
            Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE)
        );
        assert_eq!(check_records(7, &zstd), Ok(()));
        let transactional = check_records(9, &batch(2, TRANSACTIONAL));
        assert_eq!(transactional, Err(ErrorCode::INVALID_TXN_STATE));
    }
}
