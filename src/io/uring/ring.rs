//! The ring itself: set-up, submission, waiting, reaping.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::fault::FaultHook;
use crate::io::driver::Unpark;

/// User data of the poll that watches the wake-up descriptor.
pub(super) const WAKE: u64 = u64::MAX;
/// User data of cancellations.
pub(super) const CANCEL: u64 = u64::MAX - 1;

/// Sizes of a ring, and a hook for tests.
#[derive(Debug)]
pub struct RingOptions {
    /// Entries of the submission queue; a full one is submitted at once.
    pub submission_entries: u32,
    /// Entries of the completion queue. What exceeds it is kept by the kernel and slower.
    pub completion_entries: u32,
    /// Operations in the ring at a time; what exceeds it waits in order.
    pub operations_max: usize,
    /// Faults to inject (tests).
    pub faults: Option<FaultHook>,
}

/// Submissions that gather in one turn.
pub const SUBMISSION_ENTRIES: u32 = 512;
/// Room for the completions of a whole shard's operations in the usual case.
pub const COMPLETION_ENTRIES: u32 = 16_384;
/// Every connection of a shard has a receive in flight, and some have more.
pub const OPERATIONS_MAX: usize = 65_536;

const _: () = assert!(SUBMISSION_ENTRIES <= COMPLETION_ENTRIES);

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            submission_entries: SUBMISSION_ENTRIES,
            completion_entries: COMPLETION_ENTRIES,
            operations_max: OPERATIONS_MAX,
            faults: None,
        }
    }
}

/// What the kernel said about one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reaped {
    pub(super) user_data: u64,
    pub(super) result: i32,
    /// A receive left data in the socket.
    pub(super) socket_has_more: bool,
}

pub(super) struct Ring {
    ring: IoUring,
    operations_max: usize,
    /// Operations that are in the ring and not reaped.
    inside: usize,
    wake_lost: bool,
}

impl Ring {
    pub(super) fn new(options: &RingOptions) -> io::Result<Self> {
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(options.completion_entries)
            .build(options.submission_entries)?;
        let parameters = ring.params();
        if !parameters.is_feature_nodrop() || !parameters.is_feature_ext_arg() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's io_uring may drop completions or cannot wait with a limit",
            ));
        }
        Ok(Self {
            ring,
            operations_max: options.operations_max,
            inside: 0,
            wake_lost: false,
        })
    }

    /// Whether one more operation may enter; submits what has gathered when the queue is full.
    pub(super) fn has_room(&mut self) -> bool {
        if self.inside >= self.operations_max {
            return false;
        }
        if self.ring.submission().is_full() {
            self.submit_only();
        }
        !self.ring.submission().is_full()
    }

    /// Adds an operation; `has_room` was true.
    pub(super) fn push(&mut self, entry: squeue::Entry) {
        self.inside += 1;
        self.push_raw(&entry);
    }

    fn push_raw(&mut self, entry: &squeue::Entry) {
        // SAFETY: what the entry points to is owned by a slot of the driver until the completion
        // (or by nobody, for entries without pointers).
        let pushed = unsafe { self.ring.submission().push(entry) };
        assert!(pushed.is_ok(), "the submission queue had room");
    }

    fn push_own(&mut self, entry: &squeue::Entry) {
        if self.ring.submission().is_full() {
            self.submit_only();
        }
        if self.ring.submission().is_full() {
            // The kernel is short of memory for the moment; tried again with the next turn.
            self.wake_lost |= entry.get_user_data() == WAKE;
            return;
        }
        self.push_raw(entry);
    }

    /// Arms the poll that ends a wait when another thread wrote to the wake-up descriptor.
    pub(super) fn poll_wake(&mut self, wake: RawFd) {
        let entry = opcode::PollAdd::new(Fd(wake), libc::POLLIN as u32)
            .multi(true)
            .build()
            .user_data(WAKE);
        self.wake_lost = false;
        self.push_own(&entry);
    }

    /// The wake-up descriptor was written to, or its poll has ended and is armed again.
    pub(super) fn wake_seen(&mut self, entry: &Reaped, wake: RawFd) {
        if !entry.socket_has_more {
            self.poll_wake(wake);
        }
    }

    pub(super) fn cancel_all(&mut self) {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any())
            .build()
            .user_data(CANCEL);
        self.push_own(&entry);
    }

    fn submit_only(&mut self) {
        let entered = self.ring.submit();
        check_enter(entered);
    }

    /// Submits, runs deferred task work, and waits up to `limit` for one completion.
    pub(super) fn enter(&mut self, limit: Option<Duration>) {
        let Some(limit) = limit else {
            let submission = self.ring.submission();
            let idle = submission.is_empty() && !submission.taskrun() && !submission.cq_overflow();
            drop(submission);
            if !idle {
                self.submit_only();
            }
            return;
        };
        if !self.ring.completion().is_empty() {
            self.enter(None);
            return;
        }
        let entered = if limit == Duration::MAX {
            self.ring.submit_and_wait(1)
        } else {
            let time = Timespec::from(limit);
            let arguments = SubmitArgs::new().timespec(&time);
            self.ring.submitter().submit_with_args(1, &arguments)
        };
        check_enter(entered);
    }

    /// Takes all completions.
    pub(super) fn reap(&mut self, reaped: &mut Vec<Reaped>) {
        let before = reaped.len();
        let mut own = 0;
        for entry in self.ring.completion() {
            let entry = reaped_of(&entry);
            own += usize::from(matches!(entry.user_data, WAKE | CANCEL));
            reaped.push(entry);
        }
        self.inside -= reaped.len() - before - own;
    }
}

fn reaped_of(entry: &cqueue::Entry) -> Reaped {
    let flags = entry.flags();
    let user_data = entry.user_data();
    Reaped {
        user_data,
        result: entry.result(),
        // The poll tells "more to come" by another bit than a receive tells "more is there".
        socket_has_more: if user_data == WAKE {
            cqueue::more(flags)
        } else {
            cqueue::sock_nonempty(flags)
        },
    }
}

/// Interruptions, a wait that ran out and momentary shortages are seen again in the next turn;
/// anything else means that the ring was misused.
fn check_enter(entered: io::Result<usize>) {
    let Err(error) = entered else { return };
    let expected = [
        libc::EINTR,
        libc::ETIME,
        libc::EBUSY,
        libc::EAGAIN,
        libc::ENOMEM,
    ];
    let known = error
        .raw_os_error()
        .is_some_and(|errno| expected.contains(&errno));
    assert!(known, "io_uring_enter failed: {error}");
}

/// What other threads write to when the ring sleeps.
pub(super) struct WakeFd(EventFd);

impl WakeFd {
    pub(super) fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self(EventFd::from_value_and_flags(0, flags)?))
    }

    pub(super) fn raw(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Unpark for WakeFd {
    fn unpark(&self) {
        // Never read, the counter would be full after 2^64 wakes.
        let _ = self.0.write(1);
    }
}
