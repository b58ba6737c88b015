//! Answers that grow with the number of partitions: few are held at a time, however slowly they are
//! read.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

/// Large answers at a time. A further one waits, and then ends the connection that has held one for
/// longest: a reader that stands still must not keep the others from their metrics.
pub(super) const LARGE_ANSWERS_MAX: usize = 2;

/// How long it waits: readers that read are done long before.
const ROOM_WAIT: Duration = Duration::from_secs(1);
/// How often it looks.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Those that are held, and how their connections are ended; oldest first.
#[derive(Default)]
pub(super) struct LargeAnswers {
    held: RefCell<VecDeque<(Weak<()>, Rc<Notify>)>>,
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
    /// Room for one, for the connection that `end` ends.
    pub(super) async fn admit(&self, end: &Rc<Notify>) -> Held {
        let began = Instant::now();
        while !self.has_room() && began.elapsed() < ROOM_WAIT {
            tokio::time::sleep(ROOM_CHECK_INTERVAL).await;
        }
        let (held, has_ended) = self.admit_now(end);
        if has_ended {
            // Its connection's task frees the answer before this one is made.
            tokio::task::yield_now().await;
        }
        held
    }

    fn has_room(&self) -> bool {
        let held = self.held.borrow();
        let held = held.iter().filter(|(one, _)| one.strong_count() > 0);
        held.count() < LARGE_ANSWERS_MAX
    }

    fn admit_now(&self, end: &Rc<Notify>) -> (Held, bool) {
        let mut held = self.held.borrow_mut();
        held.retain(|(one, _)| one.strong_count() > 0);
        let mut has_ended = false;
        while held.len() >= LARGE_ANSWERS_MAX
            && let Some((_, oldest)) = held.pop_front()
        {
            oldest.notify_one();
            has_ended = true;
        }
        let one = Arc::new(());
        held.push_back((Arc::downgrade(&one), Rc::clone(end)));
        (Held { _one: one }, has_ended)
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
    fn one_past_the_limit_ends_the_oldest_and_what_is_sent_makes_room() {
        let large = LargeAnswers::default();
        let ends: Vec<_> = (0..4).map(|_| Rc::new(Notify::new())).collect();
        let (first, _) = large.admit_now(&ends[0]);
        let (second, has_ended) = large.admit_now(&ends[1]);
        assert!(!has_ended, "the limit");
        let body = first.body("text".to_owned());
        let (third, has_ended) = large.admit_now(&ends[2]);
        assert!(has_ended, "one past it");
        assert!(is_ended(&ends[0]) && !is_ended(&ends[1]));
        drop((body, second));
        let (_fourth, has_ended) = large.admit_now(&ends[3]);
        assert!(!has_ended, "the second was sent");
        drop(third);
    }
}
