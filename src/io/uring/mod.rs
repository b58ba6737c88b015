//! The driver over io_uring: one ring (SINGLE_ISSUER, DEFER_TASKRUN, COOP_TASKRUN) on the thread
//! that made it, and the pool for what the ring cannot do.
//!
//! Invariants:
//! - A slot of [`UringDriver::slots`] owns its operation's buffers from `submit` to the completion.
//!   The kernel holds pointers into them while the operation is in the ring; they lie on the heap
//!   and do not move with the slot.
//! - When operations do not end at shutdown their slots are leaked, never freed.
//! - One `io_uring_enter` a turn: it submits what has gathered, runs deferred task work, and waits
//!   when told to. No enter at all when there is nothing to submit and nothing to reap.
//! - A full submission queue is submitted and filled again; file operations past
//!   [`RingOptions::file_operations_max`] wait in order. Socket operations are bounded by their
//!   sockets and never wait behind files: a receive may last for ever, and what ends it may be a
//!   send. A completion queue that overflows loses nothing (NODROP is required).
//!
//! The ring is woken by an eventfd under a multishot poll that is never read: each write is an
//! edge, so a wake costs the sleeper no operation.

mod blocking;
mod fault;
mod handles;
mod in_flight;
mod ring;

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

pub use fault::{Fault, FaultHook, FaultPoint, OperationKind, ShardFaults};
pub use ring::{RingOptions, enters};

use super::driver::{Completion, Driver, Handle, Operation, OperationId, Unpark, Wait};
use super::transfer::Transfer;
use crate::base::time::{MonotonicNs, TimestampMs};
use handles::HandleTable;
use in_flight::{InFlight, Progress};
use ring::{Reaped, Ring, WAKE};

/// How often an operation is tried again when the kernel says "interrupted" or "not now".
pub const RETRIES_MAX: u16 = 1_000;
/// Tries without a pause; after these the driver waits between two.
const RETRIES_AT_ONCE: u16 = 3;
const RETRY_PAUSE: Duration = Duration::from_millis(1);
/// So long after a wait a few submissions may be put off to the next turn.
const PUT_OFF_TIME_MAX: Duration = Duration::from_micros(30);
/// How long `shutdown` waits for operations that were cancelled but are under way.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);

struct Slot {
    operation: InFlight,
    /// Retries since the operation last made progress.
    retries: u16,
    /// A test has put it off.
    is_late: bool,
}

/// What pool threads hand back.
struct PoolResults {
    done: Transfer<(OperationId, blocking::Outcome)>,
    wake: ring::WakeFd,
}

/// See the module's head.
pub struct UringDriver {
    ring: Ring,
    slots: Vec<Option<Slot>>,
    in_flight: usize,
    /// File operations in the ring, at most `file_operations_max`.
    files_in_ring: usize,
    file_operations_max: usize,
    handles: HandleTable,
    /// Waiting for room, in order.
    backlog: VecDeque<OperationId>,
    /// Operations that pause before their next try, in order of time.
    paused: VecDeque<(MonotonicNs, OperationId)>,
    /// Completed without the ring.
    ready: Vec<(OperationId, Completion)>,
    /// Results that a test put in the kernel's place.
    injected: Vec<Reaped>,
    pool: Arc<PoolResults>,
    faults: Option<FaultHook>,
    reaped: Vec<Reaped>,
    /// When the last wait ended.
    slept_until: MonotonicNs,
    ending: bool,
}

impl UringDriver {
    /// Makes the ring. Belongs to the calling thread from then on.
    pub fn new(options: RingOptions) -> io::Result<Self> {
        let wake = ring::WakeFd::new()?;
        let mut ring = Ring::new(&options)?;
        ring.watch(wake.raw());
        Ok(Self {
            ring,
            slots: Vec::new(),
            in_flight: 0,
            files_in_ring: 0,
            file_operations_max: options.file_operations_max,
            handles: HandleTable::default(),
            backlog: VecDeque::new(),
            paused: VecDeque::new(),
            ready: Vec::new(),
            injected: Vec::new(),
            pool: Arc::new(PoolResults {
                done: Transfer::new(),
                wake,
            }),
            faults: options.faults,
            reaped: Vec::new(),
            slept_until: MonotonicNs(0),
            ending: false,
        })
    }

