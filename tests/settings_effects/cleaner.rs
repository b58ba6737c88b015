//! Settings of the cleaner: each changed, and what it keeps, when, seen by reading.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::Offset;
use coreline::base::time::TimestampMs;
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::record_batch::{BatchBuilder, BatchHeader, NewRecord};

use crate::broker::Client;
use crate::broker::requests::{answers, errors_of, fetch, produce};
use crate::changes::{BROKER, TOPIC, alter};
use crate::starts::{Process, create};

/// Within this a loaded machine has cleaned.
const AT_LAST: Duration = Duration::from_secs(240);
/// After a topic that was filled last is cleaned, the others that are due follow within this.
const SOON: Duration = Duration::from_millis(200);
/// A cleaner that looks all the time.
const EAGER: &str = "log.cleaner.backoff.ms=20";

fn record(key: &str, value: Option<&[u8]>) -> BytesMut {
    let mut builder = BatchBuilder::new(Offset(0));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    builder.append(NewRecord {
        timestamp: TimestampMs(now.as_millis() as i64),
        key: Some(key.as_bytes()),
        value,
        headers: &[],
    });
    builder.build().unwrap()
}

fn send(client: &mut Client, topic: &str, batch: BytesMut) {
    send_all(client, topic, vec![batch]);
}

/// One behind the other, without waiting in between: one flush serves many.
fn send_all(client: &mut Client, topic: &str, batches: Vec<BytesMut>) {
    let count = batches.len();
    for batch in batches {
        client.send(&produce(topic, -1, [(0, batch)]), 9);
    }
    for _ in 0..count {
        let (_, response): (i32, ProduceResponse) = client.receive(9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE]);
    }
}

/// 40 records of three keys: more than enough for several segments.
fn fill(client: &mut Client, topic: &str) {
    let one = |number| record(&format!("k{}", number % 3), Some(&[7; 100]));
    send_all(client, topic, (0..40).map(one).collect());
}

/// Base offset and records of each batch.
fn batches(client: &mut Client, topic: &str) -> Vec<(i64, i32)> {
    let (mut found, mut next) = (Vec::new(), 0);
    loop {
        let response: FetchResponse = client.ask(&fetch(topic, &[(0, next)]), 12);
        let answer = answers(&response)[0];
        let bytes = answer
            .records
            .as_ref()
            .map(|records| records.slices.concat());
        let bytes = bytes.unwrap_or_default();
        let end = answer.high_watermark.0;
        let mut at = 0;
        while at < bytes.len() {
            let header = BatchHeader::parse(&bytes[at..]).unwrap();
            found.push((header.base_offset.0, header.record_count));
            next = header.next_offset().0;
            at += header.total_bytes();
        }
        // A fetch past the end would wait for more.
        if bytes.is_empty() || next >= end {
            return found;
        }
    }
}

fn records(client: &mut Client, topic: &str) -> i32 {
    batches(client, topic)
        .iter()
        .map(|(_, records)| records)
        .sum()
}

