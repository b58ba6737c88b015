//! A reader that is slower than the producers: it goes through old data, and finds its place gone
//! where retention overtakes it. What it reads must follow upon what it has read.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use serde_json::json;

use crate::names::{pack, told, unpack};
use crate::tasks::consumer_of;
use crate::{Outcome, required};

const POLL: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Trail {
    read: u64,
    /// Places where retention had overtaken the reader.
    jumps: u64,
    faults: u64,
    first: Option<String>,
    /// By partition: the next offset, and how often it has jumped.
    places: HashMap<i32, (i64, u64)>,
    /// By partition and producer: the last number, and the partition's jumps then.
    numbers: HashMap<(i32, u64), (u64, u64)>,
}

impl Trail {
    fn fault(&mut self, what: String) {
        self.faults += 1;
        self.first.get_or_insert(what);
    }

    fn take(&mut self, partition: i32, offset: i64, value: &str) {
        self.read += 1;
        let name = match pack(value, partition) {
            Ok(name) => name,
            Err(error) => return self.fault(format!("{partition}@{offset}: {error}")),
        };
        let (next, jumps) = self.places.get(&partition).copied().unwrap_or((offset, 0));
        if offset < next {
            return self.fault(format!("{partition}@{offset} after {next}"));
        }
        let jumps = jumps + u64::from(offset > next);
        self.jumps += u64::from(offset > next);
        self.places.insert(partition, (offset + 1, jumps));
        let (producer, number) = unpack(name);
        let last = self.numbers.insert((partition, producer), (number, jumps));
        if let Some((last, jumped)) = last {
            let follows = number == last + 1 || jumps > jumped && number > last;
            if !follows {
                let name = told(name);
                self.fault(format!("{partition}@{offset}: {name} after number {last}"));
            }
        }
    }
}

/// Options: topic, partitions, rate (records a second), jumps=true where retention may overtake.
pub fn run(bootstrap: &str, options: &HashMap<String, String>) -> Outcome<()> {
    let topic = required(options, "topic")?;
    let partitions: i32 = required(options, "partitions")?.parse()?;
    let rate: f64 = required(options, "rate")?.parse()?;
    let may_jump = options.get("jumps").is_some_and(|word| word == "true");
    let (consumer, _) = consumer_of(bootstrap, topic, partitions)?;
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    // The end of standard input ends the reading.
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, Ordering::Release);
    });
    let (mut trail, mut errors) = (Trail::default(), 0u64);
    let began = Instant::now();
    while !stop.load(Ordering::Acquire) {
        if trail.read as f64 > began.elapsed().as_secs_f64() * rate {
            thread::sleep(Duration::from_millis(2));
            continue;
        }
        match consumer.poll(POLL) {
            None => {}
            Some(Ok(message)) => {
                let value = String::from_utf8_lossy(message.payload().unwrap_or_default());
                trail.take(message.partition(), message.offset(), &value);
            }
            // The broker is away.
            Some(Err(_)) => errors += 1,
        }
    }
    if trail.jumps > 0 && !may_jump {
        let jumps = trail.jumps;
        trail.fault(format!("{jumps} times records are missing"));
    }
    println!(
        "{}",
        json!({
            "read": trail.read, "jumps": trail.jumps, "faults": trail.faults,
            "first": trail.first, "errors": errors,
            "behind": behind(&consumer, topic, &trail)?,
        })
    );
    Ok(())
}

/// Records that it has not read yet.
fn behind(consumer: &BaseConsumer, topic: &str, trail: &Trail) -> Outcome<i64> {
    let mut sum = 0;
    for (partition, (next, _)) in &trail.places {
        sum += consumer.fetch_watermarks(topic, *partition, TIMEOUT)?.1 - next;
    }
    Ok(sum)
}
