//! The executor over a driver that does what the test says: order, starvation bounds, ownership of
//! buffers, wakes from other threads.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::io::buffer::AlignedBuffer;
use crate::io::driver::{Handle, Unpark};
use crate::io::task::{TURN_BYTES_MAX, TURN_TIME_MAX, TurnBudget, spawn, yield_now};
use crate::io::{File, OpenOptions, sleep};

/// What a test sees of its driver, and decides for it.
#[derive(Default)]
struct Script {
    now: Cell<u64>,
    /// Operations that have not completed, with what the driver holds for them.
    held: RefCell<VecDeque<(OperationId, Operation)>>,
    /// The clock at each call of `turn`, and whether it could wait.
    turns: RefCell<Vec<(u64, Wait)>>,
    closed: RefCell<Vec<Handle>>,
    /// Complete what is held at every turn.
    eager: Cell<bool>,
    parked: Arc<Parked>,
}

#[derive(Default)]
struct Parked {
    unparks: AtomicUsize,
    lock: Mutex<bool>,
    signal: std::sync::Condvar,
}

impl Unpark for Parked {
    fn unpark(&self) {
        self.unparks.fetch_add(1, Ordering::SeqCst);
        *self.lock.lock().unwrap() = true;
        self.signal.notify_all();
    }
}

struct ScriptedDriver(Rc<Script>);

fn answer(operation: Operation) -> Completion {
    match operation {
        Operation::Read { buffer, .. } => Completion::Read(Ok(buffer.len()), buffer),
        Operation::Write { buffer, .. } => Completion::Written(Ok(()), buffer),
        Operation::Open { .. } => Completion::Opened(Ok(crate::io::driver::Opened {
            handle: Handle(7),
            direct: true,
        })),
        Operation::Length { .. } => Completion::Length(Ok(1)),
        _ => Completion::Done(Ok(())),
    }
}

impl Driver for ScriptedDriver {
    fn now(&self) -> MonotonicNs {
        MonotonicNs(self.0.now.get())
    }

    fn wall_clock(&self) -> TimestampMs {
        TimestampMs(0)
    }

    fn submit(&mut self, id: OperationId, operation: Operation) {
        self.0.held.borrow_mut().push_back((id, operation));
    }

    fn turn(&mut self, wait: Wait, completed: &mut Vec<(OperationId, Completion)>) {
        self.0.turns.borrow_mut().push((self.0.now.get(), wait));
        if self.0.eager.get() {
            let held = self.0.held.take();
            completed.extend(held.into_iter().map(|(id, held)| (id, answer(held))));
        }
        if !completed.is_empty() {
            return;
        }
        match wait {
            Wait::Poll => {}
            Wait::Until(until) => self.0.now.set(self.0.now.get().max(until.0)),
            Wait::Forever => {
                let parked = &self.0.parked;
                let mut woken = parked.lock.lock().unwrap();
                while !*woken {
                    woken = parked.signal.wait(woken).unwrap();
                }
                *woken = false;
            }
        }
    }

    fn close(&mut self, handle: Handle) {
        self.0.closed.borrow_mut().push(handle);
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::clone(&self.0.parked) as Arc<dyn Unpark>
    }

    fn shutdown(&mut self, completed: &mut Vec<(OperationId, Completion)>) {
        let held = self.0.held.take();
        completed.extend(held.into_iter().map(|(id, held)| (id, answer(held))));
    }

    fn open_handles(&self) -> usize {
        0
    }
}

fn scripted() -> (Rc<Script>, Rc<Core>) {
    let script = Rc::new(Script::default());
    script.eager.set(true);
    let driver = Box::new(ScriptedDriver(Rc::clone(&script)));
    (script, Core::new(driver, PanicPolicy::Unwind))
}

