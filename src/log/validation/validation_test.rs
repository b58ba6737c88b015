use bytes::BytesMut;
use proptest::prelude::*;

use super::*;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{ApiVersion, Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::time::{TimestampMs, TimestampType};
use crate::log::config::{AppendOrigin, LogConfig};
use crate::wire::compression::{Codec, DecodeLimits, Decoder};
use crate::wire::record::RecordIter;
use crate::wire::record_batch::{
    BatchBuilder, BatchHeader, EndTransactionMarker, HEADER_BYTES, MarkerKind, NewRecord,
    recompute_crc, set_max_timestamp, verify_crc,
};

const NOW: i64 = 1_700_000_000_000;

fn batch(codec: Codec, timestamps: &[i64]) -> BytesMut {
    let mut builder = BatchBuilder::default().compressed(codec, None);
    for timestamp in timestamps {
        builder.append(NewRecord {
            timestamp: TimestampMs(*timestamp),
            key: Some(b"k"),
            value: Some(b"v"),
            headers: &[(b"h", None), (b"h", Some(b"twice"))],
        });
    }
    builder.build().unwrap()
}

fn judge(bytes: &mut BytesMut, config: &LogConfig) -> Result<ValidatedBatch, ErrorCode> {
    judge_from(bytes, config, AppendOrigin::Client)
}

fn judge_from(
    bytes: &mut BytesMut,
    config: &LogConfig,
    origin: AppendOrigin,
) -> Result<ValidatedBatch, ErrorCode> {
    let options = ValidationOptions {
        origin,
        config,
        now: TimestampMs(NOW),
    };
    validate(bytes, &options).map_err(|error| error.error_code())
}

#[test]
fn a_good_batch_is_not_touched() {
    for codec in Codec::ALL {
        let mut bytes = batch(codec, &[NOW, NOW - 1]);
        let before = bytes.clone();
        let validated = judge(&mut bytes, &LogConfig::default()).unwrap();
        assert!(!validated.is_rewritten);
        assert_eq!(validated.header.record_count, 2);
        assert_eq!(validated.log_append_time, TimestampMs::NONE);
        assert_eq!(bytes, before);
    }
}

#[test]
fn a_wrong_largest_timestamp_is_replaced_and_sealed() {
    for codec in Codec::ALL {
        for claimed in [-1, NOW + 7, 0] {
            let mut bytes = batch(codec, &[NOW - 3, NOW, NOW - 9]);
            set_max_timestamp(&mut bytes, TimestampMs(claimed));
            recompute_crc(&mut bytes);
            let validated = judge(&mut bytes, &LogConfig::default()).unwrap();
            assert!(validated.is_rewritten);
            assert_eq!(validated.header.max_timestamp, TimestampMs(NOW));
            verify_crc(&bytes).unwrap();
        }
    }
}

#[test]
fn sizes_are_taken_at_their_limit_and_refused_one_past_it() {
    let bytes = batch(Codec::None, &[NOW]);
    let at = |max_message_bytes, segment_bytes| {
        let config = LogConfig {
            max_message_bytes,
            segment_bytes,
            ..LogConfig::default()
        };
        judge(&mut bytes.clone(), &config).map(|_| ())
    };
    let len = bytes.len();
    assert_eq!(at(len, len as u64), Ok(()));
    assert_eq!(at(len - 1, len as u64), Err(ErrorCode::MESSAGE_TOO_LARGE));
    assert_eq!(
        at(len, len as u64 - 1),
        Err(ErrorCode::RECORD_LIST_TOO_LARGE)
    );
}

#[test]
fn timestamps_are_taken_at_their_limits_and_refused_one_past_them() {
    let config = LogConfig {
        timestamp_before_max_ms: 50,
        timestamp_after_max_ms: 70,
        ..LogConfig::default()
    };
    for codec in [Codec::None, Codec::Lz4] {
        for (timestamp, is_good) in [
            (NOW - 50, true),
            (NOW - 51, false),
            (NOW + 70, true),
            (NOW + 71, false),
            (-1, true),
        ] {
            let judged = judge(&mut batch(codec, &[NOW, timestamp]), &config).map(|_| ());
            let expected = if is_good {
                Ok(())
            } else {
                Err(ErrorCode::INVALID_TIMESTAMP)
            };
            assert_eq!(judged, expected, "{timestamp}");
        }
    }
    // Limits as large as Kafka's default reach over every timestamp without overflow.
    let unlimited = LogConfig {
        timestamp_after_max_ms: i64::MAX,
        ..LogConfig::default()
    };
    for timestamp in [0, i64::MAX] {
        assert!(
            judge(&mut batch(Codec::None, &[timestamp]), &unlimited).is_ok(),
            "{timestamp}"
        );
    }
}

#[test]
fn faulty_records_are_named_up_to_a_limit() {
    let config = LogConfig {
        timestamp_after_max_ms: 0,
        ..LogConfig::default()
    };
    for (count, named) in [
        (1, 1),
        (RECORD_ERRORS_MAX, RECORD_ERRORS_MAX),
        (150, RECORD_ERRORS_MAX),
    ] {
        let mut bytes = batch(Codec::None, &vec![NOW + 1; count]);
        let options = ValidationOptions {
            origin: AppendOrigin::Client,
            config: &config,
            now: TimestampMs(NOW),
        };
        let error = validate(&mut bytes, &options).unwrap_err();
        assert_eq!(error.record_faults().len(), named);
        assert_eq!(
            error.record_faults()[named - 1].batch_index,
            named as i32 - 1
        );
    }
}

#[test]
fn the_brokers_time_replaces_the_clients_without_touching_records() {
    let config = LogConfig {
        timestamp_type: TimestampType::LogAppendTime,
        ..LogConfig::default()
    };
    for codec in Codec::ALL {
        let mut bytes = batch(codec, &[5, 9]);
        let records = bytes[HEADER_BYTES..].to_vec();
        let validated = judge(&mut bytes, &config).unwrap();
        assert_eq!(validated.log_append_time, TimestampMs(NOW));
        assert_eq!(validated.header.max_timestamp, TimestampMs(NOW));
        assert_eq!(bytes[HEADER_BYTES..], records);
        verify_crc(&bytes).unwrap();
    }
}

#[test]
fn markers_pass_from_their_coordinator_alone() {
    let marker = EndTransactionMarker {
        kind: MarkerKind::Abort,
        coordinator_epoch: 1,
    };
    let bytes = marker
        .batch(ProducerId(1), ProducerEpoch(0), TimestampMs(NOW))
        .unwrap();
    let config = LogConfig::default();
    let from = |origin| judge_from(&mut bytes.clone(), &config, origin).map(|_| ());
    assert_eq!(from(AppendOrigin::Marker), Ok(()));
    assert_eq!(from(AppendOrigin::Client), Err(ErrorCode::INVALID_RECORD));
}

#[test]
fn replicas_copy_whatever_is_whole() {
    let config = LogConfig {
        max_message_bytes: 1,
        timestamp_type: TimestampType::LogAppendTime,
        ..LogConfig::default()
    };
    let mut bytes = batch(Codec::Gzip, &[NOW, 5]);
    let before = bytes.clone();
    assert!(judge_from(&mut bytes, &config, AppendOrigin::Replica).is_ok());
    assert_eq!(bytes, before);
    bytes[30] ^= 1;
    let broken = judge_from(&mut bytes, &config, AppendOrigin::Replica).map(|_| ());
    assert_eq!(broken, Err(ErrorCode::CORRUPT_MESSAGE));
}

#[test]
fn unwalked_batches_keep_their_header() {
    let config = LogConfig {
        validate_compressed: false,
        ..LogConfig::default()
    };
    let mut bytes = batch(Codec::Gzip, &[NOW]);
    let end = bytes.len();
    bytes[end - 9] ^= 0xff;
    recompute_crc(&mut bytes);
    assert!(judge(&mut bytes, &config).is_ok());
    let answer = judge(&mut bytes, &LogConfig::default()).map(|_| ());
    assert_eq!(answer, Err(ErrorCode::UNKNOWN_SERVER_ERROR));
}

#[test]
fn only_large_batches_that_need_decoding_are_heavy() {
    let heavy = |codec, bytes: usize, config: &LogConfig| {
        let mut header = BatchHeader::parse(&batch(codec, &[NOW])).unwrap();
        header.batch_length = bytes as i32 - 12;
        is_heavy(&header, config)
    };
    let config = LogConfig::default();
    assert!(!heavy(Codec::None, 10 * INLINE_WALK_BYTES_MAX, &config));
    assert!(!heavy(Codec::Zstd, INLINE_WALK_BYTES_MAX, &config));
    assert!(heavy(Codec::Zstd, INLINE_WALK_BYTES_MAX + 1, &config));
    let to_gzip = LogConfig {
        compression: Some(Codec::Gzip.id()),
        ..LogConfig::default()
    };
    assert!(heavy(Codec::None, INLINE_WALK_BYTES_MAX + 1, &to_gzip));
    let trusting = LogConfig {
        validate_compressed: false,
        ..LogConfig::default()
    };
    assert!(!heavy(Codec::Zstd, INLINE_WALK_BYTES_MAX + 1, &trusting));
}

#[test]
fn recompressed_batches_hold_to_the_size_limit() {
    // Compressible: its gzip is small, its plain form is not.
    let mut builder = BatchBuilder::default().compressed(Codec::Gzip, None);
    let value = vec![1; 5_000];
    builder.append(NewRecord {
        value: Some(&value),
        ..NewRecord::default()
    });
    let bytes = builder.build().unwrap();
    let limited = |max_message_bytes| {
        let config = LogConfig {
            max_message_bytes,
            ..LogConfig::default()
        };
        recompress(&bytes, Codec::None, &config).map(|batch| batch.len())
    };
    let len = limited(10_000).unwrap();
    assert_eq!(limited(len).unwrap(), len);
    let error = limited(len - 1).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::MESSAGE_TOO_LARGE);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn recompression_keeps_all_but_the_codec(
        from in proptest::sample::select(Codec::ALL.to_vec()),
        to in proptest::sample::select(Codec::ALL.to_vec()),
        timestamps in proptest::collection::vec(NOW - 1_000..NOW, 1..30),
        is_stamped: bool,
    ) {
        let timestamp_type =
            if is_stamped { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
        let config = LogConfig { timestamp_type, ..LogConfig::default() };
        let mut bytes = batch(from, &timestamps);
        judge(&mut bytes, &config).unwrap();
        let again = recompress(&bytes, to, &config).unwrap();
        verify_crc(&again).unwrap();
        let plain = |bytes: &[u8]| {
            let header = BatchHeader::parse(bytes).unwrap();
            let codec = header.attributes.codec().unwrap();
            let mut records = Vec::new();
            let compressed = &bytes[HEADER_BYTES..];
            let mut decoder = Decoder::new(codec, compressed, DecodeLimits::default()).unwrap();
            decoder.read_to_end(&mut records).unwrap();
            records
        };
        prop_assert_eq!(plain(&again), plain(&bytes));
        let mut header = BatchHeader::parse(&again).unwrap();
        prop_assert_eq!(header.attributes.codec(), Ok(to));
        let original = BatchHeader::parse(&bytes).unwrap();
        header.attributes = original.attributes;
        header.crc = original.crc;
        header.batch_length = original.batch_length;
        prop_assert_eq!(header, original);
    }

    /// Whatever arrives: no panic, and what passes can be read back whole.
    #[test]
    fn what_passes_can_be_read(
        codec in proptest::sample::select(Codec::ALL.to_vec()),
        count in 1usize..6,
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        is_sealed: bool,
    ) {
        let mut bytes = batch(codec, &vec![NOW; count]);
        for (at, mask) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        if is_sealed {
            recompute_crc(&mut bytes);
        }
        let Ok(header) = check_produced(Some(&bytes), ApiVersion(9)) else { return Ok(()) };
        bytes.truncate(header.total_bytes());
        let before = bytes.clone();
        let Ok(validated) = judge(&mut bytes, &LogConfig::default()) else {
            prop_assert_eq!(bytes, before, "a refused batch is as it came");
            return Ok(());
        };
        verify_crc(&bytes).unwrap();
        let mut records = Vec::new();
        let codec = validated.header.attributes.codec().unwrap();
        Decoder::new(codec, &bytes[HEADER_BYTES..], DecodeLimits::default())
            .unwrap()
            .read_to_end(&mut records)
            .unwrap();
        let read = RecordIter::new(&records, validated.header.record_count);
        let read: Vec<_> = read.collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read.len(), header.record_count as usize);
    }
}

