//! The runtime seam: everything above asks for time, tasks, files, sockets and other shards through
//! these names, and never knows which backend answers.
//!
//! Completion-based with owned buffers: a buffer goes into an operation and comes back with its
//! completion, also when the operation failed. A dropped future does not cancel: the operation
//! slab keeps the buffer until the completion, and a write may still happen.
//!
//! | Folder | What it is |
//! |---|---|
//! | `executor/` | tasks, run queues by class, timers; knows nothing of rings or files |
//! | [`driver`] | what stands behind the executor, as a trait |
//! | [`uring`] | the driver over io_uring |
//! | [`sync`], [`reply`], [`inbox`](fn@inbox) | signals here, answers and messages across |
//! | [`startup`] | what the machine must allow before a broker starts |
//!
//! Absent on purpose: readiness, cancellation of reads in flight, wakers that leave their thread
//! (other threads reach a shard through its [`inbox`](fn@inbox) only), locks.

pub mod buffer;
pub mod directory;
pub mod driver;
pub mod file;
pub mod inbox;
pub mod net;
pub mod reply;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod startup;
pub mod sync;
pub mod task;
pub mod uring;
mod atomic_waker;
mod executor;
mod pool;
mod runtime;
mod transfer;

pub use buffer::AlignedBuffer;
pub use executor::{Leftovers, PanicPolicy};
pub use file::{Durability, File, OpenOptions};
pub use inbox::{Inbox, InboxSender, inbox};
pub use net::{TcpListener, TcpStream};
pub use reply::{ReplyReceiver, ReplySender, reply_slot};
pub use runtime::{Runtime, RuntimeOptions};
pub use task::{
    JoinHandle, TaskClass, TaskPanic, TurnBudget, now, run_on_pool, sleep, sleep_until, spawn,
    spawn_guarded, wall_clock, with_deadline, yield_now,
};

/// A driver answered an operation with the completion of another kind: a bug in the driver.
fn wrong_completion(completion: &driver::Completion) -> ! {
    unreachable!("the driver answered with the wrong kind of completion: {completion:?}")
}
