//! Against glommio's habit of parking with runnable tasks: its queue runner answers "nothing ran"
//! also when the preempt timer fired before the first task did, and the executor sleeps on it, for
//! ever when nothing else comes. A timer of its own does not help: the task that would set the
//! timer again is then one of those that do not run. So a thread of the process wakes every
//! executor from outside: every [`TICK`] while it has work, every [`TICK_IDLE`] otherwise.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use crate::io::pool;

/// How long an executor may stand still with runnable tasks while it has work: a connection is
/// open or a task ran since the last tick.
const TICK: Duration = Duration::from_millis(5);
/// And while it has none.
const TICK_IDLE: Duration = Duration::from_millis(100);

/// What the thread knows of one executor.
pub(super) struct Pulse {
    /// Of a task that has ended: waking it runs nothing and still ends a park.
    waker: Waker,
    /// Polls of tasks so far; written by the executor alone.
    polls: AtomicU64,
    connections: AtomicUsize,
}

static PULSES: Mutex<Vec<Weak<Pulse>>> = Mutex::new(Vec::new());

impl Pulse {
    /// Begins to wake the executor that `waker` belongs to, until the answer is dropped.
    pub(super) fn start(waker: Waker) -> Arc<Self> {
        let pulse = Arc::new(Self {
            waker,
            polls: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
        });
        let mut pulses = PULSES.lock().unwrap_or_else(PoisonError::into_inner);
        let first = pulses.is_empty();
        pulses.push(Arc::downgrade(&pulse));
        drop(pulses);
        if first {
            let spawned = std::thread::Builder::new().name("glommio-pulse".to_owned());
            if let Err(error) = spawned.spawn(beat) {
                tracing::error!("no thread against glommio's stalls: {error}");
            }
        }
        pulse
    }

    pub(super) fn count_poll(&self) {
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls + 1, Ordering::Relaxed);
    }

    pub(super) fn connection_opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn connection_closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Wakes the executors until none is left.
fn beat() {
    pool::leave_shard_cpu();
    let mut polls_before: u64 = 0;
    loop {
        let mut polls: u64 = 0;
        let mut connections = 0;
        {
            let mut pulses = PULSES.lock().unwrap_or_else(PoisonError::into_inner);
            pulses.retain(|pulse| pulse.strong_count() > 0);
            if pulses.is_empty() {
                return;
            }
            for pulse in pulses.iter().filter_map(Weak::upgrade) {
                polls = polls.wrapping_add(pulse.polls.load(Ordering::Relaxed));
                connections += pulse.connections.load(Ordering::Relaxed);
                pulse.waker.wake_by_ref();
            }
        }
        let idle = polls == polls_before && connections == 0;
        polls_before = polls;
        std::thread::sleep(if idle { TICK_IDLE } else { TICK });
    }
}
