//! Which executor runs on this thread.

use std::cell::RefCell;
use std::rc::Rc;

use super::Core;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// The executor of this thread. Panics outside a runtime: that is a programming error.
pub(in crate::io) fn get() -> Rc<Core> {
    CURRENT.with(|current| current.borrow().clone()).unwrap_or_else(|| {
        panic!(
            "no Coreline runtime runs on this thread: time, tasks, files and sockets exist only \
             inside Runtime::block_on"
        )
    })
}

/// Whether `core` runs on this thread now.
pub(super) fn is(core: &Rc<Core>) -> bool {
    // A future may be dropped while the thread ends.
    CURRENT
        .try_with(|current| {
            current
                .borrow()
                .as_ref()
                .is_some_and(|own| Rc::ptr_eq(own, core))
        })
        .unwrap_or(false)
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
