//! The driver against the kernel's bad days, injected: short transfers, interruptions, full
//! queues, overflows, ends in mid-flight.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use super::*;
use crate::base::random::Random;
use crate::io::{
    AlignedBuffer, Durability, File, Leftovers, OpenOptions, Runtime, RuntimeOptions, TaskClass,
    TcpListener, TcpStream, sleep, spawn,
};

fn runtime(ring: RingOptions) -> Runtime {
    let options = RuntimeOptions {
        ring,
        ..RuntimeOptions::for_tests()
    };
    Runtime::start(options).expect("io_uring is allowed")
}

fn with_faults(decide: impl FnMut(FaultPoint) -> Fault + Send + 'static) -> RingOptions {
    RingOptions {
        faults: Some(FaultHook::new(decide)),
        ..RingOptions::default()
    }
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR").to_owned() + "/target").unwrap()
}

async fn open(path: &Path, direct: bool) -> File {
    let options = OpenOptions {
        write: true,
        create: true,
        direct,
        ..OpenOptions::default()
    };
    File::open(path, options).await.unwrap()
}

fn filled(len: usize, seed: u8) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::zeroed(len);
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = (index >> 8) as u8 ^ (index as u8).wrapping_mul(31) ^ seed;
    }
    buffer
}

async fn pair() -> (TcpStream, TcpStream) {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(address, 16).unwrap();
    let address = listener.local_address().unwrap();
    let connecting = spawn(TaskClass::Produce, TcpStream::connect(address));
    let (accepted, _) = listener.accept().await.unwrap();
    (connecting.await.unwrap(), accepted)
}

/// Many slices through one connection, until its end.
async fn carry_across_a_connection() {
    let (client, server) = pair().await;
    let slices: Vec<Bytes> = (0..100u8)
        .map(|number| Bytes::from(vec![number; 700 * usize::from(number % 5)]))
        .collect();
    let expected: Vec<u8> = slices.iter().flatten().copied().collect();
    let sending = spawn(TaskClass::Produce, async move {
        client.send_vectored(slices).await.unwrap();
    });
    let mut all = BytesMut::with_capacity(expected.len() + 1);
    loop {
        let (count, back) = server.receive(all).await;
        all = back;
        if count.unwrap() == 0 {
            break;
        }
    }
    assert!(all[..] == expected[..], "{} bytes", all.len());
    sending.await;
}

/// Every operation is hit by every passing trouble, at random: nothing is lost or done twice.
#[test]
fn transfers_survive_short_counts_interruptions_and_shortages() {
    const ERRORS: [i32; 4] = [libc::EINTR, libc::EAGAIN, libc::ECANCELED, libc::ENOBUFS];
    for seed in 1..=8 {
        let mut random = Random::new(seed);
        let hits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&hits);
        let faults = with_faults(move |point| {
            let dice = random.below(4);
            if dice > 0 {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            match dice {
                0 => Fault::None,
                1 => Fault::Fail(ERRORS[random.below(4) as usize]),
                _ if point.len < 1_024 => Fault::Shorten(1),
                // Whole sectors, so that direct I/O stays legal.
                _ => Fault::Shorten(
                    512 * (1 + random.below(16.min(point.len as u64 / 512)) as usize),
                ),
            }
        });
        let folder = scratch();
        let mut runtime = runtime(faults);
        runtime.block_on(async {
            for direct in [false, true] {
                let file = open(&folder.path().join(format!("{direct}")), direct).await;
                let (written, _) = file
                    .write_at(4_096, filled(1 << 18, 5), Durability::Stable)
                    .await;
                written.unwrap();
                let (read, back) = file.read_at(4_096, AlignedBuffer::zeroed(1 << 18)).await;
                assert_eq!(read.unwrap(), 1 << 18);
                assert!(back[..] == filled(1 << 18, 5)[..]);
                file.preallocate(0, 1 << 20).await.unwrap();
                file.sync_data().await.unwrap();
                file.truncate(5_000).await.unwrap();
                let (read, back) = file.read_at(4_096, AlignedBuffer::zeroed(4_096)).await;
                assert_eq!(read.unwrap(), 904);
                assert_eq!(back[..904], filled(4_096, 5)[..904]);
            }
            carry_across_a_connection().await;
        });
        assert_eq!(runtime.end(), Leftovers::default());
        assert!(
            hits.load(Ordering::Relaxed) > 10,
            "the faults were injected"
        );
    }
}

