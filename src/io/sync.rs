//! Signals among the tasks of one executor: no atomics, no locks, and by type they cannot leave
//! their thread. All wake in the order in which tasks began to wait.

mod notify;
mod oneshot;
mod queue;
mod semaphore;
mod wait_list;

pub use notify::{Notified, Notify};
pub use oneshot::{OneshotReceiver, OneshotSender, oneshot};
pub use queue::LocalQueue;
pub use semaphore::{LocalSemaphore, Permit};

#[cfg(test)]
mod sync_test;
