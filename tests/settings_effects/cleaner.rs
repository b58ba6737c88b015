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
use crate::changes::{BROKER, TOPIC, alter, take_away};
use crate::starts::{Process, create};

/// Within this a loaded machine has cleaned.
const AT_LAST: Duration = Duration::from_secs(20);
/// Within this a cleaner that may clean has.
const SOON: Duration = Duration::from_millis(600);
/// Within this the files of all rolled segments are finished, so that one cleaning takes them all.
const FINISHED: Duration = Duration::from_millis(1_500);
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
    let response: ProduceResponse = client.ask(&produce(topic, -1, [(0, batch)]), 9);
    assert_eq!(errors_of(&response), [ErrorCode::NONE]);
}

/// 40 records of three keys: more than enough for several segments.
fn fill(client: &mut Client, topic: &str) {
    for number in 0..40 {
        send(
            client,
            topic,
            record(&format!("k{}", number % 3), Some(&[7; 100])),
        );
    }
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
        if bytes.is_empty() {
            return found;
        }
        let mut at = 0;
        while at < bytes.len() {
            let header = BatchHeader::parse(&bytes[at..]).unwrap();
            found.push((header.base_offset.0, header.record_count));
            next = header.next_offset().0;
            at += header.total_bytes();
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

#[test]
fn a_policy_says_whether_a_topic_is_compacted() {
    let process = Process::start(&[EAGER]);
    let client = &mut process.connect();
    topic(client, "own", &[]);
    topic(client, "inherited", &[]);
    fill(client, "own");
    fill(client, "inherited");
    assert!(!is_cleaned(client, "own", 40, SOON));
    alter(client, TOPIC, "own", &[COMPACT]);
    assert!(is_cleaned(client, "own", 40, AT_LAST));
    assert!(!is_cleaned(client, "inherited", 40, Duration::ZERO + SOON));
    alter(client, BROKER, "", &[("log.cleanup.policy", "compact")]);
    assert!(is_cleaned(client, "inherited", 40, AT_LAST));
}

/// What of a topic is due: with the first of the settings nothing, with the second all.
fn holds_back(name: &str, broker: &str, (none, all): (&str, &str), others: &[(&str, &str)]) {
    let process = Process::start(&[EAGER]);
    let client = &mut process.connect();
    let with = |more: &[(&'static str, &str)]| {
        let mut settings = vec![COMPACT];
        settings.extend_from_slice(more);
        settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
    };
    let begin = |client: &mut Client, topic_name: &str, own: Option<&str>| {
        let mut settings = with(&[]);
        settings.extend(
            others
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        settings.extend(own.map(|value| (name.to_owned(), value.to_owned())));
        let settings: Vec<(&str, &str)> = settings
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        topic(client, topic_name, &settings);
        fill(client, topic_name);
    };
    begin(client, "own", Some(none));
    assert!(!is_cleaned(client, "own", 40, SOON), "{name}={none}");
    alter(client, TOPIC, "own", &[(name, all)]);
    assert!(is_cleaned(client, "own", 40, AT_LAST), "{name}={all}");
    alter(client, BROKER, "", &[(broker, none)]);
    begin(client, "inherited", None);
    assert!(
        !is_cleaned(client, "inherited", 40, SOON),
        "{broker}={none}"
    );
    alter(client, BROKER, "", &[(broker, all)]);
    assert!(
        is_cleaned(client, "inherited", 40, AT_LAST),
        "{broker}={all}"
    );
    take_away(client, BROKER, "", &[broker]);
}

#[test]
fn a_log_is_cleaned_from_a_ratio_on() {
    let (topic, broker) = (
        "min.cleanable.dirty.ratio",
        "log.cleaner.min.cleanable.ratio",
    );
    holds_back(topic, broker, ("1", "0"), &[]);
}

#[test]
fn young_records_stay() {
    let (topic, broker) = ("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms");
    holds_back(topic, broker, ("3600000", "0"), &[DIRTY]);
}

#[test]
fn old_records_are_due_whatever_the_ratio() {
    let (topic, broker) = ("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms");
    let never = ("min.cleanable.dirty.ratio", "1");
    holds_back(topic, broker, ("9223372036854775807", "1"), &[never]);
}

#[test]
fn tombstones_stay_for_their_time() {
    let process = Process::start(&[EAGER]);
    let client = &mut process.connect();
    // Offset 0 is a tombstone.
    let stays = |client: &mut Client, name: &str, settings: &[(&str, &str)]| {
        topic(client, name, settings);
        send(client, name, record("gone", None));
        fill(client, name);
        assert!(is_cleaned(client, name, 41, AT_LAST));
        let begun = Instant::now();
        let is_there = |client: &mut Client| batches(client, name).contains(&(0, 1));
        while is_there(client) && begun.elapsed() < AT_LAST {
            // More to clean: the pass after the one that met it first.
            fill(client, name);
            std::thread::sleep(Duration::from_millis(50));
            if begun.elapsed() > SOON && settings.len() == 2 {
                break;
            }
        }
        is_there(client)
    };
    let day = [COMPACT, DIRTY];
    assert!(stays(client, "day", &day));
    assert!(!stays(
        client,
        "own",
        &[COMPACT, DIRTY, ("delete.retention.ms", "0")]
    ));
    alter(
        client,
        BROKER,
        "",
        &[("log.cleaner.delete.retention.ms", "0")],
    );
    assert!(!stays(
        client,
        "inherited",
        &[COMPACT, DIRTY, ("segment.ms", "600000")]
    ));
}

#[test]
fn the_cleaner_runs_when_its_settings_say() {
    let cleans = |settings: &[&str], within| {
        let process = Process::start(settings);
        let client = &mut process.connect();
        // The first look has found nothing.
        std::thread::sleep(Duration::from_millis(200));
        topic(client, "t", &[COMPACT]);
        fill(client, "t");
        is_cleaned(client, "t", 40, within)
    };
    assert!(cleans(&[EAGER], AT_LAST));
    assert!(!cleans(&[EAGER, "log.cleaner.enable=false"], SOON));
    assert!(!cleans(&[EAGER, "log.cleaner.threads=0"], SOON));
    assert!(!cleans(&[], SOON), "it rests for 15 s");
}

/// Cleanings so far, and how long the last took.
fn told(process: &Process) -> (f64, f64) {
    let text = crate::broker::admin::text(process.admin, "/metrics");
    let series = crate::broker::admin::series(&text);
    let named = |name: &str| {
        let of_name = series.iter().filter(|(key, _)| key.starts_with(name));
        of_name.map(|(_, value)| value).sum()
    };
    (
        named("coreline_cleanings_total"),
        named("kafka_log_logcleaner_max_clean_time_secs"),
    )
}

/// Whether there are so many cleanings at last, and no more; how long the last took.
fn cleaned(process: &Process, times: f64) -> f64 {
    let begun = Instant::now();
    while told(process).0 < times && begun.elapsed() < AT_LAST {
        std::thread::sleep(Duration::from_millis(100));
    }
    // The admin thread hears of it each second.
    std::thread::sleep(Duration::from_millis(1_300));
    let (found, took) = told(process);
    assert_eq!(found, times);
    took
}

#[test]
fn a_table_holds_what_its_memory_and_load_allow() {
    let cleanings = |settings: &[&str], times| {
        let mut all = vec![EAGER];
        all.extend_from_slice(settings);
        let process = Process::start(&all);
        let client = &mut process.connect();
        topic(client, "t", &[("internal.segment.bytes", "30000")]);
        for hundred in 0..450 {
            let mut builder = BatchBuilder::new(Offset(0));
            for number in 0..100 {
                builder.append(NewRecord {
                    timestamp: TimestampMs(1_000),
                    key: Some(format!("{hundred}-{number}").as_bytes()),
                    value: Some(b"v"),
                    headers: &[],
                });
            }
            send(client, "t", builder.build().unwrap());
        }
        std::thread::sleep(FINISHED);
        alter(
            client,
            TOPIC,
            "t",
            &[COMPACT, ("min.cleanable.dirty.ratio", "0.01")],
        );
        cleaned(&process, times);
    };
    // 45,000 keys of 24 bytes; 1,100,000 bytes hold 41,249 at nine tenths.
    let small = "log.cleaner.dedupe.buffer.size=1100000";
    let load = "log.cleaner.io.buffer.load.factor=0.3";
    cleanings(&[], 1.0);
    cleanings(&[small], 2.0);
    cleanings(&[small, load], 4.0);
}

#[test]
fn the_cleaner_moves_so_many_bytes_a_second() {
    let took = |rate: &str| {
        let process = Process::start(&[EAGER]);
        let client = &mut process.connect();
        alter(
            client,
            BROKER,
            "",
            &[("log.cleaner.io.max.bytes.per.second", rate)],
        );
        topic(client, "t", &[]);
        fill(client, "t");
        std::thread::sleep(FINISHED);
        alter(client, TOPIC, "t", &[COMPACT]);
        cleaned(&process, 1.0)
    };
    // Some 6 kB, once for the keys and once for the records.
    assert!(took("5000") > 1.0);
    assert!(took("1e9") < 1.0);
}
