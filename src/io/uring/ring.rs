//! The ring itself: set-up, submission, waiting, reaping.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
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
    /// File operations in the ring at a time; what exceeds it waits in order.
    pub file_operations_max: usize,
    /// Faults to inject (tests).
    pub faults: Option<FaultHook>,
}

/// Submissions that gather in one turn.
pub const SUBMISSION_ENTRIES: u32 = 512;
/// Room for the completions of a whole shard's operations in the usual case.
pub const COMPLETION_ENTRIES: u32 = 16_384;
/// Enough to keep a device busy (32) and to flush a thousand segments at once.
pub const FILE_OPERATIONS_MAX: usize = 4_096;

const _: () = assert!(SUBMISSION_ENTRIES <= COMPLETION_ENTRIES);

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            submission_entries: SUBMISSION_ENTRIES,
            completion_entries: COMPLETION_ENTRIES,
            file_operations_max: FILE_OPERATIONS_MAX,
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
    /// The descriptor that other threads write to, once there is one.
    wake: Option<RawFd>,
    /// The poll on it has ended and is to be armed.
    wake_unarmed: bool,
    /// The last turn left its submissions to the next one.
    has_put_off: bool,
}

/// So few submissions may wait for those of the next turn, once, so that both enter together.
const PUT_OFF_MAX: usize = 8;

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
            wake: None,
            wake_unarmed: false,
            has_put_off: false,
        })
    }

    /// Whether one more operation may enter; submits what has gathered when the queue is full.
    pub(super) fn has_room(&mut self) -> bool {
        if self.ring.submission().is_full() {
            self.submit_only();
        }
        !self.ring.submission().is_full()
    }

    /// Adds an operation; `has_room` was true.
    pub(super) fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: what the entry points to is owned by a slot of the driver until the completion
        // (or by nobody, for entries without pointers).
        let pushed = unsafe { self.ring.submission().push(entry) };
        assert!(pushed.is_ok(), "the submission queue had room");
    }

    /// Adds an entry of the ring's own; false when there is no room for the moment.
    fn push_own(&mut self, entry: &squeue::Entry) -> bool {
        let room = self.has_room();
        if room {
            self.push(entry);
        }
        room
    }

    /// Ends waits when another thread writes to `wake`.
    pub(super) fn watch(&mut self, wake: RawFd) {
        self.wake = Some(wake);
        self.arm_wake();
    }

    fn arm_wake(&mut self) {
        let Some(wake) = self.wake else { return };
        let entry = opcode::PollAdd::new(Fd(wake), libc::POLLIN as u32)
            .multi(true)
            .build()
            .user_data(WAKE);
        self.wake_unarmed = !self.push_own(&entry);
    }

    /// The wake-up descriptor was written to, or its poll has ended and is armed again.
    pub(super) fn wake_seen(&mut self, entry: &Reaped) {
        if !entry.socket_has_more {
            self.arm_wake();
        }
    }

    /// Cancels the operation with this user data, if the kernel has it; false when there is no room
    /// for the moment.
    pub(super) fn cancel(&mut self, user_data: u64) -> bool {
        let entry = opcode::AsyncCancel::new(user_data)
            .build()
            .user_data(CANCEL);
        self.push_own(&entry)
    }

    fn submit_only(&mut self) {
        self.has_put_off = false;
        count_enter();
        let entered = self.ring.submit();
        check_enter(entered);
    }

    /// Submits, runs deferred task work, and waits up to `limit` for one completion. Without a
    /// limit a few submissions may be put off to the next turn where the caller's is short.
    pub(super) fn enter(&mut self, limit: Option<Duration>, may_put_off: bool) {
        if self.wake_unarmed {
            self.arm_wake();
        }
        let Some(limit) = limit else {
            let submission = self.ring.submission();
            let count = submission.len();
            let has_work = submission.taskrun() || submission.cq_overflow();
            drop(submission);
            let may_wait = count == 0 || (may_put_off && count <= PUT_OFF_MAX && !self.has_put_off);
            self.has_put_off = count > 0;
            if has_work || !may_wait {
                self.submit_only();
            }
            return;
        };
        if !self.ring.completion().is_empty() {
            self.enter(None, may_put_off);
            return;
        }
        self.has_put_off = false;
        count_enter();
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
        reaped.extend(self.ring.completion().map(|entry| reaped_of(&entry)));
    }
}

thread_local! {
    static ENTERS: Cell<u64> = const { Cell::new(0) };
}

/// Calls of io_uring_enter by this thread so far: what a benchmark divides by its requests.
#[must_use]
pub fn enters() -> u64 {
    ENTERS.get()
}

fn count_enter() {
    ENTERS.set(ENTERS.get() + 1);
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
