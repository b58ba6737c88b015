//! What every backend of the runtime seam must do, through the names that the rest of the house
//! uses: files, durability, directories, sockets, inbox, replies, timers, classes, panics, ends.
//! One file past the usual size: it is one list that a backend is held against whole.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use coreline::io::sync::{LocalQueue, LocalSemaphore, Notify, oneshot};
use coreline::io::{
    self, AlignedBuffer, Durability, File, Leftovers, OpenOptions, Runtime, RuntimeOptions,
    TaskClass, TcpListener, TcpStream, directory,
};

/// A runtime of the backend under test.
fn runtime() -> Runtime {
    Runtime::start(RuntimeOptions::for_tests()).expect("the kernel allows io_uring")
}

/// Runs a test on the backend and checks that nothing is left behind.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = runtime();
    let value = runtime.block_on(future);
    let left = runtime.end();
    assert_eq!((left.timers, left.operations, left.handles), (0, 0, 0));
    value
}

fn scratch() -> tempfile::TempDir {
    // Not /tmp, which may be a tmpfs without direct I/O.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build folder is writable")
}

fn filled(len: usize, seed: u8) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::zeroed(len);
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = (index as u8).wrapping_mul(31).wrapping_add(seed);
    }
    buffer
}

fn writable(direct: bool) -> OpenOptions {
    OpenOptions {
        write: true,
        create: true,
        direct,
        ..OpenOptions::default()
    }
}

#[test]
fn files_read_back_what_was_written() {
    let folder = scratch();
    run(async {
        for direct in [false, true] {
            for durability in [Durability::Written, Durability::Stable] {
                let path = folder.path().join(format!("{direct}-{durability:?}"));
                let file = File::open(&path, writable(direct)).await.unwrap();
                assert_eq!(
                    file.is_direct(),
                    direct,
                    "ext4 and overlayfs have direct I/O"
                );
                let (written, buffer) = file.write_at(8_192, filled(12_288, 1), durability).await;
                written.unwrap();
                assert_eq!(buffer.len(), 12_288);
                assert_eq!(file.len().await.unwrap(), 20_480);
                let (read, back) = file.read_at(8_192, AlignedBuffer::zeroed(12_288)).await;
                assert_eq!(read.unwrap(), 12_288);
                assert_eq!(&back[..], &filled(12_288, 1)[..]);
                // The hole before it reads as zeros, past the end there is nothing.
                let (read, back) = file.read_at(0, AlignedBuffer::zeroed(8_192)).await;
                assert_eq!(read.unwrap(), 8_192);
                assert!(back.iter().all(|byte| *byte == 0));
                let (read, _) = file.read_at(20_480, AlignedBuffer::zeroed(4_096)).await;
                assert_eq!(read.unwrap(), 0);
                let (read, _) = file.read_at(16_384, AlignedBuffer::zeroed(65_536)).await;
                assert_eq!(read.unwrap(), 4_096);
                file.sync_data().await.unwrap();
                file.sync_all().await.unwrap();
            }
        }
    });
}

#[test]
fn a_direct_read_across_an_unaligned_end_is_short() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let file = File::open(&path, writable(true)).await.unwrap();
        let (written, _) = file
            .write_at(0, filled(8_192, 3), Durability::Written)
            .await;
        written.unwrap();
        file.truncate(5_000).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 5_000);
        let (read, back) = file.read_at(0, AlignedBuffer::zeroed(8_192)).await;
        assert_eq!(read.unwrap(), 5_000);
        assert_eq!(&back[..5_000], &filled(8_192, 3)[..5_000]);
        let (read, _) = file.read_at(4_096, AlignedBuffer::zeroed(4_096)).await;
        assert_eq!(read.unwrap(), 904);
    });
}