#[test]
fn requests_are_held_to_one_batch_and_their_version() {
    let one = batch(Codec::Zstd, &[NOW]);
    let code = |records: Option<&[u8]>, version| {
        check_produced(records, ApiVersion(version)).map_err(|error| error.error_code())
    };
    assert_eq!(code(None, 9), Err(ErrorCode::INVALID_RECORD));
    assert_eq!(code(Some(&[]), 9), Err(ErrorCode::INVALID_RECORD));
    assert_eq!(
        code(Some(&one), 6),
        Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE)
    );
    let header = code(Some(&one), 7).unwrap();
    assert_eq!(header.total_bytes(), one.len());
    let two = [&one[..], &one[..]].concat();
    assert_eq!(code(Some(&two), 7), Err(ErrorCode::INVALID_RECORD));
    let mut header = header;
    assert!(check_transactional(&header, None).is_ok());
    header.attributes.0 |= 0x10;
    let error = check_transactional(&header, None).unwrap_err();
    assert_eq!(
        error.error_code(),
        ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    );
    assert!(check_transactional(&header, Some("id")).is_ok());
    let id = (ProducerId(1), ProducerEpoch(0), Sequence(-1));
    let mut builder = BatchBuilder::new(Offset(0)).producer(id.0, id.1, id.2);
    builder.append(NewRecord::default());
    let mut bytes = builder.build().unwrap();
    assert_eq!(
        judge(&mut bytes, &LogConfig::default()),
        Err(ErrorCode::INVALID_RECORD)
    );
}
