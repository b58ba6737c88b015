//! Order, fairness and loss of local signals.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

use super::*;
use crate::io::{JoinHandle, Runtime, RuntimeOptions, TaskClass, spawn, yield_now};

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = Runtime::start(RuntimeOptions::for_tests()).expect("io_uring is allowed");
    runtime.block_on(future)
}

/// Compiles only while `T` is not `Send`: else two impls fit and the call is ambiguous.
macro_rules! assert_not_send {
    ($($type:ty),*) => {$(
        const _: fn() = || {
            trait Ambiguous<A> { fn look() {} }
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + Send> Ambiguous<u8> for T {}
            <$type as Ambiguous<_>>::look();
        };
    )*};
}

// No signal that wakes by task index can leave its thread, by type.
assert_not_send!(
    Notify,
    Notified<'static>,
    OneshotSender<u8>,
    OneshotReceiver<u8>,
    LocalSemaphore,
    Permit,
    LocalQueue<u8>,
    JoinHandle<u8>,
    crate::io::File,
    crate::io::TcpStream,
    crate::io::executor::LocalWaker
);

async fn poll_once<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

#[test]
fn waiting_for_a_signal_begins_with_the_call() {
    run(async {
        let notify = Notify::new();
        let notified = notify.notified();
        notify.notify_all();
        notified.await;
        // `notify_all` leaves nothing behind, `notify_one` does, once.
        let mut later = Box::pin(notify.notified());
        assert!(poll_once(&mut later).await.is_pending());
        drop(later);
        notify.notify_one();
        notify.notify_one();
        notify.notified().await;
        let mut third = Box::pin(notify.notified());
        assert!(poll_once(&mut third).await.is_pending());
    });
}

#[test]
fn a_signal_to_one_is_passed_on_when_that_one_is_gone() {
    run(async {
        let notify = Notify::new();
        let first = notify.notified();
        let second = notify.notified();
        notify.notify_one();
        drop(first);
        second.await;
        // Also one that was kept.
        notify.notify_one();
        drop(notify.notified());
        notify.notified().await;
    });
}

#[test]
fn waiters_that_give_up_leave_nothing_behind() {
    run(async {
        let notify = Notify::new();
        let permits = LocalSemaphore::new(0);
        for _ in 0..1_000 {
            let mut waiting = Box::pin(notify.notified());
            assert!(poll_once(&mut waiting).await.is_pending());
            let mut acquiring = Box::pin(permits.acquire(1));
            assert!(poll_once(&mut acquiring).await.is_pending());
        }
        let text = format!("{notify:?} {permits:?}");
        assert!(text.len() < 1_000, "{text}");
    });
}

#[test]
fn permits_are_given_in_order_and_a_large_request_is_not_overtaken() {
    run(async {
        let permits = LocalSemaphore::new(3);
        let order = Rc::new(RefCell::new(Vec::new()));
        let held = permits.acquire(2).await;
        let tasks: Vec<_> = [3usize, 1, 1]
            .into_iter()
            .enumerate()
            .map(|(number, count)| {
                let (permits, order) = (permits.clone(), Rc::clone(&order));
                spawn(TaskClass::Produce, async move {
                    let permit = permits.acquire(count).await;
                    order.borrow_mut().push(number);
                    yield_now().await;
                    drop(permit);
                })
            })
            .collect();
        yield_now().await;
        assert!(
            order.borrow().is_empty(),
            "one is free, but three come first"
        );
        assert!(permits.try_acquire(1).is_none(), "nor does a try overtake");
        drop(held);
        for task in tasks {
            task.await;
        }
        assert_eq!(*order.borrow(), [0, 1, 2]);
        assert_eq!(permits.available(), 3);
    });
}

#[test]
fn a_waiter_that_gives_up_lets_the_next_one_in() {
    run(async {
        let permits = LocalSemaphore::new(1);
        let mut large = Box::pin(permits.acquire(2));
        assert!(poll_once(&mut large).await.is_pending());
        let small = {
            let permits = permits.clone();
            spawn(TaskClass::Produce, async move {
                permits.acquire(1).await.count()
            })
        };
        yield_now().await;
        drop(large);
        assert_eq!(small.await, 1);
        let mut permit = permits.acquire(1).await;
        permits.add(1);
        permit.shrink(0);
        assert_eq!(permits.available(), 2);
        permits.acquire(2).await.forget();
        assert_eq!(permits.available(), 0);
    });
}

#[test]
fn a_queue_is_bounded_ordered_and_closes() {
    run(async {
        let queue = LocalQueue::new(2);
        assert_eq!(queue.try_push(0), Ok(()));
        assert_eq!(queue.try_push(1), Ok(()));
        assert_eq!(queue.try_push(9), Err(9), "one past its limit");
        let pushers: Vec<_> = (2..6)
            .map(|number| {
                let queue = queue.clone();
                spawn(TaskClass::Produce, async move { queue.push(number).await })
            })
            .collect();
        yield_now().await;
        for expected in 0..5 {
            assert_eq!(queue.pop().await, Some(expected));
        }
        for pusher in pushers {
            assert_eq!(pusher.await, Ok(()));
        }
        let poppers: Vec<_> = (0..3)
            .map(|_| {
                let queue = queue.clone();
                spawn(TaskClass::Fetch, async move { queue.pop().await })
            })
            .collect();
        yield_now().await;
        queue.close();
        let mut got = Vec::new();
        for popper in poppers {
            got.push(popper.await);
        }
        assert_eq!(got, [Some(5), None, None]);
        assert_eq!(queue.push(7).await, Err(7));
    });
}

#[test]
fn a_oneshot_answers_or_says_that_nobody_will() {
    run(async {
        let (sender, receiver) = oneshot();
        spawn(TaskClass::Produce, async move { sender.send(5) });
        assert_eq!(receiver.await, Some(5));
        let (sender, receiver) = oneshot::<u8>();
        drop(sender);
        assert_eq!(receiver.await, None);
        let (sender, receiver) = oneshot();
        drop(receiver);
        assert!(sender.is_abandoned());
        assert_eq!(sender.send(5), Err(5));
    });
}