    fn insert(&mut self, id: OperationId, operation: InFlight) {
        let index = id.0 as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        let old = self.slots[index].replace(Slot {
            operation,
            retries: 0,
            is_late: false,
        });
        assert!(old.is_none(), "operation {index} submitted twice");
        self.in_flight += 1;
    }

    /// Puts an operation into the ring, or into the backlog when there is no room.
    fn start(&mut self, id: OperationId) {
        let behind = !self.backlog.is_empty() && self.slot(id).operation.is_file();
        if behind || !self.try_start(id) {
            self.backlog.push_back(id);
        }
    }

    fn slot(&mut self, id: OperationId) -> &mut Slot {
        match self.slots.get_mut(id.0 as usize) {
            Some(Some(slot)) => slot,
            _ => panic!("operation {} is not in flight", id.0),
        }
    }

    fn try_start(&mut self, id: OperationId) -> bool {
        let is_file = self.slot(id).operation.is_file();
        let too_many = is_file && self.files_in_ring >= self.file_operations_max;
        if too_many || !self.ring.has_room() {
            return false;
        }
        let mut limit = usize::MAX;
        if let Some(hook) = &mut self.faults {
            let Some(Some(slot)) = self.slots.get_mut(id.0 as usize) else {
                unreachable!("looked at above")
            };
            let fault = match slot.is_late {
                true => Fault::None,
                false => hook.ask(slot.operation.fault_point()),
            };
            match fault {
                Fault::None => {}
                Fault::Delay(time) => {
                    slot.is_late = true;
                    self.pause(id, time);
                    return true;
                }
                Fault::Shorten(bytes) => limit = bytes.max(1),
                Fault::Fail(errno) => {
                    self.files_in_ring += usize::from(is_file);
                    self.injected.push(Reaped {
                        user_data: u64::from(id.0),
                        result: -errno,
                        socket_has_more: false,
                    });
                    return true;
                }
            }
        }
        self.files_in_ring += usize::from(is_file);
        let entry = self.slot(id).operation.entry(limit);
        self.ring.push(&entry.user_data(u64::from(id.0)));
        true
    }

    fn start_backlog(&mut self) {
        while let Some(id) = self.backlog.front().copied() {
            if !self.try_start(id) {
                break;
            }
            self.backlog.pop_front();
        }
    }

    /// Tries it again after a time.
    fn pause(&mut self, id: OperationId, time: Duration) {
        let due = self.now().after(time);
        let place = self.paused.partition_point(|(other, _)| *other <= due);
        self.paused.insert(place, (due, id));
    }

    fn resume_paused(&mut self) {
        if self.paused.is_empty() {
            return;
        }
        let now = self.now();
        while let Some((due, id)) = self.paused.front().copied() {
            if due > now && !self.ending {
                break;
            }
            self.paused.pop_front();
            self.start(id);
        }
    }

    /// Takes what completed outside the ring.
    fn take_ready(&mut self, completed: &mut Vec<(OperationId, Completion)>) {
        completed.append(&mut self.ready);
        let pool = Arc::clone(&self.pool);
        pool.done.take_all(|(id, outcome)| {
            let completion = outcome.into_completion(&mut self.handles);
            self.slots[id.0 as usize] = None;
            self.in_flight -= 1;
            completed.push((id, completion));
        });
    }

    fn time_to_wait(&self, wait: Wait) -> Option<Duration> {
        let now = self.now();
        let mut limit = match wait {
            Wait::Poll => return None,
            Wait::Until(until) => until.since(now),
            Wait::Forever => Duration::MAX,
        };
        if let Some((due, _)) = self.paused.front() {
            limit = limit.min(due.since(now));
        }
        (!limit.is_zero()).then_some(limit)
    }

