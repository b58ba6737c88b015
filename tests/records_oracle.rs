//! Record batches compared with the crate `kafka-protocol`, an implementation of its own, in both
//! directions and for every codec: what we build it reads, what it builds we read.

use bytes::{Bytes, BytesMut};
use coreline::base::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use coreline::base::time::TimestampMs;
use coreline::wire::compression::{Codec, DecodeLimits, Decoder};
use coreline::wire::record::RecordIter;
use coreline::wire::record_batch::{
    BatchBuilder, BatchSlice, NewHeader, NewRecord, split_batches, verify_crc,
};
use coreline::wire::record_walk::{RecordSummary, RecordWalker};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as oracle;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// A record as both sides see it.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

#[derive(Clone, Debug)]
struct ModelBatch {
    codec: Codec,
    base_offset: i64,
    leader_epoch: i32,
    producer: (i64, i16, i32),
    records: Vec<Model>,
}

/// Contents that compress, that do not, and that cross the codecs' block sizes.
fn contents() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        1 => Just(None),
        8 => vec(any::<u8>(), 0..40).prop_map(Some),
        1 => (any::<u8>(), 0usize..150_000).prop_map(|(byte, len)| Some(vec![byte; len])),
        1 => vec(any::<u8>(), 60_000..80_000).prop_map(Some),
    ]
}

fn records() -> impl Strategy<Value = Vec<Model>> {
    let headers = btree_map(
        "[a-z]{0,8}",
        proptest::option::of(vec(any::<u8>(), 0..20)),
        0..4,
    );
    let record = (0i64..1_000_000, contents(), contents(), headers);
    vec(record, 1..20).prop_map(|records| {
        let model =
            |(timestamp, key, value, headers): (i64, _, _, std::collections::BTreeMap<_, _>)| {
                Model {
                    timestamp,
                    key,
                    value,
                    headers: headers.into_iter().collect(),
                }
            };
        records.into_iter().map(model).collect()
    })
}

fn batch() -> impl Strategy<Value = ModelBatch> {
    let producer = prop_oneof![
        Just((-1, -1, -1)),
        (0i64..1 << 40, 0i16..100, 0i32..1_000_000),
    ];
    let codec = proptest::sample::select(Codec::ALL.to_vec());
    (codec, 0i64..1 << 50, -1i32..1_000, producer, records()).prop_map(
        |(codec, base_offset, leader_epoch, producer, records)| ModelBatch {
            codec,
            base_offset,
            leader_epoch,
            producer,
            records,
        },
    )
}

fn oracle_codec(codec: Codec) -> oracle::Compression {
    match codec {
        Codec::None => oracle::Compression::None,
        Codec::Gzip => oracle::Compression::Gzip,
        Codec::Snappy => oracle::Compression::Snappy,
        Codec::Lz4 => oracle::Compression::Lz4,
        Codec::Zstd => oracle::Compression::Zstd,
    }
}

fn build_ours(batch: &ModelBatch) -> Bytes {
    let (id, epoch, sequence) = batch.producer;
    let mut builder = BatchBuilder::new(Offset(batch.base_offset))
        .compressed(batch.codec, None)
        .leader_epoch(LeaderEpoch(batch.leader_epoch))
        .producer(ProducerId(id), ProducerEpoch(epoch), Sequence(sequence));
    for record in &batch.records {
        let headers: Vec<NewHeader<'_>> = record
            .headers
            .iter()
            .map(|(key, value)| (key.as_bytes(), value.as_deref()))
            .collect();
        builder.append(NewRecord {
            timestamp: TimestampMs(record.timestamp),
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &headers,
        });
    }
    builder.build().expect("compression works").freeze()
}

fn build_theirs(batch: &ModelBatch) -> Bytes {
    let (producer_id, producer_epoch, base_sequence) = batch.producer;
    let records: Vec<oracle::Record> = batch
        .records
        .iter()
        .enumerate()
        .map(|(index, record)| oracle::Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: batch.leader_epoch,
            producer_id,
            producer_epoch,
            timestamp_type: oracle::TimestampType::Creation,
            offset: batch.base_offset + index as i64,
            sequence: base_sequence.wrapping_add(index as i32),
            timestamp: record.timestamp,
            key: record.key.clone().map(Bytes::from),
            value: record.value.clone().map(Bytes::from),
            headers: record
                .headers
                .iter()
                .map(|(key, value)| (StrBytes::from(key.clone()), value.clone().map(Bytes::from)))
                .collect::<IndexMap<_, _>>(),
        })
        .collect();
    let options = oracle::RecordEncodeOptions {
        version: 2,
        compression: oracle_codec(batch.codec),
    };
    let mut out = BytesMut::new();
    oracle::RecordBatchEncoder::encode(&mut out, &records, &options).expect("the oracle encodes");
    out.freeze()
}

