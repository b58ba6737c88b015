//! Whether the log holds what was acknowledged: each record at its offset, and with idempotence
//! each once and in order.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use rdkafka::message::Message;
use serde_json::json;

use crate::tasks::consumer_of;
use crate::{Outcome, required};

const TIMEOUT: Duration = Duration::from_secs(30);

/// What is wrong with a log, counted, and the first case in words.
#[derive(Default)]
struct Faults {
    lost: u64,
    moved: u64,
    duplicate: u64,
    disordered: u64,
    first: Option<String>,
}

impl Faults {
    fn note(&mut self, text: impl FnOnce() -> String) {
        if self.first.is_none() {
            self.first = Some(text());
        }
    }
}

/// Options: topic, partitions, idempotence, log (as `hammer` wrote it).
pub fn run(bootstrap: &str, options: &HashMap<String, String>) -> Outcome<()> {
    let topic = required(options, "topic")?;
    let partitions: i32 = required(options, "partitions")?.parse()?;
    let stored = read_topic(bootstrap, topic, partitions)?;
    let mut faults = Faults::default();
    let mut acked = 0u64;
    for line in BufReader::new(File::open(required(options, "log")?)?).lines() {
        let line = line?;
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or("a short line in the log");
        let (partition, offset, name) = (word()?.parse::<i32>()?, word()?.parse::<i64>()?, word()?);
        acked += 1;
        match stored
            .get(&partition)
            .and_then(|records| records.get(&offset))
        {
            Some(found) if found == name => {}
            Some(found) => {
                faults.moved += 1;
                faults.note(|| format!("{partition}@{offset}: acknowledged {name}, holds {found}"));
            }
            None => {
                faults.lost += 1;
                faults.note(|| format!("{partition}@{offset}: acknowledged {name}, holds nothing"));
            }
        }
    }
    if required(options, "idempotence")? == "true" {
        check_order(&stored, &mut faults)?;
    }
    let count: usize = stored.values().map(HashMap::len).sum();
    println!(
        "{}",
        json!({
            "acked": acked, "stored": count, "lost": faults.lost, "moved": faults.moved,
            "duplicate": faults.duplicate, "disordered": faults.disordered, "first": faults.first,
        })
    );
    Ok(())
}

type Stored = HashMap<i32, HashMap<i64, String>>;

fn read_topic(bootstrap: &str, topic: &str, partitions: i32) -> Outcome<Stored> {
    let (consumer, mut left) = consumer_of(bootstrap, topic, partitions)?;
    let mut stored = Stored::new();
    while left > 0 {
        let message = consumer
            .poll(TIMEOUT)
            .ok_or_else(|| format!("{left} records missing"))??;
        let value = String::from_utf8_lossy(message.payload().unwrap_or_default()).into_owned();
        let name = value.split(' ').next().unwrap_or_default().to_owned();
        stored
            .entry(message.partition())
            .or_default()
            .insert(message.offset(), name);
        left -= 1;
    }
    Ok(stored)
}

/// Numbers of one producer and partition must rise by one from record to record.
fn check_order(stored: &Stored, faults: &mut Faults) -> Outcome<()> {
    for (partition, records) in stored {
        let mut offsets: Vec<_> = records.iter().collect();
        offsets.sort();
        let mut next: HashMap<&str, u64> = HashMap::new();
        for (offset, name) in offsets {
            let (producer, rest) = name.split_once(':').ok_or("a foreign record")?;
            let number: u64 = rest.split_once(':').ok_or("a foreign record")?.1.parse()?;
            let expected = next.entry(producer).or_default();
            if number < *expected {
                faults.duplicate += 1;
                faults.note(|| format!("{partition}@{offset}: {name} stands there again"));
                continue;
            }
            if number > *expected {
                faults.disordered += 1;
                faults.note(|| format!("{partition}@{offset}: {name} after number {expected}"));
            }
            *expected = number + 1;
        }
    }
    Ok(())
}