#[test]
fn opening_obeys_its_options() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let missing = File::open(&path, OpenOptions::default()).await;
        assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
        let create_new = OpenOptions {
            write: true,
            create_new: true,
            direct: true,
            ..OpenOptions::default()
        };
        let file = File::open(&path, create_new).await.unwrap();
        let (written, _) = file
            .write_at(0, filled(4_096, 1), Durability::Written)
            .await;
        written.unwrap();
        let again = File::open(&path, create_new).await;
        assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        let cut = OpenOptions {
            truncate: true,
            ..writable(false)
        };
        let file = File::open(&path, cut).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 0);
        let reader = File::open(&path, OpenOptions::default()).await.unwrap();
        let (written, buffer) = reader
            .write_at(0, filled(4_096, 1), Durability::Written)
            .await;
        assert!(written.is_err(), "opened for reading only");
        assert_eq!(buffer.len(), 4_096, "the buffer comes back with the error");
    });
}

#[test]
fn preallocation_keeps_the_size() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let file = File::open(&path, writable(true)).await.unwrap();
        file.preallocate(0, 1 << 20).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 0);
        file.sync_all().await.unwrap();
        let too_much = file.preallocate(0, 1 << 60).await;
        assert!(too_much.is_err());
    });
}

#[test]
fn a_lock_belongs_to_its_descriptor() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let first = File::open(&path, writable(false)).await.unwrap();
        let second = File::open(&path, writable(false)).await.unwrap();
        first.lock_exclusive(Duration::ZERO).await.unwrap();
        let refused = second.lock_exclusive(Duration::from_millis(30)).await;
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        let waiting = io::spawn(TaskClass::Produce, async move {
            second.lock_exclusive(Duration::from_secs(10)).await
        });
        io::sleep(Duration::from_millis(20)).await;
        drop(first);
        waiting.await.unwrap();
    });
}

#[test]
fn directories_do_what_they_are_asked() {
    let folder = scratch();
    run(async {
        let root = folder.path();
        directory::create(&root.join("a")).await.unwrap();
        assert!(directory::create(&root.join("a")).await.is_err());
        directory::create_all(&root.join("b/c/d")).await.unwrap();
        directory::write_file_durably(&root.join("b/file"), b"contents")
            .await
            .unwrap();
        directory::write_file_durably(&root.join("b/file"), b"new")
            .await
            .unwrap();
        directory::write_file_durably(&root.join("b/empty"), b"")
            .await
            .unwrap();
        let names: Vec<_> = directory::list(&root.join("b"))
            .await
            .unwrap()
            .into_iter()
            .map(|entry| (entry.name, entry.is_directory))
            .collect();
        let expected = [("c", true), ("empty", false), ("file", false)];
        assert_eq!(names, expected.map(|(name, is)| (name.to_owned(), is)));
        assert_eq!(
            directory::read_file(&root.join("b/file"), 3).await.unwrap(),
            b"new"
        );
        assert_eq!(
            directory::read_file(&root.join("b/empty"), 0)
                .await
                .unwrap(),
            b""
        );
        let too_long = directory::read_file(&root.join("b/file"), 2).await;
        assert_eq!(
            too_long.unwrap_err().kind(),
            std::io::ErrorKind::InvalidData
        );
        directory::rename(&root.join("b/file"), &root.join("a/file"))
            .await
            .unwrap();
        let described = directory::metadata(&root.join("a/file")).await.unwrap();
        assert_eq!((described.len, described.is_directory), (3, false));
        assert!(directory::metadata(root).await.unwrap().is_directory);
        let gone = directory::metadata(&root.join("b/file")).await;
        assert_eq!(gone.unwrap_err().kind(), std::io::ErrorKind::NotFound);
        directory::sync(&root.join("a")).await.unwrap();
        directory::sync_filesystem(root).await.unwrap();
        directory::remove_file(&root.join("a/file")).await.unwrap();
        assert!(directory::remove_file(&root.join("a/file")).await.is_err());
        directory::remove_all(&root.join("b")).await.unwrap();
        assert_eq!(directory::list(root).await.unwrap().len(), 1);
        let space = directory::space(root).await.unwrap();
        assert!(space.available_bytes > 0 && space.total_bytes >= space.available_bytes);
    });
}

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

async fn receive_exactly(stream: &TcpStream, len: usize) -> Vec<u8> {
    let mut all = BytesMut::with_capacity(len);
    while all.len() < len {
        let (count, back) = stream.receive(all).await;
        all = back;
        assert!(
            count.unwrap() > 0,
            "the stream ended after {} bytes",
            all.len()
        );
    }
    all.to_vec()
}