/// Reads one batch with our code, and checks that the streaming walk sees the same records.
fn read_ours(batch: &BatchSlice) -> Vec<Model> {
    let header = batch.header;
    let codec = header.attributes.codec().expect("a codec");
    let compressed = &batch.bytes[coreline::wire::record_batch::HEADER_BYTES..];
    let limits = DecodeLimits::default();
    let mut records = Vec::new();
    let mut decoder = Decoder::new(codec, compressed, limits).expect("a stream");
    decoder.read_to_end(&mut records).expect("it decompresses");
    let mut summaries = Vec::new();
    let models = RecordIter::new(&records, header.record_count)
        .map(|record| {
            let record = record.expect("a record");
            summaries.push(RecordSummary::from(&record));
            let headers = record.headers.iter().map(|(key, value)| {
                let key = String::from_utf8(key.to_vec()).expect("a key of text");
                (key, value.map(<[u8]>::to_vec))
            });
            Model {
                timestamp: header.base_timestamp.0 + record.timestamp_delta,
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
                headers: headers.collect(),
            }
        })
        .collect();
    let decoder = Decoder::new(codec, compressed, limits).expect("a stream");
    let walked: Vec<RecordSummary> = RecordWalker::new(decoder, header.record_count)
        .collect::<Result<_, _>>()
        .expect("it walks");
    assert_eq!(walked, summaries);
    models
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_oracle_reads_what_we_build(batch in batch()) {
        let ours = build_ours(&batch);
        let mut input = ours.clone();
        let set = oracle::RecordBatchDecoder::decode(&mut input).expect("the oracle decodes");
        prop_assert_eq!(set.compression, oracle_codec(batch.codec));
        prop_assert_eq!(set.records.len(), batch.records.len());
        for (index, (theirs, model)) in set.records.iter().zip(&batch.records).enumerate() {
            prop_assert_eq!(theirs.offset, batch.base_offset + index as i64);
            prop_assert_eq!(theirs.timestamp, model.timestamp);
            prop_assert_eq!(theirs.key.as_deref(), model.key.as_deref());
            prop_assert_eq!(theirs.value.as_deref(), model.value.as_deref());
            prop_assert_eq!(theirs.partition_leader_epoch, batch.leader_epoch);
            let producer = (theirs.producer_id, theirs.producer_epoch);
            prop_assert_eq!(producer, (batch.producer.0, batch.producer.1));
            let headers: Vec<_> = theirs
                .headers
                .iter()
                .map(|(key, value)| (key.to_string(), value.as_ref().map(|v| v.to_vec())))
                .collect();
            prop_assert_eq!(&headers, &model.headers);
        }
    }

    #[test]
    fn we_read_what_the_oracle_builds(batches in vec(batch(), 1..4)) {
        let mut all = BytesMut::new();
        for batch in &batches {
            all.extend_from_slice(&build_theirs(batch));
        }
        let split: Vec<BatchSlice> = split_batches(all.freeze())
            .collect::<Result<_, _>>()
            .expect("whole batches");
        prop_assert_eq!(split.len(), batches.len());
        for (slice, batch) in split.iter().zip(&batches) {
            verify_crc(&slice.bytes).expect("the oracle's checksum");
            let header = slice.header;
            prop_assert_eq!(header.attributes.codec(), Ok(batch.codec));
            prop_assert_eq!(header.base_offset, Offset(batch.base_offset));
            prop_assert_eq!(header.last_offset_delta, batch.records.len() as i32 - 1);
            prop_assert_eq!(header.producer_id, ProducerId(batch.producer.0));
            prop_assert_eq!(header.producer_epoch, ProducerEpoch(batch.producer.1));
            prop_assert_eq!(header.base_sequence, Sequence(batch.producer.2));
            let newest = batch.records.iter().map(|record| record.timestamp).max();
            prop_assert_eq!(Some(header.max_timestamp.0), newest);
            prop_assert_eq!(&read_ours(slice), &batch.records);
        }
    }

    #[test]
    fn uncompressed_batches_are_equal_to_the_byte(batch in batch()) {
        let batch = ModelBatch { codec: Codec::None, ..batch };
        // The oracle counts timestamps from the smallest, we from the first, as Kafka does.
        let mut batch = batch;
        batch.records.sort_by_key(|record| record.timestamp);
        prop_assert_eq!(build_ours(&batch), build_theirs(&batch));
    }
}
