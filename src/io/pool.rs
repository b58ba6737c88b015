//! A few threads, not pinned to any shard's CPU, for what would block a shard: system calls that
//! the ring does not have, and CPU work over 200 µs. One pool for the process.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Most threads of the pool; they are started when work waits and no thread is idle.
pub const POOL_THREADS_MAX: usize = 8;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    /// Bounded by the drivers: a job is an operation in flight.
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    work: Condvar,
}

static POOL: OnceLock<Pool> = OnceLock::new();
static ALLOWED_CPUS: OnceLock<Option<CpuSet>> = OnceLock::new();

/// Notes the CPUs that this process may use, before the first thread is pinned: threads inherit
/// the placement of the thread that starts them, and the pool's must not.
pub(super) fn remember_allowed_cpus() {
    ALLOWED_CPUS.get_or_init(|| sched_getaffinity(Pid::from_raw(0)).ok());
}

/// Lets the calling thread run wherever this process may.
pub(super) fn leave_shard_cpu() {
    if let Some(Some(cpus)) = ALLOWED_CPUS.get() {
        // Without it the thread is merely slower.
        let _ = sched_setaffinity(Pid::from_raw(0), cpus);
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs catch their panics and run outside the lock, so the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        leave_shard_cpu();
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.lock();
                continue;
            }
            state.idle += 1;
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// Queues a job that does not panic.
pub(super) fn run(job: Job) {
    remember_allowed_cpus();
    let pool = POOL.get_or_init(Pool::default);
    let mut state = pool.lock();
    state.jobs.push_back(job);
    if state.idle >= state.jobs.len() || state.threads >= POOL_THREADS_MAX {
        drop(state);
        pool.work.notify_one();
        return;
    }
    state.threads += 1;
    let number = state.threads;
    drop(state);
    let started = std::thread::Builder::new()
        .name(format!("coreline-pool-{number}"))
        .spawn(move || pool.run());
    if started.is_err() {
        // The thread limit: with at least one other thread the job waits for that one.
        let mut state = pool.lock();
        state.threads -= 1;
        if state.threads == 0 {
            // Slow but not lost: nobody else will ever run it.
            let jobs = std::mem::take(&mut state.jobs);
            drop(state);
            jobs.into_iter().for_each(|job| job());
        }
    }
}
