//! Faults within records and within their compressed streams.

use super::{CODECS, Case, Cases, body, packed, patched, with_length, with_payload};
use coreline::base::time::TimestampMs;
use coreline::wire::compression::Codec;
use coreline::wire::record_batch::{HEADER_BYTES, NewRecord};
use coreline::wire::varint::write_varint;

impl Cases {
    /// Faults within a record, the only one of its batch, uncompressed and compressed.
    pub(super) fn records(&mut self) {
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
    pub(super) fn streams(&mut self) {
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
}
