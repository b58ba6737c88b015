//! What is fuzzed, as plain functions that panic on a fault. The fuzzing binaries call them, and so
//! does `tests/fuzz_findings.rs` on stable Rust, with what fuzzing once found.

use bytes::{Bytes, BytesMut};
use coreline::base::ids::{ApiVersion, Offset};
use coreline::base::time::{TimestampMs, TimestampType};
use coreline::log::format::damage_mark::DamageMark;
use coreline::log::format::epoch_cache::EpochCache;
use coreline::log::format::file_names::{LogFileName, parse_partition_folder};
use coreline::log::format::meta_properties::MetaProperties;
use coreline::log::format::offset_index::OffsetIndex;
use coreline::log::format::time_index::TimeIndex;
use coreline::log::format::transaction_index::TransactionIndex;
use coreline::log::format::{
    checkpoint_files, clean_shutdown, partition_metadata, producer_snapshot,
};
use coreline::log::validation::{
    ValidationOptions, check_produced, recompress, validate, wants_recompression,
};
use coreline::log::{AppendOrigin, LogConfig};
use coreline::wire::any_request::read_any;
use coreline::wire::api;
use coreline::wire::compression::{Codec, DecodeLimits, Decoder, compress};
use coreline::wire::frame::{FrameLimits, split};
use coreline::wire::primitives::Writer;
use coreline::wire::record::RecordIter;
use coreline::wire::record_batch::{
    BatchBuilder, BatchHeader, EndTransactionMarker, HEADER_BYTES, recompute_crc, split_batches,
    verify_crc,
};
use coreline::wire::record_walk::{RecordSummary, RecordWalker};

/// A stream of frames: each whole one is read as a request, written, and read again alike.
pub fn requests(bytes: &[u8]) {
    let limits = FrameLimits::authenticated(1024 * 1024);
    let mut stream = BytesMut::from(bytes);
    while let Ok(Some(frame)) = split(&mut stream, &limits) {
        one_request(&frame);
    }
    // Most mutations spoil the length: the bytes are also tried without one.
    one_request(bytes);
}

fn one_request(frame: &[u8]) {
    let Ok(read) = read_any(BytesMut::from(frame)) else {
        return;
    };
    let Some(body) = read.body else { return };
    let body = body.expect("what was read can be written");
    let api = api::find(read.header.api_key).expect("a request that was read is served");
    let mut writer = Writer::default();
    read.header
        .encode(api, &mut writer)
        .expect("a header that was read can be written");
    let mut again = BytesMut::from(writer.into_bytes().as_ref());
    again.extend_from_slice(&body);
    let again = read_any(again).expect("what we wrote can be read");
    assert_eq!(again.header, read.header);
    let again = again.body.expect("served").expect("writable");
    assert_eq!(again, body, "a second reading differs");
}

/// The first two bytes choose what the rest is: a batch as it came, a batch whose checksum is made
/// good, a compressed payload, or records that are compressed for it.
pub fn record_batches(bytes: &[u8]) {
    let [kind, choice, rest @ ..] = bytes else {
        return;
    };
    let codec = Codec::ALL[usize::from(choice % 5)];
    let mut batch = match kind % 4 {
        0 => BytesMut::from(rest),
        1 => BytesMut::from(rest),
        2 => payload(codec, *choice, rest),
        _ => {
            let mut compressed = Vec::new();
            compress(codec, None, rest, &mut compressed).expect("any bytes compress");
            payload(codec, *choice, &compressed)
        }
    };
    if kind % 4 != 0 && batch.len() >= HEADER_BYTES {
        let length = (batch.len() - 12) as i32;
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        recompute_crc(&mut batch);
    }
    for piece in split_batches(Bytes::copy_from_slice(&batch)).flatten() {
        let _ = verify_crc(&piece.bytes);
        let records = RecordIter::new(&piece.bytes[HEADER_BYTES..], piece.header.record_count);
        for record in records.flatten() {
            assert_eq!(record.headers.iter().count(), record.headers.len());
            if let (Some(key), Some(value)) = (record.key, record.value) {
                let _ = EndTransactionMarker::parse(key, value);
            }
        }
    }
    judge(batch, *choice);
}