/// Trouble that does not pass ends the operation at the limit of retries, with its own error.
#[test]
fn trouble_that_stays_is_reported_after_the_retries() {
    for (failures, expected) in [
        (usize::from(RETRIES_MAX), None),
        (usize::from(RETRIES_MAX) + 1, Some(libc::EINTR)),
    ] {
        let mut left = failures;
        let faults = with_faults(move |point| {
            if point.kind != OperationKind::Sync || left == 0 {
                return Fault::None;
            }
            left -= 1;
            Fault::Fail(libc::EINTR)
        });
        let folder = scratch();
        let mut runtime = runtime(faults);
        let result = runtime.block_on(async {
            let file = open(&folder.path().join("file"), false).await;
            file.sync_data().await
        });
        assert_eq!(
            result.err().and_then(|error| error.raw_os_error()),
            expected
        );
    }
}

#[test]
fn a_late_operation_overtakes_none_and_holds_up_none() {
    const LATE: Duration = Duration::from_millis(200);
    let mut asked = 0;
    let faults = with_faults(move |point| {
        asked += u32::from(point.is_stable);
        match (point.is_stable, asked) {
            (true, 1) => Fault::Delay(LATE),
            (true, _) => Fault::Fail(libc::EIO),
            (false, _) => Fault::None,
        }
    });
    let folder = scratch();
    let mut runtime = runtime(faults);
    runtime.block_on(async {
        let file = open(&folder.path().join("file"), false).await;
        let began = Instant::now();
        let other = file.clone();
        let late = spawn(TaskClass::Produce, async move {
            // Asked about once: it would fail the second time.
            let stable = other.write_at(0, filled(4_096, 1), Durability::Stable);
            stable.await.0.unwrap();
            began.elapsed()
        });
        let plain = file.write_at(4_096, filled(4_096, 2), Durability::Written);
        plain.await.0.unwrap();
        let taken = late.await;
        assert!(taken >= LATE, "{taken:?}");
    });
}

#[test]
fn errors_that_do_not_pass_come_through_with_the_buffer() {
    let faults = with_faults(|point| match point.kind {
        OperationKind::Write => Fault::Fail(libc::ENOSPC),
        OperationKind::Read => Fault::Fail(libc::EIO),
        _ => Fault::None,
    });
    let folder = scratch();
    let mut runtime = runtime(faults);
    runtime.block_on(async {
        let file = open(&folder.path().join("file"), true).await;
        let (written, buffer) = file.write_at(0, filled(4_096, 1), Durability::Stable).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(buffer[..], filled(4_096, 1)[..]);
        let (read, buffer) = file.read_at(0, AlignedBuffer::zeroed(8_192)).await;
        assert_eq!(read.unwrap_err().raw_os_error(), Some(libc::EIO));
        assert_eq!(buffer.len(), 8_192);
    });
}

