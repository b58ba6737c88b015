use std::path::PathBuf;

use super::*;
use crate::base::limits::KIB;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::log_test::{batch, context, identity, start};
use crate::log::{LogConfig, ShardLogs};

const LOOK: Duration = Duration::from_millis(1);

fn run(task: impl AsyncFnOnce(Rc<ShardLogs>)) {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    SimRuntime::new(&disk, 1)
        .block_on(async move { task(start(1, 64 * 1024 * KIB).await).await })
        .unwrap();
}

async fn file_of(name: &str, length: u64) -> (PathBuf, File) {
    let path = PathBuf::from("/data").join(name);
    let options = OpenOptions {
        write: true,
        create: true,
        ..OpenOptions::default()
    };
    let file = File::open(&path, options).await.unwrap();
    file.truncate(length).await.unwrap();
    (path, file)
}

async fn length_of(path: &Path) -> Option<u64> {
    let metadata = io::directory::metadata(path).await;
    metadata.ok().map(|metadata| metadata.len)
}

/// The lengths that a file has until it is gone, each once.
async fn lengths_until_gone(path: &Path) -> Vec<u64> {
    let mut lengths: Vec<u64> = Vec::new();
    while let Some(length) = length_of(path).await {
        if lengths.last() != Some(&length) {
            lengths.push(length);
        }
        io::sleep(LOOK).await;
    }
    lengths
}

#[test]
fn a_large_file_goes_from_its_end_and_a_small_one_at_once() {
    run(async |logs| {
        for (length, expected) in [
            (STEP_BYTES, vec![]),
            (STEP_BYTES + 1, vec![1]),
            (2 * STEP_BYTES + 5, vec![STEP_BYTES + 5, 5]),
        ] {
            let (path, _) = file_of("old", length).await;
            let shard = Rc::clone(logs.context());
            let of = path.clone();
            let began = io::now();
            let removed = io::spawn(TaskClass::Background, async move {
                let removal = Removal::new(&shard, OPEN_WAIT, Vec::new());
                removal.remove(&of).await
            });
            let seen = lengths_until_gone(&path).await;
            removed.await.unwrap();
            // The first look may come before or after the first step.
            assert!(seen.ends_with(&expected), "{length}: {seen:?}");
            let steps = expected.len() as u32;
            assert!(io::now().since(began) >= STEP_PAUSE * steps, "{length}");
        }
    });
}

#[test]
fn files_of_a_directory_take_turns() {
    run(async |logs| {
        let began = io::now();
        let mut removals = Vec::new();
        for name in ["one", "two", "three"] {
            let (path, _) = file_of(name, 4 * STEP_BYTES).await;
            let shard = Rc::clone(logs.context());
            removals.push(io::spawn(TaskClass::Background, async move {
                let removal = Removal::new(&shard, OPEN_WAIT, Vec::new());
                removal.remove(&path).await
            }));
        }
        for removal in removals {
            removal.await.unwrap();
        }
        // Three steps of each.
        assert!(io::now().since(began) >= STEP_PAUSE * 9);
    });
}

#[test]
fn what_somebody_reads_is_not_cut() {
    run(async |logs| {
        let long = 2 * STEP_BYTES;
        let (path, reader) = file_of("read", long).await;
        let (shard, of, uses) = (
            Rc::clone(logs.context()),
            path.clone(),
            vec![reader.usage()],
        );
        let removed = io::spawn(TaskClass::Background, async move {
            let removal = Removal::new(&shard, Duration::ZERO, uses);
            removal.remove(&of).await
        });
        io::sleep(READERS_WAIT - OPEN_WAIT).await;
        assert_eq!(length_of(&path).await, Some(long));
        io::sleep(3 * OPEN_WAIT).await;
        removed.await.unwrap();
        assert_eq!(length_of(&path).await, None, "readers have no more time");
        assert_eq!(reader.len().await.unwrap(), long, "but what they read");

        let (path, reader) = file_of("read", long).await;
        let (shard, of, uses) = (
            Rc::clone(logs.context()),
            path.clone(),
            vec![reader.usage()],
        );
        let removed = io::spawn(TaskClass::Background, async move {
            let removal = Removal::new(&shard, Duration::ZERO, uses);
            removal.remove(&of).await
        });
        io::sleep(5 * OPEN_WAIT).await;
        assert_eq!(length_of(&path).await, Some(long));
        drop(reader);
        assert_eq!(lengths_until_gone(&path).await, [long, STEP_BYTES]);
        removed.await.unwrap();
    });
}

#[test]
fn a_large_log_is_deleted_before_its_blocks_are_given_back() {
    run(async |logs| {
        let config = LogConfig {
            segment_bytes: 64 << 20,
            ..LogConfig::default()
        };
        let log = logs.create_log(identity("a"), config).await.unwrap();
        for mark in 0..12 {
            let appended = log.append(batch(1_000_000, mark), context()).await.unwrap();
            log.wait_durable(appended.last_offset.plus(1))
                .await
                .unwrap();
        }
        logs.delete_log(&log).await.unwrap();
        let folders = async || {
            let entries = io::directory::list(Path::new("/data")).await.unwrap();
            let names = entries.into_iter().map(|entry| entry.name);
            names
                .filter(|name| name.starts_with("a-0") || name.ends_with("-delete"))
                .collect::<Vec<_>>()
        };
        let left = folders().await;
        assert!(left.len() == 1 && left[0].ends_with("-delete"), "{left:?}");
        // Its name is free at once.
        let again = logs.create_log(identity("a"), LogConfig::default());
        again.await.unwrap();
        io::sleep(2 * OPEN_WAIT).await;
        assert_eq!(folders().await, ["a-0"]);
    });
}
