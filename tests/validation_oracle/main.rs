//! Validation compared with Apache Kafka: every case of `cases.rs` was sent to a running broker,
//! and its answers stand in `answers.txt`. Our answers must be the same, and what is stored too,
//! but for the deviations listed here with their reasons.
//!
//! `KAFKA_BOOTSTRAP=127.0.0.1:9092 cargo test --test validation_oracle -- --ignored` asks a running
//! Apache Kafka again and compares stored bytes as well; with `KAFKA_RECORD=1` it writes the table
//! anew.

mod cases;
mod kafka;

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use cases::{Case, TOPICS, cases};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{ApiVersion, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use coreline::base::random::Random;
use coreline::base::time::{TimestampMs, TimestampType};
use coreline::log::format::producer_state::{ProducerCheck, ProducerStates};
use coreline::log::validation::{
    ValidationError, ValidationOptions, check_produced, check_transactional, recompress, validate,
    wants_recompression,
};
use coreline::log::{AppendOrigin, LogConfig};
use coreline::wire::compression::{Codec, DecodeLimits, Decoder};
use coreline::wire::record_batch::{
    BatchBuilder, BatchHeader, HEADER_BYTES, NewRecord, stamp_base_offset, stamp_leader_epoch,
};
use kafka::Kafka;

/// Kafka closes the connection or never answers.
const SILENCE: i16 = i16::MIN;

/// Where we are stricter than Kafka, and why. A name ends in `*` where it is a beginning.
const DEVIATIONS: [(&str, ErrorCode, &str); 15] = [
    (
        "null records",
        ErrorCode::INVALID_RECORD,
        "Kafka never answers: the client waits in vain",
    ),
    ("offset deltas *", ErrorCode::INVALID_RECORD, WRONG_OFFSETS),
    (
        "to-gzip, offset deltas *",
        ErrorCode::INVALID_RECORD,
        WRONG_OFFSETS,
    ),
    (
        "to-zstd, offset deltas *",
        ErrorCode::INVALID_RECORD,
        WRONG_OFFSETS,
    ),
    (
        "to-none, offset deltas *",
        ErrorCode::INVALID_RECORD,
        WRONG_OFFSETS,
    ),
    (
        "snappy stream: a bit of its end flipped",
        ErrorCode::INVALID_RECORD,
        WRONG_OFFSETS,
    ),
    (
        "zstd stream: a bit of its end flipped",
        ErrorCode::INVALID_RECORD,
        WRONG_OFFSETS,
    ),
    (
        "record: length one too long, gzip",
        ErrorCode::INVALID_RECORD,
        UNREADABLE,
    ),
    (
        "record: length one too short, gzip",
        ErrorCode::INVALID_RECORD,
        UNREADABLE,
    ),
    (
        "record: key length -2*",
        ErrorCode::INVALID_RECORD,
        UNREADABLE,
    ),
    (
        "record: value length -2*",
        ErrorCode::INVALID_RECORD,
        UNREADABLE,
    ),
    (
        "record: header with value -2*",
        ErrorCode::INVALID_RECORD,
        UNREADABLE,
    ),
    (
        "record: offset delta of 33 bits*",
        ErrorCode::INVALID_RECORD,
        UNREADABLE,
    ),
    ("40 MiB of zeros, gzip", ErrorCode::MESSAGE_TOO_LARGE, BOMB),
    ("40 MiB of zeros, zstd", ErrorCode::MESSAGE_TOO_LARGE, BOMB),
];
const WRONG_OFFSETS: &str = "Kafka stores records whose offsets are not theirs, or fails within";
const UNREADABLE: &str = "Kafka stores what other clients, or its own, cannot read back";
const BOMB: &str = "Kafka decompresses without limit on the thread that serves others";

const ANSWERS: &str = include_str!("answers.txt");

fn config_of(topic: &str) -> LogConfig {
    let (_, settings) = TOPICS
        .iter()
        .find(|(name, _)| *name == topic)
        .expect("a known topic");
    let mut config = LogConfig::default();
    for (name, value) in *settings {
        let number = || value.parse::<u64>().expect("a number");
        match *name {
            "cleanup.policy" => config.compacted = true,
            "message.timestamp.type" => config.timestamp_type = TimestampType::LogAppendTime,
            "message.timestamp.before.max.ms" => config.timestamp_before_max_ms = number() as i64,
            "message.timestamp.after.max.ms" => config.timestamp_after_max_ms = number() as i64,
            "max.message.bytes" => config.max_message_bytes = number() as usize,
            "segment.bytes" => config.segment_bytes = number(),
            "compression.type" => {
                let codec = Codec::ALL.iter().find(|codec| codec.name() == *value);
                config.compression = Some(codec.map_or(0, |codec| codec.id()));
            }
            _ => panic!("{name} is not known here"),
        }
    }
    config
}

/// Kafka's code and our words.
struct Refusal(ErrorCode, String);

impl From<ValidationError> for Refusal {
    fn from(error: ValidationError) -> Self {
        Self(error.error_code(), error.to_string())
    }
}

/// What we would store of a case, but for offset and leader epoch. No producer of the cases is
/// known before.
fn ours(case: &Case, now: i64) -> Result<BytesMut, Refusal> {
    let header = check_produced(case.records.as_deref(), ApiVersion(case.version))?;
    check_transactional(&header, None)?;
    let records = case.records.as_deref().unwrap_or_default();
    let mut batch = BytesMut::from(&records[..header.total_bytes()]);
    let config = config_of(case.topic);
    let options = ValidationOptions {
        origin: AppendOrigin::Client,
        config: &config,
        now: TimestampMs(now),
    };
    let validated = validate(&mut batch, &options)?;
    ProducerStates::default()
        .check(&validated.header, AppendOrigin::Client)
        .map_err(|error| Refusal(error.error_code(), error.to_string()))?;
    match wants_recompression(&validated.header, &config) {
        Some(codec) => Ok(recompress(&batch, codec, &config)?),
        None => Ok(batch),
    }
}

fn our_code(case: &Case, now: i64) -> i16 {
    ours(case, now).map_or_else(|refusal| refusal.0.0, |_| 0)
}

fn deviation(name: &str) -> Option<ErrorCode> {
    let found = DEVIATIONS
        .iter()
        .find(|(pattern, _, _)| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *pattern,
        });
    found.map(|(_, code, _)| *code)
}

