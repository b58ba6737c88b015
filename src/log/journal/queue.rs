//! What one log has queued for the journal, in its one order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

use super::record::{RecordHeader, RecordKind};
use crate::log::error::LogError;
use crate::log::health::Health;
use crate::log::wait::Waiters;

/// Who learns that an entry's cycle is durable.
#[derive(Clone)]
pub(crate) enum Done {
    /// Nobody waits.
    Nothing,
    /// The log: its append with this number.
    Ticket(u64),
    /// A task.
    Signal(Rc<Signal>),
}

/// A number of entries that one task waits for.
pub(crate) struct Signal {
    pending: Cell<usize>,
    waiters: Rc<Waiters>,
}

impl Signal {
    /// One that nothing has been added to.
    pub(crate) fn new(health: &Health) -> Rc<Self> {
        Rc::new(Self {
            pending: Cell::new(0),
            waiters: health.waiters(),
        })
    }

    /// One more entry to wait for.
    pub(crate) fn add(self: &Rc<Self>) -> Done {
        self.pending.set(self.pending.get() + 1);
        Done::Signal(Rc::clone(self))
    }

    pub(crate) fn complete_one(&self) {
        let pending = self.pending.get();
        assert!(pending > 0, "a journal entry completed twice");
        self.pending.set(pending - 1);
        if pending == 1 {
            self.waiters.wake_all();
        }
    }

    /// Waits until all are durable.
    pub(crate) async fn wait(&self, health: &Health) -> Result<(), LogError> {
        health
            .race(&self.waiters, || (self.pending.get() == 0).then_some(()))
            .await
    }
}

/// One record that waits for its cycle.
pub(crate) struct Entry {
    /// Its header; checksum and durable end are filled when the cycle is built.
    pub(crate) header: RecordHeader,
    /// Its inline bytes.
    pub(crate) inline: Bytes,
    /// Who learns of its durability.
    pub(crate) done: Done,
    /// Ring bytes that admission reserved for it.
    pub(crate) reserved: u64,
}

impl Entry {
    /// A record that nothing was reserved for: the control share is for it.
    pub(crate) fn control(header: RecordHeader, inline: Bytes, done: Done) -> Self {
        let mut entry = Self {
            header,
            inline,
            done,
            reserved: 0,
        };
        let length = u32::try_from(entry.inline.len()).unwrap_or(u32::MAX);
        entry.header.inline_length = length;
        entry.header.length = length;
        entry
    }

    /// A batch of an append.
    pub(crate) fn is_batch(&self) -> bool {
        self.header.kind == RecordKind::Data && self.header.is_batches
    }

    /// Where the bytes after it go.
    pub(crate) fn end(&self) -> (i64, u64) {
        (
            self.header.segment_base.0,
            self.header.position + u64::from(self.header.length),
        )
    }
}

/// The queue of one log.
#[derive(Default)]
pub(crate) struct JournalQueue {
    /// In the log's order.
    entries: RefCell<VecDeque<Entry>>,
    /// Their inline bytes.
    bytes: Cell<usize>,
    /// Whether the journal has the log among those with something queued.
    pub(crate) is_listed: Cell<bool>,
    /// Whether its durable end moved since a record last named it.
    pub(crate) is_changed: Cell<bool>,
}

impl JournalQueue {
    /// Lets go of what waits: see `ShardLogs::forget`.
    #[cfg(feature = "sim")]
    pub(in crate::log) fn forget(&self) {
        drop(self.entries.take());
    }

    /// Adds a record behind the others.
    pub(super) fn push(&self, entry: Entry) {
        self.bytes.set(self.bytes.get() + entry.inline.len());
        self.entries.borrow_mut().push_back(entry);
    }

    /// Takes the record whose turn it is.
    pub(super) fn pop(&self) -> Option<Entry> {
        let entry = self.entries.borrow_mut().pop_front()?;
        self.bytes.set(self.bytes.get() - entry.inline.len());
        Some(entry)
    }

    /// Inline bytes of the record whose turn it is.
    pub(super) fn front_bytes(&self) -> Option<usize> {
        self.entries
            .borrow()
            .front()
            .map(|entry| entry.inline.len())
    }

    /// Inline bytes of all records.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Bytes and number of the batches at the front that follow each other in one segment.
    pub(crate) fn leading_run(&self) -> (usize, usize) {
        let entries = self.entries.borrow();
        let (mut bytes, mut count) = (0, 0);
        let mut next = None;
        for entry in entries.iter().take_while(|entry| entry.is_batch()) {
            let place = (entry.header.segment_base.0, entry.header.position);
            if next.is_some_and(|next| next != place) {
                break;
            }
            bytes += entry.inline.len();
            count += 1;
            next = Some(entry.end());
        }
        (bytes, count)
    }
}
