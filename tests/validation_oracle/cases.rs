//! The cases: batches good and bad, each named by what is special about it. Here what is wrong with
//! a batch's frame and header.

mod contents;
mod settings;

use coreline::base::ids::{Offset, ProducerEpoch, ProducerId, Sequence};
use coreline::base::time::TimestampMs;
use coreline::wire::compression::{Codec, compress};
use coreline::wire::record_batch::{BatchBuilder, HEADER_BYTES, NewRecord, recompute_crc};
use coreline::wire::varint::{write_varint, write_varlong};

/// The topics that cases are sent to: name and settings that are not the default.
pub const TOPICS: [(&str, &[(&str, &str)]); 9] = [
    ("plain", &[]),
    ("compacted", &[("cleanup.policy", "compact")]),
    ("stamped", &[("message.timestamp.type", "LogAppendTime")]),
    (
        "limits",
        &[
            ("message.timestamp.before.max.ms", "10000"),
            ("message.timestamp.after.max.ms", "10000"),
        ],
    ),
    ("small", &[("max.message.bytes", "1000")]),
    (
        "segment",
        &[
            ("max.message.bytes", "3000000"),
            ("segment.bytes", "1048576"),
        ],
    ),
    ("to-gzip", &[("compression.type", "gzip")]),
    ("to-zstd", &[("compression.type", "zstd")]),
    ("to-none", &[("compression.type", "uncompressed")]),
];

pub struct Case {
    pub name: String,
    pub topic: &'static str,
    /// Version of the Produce request.
    pub version: i16,
    pub records: Option<Vec<u8>>,
}

struct Cases {
    now: i64,
    list: Vec<Case>,
    producer_id: i64,
}

const CODECS: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

/// All cases, at a time.
pub fn cases(now: i64) -> Vec<Case> {
    let mut cases = Cases {
        now,
        list: Vec::new(),
        producer_id: 1_000_000,
    };
    cases.good();
    cases.framing();
    cases.headers();
    cases.counts();
    cases.records();
    cases.streams();
    cases.timestamps();
    cases.sizes();
    cases.conversions();
    cases.list
}

/// Recomputes the checksum.
fn sealed(mut batch: Vec<u8>) -> Vec<u8> {
    recompute_crc(&mut batch);
    batch
}

fn patched(batch: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut batch = batch.to_vec();
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    batch
}

/// A batch with this header's fields and other bytes after it.
fn with_payload(header: &[u8], codec: Codec, payload: &[u8]) -> Vec<u8> {
    let mut batch = header[..HEADER_BYTES].to_vec();
    batch.extend_from_slice(payload);
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[22] = (batch[22] & !7) | codec.id();
    sealed(batch)
}

fn packed(codec: Codec, records: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress(codec, None, records, &mut out).expect("it compresses");
    out
}

/// A record's body from its fields as they come; each a null where negative.
fn body(offset_delta: i32, key: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    write_varlong(&mut out, 0);
    write_varint(&mut out, offset_delta);
    write_varint(&mut out, key.len() as i32);
    out.extend_from_slice(key);
    out.extend_from_slice(rest);
    out
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_varint(&mut out, body.len() as i32);
    out.extend_from_slice(body);
    out
}

impl Cases {
    fn add(&mut self, name: impl Into<String>, records: Vec<u8>) {
        self.add_to("plain", name, records);
    }

    fn add_to(&mut self, topic: &'static str, name: impl Into<String>, records: Vec<u8>) {
        let records = Some(records);
        self.list.push(Case {
            name: name.into(),
            topic,
            version: 8,
            records,
        });
    }

    fn builder(&self, codec: Codec) -> BatchBuilder {
        BatchBuilder::new(Offset(0)).compressed(codec, None)
    }

    /// A batch of `count` records with keys `k` and values `v`.
    fn batch(&self, codec: Codec, count: i32) -> Vec<u8> {
        self.batch_at(codec, &vec![self.now; count as usize])
    }

