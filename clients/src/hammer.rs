//! Several producers that go on through the death of the broker, and write down every answer.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;
use serde_json::json;

use crate::{Outcome, required};

/// Length of every value where it is not given; what is not number is filling.
const VALUE_BYTES: usize = 100;
/// A message that is not answered in this time has failed: far longer than a restart.
const MESSAGE_TIMEOUT_MS: &str = "120000";

#[derive(Default)]
struct Totals {
    sent: AtomicU64,
    acked: AtomicU64,
    failed: AtomicU64,
}

struct Deliveries {
    log: Arc<Mutex<BufWriter<File>>>,
    totals: Arc<Totals>,
}

impl ClientContext for Deliveries {
    fn error(&self, _error: KafkaError, _reason: &str) {}

    fn log(&self, _level: rdkafka::config::RDKafkaLogLevel, _facility: &str, _message: &str) {}
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(message) => {
                self.totals.acked.fetch_add(1, Ordering::Relaxed);
                let value = message.payload().unwrap_or_default();
                let name = String::from_utf8_lossy(value);
                let name = name.split(' ').next().unwrap_or_default();
                if let Ok(mut log) = self.log.lock() {
                    // A full disk shows in the summary: fewer lines than acknowledged.
                    let _ = writeln!(log, "{} {} {name}", message.partition(), message.offset());
                }
            }
            Err((error, _)) => {
                if self.totals.failed.fetch_add(1, Ordering::Relaxed) == 0 {
                    eprintln!("first failed delivery: {error}");
                }
            }
        }
    }
}

/// Options: topic, partitions, producers, acks, idempotence, rate (records a second and producer),
/// log (of `partition offset producer:partition:number` lines, added to those there); where they
/// are not 0 and 100, first (number of the first producer) and value_bytes.
pub fn run(bootstrap: &str, options: &HashMap<String, String>) -> Outcome<()> {
    let log = required(options, "log")?;
    let log = File::options().create(true).append(true).open(log)?;
    let first: u32 = options.get("first").map_or(Ok(0), |word| word.parse())?;
    let value_bytes = options.get("value_bytes");
    let value_bytes = value_bytes.map_or(Ok(VALUE_BYTES), |word| word.parse())?;
    let log = Arc::new(Mutex::new(BufWriter::new(log)));
    let totals = Arc::new(Totals::default());
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for number in 0..required(options, "producers")?.parse::<u32>()? {
        let context = Deliveries {
            log: Arc::clone(&log),
            totals: Arc::clone(&totals),
        };
        let producer: ThreadedProducer<Deliveries> = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("acks", required(options, "acks")?)
            .set("enable.idempotence", required(options, "idempotence")?)
            .set("message.timeout.ms", MESSAGE_TIMEOUT_MS)
            .set("socket.timeout.ms", "10000")
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "200")
            .set("linger.ms", "2")
            .create_with_context(context)?;
        let job = Job {
            producer,
            number: first + number,
            value_bytes,
            topic: required(options, "topic")?.to_owned(),
            partitions: required(options, "partitions")?.parse()?,
            rate: required(options, "rate")?.parse()?,
            stop: Arc::clone(&stop),
            totals: Arc::clone(&totals),
        };
        threads.push(thread::spawn(move || job.run()));
    }
    // The end of standard input ends the sending.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    stop.store(true, Ordering::Release);
    let outcomes: Vec<_> = threads.into_iter().map(thread::JoinHandle::join).collect();
    // Written whole also where a producer failed: the log is compared with it all the same.
    log.lock().map_err(|_| "poisoned")?.flush()?;
    for outcome in outcomes {
        outcome.map_err(|_| "a producer panicked")??;
    }
    let count = |value: &AtomicU64| value.load(Ordering::Relaxed);
    let (sent, acked) = (count(&totals.sent), count(&totals.acked));
    println!(
        "{}",
        json!({"sent": sent, "acked": acked, "failed": count(&totals.failed)})
    );
    Ok(())
}

struct Job {
    producer: ThreadedProducer<Deliveries>,
    number: u32,
    value_bytes: usize,
    topic: String,
    partitions: i32,
    rate: f64,
    stop: Arc<AtomicBool>,
    totals: Arc<Totals>,
}

impl Job {
    fn run(self) -> Outcome<()> {
        let began = Instant::now();
        let mut numbers = vec![0u64; self.partitions as usize];
        let mut sent = 0u64;
        while !self.stop.load(Ordering::Acquire) {
            if sent as f64 > began.elapsed().as_secs_f64() * self.rate {
                thread::sleep(Duration::from_millis(2));
                continue;
            }
            // Some records in a row to one partition, so that batches hold several.
            let partition = (sent / 8 % self.partitions as u64) as i32;
            let number = numbers[partition as usize];
            let name = format!("{}:{partition}:{number} ", self.number);
            let value = format!("{name:.<width$}", width = self.value_bytes);
            let record: BaseRecord<'_, str, str> = BaseRecord::to(&self.topic)
                .partition(partition)
                .payload(&value);
            match self.producer.send(record) {
                Ok(()) => {
                    numbers[partition as usize] += 1;
                    sent += 1;
                    self.totals.sent.fetch_add(1, Ordering::Relaxed);
                }
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err((error, _)) => return Err(error.into()),
            }
        }
        self.producer.flush(Duration::from_secs(120))?;
        Ok(())
    }
}