    fn reap(&mut self, completed: &mut Vec<(OperationId, Completion)>) {
        let mut reaped = std::mem::take(&mut self.reaped);
        reaped.append(&mut self.injected);
        self.ring.reap(&mut reaped);
        for entry in reaped.drain(..) {
            match entry.user_data {
                WAKE => self.ring.wake_seen(&entry),
                ring::CANCEL => {}
                _ => self.advance(&entry, completed),
            }
        }
        self.reaped = reaped;
    }

    /// One result of the kernel: the operation has ended or goes on.
    fn advance(&mut self, entry: &Reaped, completed: &mut Vec<(OperationId, Completion)>) {
        let id = OperationId(entry.user_data as u32);
        let slot = self.slot(id);
        let is_file = slot.operation.is_file();
        let received_on = slot.operation.received_on();
        let progress = slot.operation.advance(entry.result);
        self.files_in_ring -= usize::from(is_file);
        if let Some(handle) = received_on {
            self.handles
                .set_likely_empty(handle, !entry.socket_has_more);
        }
        match progress {
            Progress::More => {
                self.slot(id).retries = 0;
                self.start(id);
            }
            Progress::Again(errno) => self.retry(id, errno, completed),
            Progress::Ended(result) => self.finish(id, result, completed),
        }
    }

    fn retry(
        &mut self,
        id: OperationId,
        errno: i32,
        completed: &mut Vec<(OperationId, Completion)>,
    ) {
        let slot = self.slot(id);
        slot.retries += 1;
        let retries = slot.retries;
        if self.ending || retries > RETRIES_MAX {
            let error = io::Error::from_raw_os_error(errno);
            self.finish(id, Err(error), completed);
        } else if retries > RETRIES_AT_ONCE {
            self.pause(id, RETRY_PAUSE);
        } else {
            self.start(id);
        }
    }

    fn finish(
        &mut self,
        id: OperationId,
        result: io::Result<usize>,
        completed: &mut Vec<(OperationId, Completion)>,
    ) {
        let Some(slot) = self.slots[id.0 as usize].take() else {
            unreachable!("finished while in flight")
        };
        self.in_flight -= 1;
        match slot.operation.complete(result, &mut self.handles) {
            in_flight::Completed::Done(completion) => completed.push((id, completion)),
            in_flight::Completed::Again(operation) => {
                self.insert(id, operation);
                self.start(id);
            }
        }
    }

    fn run_on_pool(&mut self, id: OperationId, work: blocking::Blocking) {
        self.insert(id, InFlight::OnPool);
        let results = Arc::clone(&self.pool);
        let run = match work.is_idle_work() {
            true => super::pool::run_idle,
            false => super::pool::run,
        };
        run(Box::new(move || {
            results.done.push((id, work.run()));
            results.wake.unpark();
        }));
    }
}

impl Driver for UringDriver {
    fn now(&self) -> MonotonicNs {
        // The clock exists on every Linux; a failure would be a bug of the kernel.
        let Ok(time) = clock_gettime(ClockId::CLOCK_MONOTONIC) else {
            unreachable!("CLOCK_MONOTONIC exists")
        };
        MonotonicNs(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
    }

    fn wall_clock(&self) -> TimestampMs {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH);
        TimestampMs(since.map_or(0, |since| since.as_millis() as i64))
    }

    fn submit(&mut self, id: OperationId, operation: Operation) {
        match in_flight::prepare(operation, &self.handles) {
            in_flight::Prepared::Ring(operation) => {
                self.insert(id, operation);
                self.start(id);
            }
            in_flight::Prepared::Pool(work) => self.run_on_pool(id, work),
            in_flight::Prepared::Done(completion) => self.ready.push((id, completion)),
        }
    }