    /// A batch of records with these timestamps.
    fn batch_at(&self, codec: Codec, timestamps: &[i64]) -> Vec<u8> {
        let mut builder = self.builder(codec);
        for timestamp in timestamps {
            builder.append(NewRecord {
                timestamp: TimestampMs(*timestamp),
                key: Some(b"k"),
                value: Some(b"v"),
                headers: &[],
            });
        }
        builder.build().expect("it builds").to_vec()
    }

    /// A batch of given deltas.
    fn batch_of_deltas(&self, codec: Codec, deltas: &[i32]) -> Vec<u8> {
        let mut builder = self.builder(codec);
        for delta in deltas {
            let timestamp = TimestampMs(self.now);
            let record = NewRecord {
                timestamp,
                value: Some(b"v"),
                ..NewRecord::default()
            };
            builder.append_at(*delta, record);
        }
        let batch = builder.build().expect("it builds");
        let last = deltas.len() as i32 - 1;
        sealed(patched(&batch, 23, &last.to_be_bytes()))
    }

    fn idempotent(&mut self, epoch: i16, sequence: i32) -> BatchBuilder {
        self.producer_id += 1;
        let id = ProducerId(self.producer_id);
        let builder = self.builder(Codec::None);
        let mut builder = builder.producer(id, ProducerEpoch(epoch), Sequence(sequence));
        builder.append(NewRecord {
            timestamp: TimestampMs(self.now),
            ..NewRecord::default()
        });
        builder
    }

    fn good(&mut self) {
        for codec in Codec::ALL {
            let batch = self.batch(codec, 3);
            self.add(format!("good, {}", codec.name()), batch.clone());
            self.add_to("stamped", format!("stamped, {}", codec.name()), batch);
            for (name, key, value) in [
                ("null key", None, Some(&b"v"[..])),
                ("null value", Some(&b"k"[..]), None),
                ("empty key", Some(&b""[..]), Some(&b"v"[..])),
            ] {
                let mut builder = self.builder(codec);
                let timestamp = TimestampMs(self.now);
                builder.append(NewRecord {
                    timestamp,
                    key,
                    value,
                    headers: &[],
                });
                let batch = builder.build().expect("it builds").to_vec();
                self.add_to(
                    "compacted",
                    format!("compacted, {name}, {}", codec.name()),
                    batch.clone(),
                );
                self.add(format!("{name}, {}", codec.name()), batch);
            }
        }
        let records = Some(self.batch(Codec::Zstd, 1));
        let name = "zstd below version 7".to_owned();
        self.list.push(Case {
            name,
            topic: "plain",
            version: 6,
            records,
        });
        let batch = self.idempotent(0, 0).build().expect("it builds").to_vec();
        self.add("idempotent", batch);
        let batch = self.idempotent(0, 77).build().expect("it builds").to_vec();
        self.add("idempotent, unknown producer in mid sequence", batch);
        let mut builder = self.idempotent(0, i32::MAX);
        builder.append(NewRecord {
            timestamp: TimestampMs(self.now),
            ..NewRecord::default()
        });
        let batch = builder.build().expect("it builds").to_vec();
        self.add("idempotent, sequence wraps", batch);
    }

