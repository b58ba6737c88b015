//! Whether the log holds what was acknowledged: each record at its offset, and with idempotence
//! each once and in order. What retention has taken is counted apart.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use serde_json::json;

use crate::names::{NOTHING, pack, told, unpack};
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

/// A partition's records from `low` on.
struct Partition {
    low: i64,
    high: i64,
    names: Vec<u64>,
}

impl Partition {
    fn name_at(&self, offset: i64) -> u64 {
        let place = usize::try_from(offset - self.low).ok();
        let name = place.and_then(|place| self.names.get(place));
        name.copied().unwrap_or(NOTHING)
    }
}

/// Options: topic, partitions, idempotence, log (as `hammer` wrote it); retained=true where
/// retention may have taken the oldest.
pub fn run(bootstrap: &str, options: &HashMap<String, String>) -> Outcome<()> {
    let topic = required(options, "topic")?;
    let partitions: i32 = required(options, "partitions")?.parse()?;
    let is_retained = options.get("retained").is_some_and(|word| word == "true");
    let stored = read_topic(bootstrap, topic, partitions)?;
    let mut faults = Faults::default();
    let (mut acked, mut retired) = (0u64, 0u64);
    for line in BufReader::new(File::open(required(options, "log")?)?).lines() {
        let line = line?;
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or("a short line in the log");
        let (partition, offset, name) = (word()?.parse::<i32>()?, word()?.parse::<i64>()?, word()?);
        let wanted = pack(name, partition)?;
        acked += 1;
        let known = stored
            .get(partition as usize)
            .ok_or("a foreign partition")?;
        if is_retained && offset < known.low {
            retired += 1;
            continue;
        }
        match known.name_at(offset) {
            found if found == wanted => {}
            NOTHING => {
                faults.lost += 1;
                faults.note(|| format!("{partition}@{offset}: acknowledged {name}, holds nothing"));
            }
            found => {
                faults.moved += 1;
                let found = told(found);
                faults.note(|| format!("{partition}@{offset}: acknowledged {name}, holds {found}"));
            }
        }
    }
    if required(options, "idempotence")? == "true" {
        for (number, partition) in stored.iter().enumerate() {
            check_order(number, partition, is_retained, &mut faults);
        }
    }
    let is_there = |name: &&u64| **name != NOTHING;
    let count = |partition: &Partition| partition.names.iter().filter(is_there).count();
    let count: usize = stored.iter().map(count).sum();
    println!(
        "{}",
        json!({
            "acked": acked, "stored": count, "retired": retired, "lost": faults.lost,
            "moved": faults.moved, "duplicate": faults.duplicate,
            "disordered": faults.disordered, "first": faults.first,
        })
    );
    Ok(())
}

fn read_topic(bootstrap: &str, topic: &str, partitions: i32) -> Outcome<Vec<Partition>> {
    // On the connection of one that reads, each question would wait for a fetch.
    let asking: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .create()?;
    let mut stored = Vec::new();
    for partition in 0..partitions {
        let (low, high) = asking.fetch_watermarks(topic, partition, TIMEOUT)?;
        let names = vec![NOTHING; usize::try_from(high - low)?];
        stored.push(Partition { low, high, names });
    }
    let (consumer, _) = consumer_of(bootstrap, topic, partitions)?;
    let mut unfinished = stored.iter().filter(|one| one.low < one.high).count();
    while unfinished > 0 {
        let message = consumer
            .poll(TIMEOUT)
            .ok_or_else(|| format!("{unfinished} partitions are not read to their end"))??;
        let value = String::from_utf8_lossy(message.payload().unwrap_or_default());
        let known = &mut stored[message.partition() as usize];
        let place = usize::try_from(message.offset() - known.low);
        let name = pack(&value, message.partition())?;
        if let Some(slot) = place.ok().and_then(|place| known.names.get_mut(place)) {
            *slot = name;
        }
        unfinished -= usize::from(message.offset() + 1 == known.high);
    }
    cut_retired(&asking, topic, &mut stored)?;
    Ok(stored)
}

/// Retention may have gone on while the topic was read.
fn cut_retired(asking: &BaseConsumer, topic: &str, stored: &mut [Partition]) -> Outcome<()> {
    for (number, partition) in stored.iter_mut().enumerate() {
        let (low, _) = asking.fetch_watermarks(topic, number as i32, TIMEOUT)?;
        let gone = usize::try_from(low - partition.low)?.min(partition.names.len());
        partition.names.drain(..gone);
        partition.low = low;
    }
    Ok(())
}

/// Numbers of one producer must rise by one from record to record, from 0 on or, where retention
/// takes the oldest, from any.
fn check_order(number: usize, partition: &Partition, is_retained: bool, faults: &mut Faults) {
    let mut next: HashMap<u64, u64> = HashMap::new();
    for (offset, name) in (partition.low..).zip(&partition.names) {
        if *name == NOTHING {
            continue;
        }
        let (producer, found) = unpack(*name);
        let first = if is_retained { found } else { 0 };
        let expected = next.entry(producer).or_insert(first);
        if found < *expected {
            faults.duplicate += 1;
            faults.note(|| format!("{number}@{offset}: {} stands there again", told(*name)));
            continue;
        }
        if found > *expected {
            faults.disordered += 1;
            faults.note(|| format!("{number}@{offset}: {} after {expected}", told(*name)));
        }
        *expected = found + 1;
    }
}
