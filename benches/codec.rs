//! What the codec costs a request: CPU nanoseconds to read or write one message, beside the rival
//! (`kafka-protocol`, as shipped) and the floor (one copy of the message's bytes, records aside).
//!
//!     cargo bench --bench codec

use std::hint::black_box;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use coreline::base::ids::{BrokerId, CorrelationId, Offset, PartitionIndex, Uuid};
use coreline::wire::codec::Message;
use coreline::wire::frame::encode_response;
use coreline::wire::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchableTopicResponse, PartitionData,
};
use coreline::wire::messages::metadata::{
    MetadataResponse, MetadataResponsePartition, MetadataResponseTopic,
};
use coreline::wire::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse,
    TopicProduceData, TopicProduceResponse,
};
use coreline::wire::primitives::{Reader, RecordSlices, Writer};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};

/// Messages measured at a time, prepared beforehand.
const MESSAGES: usize = 512;
const ROUNDS: usize = 40;
const BATCH_BYTES: usize = 16 << 10;
const TOPIC_ID: Uuid = Uuid([7; 16]);

fn thread_cpu() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("this thread has a CPU clock");
    Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32)
}

/// The least CPU nanoseconds that `work` took for one of what `prepare` made.
fn each<T>(mut prepare: impl FnMut() -> T, mut work: impl FnMut(T)) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let prepared: Vec<T> = (0..MESSAGES).map(|_| prepare()).collect();
        let before = thread_cpu();
        prepared.into_iter().for_each(&mut work);
        let each = (thread_cpu() - before).as_nanos() as f64 / MESSAGES as f64;
        least = least.min(each);
    }
    least
}

fn bytes_of(message: &impl Message, version: i16) -> Bytes {
    let mut writer = Writer::default();
    message
        .encode(&mut writer, version)
        .expect("it fits its version");
    writer.into_bytes()
}

fn floor(bytes: usize) -> f64 {
    let source = vec![7u8; bytes];
    let mut target = vec![0u8; bytes];
    each(
        || (),
        |()| {
            target.copy_from_slice(black_box(&source));
            black_box(&target);
        },
    )
}

struct Figures {
    case: &'static str,
    version: i16,
    /// Bytes of records, which nobody should copy.
    record_bytes: usize,
}

fn print(of: &Figures, bytes: usize, ours: f64, rival: f64) {
    let floor = floor(bytes - of.record_bytes);
    println!(
        "case={} version={} bytes={bytes} ours_ns={ours:.0} rival_ns={rival:.0} floor_ns={floor:.0}",
        of.case, of.version
    );
}

fn read<Ours: Message, Theirs: Decodable>(message: &Ours, of: &Figures) {
    let bytes = bytes_of(message, of.version);
    let ours = each(
        || BytesMut::from(bytes.as_ref()),
        |received| {
            let read = Ours::decode(&mut Reader::new(received), of.version);
            black_box(&read).as_ref().expect("it was written");
        },
    );
    let rival = each(
        || Bytes::copy_from_slice(&bytes),
        |mut received| {
            let read = Theirs::decode(&mut received, of.version);
            black_box(&read).as_ref().expect("it was written");
        },
    );
    print(of, bytes.len(), ours, rival);
}

fn write<Ours: Message, Theirs: Decodable + Encodable>(message: &Ours, of: &Figures) {
    let bytes = bytes_of(message, of.version);
    let other = Theirs::decode(&mut bytes.clone(), of.version).expect("it was written");
    let ours = each(
        || (),
        |()| {
            let pieces = encode_response(message, of.version, CorrelationId(1));
            black_box(&pieces).as_ref().expect("it fits its version");
        },
    );
    let rival = each(
        || (),
        |()| {
            let mut buffer = BytesMut::with_capacity(512);
            let written = other.encode(&mut buffer, of.version);
            written.expect("it fits its version");
            black_box(buffer.freeze());
        },
    );
    print(of, bytes.len(), ours, rival);
}