    fn framing(&mut self) {
        let good = self.batch(Codec::None, 1);
        self.list.push(Case {
            name: "null records".to_owned(),
            topic: "plain",
            version: 8,
            records: None,
        });
        self.add("no bytes", Vec::new());
        self.add("11 bytes", good[..11].to_vec());
        self.add("16 bytes", good[..16].to_vec());
        self.add("header only", good[..HEADER_BYTES].to_vec());
        self.add("last byte missing", good[..good.len() - 1].to_vec());
        self.add("two batches", [&good[..], &good[..]].concat());
        self.add("good and 5 bytes", [&good[..], &[7; 5]].concat());
        self.add("good and 11 bytes", [&good[..], &[0xff; 11]].concat());
        self.add("good and 20 zeros", [&good[..], &[0; 20]].concat());
        self.add("good and 20 ones", [&good[..], &[0xff; 20]].concat());
        self.add(
            "good and 30 bytes of a batch",
            [&good[..], &good[..30]].concat(),
        );
        self.add(
            "good and a batch without its end",
            [&good[..], &good[..good.len() - 1]].concat(),
        );
        let old = patched(&good, 16, &[1]);
        self.add(
            "good and a batch of magic 1",
            [&good[..], &old[..]].concat(),
        );
        for length in [
            -1,
            0,
            13,
            14,
            48,
            49,
            good.len() as i32 - 13,
            good.len() as i32 - 11,
        ] {
            let batch = patched(&good, 8, &length.to_be_bytes());
            self.add(format!("length {length}"), batch);
        }
        for magic in [0u8, 1, 3, 127, 255] {
            self.add(format!("magic {magic}"), patched(&good, 16, &[magic]));
        }
        self.add("wrong checksum", patched(&good, 17, &[1, 2, 3, 4]));
        self.add("base offset 1", patched(&good, 0, &1i64.to_be_bytes()));
        self.add("base offset -1", patched(&good, 0, &(-1i64).to_be_bytes()));
        let both = patched(&patched(&good, 0, &1i64.to_be_bytes()), 17, &[1, 2, 3, 4]);
        self.add("base offset 1 and wrong checksum", both);
        self.add("leader epoch 5", patched(&good, 12, &5i32.to_be_bytes()));
    }

    fn headers(&mut self) {
        let good = self.batch(Codec::None, 1);
        for (name, bits) in [
            ("codec 5", 0x0005u16),
            ("codec 7", 0x0007),
            ("control", 0x0020),
            ("transactional without producer", 0x0010),
            ("transactional control", 0x0030),
            ("delete horizon", 0x0040),
            ("unknown bit 7", 0x0080),
            ("unknown bit 15", 0x8000),
        ] {
            let batch = sealed(patched(&good, 21, &bits.to_be_bytes()));
            self.add(format!("attributes: {name}"), batch);
        }
        let batch = self
            .idempotent(0, 0)
            .transactional()
            .build()
            .expect("it builds")
            .to_vec();
        self.add("transactional outside a transaction", batch);
        for (epoch, sequence) in [(0, -1), (-1, 0), (-1, -1), (0, -2), (-2, 0), (-7, 0)] {
            let batch = self
                .idempotent(epoch, sequence)
                .build()
                .expect("it builds")
                .to_vec();
            self.add(
                format!("producer with epoch {epoch}, sequence {sequence}"),
                batch,
            );
        }
        let batch = sealed(patched(&good, 43, &(-2i64).to_be_bytes()));
        self.add("producer id -2", batch);
        let batch = sealed(patched(&good, 53, &5i32.to_be_bytes()));
        self.add("sequence 5 without producer", batch);
    }

    fn counts(&mut self) {
        for codec in [Codec::None, Codec::Gzip] {
            let name = codec.name();
            let good = self.batch(codec, 3);
            for last in [-1i32, 1, 3, i32::MAX] {
                let batch = sealed(patched(&good, 23, &last.to_be_bytes()));
                self.add(
                    format!("3 records, last offset delta {last}, {name}"),
                    batch,
                );
            }
            for count in [-1i32, 0, 2, 4] {
                let batch = sealed(patched(&good, 57, &count.to_be_bytes()));
                self.add(
                    format!("3 records declared as {count}, {name}"),
                    batch.clone(),
                );
                let last = count.wrapping_sub(1);
                let batch = sealed(patched(&batch, 23, &last.to_be_bytes()));
                self.add(
                    format!("3 records declared as {count} with offsets, {name}"),
                    batch,
                );
            }
            for deltas in [&[0, 2][..], &[0, 0], &[1, 0], &[1, 2], &[0, -1], &[0, 1, 1]] {
                let batch = self.batch_of_deltas(codec, deltas);
                self.add(format!("offset deltas {deltas:?}, {name}"), batch);
            }
        }
    }
}
