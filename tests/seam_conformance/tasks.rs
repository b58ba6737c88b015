//! Tasks: timers, inboxes, replies, signals, classes, panics and ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use coreline::io::sync::{LocalQueue, LocalSemaphore, Notify, oneshot};
use coreline::io::{self, Leftovers, TaskClass, TcpListener};

use crate::{local, run, runtime};

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