    fn turn(&mut self, wait: Wait, completed: &mut Vec<(OperationId, Completion)>) {
        self.resume_paused();
        self.start_backlog();
        self.take_ready(completed);
        let nothing_yet = completed.is_empty() && self.injected.is_empty();
        let limit = if nothing_yet {
            self.time_to_wait(wait)
        } else {
            None
        };
        // Right after a sleep a task has its first turn: what it and the next one submit enters
        // together. In longer turns the kernel is not left waiting.
        let may_put_off = !self.ending && self.now().since(self.slept_until) < PUT_OFF_TIME_MAX;
        self.ring.enter(limit, may_put_off);
        if limit.is_some() {
            self.slept_until = self.now();
        }
        self.reap(completed);
        self.take_ready(completed);
    }

    fn close(&mut self, handle: Handle) {
        self.handles.remove(handle);
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::clone(&self.pool) as Arc<dyn Unpark>
    }

    fn shutdown(&mut self, completed: &mut Vec<(OperationId, Completion)>) {
        self.ending = true;
        let deadline = self.now().after(SHUTDOWN_LIMIT);
        self.fail_waiting(completed);
        self.cancel_all();
        loop {
            self.turn(Wait::Until(self.now().after(RETRY_PAUSE)), completed);
            if self.in_flight == 0 {
                return;
            }
            if self.now() >= deadline {
                break;
            }
            // Something may have been on its way into the ring when all was cancelled.
            self.cancel_all();
        }
        let left = self.in_flight;
        tracing::error!("{left} operations did not end within {SHUTDOWN_LIMIT:?}: buffers leaked");
        std::mem::forget(std::mem::take(&mut self.slots));
    }

    fn open_handles(&self) -> usize {
        self.handles.len()
    }

    fn listen(&mut self, address: SocketAddr, backlog: u32) -> io::Result<(Handle, SocketAddr)> {
        self.handles.listen(address, backlog)
    }

    fn shutdown_socket(&mut self, socket: Handle, how: Shutdown) -> io::Result<()> {
        self.handles.shutdown(socket, how)
    }

    fn set_buffer_sizes(
        &mut self,
        socket: Handle,
        send: Option<usize>,
        receive: Option<usize>,
    ) -> io::Result<()> {
        self.handles.set_buffer_sizes(socket, send, receive)
    }
}

impl UringDriver {
    /// Cancels what is in flight, one by one: asked for all at once, the kernel passes all that it
    /// has cancelled already before each next one, and ten thousand receives take many seconds.
    fn cancel_all(&mut self) {
        for (slot, user_data) in self.slots.iter().zip(0u64..) {
            if slot.is_some() && !self.ring.cancel(user_data) {
                return;
            }
        }
    }

    /// Fails what never reached the ring.
    fn fail_waiting(&mut self, completed: &mut Vec<(OperationId, Completion)>) {
        let paused = std::mem::take(&mut self.paused)
            .into_iter()
            .map(|(_, id)| id);
        let waiting: Vec<OperationId> = paused.chain(self.backlog.drain(..)).collect();
        for id in waiting {
            let error = io::Error::from_raw_os_error(libc::ECANCELED);
            self.finish(id, Err(error), completed);
        }
    }
}

/// Makes as many rings as shards would, all at the same time, and drops them.
pub fn probe(rings: usize) -> io::Result<()> {
    let options = RingOptions::default();
    let made: io::Result<Vec<Ring>> = (0..rings).map(|_| Ring::new(&options)).collect();
    made.map(drop)
}

impl Unpark for PoolResults {
    fn unpark(&self) {
        self.wake.unpark();
    }
}

impl Drop for UringDriver {
    fn drop(&mut self) {
        // Without `shutdown` the kernel may still hold the buffers.
        if self.in_flight > 0 && !self.ending {
            let mut completed = Vec::new();
            self.shutdown(&mut completed);
        }
    }
}

#[cfg(test)]
mod uring_test;
