//! A member of a group: reads what it is given, until it has read enough or is told to stop, then
//! commits and leaves.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use serde_json::{Value, json};

use crate::Outcome;

const POLL: Duration = Duration::from_millis(50);
/// How long records may take to come.
const WAIT: Duration = Duration::from_secs(60);

/// Does one task; writes a line for each assignment and for each record.
pub fn run(bootstrap: &str, task: &Value) -> Outcome<Value> {
    let text = |name: &str| task[name].as_str().unwrap_or_default();
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", text("group"))
        .set("client.id", "librdkafka")
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("heartbeat.interval.ms", "200")
        .set("fetch.wait.max.ms", "50")
        .create()?;
    consumer.subscribe(&[text("topic")])?;
    let wanted = task["count"].as_i64().unwrap_or(i64::MAX);
    let mut out = BufWriter::new(File::create(text("output"))?);
    let (mut count, mut assigned, mut last) = (0, Vec::new(), Instant::now());
    while count < wanted && !Path::new(text("stop")).exists() {
        if let Some(message) = consumer.poll(POLL) {
            let message = message?;
            let line = json!({"p": message.partition(), "o": message.offset()});
            writeln!(out, "{line}")?;
            (count, last) = (count + 1, Instant::now());
        } else if wanted < i64::MAX && last.elapsed() > WAIT {
            return Err(format!("{count} of {wanted} records came").into());
        }
        let now: Vec<i32> = (consumer.assignment()?.elements().iter())
            .map(|one| one.partition())
            .collect();
        if now != assigned {
            writeln!(out, "{}", json!({"assigned": now}))?;
            assigned = now;
        }
        out.flush()?;
    }
    if count > 0 {
        consumer.commit_consumer_state(CommitMode::Sync)?;
    }
    leave(&consumer)?;
    Ok(json!({"count": count}))
}

/// A close that meets a rebalance just announced can wait for ever for its own event (librdkafka
/// 2.12, every answer given): what is held is given back before.
fn leave(consumer: &BaseConsumer) -> Outcome<()> {
    consumer.unsubscribe();
    let began = Instant::now();
    while consumer.assignment()?.count() > 0 {
        if began.elapsed() > WAIT {
            return Err("its partitions are not given back".into());
        }
        if let Some(Err(error)) = consumer.poll(POLL) {
            return Err(error.into());
        }
    }
    Ok(())
}