fn produce_request(partitions: usize) -> ProduceRequest {
    let partition = |index: usize| PartitionProduceData {
        index: PartitionIndex(index as i32),
        records: Some(BytesMut::from(&vec![1u8; BATCH_BYTES / partitions][..])),
    };
    ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            topic_id: TOPIC_ID,
            partition_data: (0..partitions).map(partition).collect(),
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    }
}

fn produce_response(partitions: usize) -> ProduceResponse {
    let partition = |index: usize| PartitionProduceResponse {
        index: PartitionIndex(index as i32),
        base_offset: Offset(1 << 40),
        ..PartitionProduceResponse::default()
    };
    ProduceResponse {
        responses: vec![TopicProduceResponse {
            topic_id: TOPIC_ID,
            partition_responses: (0..partitions).map(partition).collect(),
            ..TopicProduceResponse::default()
        }],
        ..ProduceResponse::default()
    }
}

fn fetch_request(partitions: usize) -> FetchRequest {
    let partition = |index: usize| FetchPartition {
        partition: PartitionIndex(index as i32),
        fetch_offset: Offset(1 << 40),
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    FetchRequest {
        topics: vec![FetchTopic {
            topic_id: TOPIC_ID,
            partitions: (0..partitions).map(partition).collect(),
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

fn fetch_response(partitions: usize) -> FetchResponse {
    let partition = |index: usize| PartitionData {
        partition_index: PartitionIndex(index as i32),
        high_watermark: Offset(1 << 40),
        records: Some(RecordSlices::from(Bytes::from(vec![1u8; BATCH_BYTES]))),
        ..PartitionData::default()
    };
    FetchResponse {
        responses: vec![FetchableTopicResponse {
            topic_id: TOPIC_ID,
            partitions: (0..partitions).map(partition).collect(),
            ..FetchableTopicResponse::default()
        }],
        ..FetchResponse::default()
    }
}

fn metadata_response(topics: usize, partitions: usize) -> MetadataResponse {
    let partition = |index: usize| MetadataResponsePartition {
        partition_index: PartitionIndex(index as i32),
        leader_id: BrokerId(1),
        replica_nodes: vec![BrokerId(1)],
        isr_nodes: vec![BrokerId(1)],
        ..MetadataResponsePartition::default()
    };
    let topic = |number: usize| MetadataResponseTopic {
        name: Some(format!("a-topic-of-some-length-{number}")),
        topic_id: TOPIC_ID,
        partitions: (0..partitions).map(partition).collect(),
        ..MetadataResponseTopic::default()
    };
    MetadataResponse {
        topics: (0..topics).map(topic).collect(),
        ..MetadataResponse::default()
    }
}

fn main() {
    let of = |case, version, record_bytes| Figures {
        case,
        version,
        record_bytes,
    };
    for (case, partitions) in [("read-produce-1", 1), ("read-produce-100", 100)] {
        let records = BATCH_BYTES / partitions * partitions;
        let figures = of(case, 13, records);
        read::<_, theirs::ProduceRequest>(&produce_request(partitions), &figures);
    }
    for (case, partitions) in [("write-produce-1", 1), ("write-produce-100", 100)] {
        let figures = of(case, 13, 0);
        write::<_, theirs::ProduceResponse>(&produce_response(partitions), &figures);
    }
    for (case, partitions) in [("read-fetch-1", 1), ("read-fetch-100", 100)] {
        read::<_, theirs::FetchRequest>(&fetch_request(partitions), &of(case, 18, 0));
    }
    for (case, partitions) in [("write-fetch-1", 1), ("write-fetch-100", 100)] {
        let figures = of(case, 18, partitions * BATCH_BYTES);
        write::<_, theirs::FetchResponse>(&fetch_response(partitions), &figures);
    }
    let metadata = metadata_response(100, 10);
    write::<_, theirs::MetadataResponse>(&metadata, &of("write-metadata-1000", 13, 0));
}
