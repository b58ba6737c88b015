//! Doing the same for many, a few at a time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::rc::Rc;

use super::error::LogError;
use crate::io::{self, TaskClass};

/// Runs `work` for every item, at most `limit` at once. Stops taking new items at the first error
/// and answers it once what was under way has ended.
pub(crate) async fn for_each_limited<T, F, R>(
    items: Vec<T>,
    limit: usize,
    work: F,
) -> Result<(), LogError>
where
    T: 'static,
    F: Fn(T) -> R + 'static,
    R: Future<Output = Result<(), LogError>> + 'static,
{
    if items.len() <= 1 {
        for item in items {
            work(item).await?;
        }
        return Ok(());
    }
    let workers = limit.min(items.len());
    let items = Rc::new(RefCell::new(VecDeque::from(items)));
    let work = Rc::new(work);
    let spawn_worker = |_| {
        let (items, work) = (Rc::clone(&items), Rc::clone(&work));
        io::spawn(TaskClass::Background, async move {
            loop {
                let next = items.borrow_mut().pop_front();
                let Some(item) = next else { return Ok(()) };
                if let Err(error) = work(item).await {
                    items.borrow_mut().clear();
                    return Err(error);
                }
            }
        })
    };
    let handles: Vec<_> = (0..workers).map(spawn_worker).collect();
    let mut outcome = Ok(());
    for handle in handles {
        let ended = handle.await;
        if outcome.is_ok() {
            outcome = ended;
        }
    }
    outcome
}
