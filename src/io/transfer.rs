//! How values cross threads without a lock: senders push with one compare-and-swap, the one
//! receiver takes everything at once. Taking all is what makes this safe without hazard pointers:
//! no node is ever unlinked alone, so no node can come back while someone looks at it (no ABA).

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

/// Many pushing threads, one taking thread; first in, first out.
pub(super) struct Transfer<T> {
    /// The newest node; each points to the one pushed before it.
    head: AtomicPtr<Node<T>>,
}

// SAFETY: values only move through from thread to thread, as through a channel; nodes are reached
// by the atomic head alone.
unsafe impl<T: Send> Send for Transfer<T> {}
// SAFETY: as above; no reference to a value is ever handed out by a shared reference.
unsafe impl<T: Send> Sync for Transfer<T> {}

impl<T> Transfer<T> {
    pub(super) const fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
        }
    }

    pub(super) fn push(&self, value: T) {
        let node = Box::into_raw(Box::new(Node {
            value,
            next: ptr::null_mut(),
        }));
        self.push_chain(node, node);
    }

    /// Pushes all values in order with one compare-and-swap.
    pub(super) fn push_all(&self, values: impl Iterator<Item = T>) {
        let mut newest: *mut Node<T> = ptr::null_mut();
        let mut oldest: *mut Node<T> = ptr::null_mut();
        for value in values {
            newest = Box::into_raw(Box::new(Node {
                value,
                next: newest,
            }));
            if oldest.is_null() {
                oldest = newest;
            }
        }
        if !newest.is_null() {
            self.push_chain(newest, oldest);
        }
    }

    fn push_chain(&self, newest: *mut Node<T>, oldest: *mut Node<T>) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the chain is ours until the exchange succeeds.
            unsafe { (*oldest).next = head };
            // Sequentially consistent: a receiver that goes to sleep first says so and then looks
            // here; see `Remote`.
            match self
                .head
                .compare_exchange_weak(head, newest, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(current) => head = current,
            }
        }
    }

    /// Asked by our executor before it sleeps.
    #[cfg_attr(feature = "glommio", allow(dead_code))]
    pub(super) fn is_empty(&self) -> bool {
        self.head.load(Ordering::SeqCst).is_null()
    }

    /// Takes everything, oldest first; answers how many.
    pub(super) fn take_all(&self, mut each: impl FnMut(T)) -> usize {
        if self.head.load(Ordering::Relaxed).is_null() {
            return 0;
        }
        let mut node = self.head.swap(ptr::null_mut(), Ordering::AcqRel);
        let mut oldest: *mut Node<T> = ptr::null_mut();
        while !node.is_null() {
            // SAFETY: the swap made the whole chain ours.
            let next = unsafe { std::mem::replace(&mut (*node).next, oldest) };
            oldest = node;
            node = next;
        }
        let mut rest = Chain(oldest);
        let mut count = 0;
        while let Some(value) = rest.next() {
            each(value);
            count += 1;
        }
        count
    }
}

/// An owned chain in taking order; what is left of it is freed also when a callback panics.
struct Chain<T>(*mut Node<T>);

impl<T> Chain<T> {
    fn next(&mut self) -> Option<T> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: made by `Box::into_raw` and ours alone.
        let node = unsafe { Box::from_raw(self.0) };
        self.0 = node.next;
        Some(node.value)
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

impl<T> Drop for Transfer<T> {
    fn drop(&mut self) {
        drop(Chain(*self.head.get_mut()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn order_of_each_sender_is_kept_and_nothing_is_lost() {
        const EACH: u32 = 20_000;
        let transfer = Arc::new(Transfer::new());
        let senders: Vec<_> = (0..4u32)
            .map(|sender| {
                let transfer = Arc::clone(&transfer);
                std::thread::spawn(move || {
                    for number in (0..EACH).step_by(2) {
                        transfer.push((sender, number));
                        transfer.push_all([(sender, number + 1)].into_iter());
                    }
                })
            })
            .collect();
        let mut next = [0u32; 4];
        while next != [EACH; 4] {
            transfer.take_all(|(sender, number)| {
                let expected = &mut next[sender as usize];
                assert_eq!(*expected, number);
                *expected += 1;
            });
        }
        for sender in senders {
            sender.join().expect("a sender does not panic");
        }
        assert!(transfer.is_empty());
    }

    #[test]
    fn what_was_not_taken_is_freed() {
        let value = Arc::new(());
        let transfer = Transfer::new();
        transfer.push_all([Arc::clone(&value), Arc::clone(&value)].into_iter());
        transfer.push(Arc::clone(&value));
        assert_eq!(Arc::strong_count(&value), 4);
        drop(transfer);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
