//! Waiting for a condition of this shard: single-threaded, no allocation while nothing waits and
//! none for a few that wait again and again.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::task::sleep_until;
use crate::base::time::MonotonicNs;

/// Tasks that wait for the same state to change.
#[derive(Debug, Default)]
pub struct Waiters {
    wakers: RefCell<Vec<Waker>>,
    /// Memory of the wakers woken last, for those that come next.
    spare: RefCell<Vec<Waker>>,
}

/// Wakers for which memory is kept.
const SPARE_WAKERS_MAX: usize = 64;

impl Waiters {
    /// Lets every waiting task look at its condition again.
    pub fn wake_all(&self) {
        if self.wakers.borrow().is_empty() {
            return;
        }
        let mut wakers = self.wakers.replace(self.spare.take());
        for waker in wakers.drain(..) {
            waker.wake();
        }
        if wakers.capacity() <= SPARE_WAKERS_MAX {
            self.spare.replace(wakers);
        }
    }

    /// Waits until `ready` answers; it is asked at once and after every [`Self::wake_all`].
    pub async fn wait_for<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        std::future::poll_fn(|context| {
            if let Some(answer) = ready() {
                return Poll::Ready(answer);
            }
            self.add(context.waker());
            Poll::Pending
        })
        .await
    }

    /// As [`Self::wait_for`], but gives up with `None` once `deadline` has passed.
    pub async fn wait_until<T>(
        &self,
        deadline: MonotonicNs,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(answer) = ready() {
            return Some(answer);
        }
        let mut timer = pin!(sleep_until(deadline));
        std::future::poll_fn(|context| {
            if let Some(answer) = ready() {
                return Poll::Ready(Some(answer));
            }
            if timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            self.add(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Registers a task once, however often it is polled between two wake-ups.
    fn add(&self, waker: &Waker) {
        let mut wakers = self.wakers.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}

/// Turns in the order of asking: whoever holds a [`Turn`] is alone until it is dropped. Handing it
/// on wakes the next one only, however many wait.
#[derive(Debug, Default)]
pub struct Turns {
    next: Cell<u64>,
    /// Who asked and neither has nor gave up, in the order of the numbers; the front one has the
    /// turn.
    queue: RefCell<VecDeque<Asked>>,
}

/// One in the queue, and how it is woken once it has waited.
#[derive(Debug)]
struct Asked {
    number: u64,
    waker: Option<Waker>,
}

/// The right to go on alone.
#[derive(Debug)]
pub struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    /// Waits for the turn.
    pub async fn take(&self) -> Turn<'_> {
        let turn = self.queue_up();
        std::future::poll_fn(|context| turn.poll_first(context)).await;
        turn
    }

    /// Waits for the turn until `deadline`.
    pub async fn take_until(&self, deadline: MonotonicNs) -> Option<Turn<'_>> {
        let turn = self.queue_up();
        if turn.is_first() {
            return Some(turn);
        }
        let mut timer = pin!(sleep_until(deadline));
        let is_first = std::future::poll_fn(|context| {
            if turn.poll_first(context).is_ready() {
                return Poll::Ready(true);
            }
            timer.as_mut().poll(context).map(|()| false)
        })
        .await;
        is_first.then_some(turn)
    }

    /// Whether nobody has or awaits a turn.
    pub fn is_idle(&self) -> bool {
        self.queue.borrow().is_empty()
    }

    fn queue_up(&self) -> Turn<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        let waker = None;
        self.queue.borrow_mut().push_back(Asked { number, waker });
        Turn {
            turns: self,
            number,
        }
    }
}

impl Turn<'_> {
    fn is_first(&self) -> bool {
        let queue = self.turns.queue.borrow();
        queue.front().map(|asked| asked.number) == Some(self.number)
    }

    fn poll_first(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_first() {
            return Poll::Ready(());
        }
        let mut queue = self.turns.queue.borrow_mut();
        let place = queue.binary_search_by_key(&self.number, |asked| asked.number);
        if let Some(asked) = place.ok().and_then(|place| queue.get_mut(place)) {
            asked.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let was_first = self.is_first();
        let mut queue = self.turns.queue.borrow_mut();
        if let Ok(place) = queue.binary_search_by_key(&self.number, |asked| asked.number) {
            queue.remove(place);
        }
        let next = queue.front_mut().filter(|_| was_first);
        let waker = next.and_then(|asked| asked.waker.take());
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_turn_is_handed_to_the_next_alone() {
        let turns = Turns::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let context = &mut Context::from_waker(&waker);
        let woken = || count.0.load(Ordering::Relaxed);
        let first = turns.queue_up();
        assert!(first.poll_first(context).is_ready());
        let [gives_up, second, third] = [turns.queue_up(), turns.queue_up(), turns.queue_up()];
        for turn in [&gives_up, &second, &third] {
            assert!(turn.poll_first(context).is_pending());
        }
        drop(gives_up);
        assert_eq!(woken(), 0, "it had no turn to hand on");
        drop(first);
        assert_eq!(woken(), 1);
        assert!(second.poll_first(context).is_ready());
        assert!(third.poll_first(context).is_pending());
        drop((second, third));
        assert_eq!(woken(), 2);
        assert!(turns.is_idle());
    }
}
