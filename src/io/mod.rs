//! The runtime seam: everything above asks for time, tasks, files, sockets and other shards through
//! these names, and never knows which backend answers.
//!
//! Completion-based with owned buffers: a buffer goes into an operation and comes back with its
//! completion, also when the operation failed. A dropped future does not cancel: the operation
//! slab keeps the buffer until the completion, and a write may still happen.
//!
//! Absent on purpose: readiness, cancellation of reads in flight, wakers that leave their thread
//! (other threads reach a shard through its [`inbox`] only), locks.

pub mod buffer;
pub mod directory;
pub mod driver;
pub mod file;
pub mod inbox;
pub mod net;
pub mod task;

pub use buffer::AlignedBuffer;
pub use file::{Durability, File, OpenOptions};
pub use inbox::{Inbox, InboxSender};
pub use net::{TcpListener, TcpStream};
pub use task::{TaskClass, now, sleep, sleep_until, spawn, wall_clock, yield_now};
