//! Where a log's folder is. The log and its segments share it, for a copy that takes over changes
//! the name of its folder while it is open ([`super::moving`]).

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The path of an open log's folder.
#[derive(Clone, Debug)]
pub(crate) struct FolderPlace(Rc<RefCell<Rc<Path>>>);

impl FolderPlace {
    /// The path now.
    pub(crate) fn path(&self) -> Rc<Path> {
        Rc::clone(&self.0.borrow())
    }

    /// The path of a file in it.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.borrow().join(name)
    }

    /// The path for people.
    pub(crate) fn display(&self) -> String {
        self.0.borrow().display().to_string()
    }

    /// The folder has another name.
    pub(crate) fn set(&self, path: Rc<Path>) {
        *self.0.borrow_mut() = path;
    }
}

impl From<Rc<Path>> for FolderPlace {
    fn from(path: Rc<Path>) -> Self {
        Self(Rc::new(RefCell::new(path)))
    }
}
