//! A few threads, not pinned to any shard's CPU, for what would block a shard: system calls that
//! the ring does not have, and CPU work over 200 µs. One pool for the process, and a smaller one
//! for work that gives way to everything else.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Most threads of the pool; they are started when work waits and no thread is idle.
pub const POOL_THREADS_MAX: usize = 8;

/// Most threads of the pool for work that gives way.
pub const IDLE_THREADS_MAX: usize = 4;
/// By how much those are nicer than the rest of the process: the scheduler gives a thread that is
/// not ten times as much.
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

struct State {
    /// Bounded by the drivers: a job is an operation in flight.
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

struct Pool {
    state: Mutex<State>,
    work: Condvar,
    name: &'static str,
    threads_max: usize,
    niceness: i32,
}

static POOL: Pool = Pool::new("coreline-pool", POOL_THREADS_MAX, 0);
static IDLE_POOL: Pool = Pool::new("coreline-idle", IDLE_THREADS_MAX, NICENESS);
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

/// Makes the calling thread nicer than the process is. Without that it is merely no nicer.
fn give_way(niceness: i32) {
    if niceness != 0 {
        // SAFETY: takes numbers alone; on Linux it concerns the calling thread.
        unsafe { libc::nice(niceness) };
    }
}

impl Pool {
    const fn new(name: &'static str, threads_max: usize, niceness: i32) -> Self {
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                threads: 0,
                idle: 0,
            }),
            work: Condvar::new(),
            name,
            threads_max,
            niceness,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs catch their panics and run outside the lock, so the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        leave_shard_cpu();
        give_way(self.niceness);
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
    POOL.queue(job);
}

/// Queues a job that does not panic and gives way to all others.
pub(super) fn run_idle(job: Job) {
    IDLE_POOL.queue(job);
}

impl Pool {
    fn queue(&'static self, job: Job) {
        remember_allowed_cpus();
        let mut state = self.lock();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads >= self.threads_max {
            drop(state);
            self.work.notify_one();
            return;
        }
        state.threads += 1;
        let number = state.threads;
        drop(state);
        let started = std::thread::Builder::new()
            .name(format!("{}-{number}", self.name))
            .spawn(move || self.run());
        if started.is_err() {
            // The thread limit: with at least one other thread the job waits for that one.
            let mut state = self.lock();
            state.threads -= 1;
            if state.threads == 0 {
                // Slow but not lost: nobody else will ever run it.
                let jobs = std::mem::take(&mut state.jobs);
                drop(state);
                jobs.into_iter().for_each(|job| job());
            }
        }
    }
}
