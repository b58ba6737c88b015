//! What a partition's records must be before they go to its owner: one whole batch of magic 2, and
//! no part of a transaction, which there are none of yet.

use bytes::BytesMut;

use crate::base::error_code::ErrorCode;
use crate::base::ids::ApiVersion;
use crate::log::validation::{check_produced, check_transactional};

/// Checks the batch's header alone, the log judges the rest; cuts off what follows the batch and is
/// none, as Kafka does.
pub fn check_records(
    version: i16,
    transactional_id: Option<&str>,
    records: &mut BytesMut,
) -> Result<(), ErrorCode> {
    let checked = check_produced(Some(records), ApiVersion(version));
    let header = checked.map_err(|error| error.error_code())?;
    check_transactional(&header, transactional_id).map_err(|error| error.error_code())?;
    if header.attributes.is_transactional() {
        return Err(ErrorCode::INVALID_TXN_STATE);
    }
    records.truncate(header.total_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::compression::Codec;
    use crate::wire::record_batch::{BatchBuilder, NewRecord};

    fn built(builder: BatchBuilder) -> BytesMut {
        let mut builder = builder;
        builder.append(NewRecord::default());
        builder.build().expect("a batch")
    }

    fn check(version: i16, bytes: &[u8]) -> Result<usize, ErrorCode> {
        let mut records = BytesMut::from(bytes);
        check_records(version, None, &mut records).map(|()| records.len())
    }

    #[test]
    fn exactly_one_whole_batch_of_magic_2_passes() {
        let good = built(BatchBuilder::default());
        let len = good.len();
        assert_eq!(check(3, &good), Ok(len));
        assert_eq!(check(9, &[]), Err(ErrorCode::INVALID_RECORD));
        assert_eq!(check(9, &good[..len - 1]), Err(ErrorCode::INVALID_RECORD));
        assert_eq!(check(9, &good.repeat(2)), Err(ErrorCode::INVALID_RECORD));
        let mut old = good.clone();
        old[16] = 1;
        assert_eq!(check(9, &old), Err(ErrorCode::INVALID_RECORD));
        let trailed = [&good[..], &[0; 11]].concat();
        assert_eq!(check(9, &trailed), Ok(len), "what is no batch is cut off");
    }

    #[test]
    fn zstd_needs_version_7_and_transactions_are_not_there() {
        let zstd = built(BatchBuilder::default().compressed(Codec::Zstd, None));
        let early = check(6, &zstd);
        assert_eq!(early, Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE));
        assert_eq!(check(7, &zstd), Ok(zstd.len()));
        let mut transactional = built(BatchBuilder::default().transactional());
        let code = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
        assert_eq!(check(9, &transactional), Err(code));
        let named = check_records(9, Some("id"), &mut transactional);
        assert_eq!(named, Err(ErrorCode::INVALID_TXN_STATE));
    }
}
