//! Tasks that append: one partition each at a time, kept for the next, so that a batch needs no
//! task of its own and no partition needs one for ever.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::io::{self, TaskClass};
use crate::partition::Partition;

/// Idle workers that are kept.
const IDLE_WORKERS_MAX: usize = 64;

/// The workers of one shard.
#[derive(Debug, Default)]
pub struct AppendWorkers {
    idle: RefCell<Vec<Rc<Worker>>>,
}

#[derive(Debug, Default)]
struct Worker {
    assigned: RefCell<Option<Rc<Partition>>>,
    waker: RefCell<Option<Waker>>,
}

impl AppendWorkers {
    /// Has the queued appends of `partition` done, beside those of other partitions.
    pub fn assign(self: &Rc<Self>, partition: Rc<Partition>) {
        let worker = self.idle.borrow_mut().pop();
        let worker = worker.unwrap_or_else(|| {
            let worker = Rc::new(Worker::default());
            io::spawn(TaskClass::Produce, Rc::clone(self).work(Rc::clone(&worker)));
            worker
        });
        *worker.assigned.borrow_mut() = Some(partition);
        let waker = worker.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn work(self: Rc<Self>, worker: Rc<Worker>) {
        loop {
            let partition = worker.next().await;
            partition.drain_appends().await;
            let mut idle = self.idle.borrow_mut();
            if idle.len() >= IDLE_WORKERS_MAX {
                break;
            }
            idle.push(Rc::clone(&worker));
        }
    }
}

impl Worker {
    async fn next(&self) -> Rc<Partition> {
        std::future::poll_fn(|context| {
            if let Some(partition) = self.assigned.borrow_mut().take() {
                return Poll::Ready(partition);
            }
            *self.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
