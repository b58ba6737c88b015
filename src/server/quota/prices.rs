//! What it costs a shard's thread to move bytes between sockets, disks and tasks.
//!
//! The kernel does that while the thread gives it operations and waits for them, those of all
//! connections together, so that no clock tells whose it was. But the thread's whole time is known,
//! and so is that of its tasks: the rest is shared out by operations and bytes.

use std::cell::Cell;
use std::time::Duration;

use super::work::Work;
use crate::io;

/// One operation costs as much as moving so many bytes.
const OPERATION_BYTES: u64 = 8 * 1024;
/// The price is worked out anew when the thread was busy for so long.
const LEARNT_AFTER: Duration = Duration::from_millis(10);
/// No more than this for a byte, for the thread may be slow for other reasons.
const NS_PER_BYTE_MAX: f64 = 10.0;

/// What a thread has done since it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadUse {
    /// How long it had a CPU.
    pub busy: Duration,
    /// What its executor did.
    pub spent: io::Spent,
}

impl ThreadUse {
    /// The calling shard's.
    #[must_use]
    pub fn now() -> Self {
        Self {
            busy: io::thread_time(),
            spent: io::spent(),
        }
    }
}

/// The price on one shard.
#[derive(Debug, Default)]
pub struct Prices {
    learnt: Cell<ThreadUse>,
    ns_per_byte: Cell<Option<f64>>,
}

impl Prices {
    /// Learns from what the thread has done up to now.
    pub fn learn(&self, now: ThreadUse) {
        let before = self.learnt.get();
        let busy = now.busy.saturating_sub(before.busy);
        if busy < LEARNT_AFTER {
            return;
        }
        self.learnt.set(now);
        let polled = now.spent.polled.saturating_sub(before.spent.polled);
        let operations = now.spent.operations.saturating_sub(before.spent.operations);
        let bytes = now.spent.bytes.saturating_sub(before.spent.bytes);
        let weight = weight(operations, bytes).max(1.0);
        let price = busy.saturating_sub(polled).as_nanos() as f64 / weight;
        let price = price.min(NS_PER_BYTE_MAX);
        let known = self.ns_per_byte.get().unwrap_or(price);
        self.ns_per_byte.set(Some((known + price) / 2.0));
    }

    /// How long threads were at some work.
    #[must_use]
    pub fn time_of(&self, work: Work) -> Duration {
        let price = self.ns_per_byte.get().unwrap_or_default();
        let moved = price * weight(work.operations, work.bytes);
        work.time + Duration::from_nanos(moved as u64)
    }
}

fn weight(operations: u64, bytes: u64) -> f64 {
    operations.saturating_mul(OPERATION_BYTES) as f64 + bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(busy_ms: u64, polled_ms: u64, operations: u64, bytes: u64) -> ThreadUse {
        ThreadUse {
            busy: Duration::from_millis(busy_ms),
            spent: io::Spent {
                polled: Duration::from_millis(polled_ms),
                operations,
                bytes,
            },
        }
    }

    fn moved(operations: u64, bytes: u64) -> Work {
        Work {
            time: Duration::ZERO,
            operations,
            bytes,
        }
    }

    #[test]
    fn what_is_no_tasks_time_is_shared_out_by_what_was_moved() {
        let prices = Prices::default();
        assert_eq!(prices.time_of(moved(9, 9)), Duration::ZERO, "not known yet");
        // 60 ms for 1,000 operations and 4,000 times as many bytes as one costs.
        prices.learn(used(100, 40, 1_000, 4_000 * OPERATION_BYTES));
        let all = prices.time_of(moved(1_000, 4_000 * OPERATION_BYTES));
        assert!(all.abs_diff(Duration::from_millis(60)) < Duration::from_micros(1));
        let some = prices.time_of(Work {
            time: Duration::from_millis(3),
            ..moved(100, 400 * OPERATION_BYTES)
        });
        assert!(some.abs_diff(Duration::from_millis(9)) < Duration::from_micros(1));
    }

    #[test]
    fn a_price_follows_what_comes_and_is_never_out_of_bounds() {
        let prices = Prices::default();
        prices.learn(used(100, 0, 1_000, 0));
        let one = || prices.time_of(moved(1, 0)).as_nanos();
        assert_eq!(one(), 81_920, "the bound");
        prices.learn(used(105, 0, 9_000, 0));
        assert_eq!(one(), 81_920, "too little to learn from");
        for more in 1..=20 {
            prices.learn(used(100 + 100 * more, 50 * more, 1_000 + 10_000 * more, 0));
        }
        assert!(one().abs_diff(5_000) < 10, "{}", one());
        // A thread that others kept from its CPU while its tasks ran.
        for more in 21..=40 {
            prices.learn(used(2_200 + 100 * more, 90_000 * more, 400_000 * more, 0));
        }
        assert!(one() < 10, "{}", one());
    }
}