#[test]
fn sockets_carry_all_bytes_in_order() {
    run(async {
        let listener = TcpListener::bind(local(), 16).unwrap();
        let address = listener.local_address().unwrap();
        let server = io::spawn(TaskClass::Produce, async move {
            let (stream, peer) = listener.accept().await.unwrap();
            assert!(peer.ip().is_loopback());
            loop {
                let (count, buffer) = stream.receive(BytesMut::with_capacity(10_000)).await;
                if count.unwrap() == 0 {
                    break;
                }
                stream.send_vectored(vec![buffer.freeze()]).await.unwrap();
            }
        });
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_buffer_sizes(Some(16_384), Some(16_384)).unwrap();
        // Larger than all socket buffers, in more slices than one system call takes.
        let slices: Vec<Bytes> = (0..3_000u32)
            .map(|number| Bytes::from(number.to_le_bytes().repeat(1_000)))
            .chain([Bytes::new()])
            .collect();
        let expected: Vec<u8> = slices.iter().flatten().copied().collect();
        let sender = stream.clone();
        let sending = io::spawn(TaskClass::Produce, async move {
            sender.send_vectored(slices).await.unwrap();
            sender.finish();
        });
        let back = receive_exactly(&stream, expected.len()).await;
        assert!(back == expected);
        sending.await;
        server.await;
        let (count, _) = stream.receive(BytesMut::with_capacity(1)).await;
        assert_eq!(count.unwrap(), 0, "the peer has closed");
        stream.send_vectored(Vec::new()).await.unwrap();
    });
}

#[test]
fn shutdown_ends_a_receive_and_an_accept_under_way() {
    run(async {
        let listener = Rc::new(TcpListener::bind(local(), 16).unwrap());
        let stream = TcpStream::connect(listener.local_address().unwrap())
            .await
            .unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let reader = stream.clone();
        let receiving = io::spawn(TaskClass::Produce, async move {
            reader.receive(BytesMut::with_capacity(10)).await.0
        });
        let accepting = {
            let listener = Rc::clone(&listener);
            io::spawn(TaskClass::Produce, async move {
                listener.accept().await.is_err()
            })
        };
        io::sleep(Duration::from_millis(5)).await;
        stream.shutdown();
        listener.shutdown();
        assert_eq!(receiving.await.unwrap(), 0);
        assert!(accepting.await);
        let (count, _) = accepted.receive(BytesMut::with_capacity(1)).await;
        assert_eq!(count.unwrap(), 0);
    });
}

#[test]
fn listeners_share_a_port() {
    run(async {
        let first = TcpListener::bind(local(), 16).unwrap();
        let second = TcpListener::bind(first.local_address().unwrap(), 16).unwrap();
        assert_eq!(
            first.local_address().unwrap(),
            second.local_address().unwrap()
        );
        let refused = TcpListener::bind(SocketAddr::from(([192, 0, 2, 1], 0)), 16);
        assert!(refused.is_err(), "not an address of this machine");
    });
}

#[test]
fn a_dropped_receive_leaves_buffer_and_descriptor_to_the_driver() {
    run(async {
        let listener = TcpListener::bind(local(), 16).unwrap();
        let stream = TcpStream::connect(listener.local_address().unwrap())
            .await
            .unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let soon = io::now().after(Duration::from_millis(5));
        let received = io::with_deadline(soon, accepted.receive(BytesMut::with_capacity(10))).await;
        assert!(received.is_none());
        // The last owner goes while the receive is in flight: the descriptor closes all the same.
        drop(accepted);
        let (count, _) = stream.receive(BytesMut::with_capacity(10)).await;
        assert_eq!(count.unwrap(), 0);
    });
}

