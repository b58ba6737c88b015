//! Many logs that get little, on the smallest journal: appends that come together need more blocks
//! than the ring has if each made a cycle of its own, and the logs that the ring knows need more of
//! it than there is if each had a record in it for ever.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::log_test::{batch, context, identity, read_all, start};
use super::*;
use crate::base::ids::Offset;
use crate::base::limits::{KIB, MIB};
use crate::base::time::MonotonicNs;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{self, TaskClass};

const CACHE_BYTES: usize = 64 * MIB;
/// What a client allows.
const TIMEOUT: Duration = Duration::from_secs(3);

async fn logs_of(shard: &Rc<ShardLogs>, count: usize) -> Vec<Rc<Log>> {
    let mut logs = Vec::with_capacity(count);
    for number in 0..count {
        let name = identity(&format!("p{number}"));
        logs.push(shard.create_log(name, LogConfig::default()).await.unwrap());
    }
    logs
}

/// One small batch to each of the logs at once, as one request brings them. Tells how long the
/// slowest took, and how long a single append that comes right after them did.
async fn burst(logs: &[Rc<Log>], other: &Rc<Log>, mark: u8) -> (Duration, Duration) {
    let since = io::now();
    let slowest = Rc::new(Cell::new(Duration::ZERO));
    let mut appends = Vec::with_capacity(logs.len());
    let one = |log: &Rc<Log>, slowest: &Rc<Cell<Duration>>| {
        let (log, slowest) = (Rc::clone(log), Rc::clone(slowest));
        io::spawn(TaskClass::Produce, async move {
            let mut context = context();
            context.deadline = since.after(TIMEOUT);
            let appended = log.append(batch(1, mark), context).await.unwrap();
            let end = appended.last_offset.plus(1);
            log.wait_durable(end).await.unwrap();
            slowest.set(slowest.get().max(io::now().since(since)));
        })
    };
    for log in logs {
        appends.push(one(log, &slowest));
    }
    let others = Rc::new(Cell::new(Duration::ZERO));
    one(other, &others).await;
    for append in appends {
        append.await;
    }
    (slowest.get(), others.get())
}

#[test]
fn one_request_for_many_partitions_needs_no_more_than_some_cycles() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let marks = [1, 2, 3];
    SimRuntime::new(&disk, 1)
        .block_on(async move {
            let shard = start(1, CACHE_BYTES).await;
            let mut logs = logs_of(&shard, 801).await;
            let other = logs.pop().unwrap();
            // The first appends give the logs their ids; those after them are the burst's alone.
            burst(&logs, &other, 0).await;
            for mark in marks {
                let cycles = shard.journal_cycles();
                let (slowest, others) = burst(&logs, &other, mark).await;
                println!(
                    "{slowest:?} {others:?}, {} cycles",
                    shard.journal_cycles() - cycles
                );
                assert!(slowest < Duration::from_millis(100), "{slowest:?}");
                assert!(others < Duration::from_millis(100), "{others:?}");
            }
        })
        .unwrap();
}

/// Where the log's id file says that its records are to be read from.
async fn named_position(number: usize) -> u64 {
    let path = format!("/data/p{number}-0/{}", format::file_names::LOG_ID);
    let bytes = io::directory::read_file(path.as_ref(), KIB).await.unwrap();
    log_id_file::LogIdFile::decode(&bytes).unwrap().position
}

/// One record and one WATERMARK of each are more than the release of a file may write.
#[test]
fn more_logs_than_the_ring_can_name() {
    const LOGS: usize = 1_150;
    let disk = SimDisk::new(SimDiskOptions::default(), 2);
    SimRuntime::new(&disk, 2)
        .block_on(async move {
            let shard = start(1, CACHE_BYTES).await;
            let logs = logs_of(&shard, LOGS).await;
            let name = identity("filler");
            let filler = shard.create_log(name, LogConfig::default());
            let filler = filler.await.unwrap();
            burst(&logs, &filler, 0).await;
            // The journal comes round.
            for _ in 0..20 {
                let appended = filler.append(batch(100 * KIB, 0), context()).await;
                let end = appended.unwrap().last_offset.plus(1);
                filler.wait_durable(end).await.unwrap();
            }
            let mut left = 0;
            for number in 0..LOGS {
                left += usize::from(named_position(number).await > 0);
            }
            println!("{left} logs left the ring");
            assert!(left > 10 && left < LOGS / 2, "{left} logs left the ring");
            burst(&logs, &filler, 1).await;
        })
        .unwrap();
    disk.power_cut(7);
    SimRuntime::new(&disk, 3)
        .block_on(async move {
            let shard = start(2, CACHE_BYTES).await;
            for number in 0..LOGS {
                let name = identity(&format!("p{number}"));
                let log = shard.open_log(name, LogConfig::default()).await.unwrap();
                let marks: Vec<u8> = read_all(&log).await.iter().map(|one| one.2).collect();
                assert_eq!(marks, [0, 1], "log {number}");
            }
        })
        .unwrap();
}

/// An append that finds no room in time is not in the log; those before it are.
#[test]
fn what_times_out_is_not_in_the_log() {
    let disk = SimDisk::new(SimDiskOptions::default(), 3);
    SimRuntime::new(&disk, 3)
        .block_on(async {
            let shard = start(1, CACHE_BYTES).await;
            let logs = logs_of(&shard, 600).await;
            burst(&logs, &logs[0], 0).await;
            let ends: Vec<Offset> = logs.iter().map(|log| log.log_end_offset()).collect();
            let mut appends = Vec::new();
            for log in &logs {
                let log = Rc::clone(log);
                appends.push(io::spawn(TaskClass::Produce, async move {
                    let mut context = context();
                    context.deadline = MonotonicNs(io::now().0 + 1);
                    log.append(batch(1, 1), context).await
                }));
            }
            let mut late = 0;
            for (place, append) in appends.into_iter().enumerate() {
                let grown = match append.await {
                    Ok(appended) => {
                        let end = appended.last_offset.plus(1);
                        logs[place].wait_durable(end).await.unwrap();
                        1
                    }
                    Err(AppendError::TimedOut) => {
                        late += 1;
                        0
                    }
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(logs[place].log_end_offset(), ends[place].plus(grown));
            }
            println!("{late} came too late");
            assert!(late > 0 && late < 600, "{late}");
        })
        .unwrap();
}
