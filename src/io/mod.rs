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
//! | `glommio/` | glommio's executor in its place (feature `glommio`) |
//! | [`driver`] | what stands behind the executor, as a trait |
//! | [`uring`] | the driver over io_uring |
//! | [`sync`], [`reply`], [`inbox`](fn@inbox) | signals here, answers and messages across |
//! | [`flush_group`] | many small files made durable together |
//! | [`startup`] | what the machine must allow before a broker starts |
//!
//! Absent on purpose: readiness, cancellation of reads in flight, wakers that leave their thread
//! (other threads reach a shard through its [`inbox`](fn@inbox) only), locks.

pub mod buffer;
pub mod directory;
pub mod driver;
pub mod file;
pub mod flush_group;
pub mod inbox;
pub mod memory;
pub mod net;
pub mod reply;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod startup;
pub mod sync;
pub mod task;
pub mod uring;
pub mod wait;
mod atomic_waker;
// Our executor, or glommio's under the same name. The simulation runs ours.
#[cfg(not(all(feature = "glommio", not(any(test, feature = "sim")))))]
mod executor;
#[cfg(all(feature = "glommio", not(any(test, feature = "sim"))))]
mod glommio;
#[cfg(all(feature = "glommio", not(any(test, feature = "sim"))))]
use self::glommio::{self as executor};
mod pool;
mod runtime;
mod socket;
mod system;
mod transfer;

pub use buffer::AlignedBuffer;
pub use file::{Durability, File, FileUse, OpenOptions, is_of_device};
pub use flush_group::FlushGroup;
pub use inbox::{Inbox, InboxSender, inbox};
pub use net::{TcpListener, TcpStream};
pub use reply::{ReplyReceiver, ReplySender, reply_slot};
pub use runtime::{Leftovers, PanicPolicy, Runtime, RuntimeOptions};
pub use task::{
    JoinHandle, Spent, TaskClass, TaskPanic, TurnBudget, busy_time, clock, idle_time, now,
    run_on_pool, run_when_idle, sleep, sleep_until, spawn, spawn_detached, spawn_guarded, spent,
    thread_time, turn_began, wall_clock, with_deadline, yield_now,
};

/// A driver answered an operation with the completion of another kind: a bug in the driver.
fn wrong_completion(completion: &driver::Completion) -> ! {
    unreachable!("the driver answered with the wrong kind of completion: {completion:?}")
}
