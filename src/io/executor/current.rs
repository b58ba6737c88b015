//! Which executor runs on this thread.

use std::cell::RefCell;
use std::rc::Rc;

use super::Core;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Hands out the executor of this thread, if one is running.
pub(super) fn with<T>(act: impl FnOnce(Option<&Rc<Core>>) -> T) -> T {
    // A waker may be dropped or woken while the thread ends: then there is no executor.
    let current = CURRENT
        .try_with(|current| current.borrow().clone())
        .unwrap_or_default();
    act(current.as_ref())
}

/// The executor of this thread. Panics outside a runtime: that is a programming error.
pub(in crate::io) fn get() -> Rc<Core> {
    let current = CURRENT.with(|current| current.borrow().clone());
    current.unwrap_or_else(|| {
        panic!(
            "no Coreline runtime runs on this thread: time, tasks, files and sockets exist only \
             inside Runtime::block_on"
        )
    })
}

/// Makes an executor current until dropped.
pub(super) struct Entered {
    before: Option<Rc<Core>>,
}

impl Entered {
    pub(super) fn new(core: &Rc<Core>) -> Self {
        let before = CURRENT.with(|current| current.borrow_mut().replace(Rc::clone(core)));
        Self { before }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        CURRENT.with(|current| *current.borrow_mut() = before);
    }
}
