//! What other threads may touch of an executor: the list of tasks to wake and the flag that says
//! whether it sleeps.
//!
//! No wake is lost: the executor sets the flag and then looks at the list again before it waits; a
//! sender puts its task on the list and then looks at the flag. Whatever the interleaving, one of
//! the two sees the other (sequentially consistent on both sides). While the executor is awake a
//! sender pays no system call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::task::Wake;

use super::current;
use super::task::TaskKey;
use crate::io::driver::Unpark;
use crate::io::transfer::Transfer;

pub(in crate::io) struct Remote {
    wakes: Transfer<TaskKey>,
    sleeping: AtomicBool,
    unparker: Arc<dyn Unpark>,
}

impl Remote {
    pub(super) fn new(unparker: Arc<dyn Unpark>) -> Self {
        Self {
            wakes: Transfer::new(),
            sleeping: AtomicBool::new(false),
            unparker,
        }
    }

    /// Wakes a task of this executor, from any thread.
    pub(super) fn wake(&self, key: TaskKey) {
        self.wakes.push(key);
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::SeqCst) {
            self.unparker.unpark();
        }
    }

    /// Takes the tasks that other threads woke.
    pub(super) fn take_wakes(&self, each: impl FnMut(TaskKey)) {
        self.wakes.take_all(each);
    }

    /// Says that the executor is about to sleep. False: something came meanwhile, do not sleep.
    pub(super) fn start_sleeping(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.wakes.is_empty() {
            return true;
        }
        self.sleeping.store(false, Ordering::Relaxed);
        false
    }

    pub(super) fn stop_sleeping(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
    }
}

/// The waker that a task's futures see. On the task's own executor a wake puts the task on the
/// run queue; anywhere else it goes through [`Remote`], so that a waker which left its thread
/// (they are `Send` by std's type) is still sound.
pub(super) struct TaskWaker {
    pub(super) remote: Arc<Remote>,
    pub(super) key: TaskKey,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let local = current::with(|core| {
            core.filter(|core| Arc::ptr_eq(core.remote(), &self.remote))
                .map(|core| core.wake(self.key))
        });
        if local.is_none() {
            self.remote.wake(self.key);
        }
    }
}
