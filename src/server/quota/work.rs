//! What the threads do for one connection, as a limit of their time counts it (KIP-124).
//!
//! Counted is the time of the connection's own tasks and of its requests' handlers, to which is
//! added what other shards did for them, and its part of what the sockets took ([`super::prices`]).
//! What is done after a request was counted, which is to make its answer and to send it, counts
//! with the next, as in Kafka.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::base::time::MonotonicNs;
use crate::io;

/// Of one connection. Costs nothing while no limit counts for its client.
#[derive(Debug, Default)]
pub struct ConnectionWork {
    is_counted: Cell<bool>,
    /// Whether one of its tasks runs now, and since when that has not been counted.
    is_running: Cell<bool>,
    since: Cell<MonotonicNs>,
    /// What was not taken yet.
    done: Cell<Work>,
}

/// Something that threads did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Of tasks.
    pub time: Duration,
    /// Sends and receives.
    pub operations: u64,
    /// Bytes of those.
    pub bytes: u64,
}

impl ConnectionWork {
    /// Whether it is counted.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.is_counted.get()
    }

    /// Begins or ceases to count.
    pub fn set_counted(&self, is_counted: bool) {
        if is_counted != self.is_counted.replace(is_counted) {
            self.done.take();
            self.since.set(io::clock());
        }
    }

    /// Polls one of the connection's tasks.
    pub fn poll<F: Future>(&self, task: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.is_counted() {
            self.since.set(io::clock());
        }
        self.is_running.set(true);
        let polled = task.poll(context);
        self.count_running();
        self.is_running.set(false);
        polled
    }

    /// What the running task has done up to now.
    fn count_running(&self) {
        if self.is_counted() && self.is_running.get() {
            let now = io::clock();
            self.add(now.since(self.since.replace(now)));
        }
    }

    /// Other tasks were at work for the connection.
    pub fn add(&self, time: Duration) {
        if self.is_counted() {
            let mut done = self.done.get();
            done.time += time;
            self.done.set(done);
        }
    }

    /// Something was received or sent.
    pub fn note_socket(&self, bytes: usize) {
        if self.is_counted() {
            let mut done = self.done.get();
            done.operations += 1;
            done.bytes += bytes as u64;
            self.done.set(done);
        }
    }

    /// What was done since this was last asked.
    pub fn take(&self) -> Work {
        self.count_running();
        self.done.take()
    }
}
