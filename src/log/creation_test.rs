//! A crash while logs are created: whatever is left of a folder, its log can be written afterwards.

use super::log_test::{batch, context, identity, read_all, start};
use super::*;
use crate::base::limits::MIB;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{self, TaskClass};
use std::rc::Rc;

const TOPICS: [&str; 3] = ["a", "b", "c"];

/// What a shard does for a partition that the metadata names.
async fn host(logs: &Rc<ShardLogs>, topic: &str) -> Rc<Log> {
    let identity = identity(topic);
    let folder = logs.directory().join(identity.folder());
    let config = LogConfig::default();
    let hosted = match io::directory::metadata(&folder).await {
        Ok(_) => logs.open_log(identity, config).await,
        Err(_) => logs.create_log(identity, config).await,
    };
    hosted.unwrap()
}

async fn create_all() {
    let logs = start(1, 4 * MIB).await;
    let create = |topic: &'static str| {
        let logs = Rc::clone(&logs);
        io::spawn(TaskClass::Background, async move {
            logs.create_log(identity(topic), LogConfig::default())
                .await
                .unwrap();
        })
    };
    let creating: Vec<_> = TOPICS.into_iter().map(create).collect();
    for created in creating {
        created.await;
    }
}

/// Appends in each log, which must be empty or hold what the life before wrote.
async fn write_each(incarnation: u8, known: usize) {
    let logs = start(incarnation, 4 * MIB).await;
    for topic in TOPICS {
        let log = host(&logs, topic).await;
        assert!(log.damage().is_none(), "{topic}: {:?}", log.damage());
        assert_eq!(read_all(&log).await.len(), known, "{topic}");
        let appended = log.append(batch(100, 1), context()).await.unwrap();
        let end = appended.last_offset.plus(1);
        log.wait_durable(end).await.unwrap();
    }
}

/// The process dies at each step of the creation, or the power fails at every fourth; then the same
/// once more after a life that wrote.
#[test]
fn a_log_whose_creation_was_cut_short_can_be_written() {
    let (mut steps, mut has_crashed) = (0, true);
    while has_crashed {
        for is_power_cut in [false, true] {
            if is_power_cut && steps % 4 > 0 {
                continue;
            }
            let disk = SimDisk::new(SimDiskOptions::default(), steps);
            let end = |seed: u64| {
                if is_power_cut {
                    disk.power_cut(seed);
                } else {
                    disk.kill(seed);
                }
                disk.never_crash();
            };
            disk.crash_after(steps);
            has_crashed = SimRuntime::new(&disk, steps)
                .block_on(create_all())
                .is_err();
            end(steps);
            for (life, known) in [(2, 0), (3, 1)] {
                let seed = steps + u64::from(life);
                let lived = SimRuntime::new(&disk, seed).block_on(write_each(life, known));
                assert!(lived.is_ok(), "step {steps}, life {life}");
                end(seed);
            }
        }
        steps += 1;
    }
    assert!(steps > 30, "{steps} steps");
}
