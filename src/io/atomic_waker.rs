//! A place for the waker of one task that other threads wake. Registering and waking may meet at
//! any moment; a wake that comes while the waker is being stored is carried out by the one who
//! stores it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

/// Nobody touches the cell.
const IDLE: u8 = 0;
/// The receiver is storing its waker.
const REGISTERING: u8 = 1;
/// A sender is taking the waker, or came while it was being stored.
const WAKING: u8 = 2;

// Legal transitions: IDLE → REGISTERING → IDLE; IDLE → WAKING → IDLE; REGISTERING →
// REGISTERING|WAKING → IDLE (the registering side wakes).

pub(super) struct AtomicWaker {
    state: AtomicU8,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the cell is touched only by whoever moved `state` away from IDLE; a `Waker` is Send.
unsafe impl Send for AtomicWaker {}
// SAFETY: as above.
unsafe impl Sync for AtomicWaker {}

impl AtomicWaker {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU8::new(IDLE),
            waker: UnsafeCell::new(None),
        }
    }

    /// Stores the waker. The caller looks at its condition again afterwards. Called by one thread
    /// at a time (the receiving end is not shared).
    pub(super) fn register(&self, waker: &Waker) {
        let entered =
            self.state
                .compare_exchange(IDLE, REGISTERING, Ordering::Acquire, Ordering::Acquire);
        if entered.is_err() {
            // A sender is waking right now: its condition holds, so the task polls again.
            waker.wake_by_ref();
            return;
        }
        // SAFETY: we moved the state to REGISTERING.
        let stored = unsafe { &mut *self.waker.get() };
        if !stored.as_ref().is_some_and(|old| old.will_wake(waker)) {
            *stored = Some(waker.clone());
        }
        let left =
            self.state
                .compare_exchange(REGISTERING, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if left.is_err() {
            // A sender came meanwhile and left the waking to us.
            let waker = stored.take();
            self.state.swap(IDLE, Ordering::AcqRel);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Wakes the registered task, if there is one; it registers again with its next poll.
    pub(super) fn wake(&self) {
        if self.state.fetch_or(WAKING, Ordering::AcqRel) != IDLE {
            return;
        }
        // SAFETY: we moved the state from IDLE to WAKING.
        let waker = unsafe { (*self.waker.get()).take() };
        self.state.fetch_and(!WAKING, Ordering::Release);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
