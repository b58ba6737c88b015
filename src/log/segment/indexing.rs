//! Whoever reads a closed segment's indexes, or makes them again, does so alone.

use std::cell::{Cell, RefCell};

use super::Segment;
use crate::log::wait::{Turn, Turns};

/// What is known of a finished segment's indexes.
#[derive(Default)]
pub(crate) struct Indexing {
    turns: Turns,
    /// The segment has left its log: nothing is written beside it any more.
    is_gone: Cell<bool>,
    /// Both are as they were written, or agree with the segment.
    pub(crate) is_proven: Cell<bool>,
    /// Why they cannot be made again: the segment is damaged itself.
    pub(crate) failure: RefCell<Option<String>>,
}

impl Segment {
    /// As long as the turn lives, nobody else reads or writes the segment's indexes.
    pub(crate) async fn indexing_turn(&self) -> Turn<'_> {
        self.indexing.turns.take().await
    }

    /// Whether the segment has left its log.
    pub(crate) fn is_gone(&self) -> bool {
        self.indexing.is_gone.get()
    }

    /// The segment leaves its log. Once this answers nobody makes a file beside it.
    pub(crate) async fn leave(&self) {
        self.indexing.is_gone.set(true);
        drop(self.indexing_turn().await);
    }
}