/// Whether a filled topic comes to hold less.
fn is_cleaned(client: &mut Client, topic: &str, before: i32, within: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < within {
        if records(client, topic) < before {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Waits until another topic, filled after all others, is cleaned: those that are due have been, or
/// are within a moment.
fn wait_for_others(client: &mut Client) {
    let name = "control";
    topic(client, name, &[COMPACT, DIRTY, OLD]);
    fill(client, name);
    assert!(is_cleaned(client, name, 40, AT_LAST));
    std::thread::sleep(SOON);
}

/// Waits until all segments but the last of these topics are finished: each has its indexes.
fn wait_until_finished(process: &Process, names: &[&str]) {
    let is_finished = |name: &&str| {
        let folder = process.data().join(format!("{name}-0"));
        let files = std::fs::read_dir(folder).unwrap();
        let names: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let of = |kind: &str| names.iter().filter(|name| name.ends_with(kind)).count();
        of(".log") > 1 && of(".coreline-indexes") + 1 >= of(".log")
    };
    let begun = Instant::now();
    while !names.iter().all(is_finished) {
        assert!(begun.elapsed() < AT_LAST);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A topic of small segments.
fn topic(client: &mut Client, name: &str, settings: &[(&str, &str)]) {
    assert_eq!(create(client, name, 1, 1).0, ErrorCode::NONE);
    alter(client, TOPIC, name, &[("internal.segment.bytes", "1500")]);
    if !settings.is_empty() {
        alter(client, TOPIC, name, settings);
    }
}

const COMPACT: (&str, &str) = ("cleanup.policy", "compact");
const DIRTY: (&str, &str) = ("min.cleanable.dirty.ratio", "0");
const CLEAN: (&str, &str) = ("min.cleanable.dirty.ratio", "1");
const OLD: (&str, &str) = ("min.compaction.lag.ms", "0");
const YOUNG: (&str, &str) = ("min.compaction.lag.ms", "3600000");
const NEVER: (&str, &str) = ("max.compaction.lag.ms", "9223372036854775807");

type Setting = (&'static str, &'static str);

/// Topics, what each is made with, and what makes it due; the last four go by the broker's settings.
const HELD_BACK: [(&str, &[Setting], Option<Setting>); 8] = [
    ("policy", &[DIRTY, OLD], Some(COMPACT)),
    ("ratio", &[COMPACT, CLEAN, OLD, NEVER], Some(DIRTY)),
    ("young", &[COMPACT, DIRTY, YOUNG], Some(OLD)),
    (
        "late",
        &[COMPACT, CLEAN, OLD, NEVER],
        Some(("max.compaction.lag.ms", "1")),
    ),
    ("broker-policy", &[DIRTY, OLD], None),
    ("broker-ratio", &[COMPACT, OLD, NEVER], None),
    ("broker-young", &[COMPACT, DIRTY], None),
    ("broker-late", &[COMPACT, CLEAN, OLD], None),
];

/// What the broker says first, and what makes all due that go by it.
const HOLDING: [(&str, &str); 2] = [
    ("log.cleaner.min.cleanable.ratio", "1"),
    ("log.cleaner.min.compaction.lag.ms", "3600000"),
];
const LETTING: [(&str, &str); 4] = [
    ("log.cleaner.min.cleanable.ratio", "0"),
    ("log.cleaner.min.compaction.lag.ms", "0"),
    ("log.cleaner.max.compaction.lag.ms", "1"),
    ("log.cleanup.policy", "compact"),
];

#[test]
fn a_log_is_cleaned_when_its_policy_ratio_and_lags_say() {
    let process = Process::start(&[EAGER]);
    let client = &mut process.connect();
    alter(client, BROKER, "", &HOLDING);
    for (name, settings, _) in HELD_BACK {
        topic(client, name, settings);
        fill(client, name);
    }
    wait_for_others(client);
    for (name, _, _) in HELD_BACK {
        assert_eq!(records(client, name), 40, "{name} is held back");
    }
    for (name, _, letting) in HELD_BACK {
        if let Some(letting) = letting {
            alter(client, TOPIC, name, &[letting]);
        }
    }
    for (name, _, _) in HELD_BACK.iter().filter(|(_, _, letting)| letting.is_some()) {
        assert!(is_cleaned(client, name, 40, AT_LAST), "{name}");
    }
    let of_broker = || HELD_BACK.iter().filter(|(_, _, letting)| letting.is_none());
    for (name, _, _) in of_broker() {
        assert_eq!(records(client, name), 40, "{name} goes by the broker");
    }
    for letting in LETTING {
        alter(client, BROKER, "", &[letting]);
    }
    for (name, _, _) in of_broker() {
        assert!(is_cleaned(client, name, 40, AT_LAST), "{name}");
    }
}

#[test]
fn tombstones_stay_for_their_time() {
    const HOUR: (&str, &str) = ("delete.retention.ms", "3600000");
    const AT_ONCE: (&str, &str) = ("delete.retention.ms", "0");
    let process = Process::start(&[EAGER]);
    let client = &mut process.connect();
    let holds = |client: &mut Client, name: &str| batches(client, name).contains(&(0, 1));
    // The first cleaning says from when on the tombstone may go, the third at the latest takes it.
    let clean_thrice = |client: &mut Client, names: &[&str]| {
        for count in 1..=3 {
            names.iter().for_each(|name| fill(client, name));
            let begun = Instant::now();
            while names.iter().any(|name| told(&process, name).len() < count) {
                assert!(begun.elapsed() < AT_LAST, "{}", process.log());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    };
    let begin = |client: &mut Client, name: &str, settings: &[(&str, &str)]| {
        topic(client, name, &[COMPACT, DIRTY]);
        if !settings.is_empty() {
            alter(client, TOPIC, name, settings);
        }
        send(client, name, record("gone", None));
    };
    begin(client, "own", &[AT_ONCE]);
    begin(client, "inherited-day", &[]);
    clean_thrice(client, &["own", "inherited-day"]);
    assert!(!holds(client, "own"));
    assert!(holds(client, "inherited-day"));
    let retention = ("log.cleaner.delete.retention.ms", "0");
    alter(client, BROKER, "", &[retention]);
    begin(client, "inherited", &[]);
    begin(client, "own-hour", &[HOUR]);
    clean_thrice(client, &["inherited", "own-hour"]);
    assert!(!holds(client, "inherited"));
    assert!(holds(client, "own-hour"));
}

#[test]
fn a_cleaner_that_is_not_enabled_does_not_run() {
    let process = Process::start(&[EAGER, "log.cleaner.enable=false"]);
    let client = &mut process.connect();
    topic(client, "t", &[COMPACT, DIRTY]);
    fill(client, "t");
    wait_until_finished(&process, &["t"]);
    assert!(!is_cleaned(client, "t", 40, SOON));
}

/// What the broker's log tells of each cleaning of a topic: buffers read and seconds.
fn told(process: &Process, name: &str) -> Vec<(u64, f64)> {
    let begin = format!("{name}-0: cleaned offsets ");
    let log = process.log();
    let lines = log.lines().filter(|line| line.contains(&begin));
    let number = |line: &str, before: &str| -> f64 {
        let (_, rest) = line.split_once(before).unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    let told = lines.map(|line| (number(line, " with ") as u64, number(line, " after ")));
    told.collect()
}

/// The cleanings of a topic that becomes compacted, once there are so many; no more follow.
fn cleanings(process: &Process, client: &mut Client, name: &str, count: usize) -> Vec<(u64, f64)> {
    alter(client, TOPIC, name, &[COMPACT]);
    let begun = Instant::now();
    while told(process, name).len() < count && begun.elapsed() < AT_LAST {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(60));
    let told = told(process, name);
    assert_eq!(told.len(), count, "{name}: {told:?}");
    told
}

/// 2,000 keys, each once.
fn fill_keys(client: &mut Client, name: &str) {
    let one = |hundred| {
        let mut builder = BatchBuilder::new(Offset(0));
        for number in 0..100 {
            builder.append(NewRecord {
                timestamp: TimestampMs(1_000),
                key: Some(format!("{hundred}-{number}").as_bytes()),
                value: Some(b"v"),
                headers: &[],
            });
        }
        builder.build().unwrap()
    };
    send_all(client, name, (0..20).map(one).collect());
}

const TABLES: [&str; 4] = ["load", "both", "memory", "threads"];
const BUFFERS: [&str; 2] = ["plain", "buffer"];
const PACES: [&str; 2] = ["slow", "resting"];

#[test]
fn the_cleaner_works_as_fast_and_with_as_much_memory_as_it_may() {
    let process = Process::start(&[EAGER]);
    let client = &mut process.connect();
    let few = ("min.cleanable.dirty.ratio", "0.01");
    for name in TABLES {
        topic(client, name, &[few]);
        fill_keys(client, name);
    }
    for name in BUFFERS {
        topic(client, name, &[few, ("internal.segment.bytes", "30000")]);
        fill_keys(client, name);
        fill_keys(client, name);
    }
    for name in PACES {
        topic(client, name, &[few]);
        fill(client, name);
    }
    for names in [&TABLES[..], &BUFFERS, &PACES] {
        wait_until_finished(&process, names);
    }
    let set = |client: &mut Client, name: &str, value: &str| {
        alter(client, BROKER, "", &[(name, value)]);
    };
    let (whole, _) = cleanings(&process, client, "plain", 1)[0];
    // 24 bytes a key: 1,100,000 bytes hold 916 at a load of 0.02.
    let (memory, load) = (
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
    );
    set(client, memory, "1100000");
    set(client, load, "0.02");
    cleanings(&process, client, "both", 3);
    set(client, load, "0.04");
    cleanings(&process, client, "load", 2);
    set(client, load, "0.02");
    set(client, memory, "2200000");
    cleanings(&process, client, "memory", 2);
    // Each of two has half of it.
    set(client, "log.cleaner.threads", "2");
    cleanings(&process, client, "threads", 3);
    set(client, "log.cleaner.threads", "1");
    set(client, load, "0.9");
    // One half of it to read into: a segment is read at once, and then it is not.
    set(client, "log.cleaner.io.buffer.size", "8192");
    let (parts, _) = cleanings(&process, client, "buffer", 1)[0];
    assert!(parts >= 4 * whole, "{parts} buffers, {whole} before");
    set(client, "log.cleaner.io.buffer.size", "524288");
    // Some 6 kB, once for the keys and once for the records.
    set(client, "log.cleaner.io.max.bytes.per.second", "15000");
    assert!(cleanings(&process, client, "slow", 1)[0].1 > 0.4);
    set(client, "log.cleaner.io.max.bytes.per.second", "1e9");
    set(client, "log.cleaner.backoff.ms", "15000");
    std::thread::sleep(Duration::from_millis(100));
    cleanings(&process, client, "resting", 0);
    let text = crate::broker::admin::text(process.admin, "/metrics");
    let series = crate::broker::admin::series(&text);
    let named = |name: &str| -> f64 {
        let of_name = series.iter().filter(|(key, _)| key.starts_with(name));
        of_name.map(|(_, value)| value).sum()
    };
    assert!(named("coreline_cleanings_total") >= 10.0);
    assert!(named("kafka_log_logcleaner_max_clean_time_secs") > 0.4);
    assert!(named("coreline_cleaner_reads_total") > 10.0);
}
