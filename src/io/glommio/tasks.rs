//! Our tasks as glommio's. The future lies in a slab of ours and glommio's task only names it, so
//! that the end of a runtime can drop all futures while their runtime still exists.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use super::Core;
use crate::io::task::TaskClass;

type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

enum Slot {
    Vacant,
    /// Being polled; the future is with the one who polls.
    Running,
    Waiting(TaskFuture),
    /// Dropped by the end; its glommio task does not know yet.
    Dropped,
}

// Legal transitions: Vacant → Waiting ⇄ Running → Vacant; Waiting → Dropped.

#[derive(Default)]
pub(super) struct TaskSlab {
    slots: Vec<Slot>,
    free: Vec<u32>,
    live: usize,
}

impl TaskSlab {
    pub(super) fn live(&self) -> usize {
        self.live
    }

    fn insert(&mut self, future: TaskFuture) -> u32 {
        self.live += 1;
        let slot = Slot::Waiting(future);
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            return index;
        }
        self.slots.push(slot);
        self.slots.len() as u32 - 1
    }

    fn start(&mut self, index: u32) -> Option<TaskFuture> {
        let slot = &mut self.slots[index as usize];
        match std::mem::replace(slot, Slot::Running) {
            Slot::Waiting(future) => Some(future),
            other => {
                *slot = other;
                None
            }
        }
    }

    fn put_back(&mut self, index: u32, future: TaskFuture) {
        self.slots[index as usize] = Slot::Waiting(future);
    }

    fn remove(&mut self, index: u32) {
        self.slots[index as usize] = Slot::Vacant;
        self.free.push(index);
        self.live -= 1;
    }

    /// Takes out some task that is left, for the end of the runtime.
    pub(super) fn take_any(&mut self) -> Option<TaskFuture> {
        for slot in &mut self.slots {
            if let Slot::Waiting(_) = slot
                && let Slot::Waiting(future) = std::mem::replace(slot, Slot::Dropped)
            {
                self.live -= 1;
                return Some(future);
            }
        }
        None
    }
}

/// What glommio runs.
struct Hosted {
    /// Weak: the executor, which the core owns, owns this.
    core: Weak<Core>,
    index: u32,
}

impl Future for Hosted {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(core) = self.core.upgrade() else {
            return Poll::Ready(());
        };
        let started = core.tasks.borrow_mut().start(self.index);
        let Some(mut future) = started else {
            return Poll::Ready(());
        };
        core.start_poll();
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        if let Ok(Poll::Pending) = polled {
            core.tasks.borrow_mut().put_back(self.index, future);
            return Poll::Pending;
        }
        core.tasks.borrow_mut().remove(self.index);
        drop(future);
        if let Err(panic) = polled {
            core.task_panicked(panic);
        }
        Poll::Ready(())
    }
}

impl Core {
    pub(in crate::io) fn spawn(
        self: &Rc<Self>,
        class: TaskClass,
        future: impl Future<Output = ()> + 'static,
    ) {
        let index = self.tasks.borrow_mut().insert(Box::pin(future));
        let hosted = Hosted {
            core: Rc::downgrade(self),
            index,
        };
        let queue = self.queues[class as usize];
        match ::glommio::spawn_local_into(hosted, queue) {
            Ok(task) => drop(task.detach()),
            Err(error) => unreachable!("the queues live as long as the executor: {error}"),
        }
    }
}
