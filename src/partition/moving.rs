//! A partition whose log moves to another directory: the copy that is being filled, and the moment
//! in which it takes over.
//!
//! ```text
//! open ─> closed to changes ─> another log serves, open
//!            └───────────────> open
//! ```
//!
//! While it is closed, appends and deletions wait in their order and reads go on: the log that is
//! given up and the one that takes over end at the same offset.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use thiserror::Error;

use super::replica::Partition;
use crate::base::ids::Offset;
use crate::base::time::MonotonicNs;
use crate::io::wait::Waiters;
use crate::log::{Log, LogConfig, LogEvent};

/// What a move needs of its partition.
#[derive(Default)]
pub(super) struct Moving {
    future: RefCell<Option<Rc<Log>>>,
    /// Nobody may begin a change of the log.
    is_closed: Cell<bool>,
    /// Changes of the log that are under way.
    changes: Cell<usize>,
    waiters: Waiters,
}

impl Moving {
    pub(super) fn wake_all(&self) {
        self.waiters.wake_all();
    }
}

/// Why a copy does not take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoSwitch {
    /// The log may change.
    #[error("the partition is open to changes")]
    Open,
    /// The copy has not all, or more than there is.
    #[error("the copy ends at {copy}, the log at {log}")]
    EndsElsewhere {
        /// Where the copy ends.
        copy: Offset,
        /// Where the log ends.
        log: Offset,
    },
}

/// As long as this lives the log changes, and no other takes over.
pub struct Change<'a>(&'a Moving);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.changes.set(self.0.changes.get() - 1);
        if self.0.is_closed.get() {
            self.0.wake_all();
        }
    }
}

impl Partition {
    /// The copy of the log that is being filled in another directory.
    #[must_use]
    pub fn future(&self) -> Option<Rc<Log>> {
        self.moving.future.borrow().clone()
    }

    /// Sets the copy, or forgets it.
    pub fn set_future(&self, future: Option<Rc<Log>>) {
        *self.moving.future.borrow_mut() = future;
    }

    /// How many offsets the copy is behind.
    #[must_use]
    pub fn future_lag(&self, future: &Log) -> i64 {
        let Offset(end) = self.log().log_end_offset();
        (end - future.log_end_offset().0).max(0)
    }

    /// Puts new settings in force for the log and its copy.
    pub fn update_config(&self, config: LogConfig) {
        if let Some(future) = self.future() {
            future.update_config(config.clone());
        }
        self.log().update_config(config);
    }

    /// Whether `log` is the one that serves.
    #[must_use]
    pub fn has_log(&self, log: &Rc<Log>) -> bool {
        Rc::ptr_eq(&self.log.borrow(), log)
    }

    /// Begins a change of the log; `None` while another is about to take over.
    #[must_use]
    pub fn try_change(&self) -> Option<Change<'_>> {
        let moving = &self.moving;
        if moving.is_closed.get() {
            return None;
        }
        moving.changes.set(moving.changes.get() + 1);
        Some(Change(moving))
    }

    /// The same once that is over; `None` when the deadline passes first. A partition that is given
    /// up lets everybody in, to be refused.
    pub async fn begin_change(&self, deadline: MonotonicNs) -> Option<Change<'_>> {
        if let Some(change) = self.try_change() {
            return Some(change);
        }
        let moving = &self.moving;
        let may_begin = || {
            if self.is_closed() {
                moving.changes.set(moving.changes.get() + 1);
                return Some(Change(moving));
            }
            self.try_change()
        };
        moving.waiters.wait_until(deadline, may_begin).await
    }

    /// Lets no change begin from now on and waits for those under way. False when the deadline
    /// passes first, and changes go on.
    pub async fn close_to_changes(&self, deadline: MonotonicNs) -> bool {
        let moving = &self.moving;
        moving.is_closed.set(true);
        let none = || (moving.changes.get() == 0).then_some(());
        let is_quiet = moving.waiters.wait_until(deadline, none).await.is_some();
        if !is_quiet {
            self.open_to_changes();
        }
        is_quiet
    }

    /// Changes may begin again.
    pub fn open_to_changes(&self) {
        self.moving.is_closed.set(false);
        self.moving.wake_all();
    }

    /// Whether the copy may take over: the partition is closed to changes, and both end at the same
    /// offset.
    ///
    /// # Errors
    /// [`NoSwitch`].
    pub fn check_switch(&self, future: &Log) -> Result<(), NoSwitch> {
        if !self.moving.is_closed.get() {
            return Err(NoSwitch::Open);
        }
        let (copy, log) = (future.durable_end(), self.log().durable_end());
        match copy == log {
            true => Ok(()),
            false => Err(NoSwitch::EndsElsewhere { copy, log }),
        }
    }

    /// The copy serves from now on; answers the log that is given up.
    ///
    /// # Errors
    /// See [`Self::check_switch`]: nothing has changed then.
    pub fn switch_to(self: &Rc<Self>, future: Rc<Log>) -> Result<Rc<Log>, NoSwitch> {
        self.check_switch(&future)?;
        self.set_future(None);
        let given_up = self.log.replace(future);
        given_up.observe(|_| {});
        self.observe_log();
        if self.log().check_online().is_err() {
            // Nobody was told.
            self.on_log_event(LogEvent::Offline);
        }
        self.open_to_changes();
        Ok(given_up)
    }
}
