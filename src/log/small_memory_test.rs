//! A cache far smaller than what is appended: batches leave memory as soon as they are in their
//! segments, while the journal goes round, segments roll and readers lag.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use super::log_test::{batch, context, identity, read_all, seeds, start};
use super::*;
use crate::base::ids::Offset;
use crate::base::limits::{KIB, MIB};
use crate::base::random::Random;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{self, TaskClass};
use crate::wire::record_batch::BatchHeader;

const LOGS: usize = 6;
const APPENDS: usize = 150;

/// Appends without awaiting what came before, but for a few batches in flight.
async fn produce(log: Rc<Log>, mut random: Random) {
    for _ in 0..APPENDS {
        let size = (1 << random.below(14)) + random.below(9_000) as usize;
        let size = if random.chance(1, 12) {
            size + 40_000
        } else {
            size
        };
        let mark = log.log_end_offset().0 as u8;
        let appended = log.append(batch(size, mark), context()).await.unwrap();
        if random.chance(1, 4) {
            let end = Offset(appended.last_offset.0 + 1 - random.below(4) as i64);
            log.wait_durable(end).await.unwrap();
        }
    }
}

/// Reads on behind the producers, from the start.
async fn lag(log: Rc<Log>, is_done: Rc<Cell<bool>>) {
    let mut from = Offset(0);
    while !is_done.get() {
        let limit = ReadLimit {
            max_bytes: 20_000,
            memory_max: usize::MAX,
            first_batch_max: usize::MAX,
            end: log.durable_end(),
        };
        let read = log.read(from, limit).await.unwrap();
        for slice in &read.slices {
            let mut at = 0;
            while at < slice.len() {
                let header = BatchHeader::parse(&slice[at..]).unwrap();
                let end = at + header.total_bytes();
                assert_eq!(header.base_offset, from, "offsets follow each other");
                assert_eq!(slice[end - 2], from.0 as u8, "the batch of offset {from}");
                from = header.next_offset();
                at = end;
            }
        }
        io::sleep(Duration::from_micros(700)).await;
    }
}

async fn check_all(log: &Rc<Log>) {
    let found = read_all(log).await;
    assert_eq!(found.len(), APPENDS);
    for (place, (offset, _, mark)) in found.iter().enumerate() {
        assert_eq!((*offset, *mark), (place as i64, place as u8));
    }
}

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 500_000,
        ..LogConfig::default()
    }
}

async fn load(seed: u64) {
    let mut random = Random::new(seed);
    let logs = start(1, (768 << random.below(3)) * KIB).await;
    let is_done = Rc::new(Cell::new(false));
    let (mut producers, mut readers, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..LOGS {
        let name = identity(&format!("p{number}"));
        let log = logs.create_log(name, config()).await.unwrap();
        let producer = produce(Rc::clone(&log), Random::new(random.next_u64()));
        producers.push(io::spawn(TaskClass::Produce, producer));
        let reader = lag(Rc::clone(&log), Rc::clone(&is_done));
        readers.push(io::spawn(TaskClass::Background, reader));
        all.push(log);
    }
    for producer in producers {
        producer.await;
    }
    is_done.set(true);
    for reader in readers {
        reader.await;
    }
    for log in &all {
        log.wait_durable(log.log_end_offset()).await.unwrap();
        check_all(log).await;
    }
}

#[test]
fn what_has_left_memory_is_never_missed() {
    for seed in seeds(12) {
        println!("seed {seed}");
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        SimRuntime::new(&disk, seed).block_on(load(seed)).unwrap();
        disk.power_cut(seed);
        SimRuntime::new(&disk, seed + 1)
            .block_on(async {
                let logs = start(2, 768 * KIB).await;
                for number in 0..LOGS {
                    let name = identity(&format!("p{number}"));
                    check_all(&logs.open_log(name, config()).await.unwrap()).await;
                }
            })
            .unwrap();
    }
}

/// The last batch of each log ends in a partial block: together they are more than may be pinned.
#[test]
fn quiet_logs_with_large_last_batches_keep_no_append_out() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    SimRuntime::new(&disk, 1)
        .block_on(async {
            let logs = start(1, 512 * KIB).await;
            let mut all = Vec::new();
            for number in 0..20 {
                let name = identity(&format!("p{number}"));
                let log = logs.create_log(name, config()).await.unwrap();
                let size = 50_000;
                let begun = io::now();
                log.append(batch(size, 0), context()).await.unwrap();
                log.wait_durable(Offset(1)).await.unwrap();
                assert!(io::now().since(begun).as_secs() < 1);
                assert_eq!(read_all(&log).await.len(), 1);
                all.push(log);
            }
            for log in all {
                log.append(batch(100, 1), context()).await.unwrap();
                let marks: Vec<u8> = read_all(&log).await.iter().map(|found| found.2).collect();
                assert_eq!(marks, [0, 1]);
            }
        })
        .unwrap();
}

