//! Round trips: produce what a file holds, write down what is consumed.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, DeliveryResult, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{MESSAGE_BYTES_MAX, Outcome, subscribe};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Closing a consumer waits for its parked fetches.
const FETCH_WAIT_MS: &str = "50";

/// Does every task of the file; a failed one is answered with its error.
pub fn run(bootstrap: &str, file: &str) -> Outcome<()> {
    let tasks: Vec<Value> = serde_json::from_reader(File::open(file)?)?;
    for task in &tasks {
        let outcome = match task["do"].as_str() {
            Some("produce") => produce(bootstrap, task),
            Some("subscribe") => subscribe::run(bootstrap, task),
            _ => consume(bootstrap, task),
        };
        println!(
            "{}",
            outcome.unwrap_or_else(|error| json!({"error": error.to_string()}))
        );
    }
    Ok(())
}

type Acks = Arc<Mutex<Vec<Option<Result<(i32, i64), String>>>>>;

struct Deliveries {
    acks: Acks,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, index: Self::DeliveryOpaque) {
        let outcome = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.to_string()),
        };
        if let Ok(mut acks) = self.acks.lock()
            && let Some(slot) = acks.get_mut(*index)
        {
            *slot = Some(outcome);
        }
    }
}

fn bytes(value: &Value) -> Outcome<Option<Vec<u8>>> {
    value
        .as_str()
        .map(|text| BASE64.decode(text))
        .transpose()
        .map_err(Into::into)
}

fn produce(bootstrap: &str, task: &Value) -> Outcome<Value> {
    let acks = Acks::default();
    let producer: ThreadedProducer<Deliveries> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set(
            "compression.codec",
            task["codec"].as_str().unwrap_or("none"),
        )
        .set("enable.idempotence", task["idempotence"].to_string())
        .set("acks", "all")
        .set("linger.ms", "20")
        .set("message.max.bytes", MESSAGE_BYTES_MAX.to_string())
        .set("queue.buffering.max.kbytes", "262144")
        .create_with_context(Deliveries {
            acks: Arc::clone(&acks),
        })?;
    let topic = task["topic"].as_str().unwrap_or_default();
    let records = BufReader::new(File::open(task["records"].as_str().unwrap_or_default())?);
    for (index, line) in records.lines().enumerate() {
        let one: Value = serde_json::from_str(&line?)?;
        let (key, value) = (bytes(&one["k"])?, bytes(&one["v"])?);
        let mut headers = OwnedHeaders::new();
        for header in one["h"].as_array().into_iter().flatten() {
            headers = headers.insert(Header {
                key: header[0].as_str().unwrap_or_default(),
                value: bytes(&header[1])?.as_deref(),
            });
        }
        acks.lock().map_err(|_| "poisoned")?.push(None);
        let mut record: BaseRecord<'_, [u8], [u8], Box<usize>> =
            BaseRecord::with_opaque_to(topic, Box::new(index))
                .partition(one["p"].as_i64().unwrap_or_default() as i32)
                .timestamp(one["t"].as_i64().unwrap_or_default())
                .headers(headers);
        record.key = key.as_deref();
        record.payload = value.as_deref();
        send(&producer, record)?;
    }
    producer.flush(TIMEOUT)?;
    let acks = acks.lock().map_err(|_| "poisoned")?;
    let mut answered = Vec::new();
    for ack in acks.iter() {
        match ack {
            Some(Ok((partition, offset))) => answered.push(json!([partition, offset])),
            Some(Err(error)) => return Err(error.clone().into()),
            None => return Err("a record was never answered".into()),
        }
    }
    Ok(json!({"acked": answered}))
}

fn send(
    producer: &ThreadedProducer<Deliveries>,
    mut record: BaseRecord<'_, [u8], [u8], Box<usize>>,
) -> Outcome<()> {
    loop {
        match producer.send(record) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                record = back;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
}

fn consume(bootstrap: &str, task: &Value) -> Outcome<Value> {
    let topic = task["topic"].as_str().unwrap_or_default();
    let partitions = task["partitions"].as_i64().unwrap_or_default() as i32;
    let (consumer, left) = consumer_of(bootstrap, topic, partitions)?;
    let mut out = BufWriter::new(File::create(task["output"].as_str().unwrap_or_default())?);
    let mut count = 0;
    while count < left {
        match consumer.poll(TIMEOUT) {
            Some(message) => writeln!(out, "{}", describe(&message?))?,
            None => return Err(format!("{count} of {left} records came").into()),
        }
        count += 1;
    }
    out.flush()?;
    Ok(json!({"count": count}))
}

/// A consumer of a whole topic from its beginning, CRCs checked, and how many records there are.
pub fn consumer_of(bootstrap: &str, topic: &str, partitions: i32) -> Outcome<(BaseConsumer, i64)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "unused")
        .set("enable.auto.commit", "false")
        // Where retention has overtaken the reader.
        .set("auto.offset.reset", "earliest")
        .set("check.crcs", "true")
        .set("fetch.wait.max.ms", FETCH_WAIT_MS)
        .set("fetch.message.max.bytes", MESSAGE_BYTES_MAX.to_string())
        .set(
            "receive.message.max.bytes",
            (8 * MESSAGE_BYTES_MAX).to_string(),
        )
        .set("fetch.max.bytes", (4 * MESSAGE_BYTES_MAX).to_string())
        .create()?;
    let mut list = TopicPartitionList::new();
    let mut count = 0;
    for partition in 0..partitions {
        // Before the assignment: it waits half a second where it does not know the leaders yet.
        let (low, high) = consumer.fetch_watermarks(topic, partition, TIMEOUT)?;
        count += high - low;
        list.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    Ok((consumer, count))
}

fn describe(message: &BorrowedMessage<'_>) -> Value {
    let encode = |data: Option<&[u8]>| data.map(|data| BASE64.encode(data));
    let headers: Vec<Value> = message
        .headers()
        .into_iter()
        .flat_map(Headers::iter)
        .map(|header| json!([header.key, encode(header.value)]))
        .collect();
    let digest = |data: &[u8]| -> String {
        Sha256::digest(data)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    json!({
        "p": message.partition(),
        "o": message.offset(),
        "t": message.timestamp().to_millis(),
        "k": encode(message.key()),
        "v": message.payload().map(digest),
        "n": message.payload_len(),
        "h": headers,
    })
}
