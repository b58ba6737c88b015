//! The places of the admin port's connections, and which one gives way when all are taken.
//!
//! Whoever holds connections open must not keep a health check out, and whoever has asked gets an
//! answer: only a connection from which nothing was asked for a while gives way, the oldest first.
//! Until there is one a further connection waits in the system's queue, and if all have asked and
//! none is done in time, it is told to come again.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Connections at a time.
pub(super) const CONNECTIONS_MAX: usize = 32;
/// For so long a connection from which nothing was asked keeps its place.
pub(super) const QUIET_MAX: Duration = Duration::from_millis(500);
/// For so long a further connection waits for a place. Answers take less.
pub(super) const PLACE_WAIT: Duration = Duration::from_secs(5);

/// One connection's place, as long as it is held.
#[derive(Debug)]
pub(super) struct Place {
    /// Since when nothing was asked; `None` while a request is being answered.
    quiet_since: Cell<Option<Instant>>,
    /// Told to end its connection.
    end: Notify,
    /// Told when what was asked was answered.
    answered: Notify,
    /// Told when a place may have become free.
    freed: Rc<Notify>,
}

impl Place {
    /// A request is being answered from now on.
    pub(super) fn begin(&self) {
        self.quiet_since.set(None);
    }

    /// It was answered.
    pub(super) fn done(&self, now: Instant) {
        self.quiet_since.set(Some(now));
        self.answered.notify_one();
        self.freed.notify_one();
    }

    /// Until another needs the place. What was asked meanwhile is answered first.
    pub(super) async fn given_away(&self) {
        self.end.notified().await;
        while self.quiet_since.get().is_none() {
            self.answered.notified().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.freed.notify_one();
    }
}

/// What becomes of a further connection.
#[derive(Debug)]
pub(super) enum Admission {
    /// It has a place.
    Place(Rc<Place>),
    /// All places are taken; the oldest of which nothing was asked may give way at this time.
    Wait(Option<Instant>),
}

/// All of them, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Places {
    held: RefCell<VecDeque<Weak<Place>>>,
    freed: Rc<Notify>,
}

impl Places {
    /// A place now, or when to look again.
    pub(super) fn admit(&self, now: Instant) -> Admission {
        let mut held = self.held.borrow_mut();
        held.retain(|place| place.strong_count() > 0);
        if held.len() >= CONNECTIONS_MAX {
            let quiet = held.iter().enumerate().filter_map(|(number, place)| {
                let place = place.upgrade()?;
                Some((place.quiet_since.get()?, number, place))
            });
            let Some((since, number, place)) =
                quiet.min_by_key(|(since, number, _)| (*since, *number))
            else {
                return Admission::Wait(None);
            };
            let may_end_at = since + QUIET_MAX;
            if now < may_end_at {
                return Admission::Wait(Some(may_end_at));
            }
            place.end.notify_one();
            held.remove(number);
        }
        let place = Rc::new(Place {
            quiet_since: Cell::new(Some(now)),
            end: Notify::new(),
            answered: Notify::new(),
            freed: Rc::clone(&self.freed),
        });
        held.push_back(Rc::downgrade(&place));
        Admission::Place(place)
    }

    /// A place as soon as there is one; `None` where none became free in time.
    pub(super) async fn wait(&self) -> Option<Rc<Place>> {
        let until = Instant::now() + PLACE_WAIT;
        loop {
            let now = Instant::now();
            let look_again = match self.admit(now) {
                Admission::Place(place) => return Some(place),
                Admission::Wait(_) if now >= until => return None,
                Admission::Wait(at) => at.map_or(until, |at| at.min(until)),
            };
            let _ = tokio::time::timeout_at(look_again.into(), self.freed.notified()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(places: &Places, now: Instant) -> Rc<Place> {
        match places.admit(now) {
            Admission::Place(place) => place,
            Admission::Wait(until) => panic!("waits until {until:?}"),
        }
    }

    fn is_ended(place: &Place) -> bool {
        use std::future::Future;
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(place.end.notified())
            .poll(&mut context)
            .is_ready()
    }

    #[test]
    fn one_past_the_limit_takes_the_place_of_the_oldest_that_asks_nothing() {
        let (places, start) = (Places::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let held: Vec<_> = (0..CONNECTIONS_MAX as u64)
            .map(|number| place(&places, at(number)))
            .collect();
        // The oldest asks, the next has just been answered.
        held[0].begin();
        held[1].begin();
        held[1].done(at(100));
        let quiet_until = at(2) + QUIET_MAX;
        let waits = |now| match places.admit(now) {
            Admission::Wait(until) => until,
            Admission::Place(_) => panic!("a place"),
        };
        assert_eq!(
            waits(quiet_until - Duration::from_millis(1)),
            Some(quiet_until)
        );
        let _one_past = place(&places, quiet_until);
        assert!(is_ended(&held[2]), "the limit");
        assert!(!is_ended(&held[0]) && !is_ended(&held[1]));
        held.iter().for_each(|held| held.begin());
        assert_eq!(waits(at(0)), Some(quiet_until + QUIET_MAX), "the new one's");
    }

    #[test]
    fn while_all_are_answered_a_further_one_waits_and_an_end_makes_room() {
        let (places, start) = (Places::default(), Instant::now());
        let mut held: Vec<_> = (0..CONNECTIONS_MAX)
            .map(|_| place(&places, start))
            .collect();
        held.iter().for_each(|held| held.begin());
        assert!(matches!(
            places.admit(start + PLACE_WAIT),
            Admission::Wait(None)
        ));
        held.pop();
        let _next = place(&places, start);
        assert!(held.iter().all(|held| !is_ended(held)));
    }
}
