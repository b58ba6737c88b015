//! The cases: batches good and bad, each named by what is special about it. One long table, so
//! it is longer than other files.

use coreline::base::ids::{Offset, ProducerEpoch, ProducerId, Sequence};
use coreline::base::time::TimestampMs;
use coreline::wire::compression::{Codec, compress};
use coreline::wire::record_batch::{
    BatchBuilder, HEADER_BYTES, NewRecord, recompute_crc, set_log_append_time, set_max_timestamp,
};
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

    /// Faults within a record, the only one of its batch, uncompressed and compressed.
    fn records(&mut self) {
        let header = self.batch(Codec::None, 1);
        let tail = [2, b'v', 0];
        let good = body(0, b"k", &tail);
        let with = |len: i32, body: &[u8]| {
            let mut out = Vec::new();
            write_varint(&mut out, len);
            out.extend_from_slice(body);
            out
        };
        let len = good.len() as i32;
        let cases: Vec<(&str, Vec<u8>)> = vec![
            ("good", with(len, &good)),
            ("no bytes", Vec::new()),
            ("length one too long", with(len + 1, &good)),
            ("length one too short", with(len - 1, &good)),
            ("length -1", with(-1, &good)),
            ("length 0", with(0, &[])),
            ("length far too long", with(i32::MAX, &good)),
            (
                "a byte after the headers",
                with(len + 1, &[&good[..], &[0]].concat()),
            ),
            (
                "a byte after the record",
                [&with(len, &good)[..], &[0]].concat(),
            ),
            ("a record after the record", with(len, &good).repeat(2)),
            ("attributes 1", with(len, &[&[1], &good[1..]].concat())),
            ("key length -2", with_length(&[0, 0, 0, 3, 2, b'v', 0])),
            (
                "key length too long",
                with_length(&[0, 0, 0, 100, b'k', 2, b'v', 0]),
            ),
            ("value length -2", with_length(&[0, 0, 0, 2, b'k', 3, 0])),
            (
                "value length too long",
                with_length(&[0, 0, 0, 2, b'k', 100, b'v', 0]),
            ),
            (
                "header count -1",
                with_length(&[0, 0, 0, 2, b'k', 2, b'v', 1]),
            ),
            (
                "header count too large",
                with_length(&[0, 0, 0, 2, b'k', 2, b'v', 100]),
            ),
            (
                "header",
                with_length(&[0, 0, 0, 2, b'k', 2, b'v', 2, 2, b'h', 2, b'x']),
            ),
            (
                "header with null value",
                with_length(&[0, 0, 0, 2, b'k', 2, b'v', 2, 2, b'h', 1]),
            ),
            (
                "header with value -2",
                with_length(&[0, 0, 0, 2, b'k', 2, b'v', 2, 2, b'h', 3]),
            ),
            (
                "header with null key",
                with_length(&[0, 0, 0, 2, b'k', 2, b'v', 2, 1, 2, b'x']),
            ),
            (
                "header key no UTF-8",
                with_length(&[0, 0, 0, 2, b'k', 2, b'v', 2, 2, 0xff, 1]),
            ),
            ("offset delta in six bytes", {
                with_length(&[0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 2, b'k', 2, b'v', 0])
            }),
            (
                "offset delta in two bytes",
                with_length(&[0, 0, 0x80, 0, 2, b'k', 2, b'v', 0]),
            ),
            ("offset delta of 33 bits", {
                with_length(&[0, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 2, b'k', 2, b'v', 0])
            }),
            ("no value", with_length(&[0, 0, 0, 2, b'k'])),
        ];
        for (name, records) in cases {
            for codec in [Codec::None, Codec::Gzip] {
                let batch = with_payload(&header, codec, &packed(codec, &records));
                self.add(format!("record: {name}, {}", codec.name()), batch);
            }
        }
    }

    /// Faults in compressed streams.
    fn streams(&mut self) {
        let header = self.batch(Codec::None, 3);
        let records = header[HEADER_BYTES..].to_vec();
        for codec in CODECS {
            let name = codec.name();
            let good = packed(codec, &records);
            let mut add = |what: &str, payload: Vec<u8>| {
                let batch = with_payload(&header, codec, &payload);
                self.list.push(Case {
                    name: format!("{name} stream: {what}"),
                    topic: "plain",
                    version: 8,
                    records: Some(batch),
                });
            };
            add("no bytes", Vec::new());
            add("other bytes", vec![0x5a; 40]);
            add("the records uncompressed", records.clone());
            for cut in [1, 4, 5, 8, good.len() / 2] {
                add(
                    &format!("last {cut} bytes missing"),
                    good[..good.len() - cut].to_vec(),
                );
            }
            add("a byte after it", [&good[..], &[0]].concat());
            add("20 bytes after it", [&good[..], &[0x5a; 20]].concat());
            let (first, second) = records.split_at(records.len() / 2);
            add(
                "in two",
                [packed(codec, first), packed(codec, second)].concat(),
            );
            add(
                "and another, of nothing",
                [&good[..], &packed(codec, &[])].concat(),
            );
            let mut flipped = good.clone();
            let last = flipped.len() - 6;
            flipped[last] ^= 0x10;
            add("a bit of its end flipped", flipped);
        }
        self.lz4_streams(&header, &records);
        let raw = snap::raw::Encoder::new()
            .compress_vec(&records)
            .expect("it compresses");
        self.add(
            "snappy stream: raw",
            with_payload(&header, Codec::Snappy, &raw),
        );
    }

    fn lz4_streams(&mut self, header: &[u8], records: &[u8]) {
        let good = packed(Codec::Lz4, records);
        let mut add = |what: &str, payload: &[u8]| {
            let batch = with_payload(header, Codec::Lz4, payload);
            self.add(format!("lz4 stream: {what}"), batch);
        };
        add(
            "wrong header checksum",
            &patched(&good, 6, &[good[6] ^ 0xff]),
        );
        add("magic of legacy frames", &patched(&good, 0, &[2]));
        use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
        let encoded = |info: FrameInfo, records: &[u8]| {
            let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
            std::io::Write::write_all(&mut encoder, records).expect("it compresses");
            encoder.finish().expect("it compresses")
        };
        let info = || FrameInfo::new().block_size(BlockSize::Max64KB);
        add(
            "linked, one block",
            &encoded(info().block_mode(BlockMode::Linked), records),
        );
        let sums = info().block_checksums(true).content_checksum(true);
        let full = encoded(sums.content_size(Some(records.len() as u64)), records);
        add("all checksums and sizes", &full);
        let end = full.len();
        add(
            "wrong content checksum",
            &patched(&full, end - 1, &[full[end - 1] ^ 1]),
        );
        add(
            "wrong block checksum",
            &patched(&full, end - 9, &[full[end - 9] ^ 1]),
        );
        let wrong = encoded(info(), records);
        add(
            "block size of 4 MiB",
            &encoded(info().block_size(BlockSize::Max4MB), records),
        );
        add("no end mark", &wrong[..wrong.len() - 4]);
        // A value longer than a block, so that the second block copies from the first.
        let value: Vec<u8> = (0..30_000u32).map(|at| ((at * at) >> 7) as u8).collect();
        let value = value.repeat(5);
        let mut builder = self.builder(Codec::None);
        let timestamp = TimestampMs(self.now);
        builder.append(NewRecord {
            timestamp,
            value: Some(&value),
            ..NewRecord::default()
        });
        let long = builder.build().expect("it builds").to_vec();
        let payload = encoded(info().block_mode(BlockMode::Linked), &long[HEADER_BYTES..]);
        let batch = with_payload(&long, Codec::Lz4, &payload);
        self.add(
            "lz4 stream: linked, blocks that copy from the one before",
            batch,
        );
    }

    fn timestamps(&mut self) {
        let now = self.now;
        let hour = 3_600_000;
        for codec in [Codec::None, Codec::Gzip] {
            let name = codec.name();
            for (what, timestamps) in [
                ("in 59 minutes", &[now + hour - 60_000][..]),
                ("in 61 minutes", &[now + hour + 60_000]),
                (
                    "one of three in 61 minutes",
                    &[now, now + hour + 60_000, now],
                ),
                ("none", &[-1]),
                ("0", &[0]),
                ("-2", &[-2]),
                ("smallest", &[i64::MIN]),
                ("largest", &[i64::MAX]),
                ("in order", &[now - 2, now - 1, now]),
                ("not in order", &[now, now - 5, now - 3]),
            ] {
                let batch = self.batch_at(codec, timestamps);
                self.add(format!("timestamp {what}, {name}"), batch.clone());
                self.add_to(
                    "limits",
                    format!("limited timestamp {what}, {name}"),
                    batch.clone(),
                );
                self.add_to(
                    "stamped",
                    format!("stamped timestamp {what}, {name}"),
                    batch,
                );
            }
            for (what, timestamp) in [("4 s old", now - 4_000), ("60 s old", now - 60_000)] {
                let batch = self.batch_at(codec, &[timestamp]);
                self.add_to("limits", format!("limited timestamp {what}, {name}"), batch);
            }
            for (what, claimed) in [
                ("unset", -1),
                ("too small", now - 9),
                ("too large", now + 9),
            ] {
                let mut batch = self.batch_at(codec, &[now - 1, now, now - 2]);
                set_max_timestamp(&mut batch, TimestampMs(claimed));
                self.add(format!("largest timestamp {what}, {name}"), sealed(batch));
            }
            for (what, timestamp) in [("now", now), ("none", -1), ("in a day", now + 24 * hour)] {
                let mut batch = self.batch(codec, 2);
                set_log_append_time(&mut batch, TimestampMs(timestamp));
                let batch = sealed(batch);
                self.add(
                    format!("LogAppendTime of the client {what}, {name}"),
                    batch.clone(),
                );
                let name = format!("stamped, LogAppendTime of the client {what}, {name}");
                self.add_to("stamped", name, batch);
            }
            let batch = self.batch_at(codec, &[now + 2 * hour, now]);
            self.add_to(
                "compacted",
                format!("compacted, key but bad timestamp, {name}"),
                batch,
            );
            let mut builder = self.builder(codec);
            for (timestamp, key) in [(now + 2 * hour, Some(&b"k"[..])), (now, None)] {
                let timestamp = TimestampMs(timestamp);
                builder.append(NewRecord {
                    timestamp,
                    key,
                    value: None,
                    headers: &[],
                });
            }
            let batch = builder.build().expect("it builds").to_vec();
            self.add_to(
                "compacted",
                format!("compacted, bad timestamp, then no key, {name}"),
                batch,
            );
        }
    }

    fn sizes(&mut self) {
        let now = self.now;
        let sized = |bytes: usize| {
            let mut builder = BatchBuilder::new(Offset(0));
            let value = vec![7; bytes - 72];
            let timestamp = TimestampMs(now);
            builder.append(NewRecord {
                timestamp,
                value: Some(&value),
                ..NewRecord::default()
            });
            builder.build().expect("it builds").to_vec()
        };
        let fit = |bytes: usize| {
            let off = sized(bytes).len() as isize - bytes as isize;
            let batch = sized((bytes as isize - off) as usize);
            assert_eq!(batch.len(), bytes);
            batch
        };
        let (at, past) = (fit(1_000), fit(1_001));
        let large = fit(2_000_000);
        self.add_to("small", "at max.message.bytes", at);
        self.add_to("small", "past max.message.bytes", past.clone());
        let broken = patched(&past, 17, &[1, 2, 3, 4]);
        self.add_to(
            "small",
            "past max.message.bytes with wrong checksum",
            broken,
        );
        let moved = patched(&past, 0, &1i64.to_be_bytes());
        self.add_to("small", "past max.message.bytes with base offset 1", moved);
        let at_segment = fit(1_048_576);
        let past_segment = fit(1_048_577);
        self.add_to("segment", "at segment.bytes", at_segment);
        self.add_to("segment", "past segment.bytes", past_segment);
        self.add_to("segment", "far past segment.bytes", large);
        for codec in [Codec::Gzip, Codec::Zstd] {
            let mut builder = self.builder(codec);
            let value = vec![0; 1024 * 1024];
            for _ in 0..40 {
                let timestamp = TimestampMs(self.now);
                let value = Some(&value[..]);
                builder.append(NewRecord {
                    timestamp,
                    value,
                    ..NewRecord::default()
                });
            }
            let batch = builder.build().expect("it builds").to_vec();
            self.add(format!("40 MiB of zeros, {}", codec.name()), batch);
        }
    }

    /// Topics that want a codec of their own.
    fn conversions(&mut self) {
        for topic in ["to-gzip", "to-zstd", "to-none"] {
            for codec in Codec::ALL {
                let batch = self.batch_at(codec, &[self.now, self.now - 5, self.now + 2]);
                self.add_to(topic, format!("{topic}, {}", codec.name()), batch);
            }
            let mut batch = self.batch(Codec::Gzip, 2);
            set_max_timestamp(&mut batch, TimestampMs(-1));
            let batch = sealed(batch);
            self.add_to(
                topic,
                format!("{topic}, largest timestamp unset, gzip"),
                batch,
            );
            let batch = self.batch_of_deltas(Codec::Gzip, &[0, 2]);
            self.add_to(topic, format!("{topic}, offset deltas [0, 2], gzip"), batch);
        }
    }
}
