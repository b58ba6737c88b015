//! How often the bytes of batches are touched: passes of a checksum over them and copies in memory.
//!
//! Noted where it happens, in layers that hold no metrics, on a counter of the thread; a shard's
//! [`super::ShardMetrics`] shows what its thread has noted. What the pool's threads touch (large
//! compressed batches that are walked or recompressed) is not counted, nor what the kernel copies.

use std::cell::Cell;

thread_local! {
    static CHECKED: Cell<u64> = const { Cell::new(0) };
    static COPIED: Cell<u64> = const { Cell::new(0) };
}

/// What a thread has touched since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Bytes of batches over which a checksum went.
    pub checked: u64,
    /// Bytes of batches that were copied.
    pub copied: u64,
}

impl Touched {
    /// So far, on this thread.
    #[must_use]
    pub fn now() -> Self {
        Self {
            checked: CHECKED.get(),
            copied: COPIED.get(),
        }
    }
}

/// A checksum goes over `bytes` of a batch.
pub fn note_checked(bytes: usize) {
    CHECKED.set(CHECKED.get().wrapping_add(bytes as u64));
}

/// `bytes` of batches are copied.
pub fn note_copied(bytes: usize) {
    COPIED.set(COPIED.get().wrapping_add(bytes as u64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Counter, ShardMetrics};

    #[test]
    fn a_shard_shows_what_its_thread_touched_since_it_began() {
        note_checked(7);
        let metrics = ShardMetrics::new();
        assert_eq!(metrics.get(Counter::BytesChecked), 0);
        note_checked(5);
        note_copied(3);
        assert_eq!(metrics.get(Counter::BytesChecked), 5);
        let snapshot = metrics.snapshot();
        assert_eq!(snapshot.counter(Counter::BytesChecked), 5);
        assert_eq!(snapshot.counter(Counter::BytesCopied), 3);
        let other = std::thread::spawn(Touched::now).join();
        assert_eq!(other.expect("it ends"), Touched::default());
    }
}