#[test]
fn a_write_whose_future_was_dropped_still_happens() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let file = File::open(&path, writable(true)).await.unwrap();
        {
            let mut write =
                std::pin::pin!(file.write_at(0, filled(1 << 20, 9), Durability::Stable));
            std::future::poll_fn(|context| {
                assert!(write.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        drop(file);
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::fs::read(&path).unwrap() != filled(1 << 20, 9)[..] {
            assert!(Instant::now() < deadline, "the write never happened");
            io::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn sleeps_end_in_order_and_not_early() {
    run(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let started = io::now();
        let tasks: Vec<_> = [30u64, 10, 20, 0]
            .into_iter()
            .map(|ms| {
                let order = Rc::clone(&order);
                io::spawn(TaskClass::Background, async move {
                    let deadline = started.after(Duration::from_millis(ms));
                    io::sleep_until(deadline).await;
                    assert!(io::now() >= deadline);
                    order.borrow_mut().push(ms);
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        assert_eq!(*order.borrow(), [0, 10, 20, 30]);
        let wall = io::wall_clock();
        assert!(wall.0 > 1_500_000_000_000, "{wall:?}");
        let within = io::with_deadline(io::now().after(Duration::from_secs(60)), async { 7 }).await;
        assert_eq!(within, Some(7));
    });
}

#[test]
fn messages_and_replies_cross_threads() {
    const MESSAGES: u64 = 50_000;
    let (sender, mut inbox) = io::inbox::<(u64, io::ReplySender<u64>)>(64);
    let server = std::thread::spawn(move || {
        run(async {
            let mut messages = Vec::new();
            let mut served = 0;
            while inbox.receive_batch(&mut messages).await {
                for (number, reply) in messages.drain(..) {
                    reply.send(number * 2);
                    served += 1;
                }
            }
            served
        })
    });
    let sum = run(async {
        let mut sum = 0;
        for number in 0..MESSAGES {
            let (reply, answer) = io::reply_slot();
            sender
                .try_send((number, reply))
                .expect("one message at a time fits");
            sum += answer.await.expect("answered");
        }
        drop(sender);
        sum
    });
    assert_eq!(sum, MESSAGES * (MESSAGES - 1));
    assert_eq!(server.join().unwrap(), MESSAGES);
}

#[test]
fn an_inbox_is_bounded_and_says_when_it_is_closed() {
    let (sender, mut inbox) = io::inbox::<u32>(3);
    assert_eq!(sender.try_send(1), Ok(()));
    let mut batch = vec![2, 3, 4, 5];
    sender.try_send_batch(&mut batch);
    assert_eq!(batch, [4, 5], "room for three");
    assert_eq!(sender.try_send(9), Err(9));
    assert_eq!(inbox.depth(), 3);
    run(async {
        let mut messages = vec![0];
        assert!(inbox.receive_batch(&mut messages).await);
        assert_eq!(messages, [0, 1, 2, 3]);
        sender.try_send_batch(&mut batch);
        assert!(batch.is_empty());
        let other = sender.clone();
        drop(sender);
        assert!(inbox.receive_batch(&mut messages).await);
        drop(other);
        assert!(
            !inbox.receive_batch(&mut messages).await,
            "every sender is gone"
        );
        assert_eq!(messages, [0, 1, 2, 3, 4, 5]);
    });
    let (sender, inbox) = io::inbox::<Rc2>(3);
    drop(inbox);
    assert!(sender.try_send(Rc2).is_err());
    let (reply, answer) = io::reply_slot::<u32>();
    drop(reply);
    assert_eq!(run(answer), None);
}

#[derive(Debug)]
struct Rc2;

#[test]
fn local_signals_wake_their_tasks() {
    run(async {
        let notify = Rc::new(Notify::new());
        let queue = LocalQueue::new(2);
        let permits = LocalSemaphore::new(1);
        let (sender, receiver) = oneshot();
        let worker = {
            let (notify, queue, permits) = (Rc::clone(&notify), queue.clone(), permits.clone());
            io::spawn(TaskClass::Fetch, async move {
                notify.notified().await;
                let permit = permits.acquire(1).await;
                sender.send(permit.count()).unwrap();
                for number in 0..10 {
                    queue.push(number).await.unwrap();
                }
                queue.close();
            })
        };
        let held = permits.acquire(1).await;
        io::yield_now().await;
        notify.notify_one();
        drop(held);
        assert_eq!(receiver.await, Some(1));
        let mut got = Vec::new();
        while let Some(number) = queue.pop().await {
            got.push(number);
        }
        assert_eq!(got, (0..10).collect::<Vec<_>>());
        worker.await;
    });
}

#[test]
fn classes_share_the_cpu_and_none_starves() {
    run(async {
        let done = Rc::new(Cell::new([0u32; 3]));
        let stop = Rc::new(Cell::new(false));
        let classes = [TaskClass::Background, TaskClass::Fetch, TaskClass::Produce];
        let tasks: Vec<_> = classes
            .into_iter()
            .map(|class| {
                let (done, stop) = (Rc::clone(&done), Rc::clone(&stop));
                io::spawn(class, async move {
                    while !stop.get() {
                        let until = Instant::now() + Duration::from_micros(20);
                        while Instant::now() < until {}
                        let mut counts = done.get();
                        counts[class as usize] += 1;
                        done.set(counts);
                        io::yield_now().await;
                    }
                })
            })
            .collect();
        io::sleep(Duration::from_millis(100)).await;
        stop.set(true);
        for task in tasks {
            task.await;
        }
        let [produce, fetch, background] = done.get();
        assert!(
            background > 0 && fetch > 0 && produce > 0,
            "{:?}",
            done.get()
        );
    });
}

#[test]
fn the_pool_answers_and_turns_panics_into_errors() {
    run(async {
        let caller = std::thread::current().id();
        let other = io::run_on_pool(move || std::thread::current().id() != caller).await;
        assert!(other.unwrap());
        let error = io::run_on_pool(|| -> u32 { panic!("a broken batch") }).await;
        assert!(error.unwrap_err().to_string().contains("a broken batch"));
        let many: Vec<_> = (0..100u64)
            .map(|number| {
                io::spawn(TaskClass::Background, async move {
                    io::run_on_pool(move || number * 2).await.unwrap()
                })
            })
            .collect();
        for (number, task) in many.into_iter().enumerate() {
            assert_eq!(task.await, number as u64 * 2);
        }
    });
}

#[test]
fn a_guarded_task_panics_alone() {
    run(async {
        let guarded = io::spawn_guarded(TaskClass::Produce, async {
            io::yield_now().await;
            if io::now().0 > 0 {
                panic!("bad frame");
            }
        });
        assert_eq!(guarded.await.unwrap_err().reason, "bad frame");
        assert_eq!(
            io::spawn_guarded(TaskClass::Produce, async { 3 }).await,
            Ok(3)
        );
    });
}

#[test]
fn an_unguarded_panic_leaves_a_test_runtime() {
    let mut runtime = runtime();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            let task = io::spawn(TaskClass::Produce, async { panic!("the log is broken") });
            task.await;
        });
    }));
    assert!(outcome.is_err());
    // The runtime is whole: it runs on and ends cleanly.
    assert_eq!(runtime.block_on(async { 5 }), 5);
    assert_eq!(runtime.end(), Leftovers::default());
}

#[test]
fn runtimes_follow_one_another_and_stand_side_by_side() {
    for round in 0..20 {
        assert_eq!(run(async { round }), round);
    }
    let threads: Vec<_> = (0..4u64)
        .map(|number| {
            std::thread::spawn(move || {
                run(async move {
                    io::sleep(Duration::from_millis(number)).await;
                    io::run_on_pool(move || number).await.unwrap()
                })
            })
        })
        .collect();
    let sum: u64 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(sum, 6);
}

#[test]
fn what_is_left_at_the_end_is_counted() {
    let mut runtime = runtime();
    let held = runtime.block_on(async {
        let listener = TcpListener::bind(local(), 16).unwrap();
        io::spawn(TaskClass::Produce, async move {
            let _ = listener.accept().await;
        });
        let _running = io::spawn(TaskClass::Fetch, io::sleep(Duration::from_secs(1_000)));
        io::yield_now().await;
        TcpListener::bind(local(), 16).unwrap()
    });
    let left = runtime.end();
    assert_eq!(
        (left.tasks, left.timers, left.operations, left.handles),
        (2, 0, 0, 1)
    );
    // Dropping what outlived its runtime is harmless.
    drop(held);
}

#[test]
#[should_panic(expected = "no Coreline runtime runs on this thread")]
fn time_outside_a_runtime_is_a_bug_that_says_so() {
    let _ = io::now();
}