#[test]
fn completions_are_looked_at_every_500_us_while_tasks_run() {
    const TASK_US: u64 = 40;
    let (script, core) = scripted();
    core.block_on(async {
        for _ in 0..4 {
            let script = Rc::clone(&script);
            spawn(TaskClass::Produce, async move {
                for _ in 0..100 {
                    script.now.set(script.now.get() + TASK_US * 1_000);
                    // Wakes itself without yielding: runnable again at once.
                    let mut again = true;
                    std::future::poll_fn(|context| {
                        if std::mem::replace(&mut again, false) {
                            context.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        Poll::Ready(())
                    })
                    .await;
                }
            });
        }
        sleep(Duration::from_millis(15)).await;
    });
    let turns = script.turns.borrow();
    assert!(turns.len() >= 28, "{} turns", turns.len());
    for pair in turns.windows(2) {
        let between = (pair[1].0 - pair[0].0) / 1_000;
        assert!(between <= 500 + TASK_US, "{between} µs without a look");
    }
}

#[test]
fn a_turn_is_bounded_where_the_clock_stands_still() {
    let (script, core) = scripted();
    let polls = Rc::new(Cell::new(0));
    core.block_on(async {
        let counted = Rc::clone(&polls);
        spawn(TaskClass::Produce, async move {
            std::future::poll_fn(|context| {
                counted.set(counted.get() + 1);
                context.waker().wake_by_ref();
                Poll::<()>::Pending
            })
            .await;
        });
        let turns = script.turns.borrow().len();
        while script.turns.borrow().len() < turns + 3 {
            yield_now().await;
        }
    });
    assert!(polls.get() <= 5 * POLLS_PER_TURN_MAX, "{}", polls.get());
}

#[test]
fn a_task_yields_after_its_bytes_or_its_time() {
    let (script, core) = scripted();
    let turns_of = |bytes: usize, us: u64, pieces: usize| {
        core.block_on(async {
            let before = script.turns.borrow().len();
            let mut budget = TurnBudget::default();
            for _ in 0..pieces {
                script.now.set(script.now.get() + us * 1_000);
                budget.spend(bytes).await;
            }
            script.turns.borrow().len() - before
        })
    };
    // At the limit of bytes, and one past it.
    assert_eq!(turns_of(TURN_BYTES_MAX - 1, 0, 1), 0);
    assert_eq!(turns_of(TURN_BYTES_MAX, 0, 1), 1);
    assert_eq!(turns_of(TURN_BYTES_MAX / 4, 0, 16), 4);
    let limit_us = TURN_TIME_MAX.as_micros() as u64;
    assert_eq!(turns_of(1, limit_us - 1, 1), 0);
    assert_eq!(turns_of(1, limit_us, 1), 1);
    assert_eq!(turns_of(1, limit_us, 10), 10);
}

#[test]
fn one_busy_task_lets_the_others_run_between_its_turns() {
    let (script, core) = scripted();
    let log = Rc::new(RefCell::new(Vec::new()));
    core.block_on(async {
        let tasks: Vec<_> = [("busy", 64 * 1024usize), ("quiet", 1)]
            .into_iter()
            .map(|(name, bytes)| {
                let log = Rc::clone(&log);
                spawn(TaskClass::Produce, async move {
                    let mut budget = TurnBudget::default();
                    for _ in 0..5 {
                        log.borrow_mut().push(name);
                        budget.spend(bytes).await;
                        if name == "quiet" {
                            yield_now().await;
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
    });
    assert_eq!(log.borrow()[..6], ["busy", "quiet"].repeat(3)[..]);
    assert!(
        script
            .turns
            .borrow()
            .iter()
            .all(|(_, wait)| *wait != Wait::Forever)
    );
}

#[test]
fn a_dropped_future_leaves_its_buffer_with_the_driver_and_its_file_open() {
    let (script, core) = scripted();
    let file = core.block_on(async {
        File::open("anywhere".as_ref(), OpenOptions::default())
            .await
            .unwrap()
    });
    script.eager.set(false);
    core.block_on(async {
        let mut read = Box::pin(file.read_at(0, AlignedBuffer::zeroed(4_096)));
        std::future::poll_fn(|context| {
            assert!(read.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(read);
    });
    drop(file);
    let held = script.held.borrow().len();
    assert_eq!(held, 1, "the driver still has the buffer");
    assert!(
        script.closed.borrow().is_empty(),
        "an operation names the file"
    );
    script.eager.set(true);
    core.turn(Wait::Poll);
    assert_eq!(*script.closed.borrow(), [Handle(7)]);
    assert_eq!(core.end().operations, 0);
}

#[test]
fn an_open_that_nobody_waits_for_is_closed() {
    for completes_first in [false, true] {
        let (script, core) = scripted();
        script.eager.set(completes_first);
        core.block_on(async {
            let mut open = Box::pin(File::open("x".as_ref(), OpenOptions::default()));
            std::future::poll_fn(|context| {
                assert!(open.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            if completes_first {
                yield_now().await;
            }
            drop(open);
        });
        script.eager.set(true);
        core.turn(Wait::Poll);
        assert_eq!(*script.closed.borrow(), [Handle(7)]);
    }
}

#[test]
fn the_same_script_runs_the_same_way() {
    let run = || {
        let (script, core) = scripted();
        let log = Rc::new(RefCell::new(Vec::new()));
        core.block_on(async {
            let tasks: Vec<_> = (0..20u64)
                .map(|number| {
                    let log = Rc::clone(&log);
                    let class = [TaskClass::Produce, TaskClass::Fetch, TaskClass::Background]
                        [number as usize % 3];
                    spawn(class, async move {
                        for step in 0..5 {
                            sleep(Duration::from_micros(number * 37 % 11 * 100 + step)).await;
                            log.borrow_mut().push((number, step));
                            yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
        });
        (log.take(), script.turns.take())
    };
    let first = run();
    assert_eq!(first.0.len(), 100);
    assert_eq!(first, run());
}

/// A waker is `Send` by std's type: one that leaves its thread goes through the remote list, and
/// wakes a sleeping executor exactly when it sleeps.
#[test]
fn a_waker_that_left_its_thread_still_wakes() {
    let (script, core) = scripted();
    for _ in 0..200 {
        let woken = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let mut thread = None;
        core.block_on(std::future::poll_fn(|context| {
            if woken.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            let (waker, woken) = (context.waker().clone(), Arc::clone(&woken));
            thread.get_or_insert_with(|| {
                std::thread::spawn(move || {
                    woken.store(true, Ordering::SeqCst);
                    waker.wake();
                })
            });
            Poll::Pending
        }));
        if let Some(thread) = thread {
            thread.join().unwrap();
        }
    }
    let unparks = script.parked.unparks.load(Ordering::SeqCst);
    assert!(
        unparks <= 200,
        "awake executors are not unparked: {unparks}"
    );
}

#[test]
fn a_wake_of_a_task_that_ended_is_harmless() {
    let (_script, core) = scripted();
    let stale = Rc::new(RefCell::new(None));
    core.block_on(async {
        let kept = Rc::clone(&stale);
        spawn(TaskClass::Produce, async move {
            std::future::poll_fn(|context| {
                *kept.borrow_mut() = Some(context.waker().clone());
                Poll::Ready(())
            })
            .await;
        })
        .await;
        // The slot has a new tenant now.
        let tenant = spawn(TaskClass::Produce, std::future::pending::<()>());
        if let Some(waker) = stale.borrow_mut().take() {
            waker.wake();
        }
        yield_now().await;
        assert!(!tenant.is_finished());
    });
    assert_eq!(core.end().tasks, 1);
}
