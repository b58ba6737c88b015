//! Settings of topics, and the brokers' that topics inherit: changed at run time for a topic, then
//! for all brokers, each time with its effect before the next request.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{Offset, ProducerEpoch, ProducerId, Sequence};
use coreline::base::time::TimestampMs;
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::produce::{PartitionProduceResponse, ProduceResponse};
use coreline::wire::record_batch::{BatchBuilder, NewRecord};

use crate::broker::requests::{answers, fetch, list_offsets, produce};
use crate::broker::{Client, Harness, HarnessOptions, batch};
use crate::changes::{BROKER, TOPIC, alter, take_away};

/// One record of `bytes` with a timestamp.
fn record(timestamp: i64, bytes: usize) -> BytesMut {
    let mut builder = BatchBuilder::new(Offset(0));
    let value = vec![b'v'; bytes];
    builder.append(NewRecord {
        timestamp: TimestampMs(timestamp),
        key: Some(b"k"),
        value: Some(&value),
        headers: &[],
    });
    builder.build().unwrap()
}

fn send(
    client: &mut Client,
    topic: &str,
    partition: i32,
    batch: BytesMut,
) -> PartitionProduceResponse {
    let request = produce(topic, -1, [(partition, batch)]);
    let mut response: ProduceResponse = client.ask(&request, 9);
    response.responses.remove(0).partition_responses.remove(0)
}

/// Produces and answers the bytes that are stored for it.
fn stored(client: &mut Client, topic: &str, batch: BytesMut) -> Bytes {
    let sent = send(client, topic, 0, batch);
    assert_eq!(sent.error_code, ErrorCode::NONE);
    let response: FetchResponse = client.ask(&fetch(topic, &[(0, sent.base_offset.0)]), 12);
    let records = answers(&response)[0].records.as_ref().unwrap();
    Bytes::from(records.slices.concat())
}

/// The codec in a stored batch's attributes.
fn codec(stored: &Bytes) -> u8 {
    stored[22] & 7
}

/// Text that compresses better the harder one tries.
fn text() -> BytesMut {
    let mut state = 1u32;
    let words: Vec<u8> = (0..20_000)
        .flat_map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let word = ["settings", "effect", "topic", "broker", "log", "codec"];
            let index = (state >> 24) as usize % word.len();
            format!("{}{} ", word[index], (state >> 16) & 15).into_bytes()
        })
        .collect();
    let mut builder = BatchBuilder::new(Offset(0));
    builder.append(NewRecord {
        timestamp: TimestampMs(1_700_000_000_000),
        key: None,
        value: Some(&words),
        headers: &[],
    });
    builder.build().unwrap()
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_millis() as i64
}

/// Segments of a topic's first partition, by the names of their files.
fn segments(harness: &Harness, topic: &str) -> usize {
    let folder = harness.folder().join(format!("{topic}-0"));
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_log = |name: &String| {
        let base = name.strip_suffix(".log");
        base.is_some_and(|base| base.len() == 20 && base.bytes().all(|byte| byte.is_ascii_digit()))
    };
    names.filter(is_log).count()
}

