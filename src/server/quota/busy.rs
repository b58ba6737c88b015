//! How long a request keeps its thread.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use crate::io;

/// Runs `work`; answers what it came to and, if that is wanted, how long its thread was at it: what
/// it waited for does not count.
pub async fn busy_time<T>(is_wanted: bool, work: impl Future<Output = T>) -> (T, Duration) {
    if !is_wanted {
        return (work.await, Duration::ZERO);
    }
    let mut work = pin!(work);
    let mut busy = Duration::ZERO;
    let outcome = std::future::poll_fn(|context| {
        let began = io::clock();
        let polled = work.as_mut().poll(context);
        busy += io::clock().since(began);
        polled
    })
    .await;
    (outcome, busy)
}
