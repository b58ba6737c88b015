//! Whether the log directory still serves. After one failed write or flush it does not, until
//! restart (JOURNAL §4).

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::error::LogError;
use super::wait::Waiters;
use crate::io;

/// One a shard and directory. Every waiting place of the shard comes from here, so that nobody
/// waits on when the directory goes offline.
#[derive(Default)]
pub(crate) struct Health {
    reason: RefCell<Option<String>>,
    places: RefCell<Vec<Weak<Waiters>>>,
    places_at_last_sweep: Cell<usize>,
    watcher: RefCell<Option<Rc<dyn Fn()>>>,
}

impl Health {
    /// A place to wait at, woken when the directory goes offline.
    pub(crate) fn waiters(&self) -> Rc<Waiters> {
        let waiters = Rc::new(Waiters::default());
        let mut places = self.places.borrow_mut();
        if places.len() > 2 * self.places_at_last_sweep.get() + 64 {
            places.retain(|place| place.strong_count() > 0);
            self.places_at_last_sweep.set(places.len());
        }
        places.push(Rc::downgrade(&waiters));
        waiters
    }

    /// Takes the directory offline; the first reason stays.
    pub(crate) fn fail(&self, reason: impl Into<String>) {
        if self.reason.borrow().is_some() {
            return;
        }
        let reason = reason.into();
        tracing::debug!(%reason, "a log directory goes offline on this shard");
        *self.reason.borrow_mut() = Some(reason);
        let places = std::mem::take(&mut *self.places.borrow_mut());
        for place in &places {
            if let Some(place) = place.upgrade() {
                place.wake_all();
            }
        }
        *self.places.borrow_mut() = places;
        let watcher = self.watcher.borrow().clone();
        if let Some(watcher) = watcher {
            watcher();
        }
    }

    /// Takes the directory offline where an error is of its device, and not of one file, of the
    /// room on the disk or of what was asked: whatever else is tried there will fail as well.
    pub(crate) fn judge(&self, error: &LogError) {
        if let LogError::Io { source, .. } = error
            && io::is_of_device(source)
        {
            self.fail(error.to_string());
        }
    }

    /// Installs the one that is told once when the directory goes offline.
    pub(crate) fn watch(&self, watcher: impl Fn() + 'static) {
        *self.watcher.borrow_mut() = Some(Rc::new(watcher));
    }

    /// Whether the directory is offline.
    pub(crate) fn is_offline(&self) -> bool {
        self.reason.borrow().is_some()
    }

    /// The reason, once offline.
    pub(crate) fn reason(&self) -> Option<String> {
        self.reason.borrow().clone()
    }

    /// The reason as an error, once offline.
    pub(crate) fn check(&self) -> Result<(), LogError> {
        match &*self.reason.borrow() {
            Some(reason) => Err(LogError::Offline(reason.clone())),
            None => Ok(()),
        }
    }

    /// Waits at a place of this health for `ready`, or for the directory to go offline.
    pub(crate) async fn race<T>(
        &self,
        waiters: &Waiters,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T, LogError> {
        waiters
            .wait_for(|| match ready() {
                Some(answer) => Some(Ok(answer)),
                None => self.check().err().map(Err),
            })
            .await
    }
}
