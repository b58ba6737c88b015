//! What an index in memory is charged to its shard's cache, for as long as it lives.

use std::cell::Cell;
use std::rc::Rc;

/// Goes back when the index is dropped; a copy of an index is charged nothing.
#[derive(Debug, Default)]
pub(crate) struct IndexCharge {
    total: Option<Rc<Cell<usize>>>,
    bytes: usize,
}

impl IndexCharge {
    /// From now on `bytes` are charged to `total`.
    pub(crate) fn settle(&mut self, total: &Rc<Cell<usize>>, bytes: usize) {
        if self.total.is_some() && self.bytes == bytes {
            return;
        }
        self.give_back();
        total.set(total.get() + bytes);
        self.bytes = bytes;
        self.total = Some(Rc::clone(total));
    }

    fn give_back(&mut self) {
        if let Some(total) = self.total.take() {
            total.set(total.get() - self.bytes);
        }
    }
}

impl Clone for IndexCharge {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Drop for IndexCharge {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_charged_follows_the_index_and_goes_back_with_it() {
        let total = Rc::new(Cell::new(0));
        let (mut first, mut second) = (IndexCharge::default(), IndexCharge::default());
        first.settle(&total, 100);
        second.settle(&total, 7);
        first.settle(&total, 140);
        assert_eq!(total.get(), 147);
        let copy = first.clone();
        drop(copy);
        assert_eq!(total.get(), 147, "a copy is charged nothing");
        drop(first);
        assert_eq!(total.get(), 7);
        second.settle(&total, 0);
        assert_eq!(total.get(), 0);
    }
}