/// Whether what is done rolls a segment; names may come a little later.
fn rolls(harness: &Harness, topic: &str, work: impl FnOnce()) -> bool {
    let before = segments(harness, topic);
    work();
    for _ in 0..25 {
        if segments(harness, topic) > before {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Changes a setting for a topic and then for all brokers: each has the effect, which without
/// either is not there.
fn shows(
    harness: &mut Harness,
    own: &[(&str, &str)],
    (topic_setting, broker_setting): (&str, &str),
    value: &str,
    effect: impl Fn(&Harness, &mut Client) -> bool,
) {
    harness.create_topic_with("t", 1, own);
    let mut client = harness.connect();
    assert!(
        !effect(harness, &mut client),
        "{topic_setting} has not been changed"
    );
    alter(&mut client, TOPIC, "t", &[(topic_setting, value)]);
    assert!(effect(harness, &mut client), "{topic_setting}={value}");
    take_away(&mut client, TOPIC, "t", &[topic_setting]);
    assert!(
        !effect(harness, &mut client),
        "{topic_setting} is as before"
    );
    if broker_setting.is_empty() {
        return;
    }
    alter(&mut client, BROKER, "", &[(broker_setting, value)]);
    assert!(effect(harness, &mut client), "{broker_setting}={value}");
    take_away(&mut client, BROKER, "", &[broker_setting]);
    assert!(
        !effect(harness, &mut client),
        "{broker_setting} is as before"
    );
}

fn harness() -> Harness {
    Harness::start(HarnessOptions::default())
}

fn code(client: &mut Client, batch: BytesMut) -> ErrorCode {
    send(client, "t", 0, batch).error_code
}

#[test]
fn a_batch_may_be_so_large() {
    let names = ("max.message.bytes", "message.max.bytes");
    shows(&mut harness(), &[], names, "5000", |_, client| {
        code(client, batch(1, 6_000)) == ErrorCode::MESSAGE_TOO_LARGE
    });
}

#[test]
fn the_brokers_clock_stamps_records() {
    let names = ("message.timestamp.type", "log.message.timestamp.type");
    shows(&mut harness(), &[], names, "LogAppendTime", |_, client| {
        send(client, "t", 0, batch(1, 100)).log_append_time_ms.0 > 0
    });
}

#[test]
fn records_may_be_so_old() {
    let names = (
        "message.timestamp.before.max.ms",
        "log.message.timestamp.before.max.ms",
    );
    shows(&mut harness(), &[], names, "1000", |_, client| {
        code(client, record(now() - 60_000, 10)) == ErrorCode::INVALID_TIMESTAMP
    });
}

#[test]
fn records_may_be_so_far_ahead() {
    let names = (
        "message.timestamp.after.max.ms",
        "log.message.timestamp.after.max.ms",
    );
    shows(&mut harness(), &[], names, "90000000", |_, client| {
        code(client, record(now() + 86_400_000, 10)) == ErrorCode::NONE
    });
}

#[test]
fn batches_are_stored_in_the_topics_codec() {
    for (name, id) in [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)] {
        let names = ("compression.type", "compression.type");
        shows(&mut harness(), &[], names, name, |_, client| {
            codec(&stored(client, "t", text())) == id
        });
    }
}

#[test]
fn levels_change_what_compression_comes_to() {
    for (codec, setting, level) in [
        ("gzip", "compression.gzip.level", "1"),
        ("zstd", "compression.zstd.level", "-7"),
    ] {
        let mut harness = harness();
        harness.create_topic_with("usual", 1, &[("compression.type", codec)]);
        let usual = stored(&mut harness.connect(), "usual", text()).len();
        let own = [("compression.type", codec)];
        shows(
            &mut harness,
            &own,
            (setting, setting),
            level,
            |_, client| stored(client, "t", text()).len() > usual,
        );
    }
}

#[test]
fn acks_of_all_need_so_many_replicas() {
    let names = ("min.insync.replicas", "min.insync.replicas");
    shows(&mut harness(), &[], names, "2", |_, client| {
        code(client, batch(1, 10)) == ErrorCode::NOT_ENOUGH_REPLICAS
    });
}

#[test]
fn a_segment_rolls_at_its_size() {
    let names = ("segment.bytes", "log.segment.bytes");
    shows(&mut harness(), &[], names, "1048576", |harness, client| {
        rolls(harness, "t", || {
            for _ in 0..3 {
                assert_eq!(code(client, batch(1, 600_000)), ErrorCode::NONE);
            }
        })
    });
    // A test's own, which may be smaller.
    let names = ("internal.segment.bytes", "");
    shows(&mut harness(), &[], names, "4096", |harness, client| {
        rolls(harness, "t", || {
            for _ in 0..3 {
                assert_eq!(code(client, batch(1, 3_000)), ErrorCode::NONE);
            }
        })
    });
}

#[test]
fn a_segment_rolls_at_its_age() {
    let start = now() - 80_000_000;
    let step = std::cell::Cell::new(0);
    let names = ("segment.ms", "log.roll.ms");
    shows(&mut harness(), &[], names, "60000", |harness, client| {
        rolls(harness, "t", || {
            // Ages are counted by the records' own times.
            for _ in 0..2 {
                step.set(step.get() + 1);
                let at = start + step.get() * 70_000;
                assert_eq!(code(client, record(at, 10)), ErrorCode::NONE);
            }
        })
    });
}

/// With jitter as large as the age itself, segments roll at half of it on the average.
#[test]
fn rolls_are_spread() {
    const PARTITIONS: i32 = 24;
    for setting in ["segment.jitter.ms", "log.roll.jitter.ms"] {
        let mut harness = harness();
        let own = [("segment.ms", "1000000")];
        harness.create_topic_with("t", PARTITIONS, &own);
        let mut client = harness.connect();
        let start = now() - 80_000_000;
        let rolled = |client: &mut Client, from: i64| {
            let segments = |harness: &Harness| -> usize {
                let of = |partition: i32| {
                    let folder = harness.folder().join(format!("t-{partition}"));
                    std::fs::read_dir(folder).unwrap().count()
                };
                (0..PARTITIONS).map(of).sum()
            };
            let before = segments(&harness);
            for (partition, at) in (0..PARTITIONS).flat_map(|id| [(id, 0), (id, 500_000)]) {
                let sent = send(client, "t", partition, record(from + at, 10));
                assert_eq!(sent.error_code, ErrorCode::NONE);
            }
            std::thread::sleep(Duration::from_millis(300));
            segments(&harness) > before
        };
        assert!(!rolled(&mut client, start));
        let (kind, name) = match setting {
            "segment.jitter.ms" => (TOPIC, "t"),
            _ => (BROKER, ""),
        };
        alter(&mut client, kind, name, &[(setting, "1000000")]);
        // The first roll, by age, draws the jitter of what follows.
        rolled(&mut client, start + 2_000_000);
        assert!(rolled(&mut client, start + 2_500_001), "{setting}");
    }
}

#[test]
fn an_index_has_so_many_entries_and_a_full_one_rolls() {
    let ten = |harness: &Harness, client: &mut Client| {
        rolls(harness, "t", || {
            for _ in 0..10 {
                assert_eq!(code(client, batch(1, 100)), ErrorCode::NONE);
            }
        })
    };
    // Each batch has an entry: four of them fill the index.
    let own = [("segment.index.bytes", "32")];
    let names = ("index.interval.bytes", "log.index.interval.bytes");
    shows(&mut harness(), &own, names, "0", ten);
    let own = [("index.interval.bytes", "0")];
    let names = ("segment.index.bytes", "log.index.size.max.bytes");
    shows(&mut harness(), &own, names, "32", ten);
}

/// Producers that were not heard of for so long are forgotten: any sequence is taken from them.
#[test]
fn producers_are_forgotten() {
    let sent = |client: &mut Client, sequence: i32| {
        let mut builder = BatchBuilder::new(Offset(0)).producer(
            ProducerId(9),
            ProducerEpoch(0),
            Sequence(sequence),
        );
        builder.append(NewRecord {
            timestamp: TimestampMs(now()),
            key: None,
            value: Some(b"v"),
            headers: &[],
        });
        code(client, builder.build().unwrap())
    };
    let mut harness = harness();
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    assert_eq!(sent(&mut client, 0), ErrorCode::NONE);
    let gap = ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER;
    assert_eq!(sent(&mut client, 7), gap);
    // The first append after a start looks for those whose time is over.
    harness.restart(&HarnessOptions::default());
    let mut client = harness.connect();
    assert_eq!(sent(&mut client, 7), gap);
    alter(
        &mut client,
        BROKER,
        "",
        &[("producer.id.expiration.ms", "1")],
    );
    harness.restart(&HarnessOptions::default());
    let mut client = harness.connect();
    assert_eq!(sent(&mut client, 7), ErrorCode::NONE);
}

/// The first offset of a topic's partition.
fn start_offset(client: &mut Client, topic: &str) -> i64 {
    let response: ListOffsetsResponse = client.ask(&list_offsets(topic, 0, -2), 7);
    response.topics[0].partitions[0].offset.0
}

/// Whether the start moves past where it was within the time that several looks take; more time
/// for what must.
fn goes_past(before: i64, client: &mut Client, topic: &str, wait: Duration) -> bool {
    let started = Instant::now();
    while started.elapsed() < wait {
        if start_offset(client, topic) > before {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

const SOON: Duration = Duration::from_millis(500);
const AT_LAST: Duration = Duration::from_secs(20);

#[test]
fn old_records_go_by_the_brokers_limits() {
    let mut harness = Harness::start(HarnessOptions {
        set: |config| {
            config.initial_task_delay_ms = 0;
            config.retention_check_ms = 20;
        },
        ..HarnessOptions::default()
    });
    let mut client = harness.connect();
    // These records are older than the seven days of the default.
    alter(&mut client, BROKER, "", &[("log.retention.ms", "-1")]);
    harness.create_topic_with("t", 1, &[("segment.bytes", "1048576")]);
    for _ in 0..6 {
        assert_eq!(code(&mut client, batch(1, 600_000)), ErrorCode::NONE);
    }
    assert!(!goes_past(0, &mut client, "t", SOON), "log.retention.ms=-1");
    let deleted = |harness: &Harness| {
        let names = std::fs::read_dir(harness.folder().join("t-0")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".log.deleted")).count()
    };
    alter(
        &mut client,
        BROKER,
        "",
        &[("log.retention.bytes", "2500000")],
    );
    assert!(
        goes_past(0, &mut client, "t", AT_LAST),
        "log.retention.bytes"
    );
    // The log's start goes first, then the files are renamed.
    let began = Instant::now();
    while deleted(&harness) == 0 {
        assert!(began.elapsed() < AT_LAST, "files stay for a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(SOON);
    for (kind, name, setting) in [
        (TOPIC, "t", "file.delete.delay.ms"),
        (BROKER, "", "log.segment.delete.delay.ms"),
    ] {
        let before = deleted(&harness);
        let start = start_offset(&mut client, "t");
        alter(&mut client, kind, name, &[(setting, "0")]);
        for _ in 0..6 {
            assert_eq!(code(&mut client, batch(1, 600_000)), ErrorCode::NONE);
        }
        assert!(goes_past(start, &mut client, "t", AT_LAST), "{setting}");
        std::thread::sleep(SOON);
        assert_eq!(deleted(&harness), before, "{setting}=0 leaves none behind");
        take_away(&mut client, kind, name, &[setting]);
    }
    take_away(&mut client, BROKER, "", &["log.retention.bytes"]);
    let start = start_offset(&mut client, "t");
    assert!(!goes_past(start, &mut client, "t", SOON));
    take_away(&mut client, BROKER, "", &["log.retention.ms"]);
    assert!(
        goes_past(start, &mut client, "t", AT_LAST),
        "the default of log.retention.ms"
    );
}
