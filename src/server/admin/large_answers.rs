//! Answers that grow with the number of partitions: few are held at a time, however slowly they are
//! read.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

/// Large answers at a time. A further one waits, and ends the connection that has held one for
/// longest and too long: a reader that stands still must not keep the others from their metrics.
pub(super) const LARGE_ANSWERS_MAX: usize = 2;

/// For so long nobody ends it: readers that read are done before.
const HELD_MAX: Duration = Duration::from_millis(500);
/// How long a further one waits at most.
const ROOM_WAIT: Duration = Duration::from_secs(10);
/// How often it looks.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// One that is held.
struct Holder {
    one: Weak<()>,
    since: Instant,
    /// Ends its connection.
    end: Rc<Notify>,
}

/// Those that are held, oldest first.
#[derive(Default)]
pub(super) struct LargeAnswers {
    held: RefCell<VecDeque<Holder>>,
}

/// The right to one; held until its body has been sent.
pub(super) struct Held {
    _one: Arc<()>,
}

struct Body {
    text: String,
    _held: Held,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl LargeAnswers {
    /// Room for one, for the connection that `end` ends; `None` where there is none in time.
    pub(super) async fn admit(&self, end: &Rc<Notify>) -> Option<Held> {
        let until = Instant::now() + ROOM_WAIT;
        loop {
            let now = Instant::now();
            if let Some((held, has_ended)) = self.admit_now(end, now) {
                if has_ended {
                    // Its connection's task frees the answer before this one is made.
                    tokio::task::yield_now().await;
                }
                return Some(held);
            }
            if now >= until {
                return None;
            }
            tokio::time::sleep(ROOM_CHECK_INTERVAL).await;
        }
    }

    /// The right to one, and whether somebody's was taken for it.
    fn admit_now(&self, end: &Rc<Notify>, now: Instant) -> Option<(Held, bool)> {
        let mut held = self.held.borrow_mut();
        held.retain(|holder| holder.one.strong_count() > 0);
        let is_full = held.len() >= LARGE_ANSWERS_MAX;
        if is_full {
            let stands_still = |oldest: &Holder| now.duration_since(oldest.since) >= HELD_MAX;
            held.front().filter(|oldest| stands_still(oldest))?;
            if let Some(oldest) = held.pop_front() {
                oldest.end.notify_one();
            }
        }
        let one = Arc::new(());
        held.push_back(Holder {
            one: Arc::downgrade(&one),
            since: now,
            end: Rc::clone(end),
        });
        Some((Held { _one: one }, is_full))
    }
}

impl Held {
    /// `text`, which gives the room back when it is dropped.
    pub(super) fn body(self, text: String) -> Bytes {
        Bytes::from_owner(Body { text, _held: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_ended(end: &Notify) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(end.notified()).poll(&mut context).is_ready()
    }

    #[test]
    fn one_past_the_limit_ends_who_stands_still_and_what_is_sent_makes_room() {
        let large = LargeAnswers::default();
        let ends: Vec<_> = (0..4).map(|_| Rc::new(Notify::new())).collect();
        let start = Instant::now();
        let admit = |number: usize, now| large.admit_now(&ends[number], now);
        let (first, _) = admit(0, start).expect("room");
        let (second, has_ended) = admit(1, start).expect("the limit");
        assert!(!has_ended);
        let body = first.body("text".to_owned());
        let soon = start + HELD_MAX - Duration::from_millis(1);
        assert!(
            admit(2, soon).is_none(),
            "one past it, and both may be read"
        );
        assert!(!is_ended(&ends[0]));
        let (third, has_ended) = admit(2, start + HELD_MAX).expect("its place");
        assert!(has_ended && is_ended(&ends[0]) && !is_ended(&ends[1]));
        drop((body, second));
        let (_fourth, has_ended) = admit(3, start + HELD_MAX).expect("the second was sent");
        assert!(!has_ended);
        drop(third);
    }
}
