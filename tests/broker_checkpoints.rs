//! Kafka's checkpoint files of a running broker: each is written in its interval, and once more in
//! order by a clean stop.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::path::Path;
use std::time::{Duration, Instant};

use broker::{Harness, HarnessOptions, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::produce::ProduceResponse;

/// Within this many intervals have passed, on a loaded machine too.
const WRITTEN_WITHIN: Duration = Duration::from_secs(60);

fn options() -> HarnessOptions {
    HarnessOptions {
        shards: 2,
        set: |config| {
            config.recovery_point_checkpoint_ms = 50;
            config.log_start_checkpoint_ms = 50;
            config.high_watermark_checkpoint_ms = 50;
        },
        ..HarnessOptions::default()
    }
}

/// The offset that a file has for a partition.
fn line(folder: &Path, file: &str, partition: &str) -> Option<i64> {
    let text = std::fs::read_to_string(folder.join(file)).ok()?;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("0"), "{file}: {text}");
    let count: usize = lines.next().unwrap().parse().unwrap();
    assert_eq!(lines.clone().count(), count, "{file}: {text}");
    let found = lines.find_map(|line| line.strip_prefix(&format!("{partition} ")));
    found.map(|offset| offset.parse().unwrap())
}

#[test]
fn a_running_broker_writes_what_a_clean_stop_writes_at_last() {
    let options = options();
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 2);
    let topic = harness.create_topic("gone", 1);
    let mut client = harness.connect();
    for _ in 0..3 {
        let produce = requests::produce("t", -1, [(0, batch(4, 100))]);
        let response: ProduceResponse = client.ask(&produce, 9);
        assert_eq!(requests::errors_of(&response), [ErrorCode::NONE]);
    }
    let folder = harness.path().to_owned();
    let begun = Instant::now();
    let wait_for = |file: &str, partition: &str, offset| {
        while line(&folder, file, partition) != offset {
            assert!(begun.elapsed() < WRITTEN_WITHIN, "{file}: {partition}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_for("replication-offset-checkpoint", "t 0", Some(12));
    wait_for("replication-offset-checkpoint", "t 1", Some(0));
    wait_for("replication-offset-checkpoint", "gone 0", Some(0));
    // Far from a snapshot, nothing of it is behind the recovery point.
    wait_for("recovery-point-offset-checkpoint", "t 0", Some(0));
    // As in Kafka, a log that starts at 0 has no line.
    wait_for("log-start-offset-checkpoint", "t 0", None);
    harness.delete_topic(topic);
    wait_for("replication-offset-checkpoint", "gone 0", None);
    harness.restart_after(&options, |folder| {
        let file = "recovery-point-offset-checkpoint";
        assert_eq!(line(folder, file, "t 0"), Some(12));
        assert_eq!(line(folder, file, "t 1"), Some(0));
        assert_eq!(line(folder, file, "gone 0"), None);
    });
    wait_for("recovery-point-offset-checkpoint", "t 0", Some(12));
}