/// A batch of as many records as the choice says, whatever stands after its header.
fn payload(codec: Codec, choice: u8, bytes: &[u8]) -> BytesMut {
    let count = i32::from(choice / 5 % 8);
    let empty = BatchBuilder::default()
        .compressed(codec, None)
        .build()
        .expect("it builds");
    let mut batch = BytesMut::from(&empty[..HEADER_BYTES]);
    batch.extend_from_slice(bytes);
    batch[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    batch[57..61].copy_from_slice(&count.to_be_bytes());
    batch
}

fn judge(mut batch: BytesMut, choice: u8) {
    let Ok(header) = check_produced(Some(&batch), ApiVersion(i16::from(choice % 16))) else {
        return;
    };
    batch.truncate(header.total_bytes());
    let is_stamped = choice & 0x80 != 0;
    let config = LogConfig {
        compacted: choice & 0x40 != 0,
        timestamp_type: if is_stamped {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        },
        compression: (choice & 0x20 != 0).then_some(choice % 5),
        ..LogConfig::default()
    };
    let origin = AppendOrigin::Client;
    let options = ValidationOptions {
        origin,
        config: &config,
        now: TimestampMs(1_000),
    };
    let before = batch.clone();
    let Ok(validated) = validate(&mut batch, &options) else {
        assert_eq!(batch, before, "a refused batch is as it came");
        return;
    };
    let summaries = readable(&batch);
    assert_eq!(summaries.len(), validated.header.record_count as usize);
    if let Some(codec) = wants_recompression(&validated.header, &config)
        && let Ok(again) = recompress(&batch, codec, &config)
    {
        assert_eq!(
            readable(&again),
            summaries,
            "recompression keeps the records"
        );
    }
}

/// What passed must be readable, by walking and by iterating alike.
fn readable(batch: &[u8]) -> Vec<RecordSummary> {
    verify_crc(batch).expect("a stored batch has a good checksum");
    let header = BatchHeader::parse(batch).expect("a stored batch has a header");
    let codec = header
        .attributes
        .codec()
        .expect("a stored batch has a codec");
    let limits = DecodeLimits::default();
    let compressed = &batch[HEADER_BYTES..];
    let mut records = Vec::new();
    let mut decoder = Decoder::new(codec, compressed, limits).expect("a stored batch decodes");
    decoder
        .read_to_end(&mut records)
        .expect("a stored batch decodes");
    let iterated: Vec<RecordSummary> = RecordIter::new(&records, header.record_count)
        .map(|record| RecordSummary::from(&record.expect("a stored record is whole")))
        .collect();
    let decoder = Decoder::new(codec, compressed, limits).expect("a stored batch decodes");
    let walked: Vec<RecordSummary> = RecordWalker::new(decoder, header.record_count)
        .map(|record| record.expect("a stored record is whole"))
        .collect();
    assert_eq!(walked, iterated);
    iterated
}

/// The first byte chooses the file, the rest are its bytes. What is read is written and read alike.
pub fn disk_files(bytes: &[u8]) {
    let [kind, bytes @ ..] = bytes else { return };
    match kind % 11 {
        0 => {
            if let Ok(index) = OffsetIndex::decode(Offset(5), bytes) {
                assert!(bytes.starts_with(&index.encode()));
                let _ = index.lookup(Offset(77));
            }
        }
        1 => {
            if let Ok(index) = TimeIndex::decode(Offset(5), bytes) {
                assert!(bytes.starts_with(&index.encode()));
                let _ = index.lookup(TimestampMs(77));
            }
        }
        2 => {
            if let Ok(index) = TransactionIndex::decode(Offset(5), bytes) {
                assert_eq!(index.encode(), bytes);
            }
        }
        3 => {
            // The checksum is made good, so that what lies behind it is reached too.
            let mut sealed = bytes.to_vec();
            if sealed.len() >= 6 {
                let crc = crc_of(&sealed[6..]);
                sealed[2..6].copy_from_slice(&crc);
            }
            if let Ok(states) = producer_snapshot::decode(&sealed) {
                let again = producer_snapshot::decode(&producer_snapshot::encode(&states));
                assert_eq!(again.expect("ours").len(), states.len());
                let _ = states.first_unstable_offset();
            }
        }
        4 => {
            if let Ok(cache) = EpochCache::decode(bytes) {
                assert_eq!(EpochCache::decode(&cache.encode()), Ok(cache));
            }
        }
        5 => {
            if let Ok(offsets) = checkpoint_files::decode(bytes) {
                assert_eq!(
                    checkpoint_files::decode(&checkpoint_files::encode(&offsets)),
                    Ok(offsets)
                );
            }
        }
        6 => {
            if let Ok(properties) = MetaProperties::decode(bytes) {
                assert_eq!(MetaProperties::decode(&properties.encode()), Ok(properties));
            }
        }
        7 => {
            if let Ok(topic_id) = partition_metadata::decode(bytes) {
                let again = partition_metadata::decode(&partition_metadata::encode(topic_id));
                assert_eq!(again, Ok(topic_id));
            }
        }
        8 => {
            if let Ok(Some(broker_epoch)) = clean_shutdown::decode(bytes) {
                let again = clean_shutdown::decode(&clean_shutdown::encode(broker_epoch));
                assert_eq!(again, Ok(Some(broker_epoch)));
            }
        }
        9 => {
            if let Ok(mark) = DamageMark::decode(bytes) {
                assert_eq!(mark.encode(), bytes);
            }
        }
        _ => {
            let name = String::from_utf8_lossy(bytes);
            if let Some(parsed) = LogFileName::parse(&name) {
                assert_eq!(parsed.to_string(), name);
            }
            let _ = parse_partition_folder(&name);
        }
    }
}

/// CRC-32C of bytes, through a batch, whose checksum is the same.
fn crc_of(bytes: &[u8]) -> [u8; 4] {
    let mut batch = vec![0; 21];
    batch.extend_from_slice(bytes);
    recompute_crc(&mut batch);
    [batch[17], batch[18], batch[19], batch[20]]
}
