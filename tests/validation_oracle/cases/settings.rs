//! What depends on a topic's settings: times, sizes, codecs.

use super::{Cases, patched, sealed};
use coreline::base::ids::Offset;
use coreline::base::time::TimestampMs;
use coreline::wire::compression::Codec;
use coreline::wire::record_batch::{
    BatchBuilder, NewRecord, set_log_append_time, set_max_timestamp,
};

impl Cases {
    pub(super) fn timestamps(&mut self) {
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

    pub(super) fn sizes(&mut self) {
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
    pub(super) fn conversions(&mut self) {
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
