//! Transactions as a walk meets them: which batches were aborted, which markers may go
//! (`CleanedTransactionMetadata`). A marker stays until no batch of its transaction is left. Pure.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::base::ids::ProducerId;
use crate::log::format::transaction_index::AbortedTransaction;
use crate::wire::record_batch::{BatchHeader, MarkerKind};

/// What a control batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Nothing any more.
    Empty,
    /// The end of a transaction.
    Marker(MarkerKind),
    /// Something else: it stays.
    Other,
}

/// An aborted transaction whose marker was not met yet.
#[derive(Debug)]
struct Ongoing {
    entry: AbortedTransaction,
    has_batches: bool,
}

/// See the head of the module.
#[derive(Debug, Default)]
pub(crate) struct CleanedTransactions {
    /// Those that begin further on, by their beginnings.
    ahead: VecDeque<AbortedTransaction>,
    aborted: HashMap<ProducerId, Ongoing>,
    committed: HashSet<ProducerId>,
    /// Of the aborted ones whose markers were met, those that left something.
    kept: Vec<AbortedTransaction>,
}

impl CleanedTransactions {
    /// With the aborted transactions of the log's indexes.
    pub(crate) fn new(mut aborted: Vec<AbortedTransaction>) -> Self {
        aborted.sort_by_key(|entry| entry.first_offset);
        Self {
            ahead: aborted.into(),
            ..Self::default()
        }
    }

    /// A batch with records comes by. True where its transaction was aborted.
    pub(crate) fn on_batch(&mut self, header: &BatchHeader) -> bool {
        self.enter(header);
        if !header.attributes.is_transactional() {
            return false;
        }
        match self.aborted.get_mut(&header.producer_id) {
            Some(ongoing) => {
                ongoing.has_batches = true;
                true
            }
            None => {
                self.committed.insert(header.producer_id);
                false
            }
        }
    }

    /// A control batch comes by. True where nothing of its transaction was met.
    pub(crate) fn on_control(&mut self, header: &BatchHeader, control: Control) -> bool {
        self.enter(header);
        match control {
            Control::Empty => true,
            Control::Other => false,
            Control::Marker(MarkerKind::Commit) => !self.committed.remove(&header.producer_id),
            Control::Marker(MarkerKind::Abort) => {
                let ended = self.aborted.remove(&header.producer_id);
                let Some(ended) = ended.filter(|ended| ended.has_batches) else {
                    return true;
                };
                self.kept.push(ended.entry);
                false
            }
        }
    }

    /// The entries of the new segment's index so far.
    pub(crate) fn take_kept(&mut self) -> Vec<AbortedTransaction> {
        std::mem::take(&mut self.kept)
    }

    fn enter(&mut self, header: &BatchHeader) {
        while let Some(next) = self.ahead.front()
            && next.first_offset <= header.last_offset()
        {
            if let Some(entry) = self.ahead.pop_front() {
                let ongoing = Ongoing {
                    entry,
                    has_batches: false,
                };
                self.aborted.entry(entry.producer_id).or_insert(ongoing);
            }
        }
    }
}
