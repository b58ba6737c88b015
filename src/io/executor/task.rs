//! The task slab and the ways of waking a task.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::current;
use super::remote::{Remote, TaskWaker};
use crate::io::task::TaskClass;

/// Names a task. The generation makes a wake of a task that has ended harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::io) struct TaskKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// The future that `block_on` runs; it lives on the stack, not in the slab.
pub(super) const ROOT: TaskKey = TaskKey {
    index: u32::MAX,
    generation: 0,
};

pub(super) type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    /// Absent while it is being polled.
    future: Option<TaskFuture>,
    class: TaskClass,
    queued: bool,
    waker: Waker,
}

struct Slot {
    generation: u32,
    task: Option<Task>,
    /// What the slot's wakers share; used for its next task when no waker is left.
    shared: Option<Arc<TaskWaker>>,
}

impl Slot {
    /// A waker of the slot's next task.
    fn waker(&mut self, key: TaskKey, remote: &Arc<Remote>) -> Waker {
        if let Some(shared) = &mut self.shared
            && let Some(unused) = Arc::get_mut(shared)
        {
            unused.key = key;
            return Waker::from(Arc::clone(shared));
        }
        let shared = Arc::new(TaskWaker {
            remote: Arc::clone(remote),
            key,
        });
        self.shared = Some(Arc::clone(&shared));
        Waker::from(shared)
    }
}

/// What is needed to poll one task.
pub(super) struct Polled {
    pub(super) future: TaskFuture,
    pub(super) class: TaskClass,
    pub(super) waker: Waker,
}

pub(super) struct TaskSlab {
    slots: Vec<Slot>,
    free: Vec<u32>,
    root_queued: bool,
    live: usize,
}

impl TaskSlab {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            root_queued: false,
            live: 0,
        }
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Adds a task, not queued yet.
    pub(super) fn insert(
        &mut self,
        class: TaskClass,
        future: TaskFuture,
        remote: &Arc<Remote>,
    ) -> TaskKey {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                task: None,
                shared: None,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        let key = TaskKey {
            index,
            generation: slot.generation,
        };
        slot.task = Some(Task {
            future: Some(future),
            class,
            queued: false,
            waker: slot.waker(key, remote),
        });
        self.live += 1;
        key
    }

    fn get(&mut self, key: TaskKey) -> Option<&mut Task> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        slot.task.as_mut()
    }

    /// Marks a task as queued; answers its class when it has to be put on the run queue.
    pub(super) fn mark_queued(&mut self, key: TaskKey) -> Option<TaskClass> {
        if key == ROOT {
            let queue = !std::mem::replace(&mut self.root_queued, true);
            return queue.then_some(TaskClass::Produce);
        }
        let task = self.get(key)?;
        if task.queued {
            return None;
        }
        task.queued = true;
        Some(task.class)
    }

    pub(super) fn start_root(&mut self) {
        self.root_queued = false;
    }

    /// Takes a task's future for polling; wakes from now on queue it again.
    pub(super) fn start(&mut self, key: TaskKey) -> Option<Polled> {
        let task = self.get(key)?;
        task.queued = false;
        Some(Polled {
            future: task.future.take()?,
            class: task.class,
            waker: task.waker.clone(),
        })
    }

    /// Gives back the future of a task that is not finished.
    pub(super) fn put_back(&mut self, key: TaskKey, future: TaskFuture) {
        if let Some(task) = self.get(key) {
            task.future = Some(future);
        }
    }

    /// Frees the slot of a task that has ended.
    pub(super) fn remove(&mut self, key: TaskKey) {
        if self.get(key).is_none() {
            return;
        }
        let slot = &mut self.slots[key.index as usize];
        slot.task = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index);
        self.live -= 1;
    }

    /// The futures of all tasks. What their drops spawn comes with the next call.
    pub(super) fn take_all(&mut self) -> Vec<TaskFuture> {
        let mut futures = Vec::with_capacity(self.live);
        for (slot, index) in self.slots.iter_mut().zip(0u32..) {
            if let Some(task) = slot.task.take() {
                slot.generation = slot.generation.wrapping_add(1);
                self.free.push(index);
                self.live -= 1;
                futures.extend(task.future);
            }
        }
        futures
    }
}

pub(super) fn waker_of(key: TaskKey, remote: &Arc<Remote>) -> Waker {
    Waker::from(Arc::new(TaskWaker {
        remote: Arc::clone(remote),
        key,
    }))
}

/// A waker that cannot leave its thread, by type. Where the future is polled by its task directly
/// it is the task's index, so that waking is a push on the run queue; a combinator with wakers of
/// its own gets its own waker back.
#[derive(Debug)]
pub(in crate::io) struct LocalWaker {
    wakes: Wakes,
    not_send: PhantomData<Rc<()>>,
}

#[derive(Debug)]
enum Wakes {
    Task { key: TaskKey, executor: u32 },
    Other(Waker),
}

impl LocalWaker {
    /// The waker for what polls with `context`, on this thread's executor.
    pub(in crate::io) fn of(context: &Context<'_>) -> Self {
        let core = current::get();
        let wakes = match core.running(context.waker()) {
            Some(key) => Wakes::Task {
                key,
                executor: core.number(),
            },
            None => Wakes::Other(context.waker().clone()),
        };
        Self {
            wakes,
            not_send: PhantomData,
        }
    }

    pub(in crate::io) fn wake(self) {
        match self.wakes {
            Wakes::Other(waker) => waker.wake(),
            Wakes::Task { key, executor } => current::with(|core| {
                // Without an executor the thread is ending and nothing will run again.
                let Some(core) = core else { return };
                assert_eq!(
                    core.number(),
                    executor,
                    "a thread-local signal (io::sync) was shared between two runtimes"
                );
                core.wake(key);
            }),
        }
    }

    #[cfg(test)]
    pub(super) fn for_test(key: TaskKey) -> Self {
        Self {
            wakes: Wakes::Task { key, executor: 0 },
            not_send: PhantomData,
        }
    }

    #[cfg(test)]
    pub(super) fn task_for_test(&self) -> TaskKey {
        match self.wakes {
            Wakes::Task { key, .. } => key,
            Wakes::Other(_) => unreachable!("made by for_test"),
        }
    }
}