/// A batch keeps the buffer alive that it came in; a read gives no more than it may keep so.
#[test]
fn a_read_keeps_no_more_memory_alive_than_it_may() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    SimRuntime::new(&disk, 1)
        .block_on(async {
            let logs = start(1, 4 * 1024 * KIB).await;
            let log = logs.create_log(identity("t"), config()).await.unwrap();
            let part = 30_000;
            let buffer = part + super::cache::TAIL_ENTRY_BYTES;
            for mark in 0..3 {
                let mut context = context();
                context.buffer_bytes.part = part;
                log.append(batch(10_000, mark), context).await.unwrap();
            }
            log.wait_durable(Offset(3)).await.unwrap();
            let read = async |memory_max, first_batch_max| {
                let limit = ReadLimit {
                    max_bytes: usize::MAX,
                    memory_max,
                    first_batch_max,
                    end: Offset(3),
                };
                let read = log.read(Offset(0), limit).await.unwrap();
                (read.slices.len(), read.memory, read.needed)
            };
            assert_eq!(read(3 * buffer, 0).await, (3, 3 * buffer, 0));
            assert_eq!(read(2 * buffer, 0).await, (2, 2 * buffer, buffer));
            assert_eq!(read(2 * buffer - 1, 0).await, (1, buffer, buffer));
            assert_eq!(read(0, buffer).await, (1, buffer, buffer), "KIP-74");
            assert_eq!(read(0, buffer - 1).await, (0, 0, buffer));
        })
        .unwrap();
}

/// In a quiet log the last batch waits for its block to be full, long after the batches have gone
/// that were received with it: it keeps nothing of their buffer.
#[test]
fn a_batch_that_waits_for_its_block_keeps_no_larger_buffer_alive() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    SimRuntime::new(&disk, 1)
        .block_on(async {
            let logs = start(1, MIB).await;
            let busy = logs.create_log(identity("busy"), config()).await.unwrap();
            let quiet = logs.create_log(identity("quiet"), config()).await.unwrap();
            // As a connection receives it: with room for more.
            let mut buffer = bytes::BytesMut::with_capacity(68 * KIB);
            buffer.extend_from_slice(&batch(500, 1));
            let received = buffer.as_ptr();
            quiet.append(buffer.split(), context()).await.unwrap();
            let place = || {
                let tail = quiet.tail.borrow();
                tail.oldest_bytes().map(|bytes| bytes.as_ptr())
            };
            assert_eq!(place(), Some(received));
            for mark in 0..60 {
                let appended = busy.append(batch(50_000, mark), context()).await.unwrap();
                let end = appended.last_offset.plus(1);
                busy.wait_durable(end).await.unwrap();
            }
            let kept = place().expect("its block is not full");
            assert_ne!(kept, received, "it was copied out");
            let found = read_all(&quiet).await;
            let marks: Vec<u8> = found.iter().map(|found| found.2).collect();
            assert_eq!(marks, [1]);
        })
        .unwrap();
}

/// Around the largest cycle of the smallest ring: what goes inline, and what goes direct.
#[test]
fn a_batch_of_any_length_becomes_durable() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    SimRuntime::new(&disk, 1)
        .block_on(async {
            let logs = start(1, MIB).await;
            let log = logs.create_log(identity("t"), config()).await.unwrap();
            for size in (120 * KIB..133 * KIB).step_by(61) {
                let appended = log.append(batch(size, 0), context()).await.unwrap();
                let end = appended.last_offset.plus(1);
                let mut durable = std::pin::pin!(log.wait_durable(end));
                let mut patience = std::pin::pin!(io::sleep(Duration::from_secs(5)));
                std::future::poll_fn(|task| {
                    let is_late = patience.as_mut().poll(task).is_ready();
                    assert!(!is_late, "{size} bytes do not become durable");
                    durable.as_mut().poll(task)
                })
                .await
                .unwrap();
            }
        })
        .unwrap();
}