/// Many more operations than the queues hold, and than may be in the ring.
#[test]
fn full_queues_and_overflows_lose_nothing() {
    const FILES: usize = 3_000;
    for file_operations_max in [7, usize::MAX] {
        let ring = RingOptions {
            submission_entries: 8,
            completion_entries: 16,
            file_operations_max,
            faults: None,
        };
        let folder = scratch();
        let mut runtime = runtime(ring);
        runtime.block_on(async {
            let file = open(&folder.path().join("file"), false).await;
            let done = Rc::new(Cell::new(0));
            let tasks: Vec<_> = (0..FILES)
                .map(|number| {
                    let (file, done) = (file.clone(), Rc::clone(&done));
                    spawn(TaskClass::Produce, async move {
                        let position = number as u64 * 4_096;
                        let block = filled(4_096, number as u8);
                        let (written, block) =
                            file.write_at(position, block, Durability::Written).await;
                        written.unwrap();
                        let (read, back) =
                            file.read_at(position, AlignedBuffer::zeroed(4_096)).await;
                        assert_eq!(read.unwrap(), 4_096);
                        assert_eq!(back[..], block[..]);
                        done.set(done.get() + 1);
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            assert_eq!(done.get(), FILES);
            // Completions that all come at once while nobody looks: 500 sockets become readable.
            let (client, server) = pair().await;
            let receivers: Vec<_> = (0..500)
                .map(|_| {
                    let server = server.clone();
                    spawn(TaskClass::Produce, async move {
                        server.receive(BytesMut::with_capacity(1)).await.0.unwrap()
                    })
                })
                .collect();
            sleep(Duration::from_millis(5)).await;
            client
                .send_vectored(vec![Bytes::from(vec![1; 500])])
                .await
                .unwrap();
            let mut received = 0;
            for receiver in receivers {
                received += receiver.await;
            }
            assert_eq!(received, 500);
        });
        assert_eq!(runtime.end(), Leftovers::default());
    }
}

/// The kernel writes into the buffer of a receive whose future is long gone. Were that memory free
/// already, the bytes would land in one of the many buffers of the same size made meanwhile.
#[test]
fn memory_of_a_dropped_receive_is_not_used_again_before_its_completion() {
    const LEN: usize = 8_192;
    let mut runtime = runtime(RingOptions::default());
    runtime.block_on(async {
        for _ in 0..50 {
            let (client, server) = pair().await;
            let receiving = server.receive(BytesMut::with_capacity(LEN));
            let soon = crate::io::now().after(Duration::from_micros(100));
            assert!(crate::io::with_deadline(soon, receiving).await.is_none());
            let bystanders: Vec<Vec<u8>> = (0..64).map(|_| vec![0xAA; LEN]).collect();
            client
                .send_vectored(vec![Bytes::from(vec![0x55; LEN])])
                .await
                .unwrap();
            sleep(Duration::from_millis(1)).await;
            let intact = bystanders
                .iter()
                .all(|buffer| buffer.iter().all(|byte| *byte == 0xAA));
            assert!(intact, "the kernel wrote into memory that was in use again");
        }
    });
    assert_eq!(runtime.end(), Leftovers::default());
}

/// Ends with reads, writes, receives and accepts in flight and their tasks dropped.
#[test]
fn an_end_in_mid_flight_waits_for_the_kernel() {
    let folder = scratch();
    for round in 0..10u8 {
        let mut runtime = runtime(RingOptions::default());
        let path = folder.path().join(format!("{round}"));
        runtime.block_on(async {
            let file = open(&path, true).await;
            for number in 0..32 {
                let file = file.clone();
                spawn(TaskClass::Produce, async move {
                    let block = filled(1 << 17, number);
                    let position = u64::from(number) << 17;
                    let _ = file.write_at(position, block, Durability::Stable).await;
                });
            }
            for _ in 0..4 {
                let (client, server) = pair().await;
                spawn(TaskClass::Produce, async move {
                    let _ = server.receive(BytesMut::with_capacity(100)).await;
                    drop(client);
                });
            }
            let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 1).unwrap();
            spawn(
                TaskClass::Fetch,
                async move { listener.accept().await.is_ok() },
            );
            spawn(
                TaskClass::Fetch,
                crate::io::run_on_pool(|| {
                    std::thread::sleep(Duration::from_millis(20));
                }),
            );
            crate::io::yield_now().await;
        });
        let started = Instant::now();
        let left = runtime.end();
        assert_eq!((left.operations, left.handles, left.timers), (0, 0, 0));
        assert!(
            started.elapsed() < SHUTDOWN_LIMIT,
            "the kernel ended everything"
        );
        // A write that was cut short by the end is whole or not there, block by block.
        let bytes = std::fs::read(&path).unwrap();
        for (number, written) in bytes.chunks(1 << 17).enumerate() {
            let expected = filled(1 << 17, number as u8);
            for (block, expected) in written.chunks(4_096).zip(expected.chunks(4_096)) {
                let whole = block == &expected[..block.len()];
                assert!(
                    whole || block.iter().all(|byte| *byte == 0),
                    "write {number}"
                );
            }
        }
    }
}

/// As many as a broker's idle connections have.
#[test]
fn an_end_with_a_crowd_of_receives_takes_no_time() {
    const CROWD: usize = 20_000;
    let mut runtime = runtime(RingOptions::default());
    let peer = runtime.block_on(async {
        let (client, server) = pair().await;
        let server = Rc::new(server);
        for _ in 0..CROWD {
            let server = Rc::clone(&server);
            spawn(TaskClass::Produce, async move {
                let _ = server.receive(BytesMut::with_capacity(1)).await;
            });
        }
        sleep(Duration::from_millis(100)).await;
        client
    });
    let started = Instant::now();
    drop(peer);
    let left = runtime.end();
    assert_eq!((left.operations, left.handles, left.timers), (0, 0, 0));
    let took = started.elapsed();
    assert!(took < SHUTDOWN_LIMIT, "{took:?} for {CROWD} receives");
}

/// Senders that hit the moment in which the executor goes to sleep.
#[test]
fn no_wake_is_lost_on_the_way_into_sleep() {
    const ROUNDS: u64 = 30_000;
    let (to_shard, mut inbox) = crate::io::inbox::<u64>(8);
    let (to_client, answers) = std::sync::mpsc::sync_channel::<u64>(8);
    let shard = std::thread::spawn(move || {
        let mut runtime = runtime(RingOptions::default());
        runtime.block_on(async {
            let mut messages = Vec::new();
            while inbox.receive_batch(&mut messages).await {
                for number in messages.drain(..) {
                    to_client.send(number).unwrap();
                }
            }
        });
        runtime.end()
    });
    let mut random = Random::new(7);
    for number in 0..ROUNDS {
        to_shard.try_send(number).unwrap();
        let answer = answers.recv_timeout(Duration::from_secs(10));
        assert_eq!(answer.ok(), Some(number), "a wake was lost");
        // From "it is still awake" to "it sleeps since long".
        for _ in 0..random.below(400) {
            std::hint::spin_loop();
        }
    }
    drop(to_shard);
    assert_eq!(shard.join().unwrap(), Leftovers::default());
}