fn recorded() -> BTreeMap<&'static str, i16> {
    let lines = ANSWERS.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &'static str| {
        let (code, name) = line.split_once(' ').expect("code and name");
        let code = if code == "silence" {
            SILENCE
        } else {
            code.parse().expect("a code")
        };
        (name, code)
    };
    lines.map(entry).collect()
}

#[test]
fn our_answers_are_kafkas() {
    let now = 1_800_000_000_000;
    let recorded = recorded();
    let cases = cases(now);
    let mut faults = Vec::new();
    for case in &cases {
        let Some(kafkas) = recorded.get(case.name.as_str()) else {
            faults.push(format!("{}: no answer is recorded", case.name));
            continue;
        };
        let ours = our_code(case, now);
        let expected = deviation(&case.name).map_or(*kafkas, |code| code.0);
        if ours != expected {
            let found = (ErrorCode(ours), ErrorCode(expected));
            faults.push(format!(
                "{}: {} but expected {}",
                case.name, found.0, found.1
            ));
        }
        if deviation(&case.name).is_some_and(|code| code.0 == *kafkas) {
            faults.push(format!("{}: listed as a deviation but is none", case.name));
        }
    }
    assert_eq!(
        cases.len(),
        recorded.len(),
        "the table has cases that are gone"
    );
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
}

