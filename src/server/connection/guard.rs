//! A panic in a connection's task closes that connection only. Every other task's panic ends the
//! process, which is the executor's rule.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use super::close::CloseReason;

/// Runs a connection's future; a panic in it becomes a reason to close.
///
/// Unwinding is safe to assert: what the future shares with the shard is changed by the shard's
/// own loop alone, and the future itself is dropped, never polled again.
pub async fn guarded<T>(
    future: impl Future<Output = Result<T, CloseReason>>,
) -> Result<T, CloseReason> {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(CloseReason::Panicked(reason_of_panic(&*panic)))),
        }
    })
    .await
}

/// What a panic said.
#[must_use]
pub fn reason_of_panic(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    let text = panic.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| "no reason given".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    #[test]
    fn a_panic_becomes_a_reason() {
        let mut future = pin!(guarded::<()>(async { panic!("on {}", "purpose") }));
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Err(CloseReason::Panicked(reason))) = future.as_mut().poll(&mut context)
        else {
            unreachable!("the future panics when polled")
        };
        assert_eq!(reason, "on purpose");
    }
}