#[test]
#[ignore = "needs a running Apache Kafka at KAFKA_BOOTSTRAP"]
fn a_running_kafka_gives_the_recorded_answers_and_stores_what_we_would() {
    let bootstrap = std::env::var("KAFKA_BOOTSTRAP").expect("KAFKA_BOOTSTRAP names a broker");
    let records_answers = std::env::var_os("KAFKA_RECORD").is_some();
    let mut kafka = Kafka::connect(&bootstrap);
    let run = std::process::id();
    let wall = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a clock")
            .as_millis() as i64
    };
    let now = wall();
    for (topic, settings) in TOPICS {
        kafka.create_topic(&format!("{topic}-{run}"), settings);
    }
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut table = String::from("# What Apache Kafka 4.4.0 answers: error code, case.\n");
    let mut faults = Vec::new();
    for case in &cases(now) {
        // Kafka never answers null; waiting for it would only cost time.
        let produced = case
            .records
            .as_ref()
            .map(|records| kafka.produce(case.version, &format!("{}-{run}", case.topic), records));
        let code = match &produced {
            Some(Some(produced)) => produced.code,
            _ => SILENCE,
        };
        let shown = if code == SILENCE {
            "silence".to_owned()
        } else {
            code.to_string()
        };
        table.push_str(&format!("{shown} {}\n", case.name));
        if !records_answers && recorded().get(case.name.as_str()) != Some(&code) {
            faults.push(format!(
                "{}: answered {code}, not what is recorded",
                case.name
            ));
        }
        let Some(Some(produced)) = produced else {
            continue;
        };
        let stamped = Some(produced.log_append_time).filter(|time| *time >= 0);
        let ours = ours(case, stamped.unwrap_or(now));
        let our_code = ours.as_ref().map_or_else(|refusal| refusal.0.0, |_| 0);
        if our_code != code && deviation(&case.name).is_none_or(|code| code.0 != our_code) {
            let words = ours.as_ref().err().map_or("", |refusal| &refusal.1);
            let message = &produced.message;
            faults.push(format!(
                "{}: {code} ({message}), ours {our_code} ({words})",
                case.name
            ));
        }
        if let (0, Ok(ours)) = (code, ours) {
            let topic = format!("{}-{run}", case.topic);
            let stored = kafka.fetch(&topic, produced.base_offset);
            compare_stored(&case.name, &stored, ours, &mut faults);
        }
    }
    if records_answers {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/validation_oracle/answers.txt"
        );
        std::fs::write(path, table).expect("the table is written");
    }
    assert!(
        faults.is_empty(),
        "{}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Random retries, gaps, old and new epochs of several producers: a running Kafka and our state of
/// producers say the same to each, offsets of retries included.
#[test]
#[ignore = "needs a running Apache Kafka at KAFKA_BOOTSTRAP"]
fn a_running_kafka_judges_sequences_as_we_do() {
    let bootstrap = std::env::var("KAFKA_BOOTSTRAP").expect("KAFKA_BOOTSTRAP names a broker");
    let mut kafka = Kafka::connect(&bootstrap);
    let topic = format!("sequences-{}", std::process::id());
    kafka.create_topic(&topic, &[]);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut random = Random::new(20_261_130);
    let mut states = ProducerStates::default();
    let mut next = [(0i64, 0i64); 4];
    let mut end = 0;
    let mut seen = BTreeMap::new();
    for step in 0..600 {
        let producer = random.below(4) as usize;
        let (epoch, sequence) = next[producer];
        let epoch = (epoch + [0, 0, 0, 0, 0, 0, 0, -1, 1][random.below(9) as usize]).max(0);
        let back = [0, 0, 0, 0, 1, 2, 4, 8, 12, -1][random.below(10) as usize];
        let sequence = if random.chance(1, 12) {
            0
        } else {
            (sequence - back).max(0)
        };
        let count = 1 + random.below(3) as i64 % 2;
        let mut builder = BatchBuilder::new(Offset(0)).producer(
            ProducerId(9_000_000 + producer as i64),
            ProducerEpoch(epoch as i16),
            Sequence(sequence as i32),
        );
        for _ in 0..count {
            builder.append(NewRecord {
                timestamp: TimestampMs(1),
                ..NewRecord::default()
            });
        }
        let batch = builder.build().expect("it builds");
        let answer = kafka.produce(8, &topic, &batch).expect("an answer");
        let mut header = BatchHeader::parse(&batch).expect("a header");
        let (ours, offset) = match states.check(&header, AppendOrigin::Client) {
            Ok(ProducerCheck::Append) => {
                header.base_offset = Offset(end);
                states.apply(&header);
                end += count;
                next[producer] = (epoch, sequence + count);
                (0, header.base_offset.0)
            }
            Ok(ProducerCheck::Duplicate(original)) => (0, original.first_offset().0),
            Err(error) => (error.error_code().0, -1),
        };
        let what = format!("step {step}: producer {producer} epoch {epoch} sequence {sequence}");
        assert_eq!((answer.code, answer.base_offset), (ours, offset), "{what}");
        *seen.entry(ours).or_insert(0) += 1;
    }
    assert!(seen.len() == 3, "each answer occurs: {seen:?}");
}

/// Compares what Kafka stored with what we would: to the byte, or where either recompressed by
/// header and records.
fn compare_stored(name: &str, stored: &[u8], mut ours: BytesMut, faults: &mut Vec<String>) {
    let header = BatchHeader::parse(stored).expect("Kafka stores batches");
    stamp_base_offset(&mut ours, header.base_offset);
    stamp_leader_epoch(&mut ours, header.leader_epoch);
    let stored = &stored[..header.total_bytes().min(stored.len())];
    if stored == &ours[..] {
        return;
    }
    let plain = |bytes: &[u8]| {
        let mut header = BatchHeader::parse(bytes).expect("a batch");
        let codec = header.attributes.codec().expect("a codec");
        let mut records = Vec::new();
        let mut decoder =
            Decoder::new(codec, &bytes[HEADER_BYTES..], DecodeLimits::default()).expect("a stream");
        decoder.read_to_end(&mut records).expect("it decompresses");
        header.crc = 0;
        header.batch_length = 0;
        (header, records)
    };
    let is_recompressed = name.starts_with("to-");
    if !is_recompressed || plain(stored) != plain(&ours) {
        let ours = BatchHeader::parse(&ours).expect("a batch");
        faults.push(format!("{name}: stored {header:?}\n    ours {ours:?}"));
    }
    assert_ne!(header.leader_epoch, LeaderEpoch::NONE);
    assert!(header.base_offset >= Offset(0));
}
