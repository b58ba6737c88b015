//! What a journal keeps in memory, and the steps on it that need no input or output.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::Claim;
use super::pace::Pace;
use super::plan::{Completion, CyclePlan, PlanLimits, PlannedRecord, Taken};
use super::record::{LogId, RecordHeader, RecordKind};
use super::ring::RingFile;
use super::room::RingOrder;
use super::writer::Journal;
use crate::base::limits::BLOCK_BYTES;
use crate::base::time::MonotonicNs;
use crate::io::{self, AlignedBuffer};
use crate::log::partition_log::Log;

/// One file of the ring with what lives in it.
pub(super) struct LiveFile {
    pub(super) file: RingFile,
    pub(super) first_sequence: u64,
    pub(super) claims: BTreeMap<LogId, Claim>,
}

pub(super) struct InFlight {
    pub(super) sequence: u64,
    /// What waited for it, and since when it is written: what [`Pace`] goes by.
    pub(super) queued_bytes: usize,
    pub(super) issued_at: MonotonicNs,
    pub(super) is_done: bool,
    /// Its write's completion is all that is promised (`write.caching`).
    pub(super) is_plain: bool,
    pub(super) completions: Completions,
}

pub(super) struct State {
    pub(super) files: Vec<LiveFile>,
    pub(super) order: RingOrder,
    pub(super) ready: VecDeque<Rc<Log>>,
    /// Bytes in the queues of the logs that are ready.
    pub(super) queued_bytes: usize,
    /// Ring bytes admitted and not yet in a cycle.
    pub(super) reserved: u64,
    pub(super) next_sequence: u64,
    pub(super) previous_checksum: u32,
    /// Writes completed, and on stable storage, up to here; they differ under `write.caching`.
    pub(super) completed_sequence: u64,
    pub(super) flushed_sequence: u64,
    /// Files with plain cycles that no flush covers, and the logs in those.
    pub(super) unflushed_files: Vec<usize>,
    pub(super) unflushed_logs: Vec<Rc<Log>>,
    pub(super) lowest_live: u64,
    /// The last cycle that holds more than notes, and the highest flushed sequence written.
    pub(super) last_record_sequence: u64,
    pub(super) vouched_sequence: u64,
    pub(super) in_flight: VecDeque<InFlight>,
    /// Logs whose durable end no record names yet.
    pub(super) changed: Vec<Rc<Log>>,
    pub(super) is_forced: bool,
    pub(super) buffers: Vec<AlignedBuffer>,
    pub(super) pace: Pace,
    /// Memory of earlier cycles, for the next ones.
    pub(super) spare_plan: CyclePlan,
    pub(super) spare_completions: Vec<Completions>,
}

/// Who learns of a cycle's end.
pub(super) type Completions = Vec<(Rc<Log>, Completion)>;

/// Lists kept for the next cycles, and the longest that is kept.
const SPARE_LISTS_MAX: usize = 4;
const SPARE_LIST_LEN_MAX: usize = 1_024;

/// How a cycle is written.
pub(super) enum WriteMode {
    /// Its completion is enough: all its records belong to write-cached logs.
    Plain,
    /// One write that is on stable storage when it completes.
    Stable,
    /// As stable, but earlier plain cycles lie unflushed in these files too.
    Flush(Vec<RingFile>),
}

impl State {
    /// Decides how the planned cycle in `file` is written.
    pub(super) fn write_mode(&mut self, plan: &CyclePlan, file: usize) -> WriteMode {
        // What changes a log's shape is on stable storage before its files change.
        let is_plain = |record: &PlannedRecord| {
            let kind = record.header.kind;
            matches!(kind, RecordKind::Data | RecordKind::Extent) && record.log.allows_plain_cycle()
        };
        let may_be_plain = !self.is_forced && !plan.records.is_empty();
        if may_be_plain && plan.records.iter().all(is_plain) {
            if !self.unflushed_files.contains(&file) {
                self.unflushed_files.push(file);
            }
            return WriteMode::Plain;
        }
        if self.unflushed_files.is_empty() {
            return WriteMode::Stable;
        }
        let mut files = std::mem::take(&mut self.unflushed_files);
        if !files.contains(&file) {
            files.push(file);
        }
        let files = files.into_iter().filter_map(|file| self.files.get(file));
        WriteMode::Flush(files.map(|live| live.file.clone()).collect())
    }
}

/// What one cycle was waited for has come.
pub(super) fn complete(finished: &mut Completions, (is_plain, issued_at): (bool, MonotonicNs)) {
    for (log, completion) in finished.drain(..) {
        log.ends.durable_issue.set((issued_at, !is_plain));
        match completion {
            Completion::Nothing => {}
            Completion::Tickets(first, last) => log.cycle_durable(first, last, !is_plain),
            Completion::Signal(signal) => signal.complete_one(),
        }
    }
}

/// A record that only repeats a durable end: no later cycle need vouch for it.
pub(super) fn is_note(header: &RecordHeader) -> bool {
    header.kind == RecordKind::Data && header.length == 0
}

/// The claim of an EXTENT ends with its inline tail; its blocks are durable by themselves.
pub(super) fn extent_claim(header: &RecordHeader) -> Option<u64> {
    (header.kind == RecordKind::Extent).then_some(header.position + u64::from(header.length))
}

/// One round over the logs that have something queued. True when the cycle is full.
pub(super) fn take_in_turn(state: &mut State, plan: &mut CyclePlan, limits: &PlanLimits) -> bool {
    for _ in 0..state.ready.len() {
        let Some(log) = state.ready.pop_front() else {
            break;
        };
        let before = log.journal_queue().bytes();
        let taken = plan.take_from(&log, limits);
        state.queued_bytes -= before - log.journal_queue().bytes();
        match taken {
            Taken::All => log.journal_queue().is_listed.set(false),
            Taken::Full => {
                state.ready.push_front(log);
                return true;
            }
            Taken::Blocked => state.ready.push_back(log),
        }
    }
    false
}

#[cfg(feature = "sim")]
impl super::Journal {
    /// Lets go of the logs that it knows and of what it holds for them.
    pub(in crate::log) fn forget(&self) {
        let files = Vec::new();
        drop(self.state.replace(State::new(files)));
    }
}

impl State {
    /// Nothing queued, nothing written.
    pub(super) fn new(files: Vec<RingFile>) -> Self {
        let order = RingOrder::new(files.len());
        Self {
            files: files.into_iter().map(LiveFile::new).collect(),
            order,
            ready: VecDeque::new(),
            queued_bytes: 0,
            reserved: 0,
            next_sequence: 1,
            previous_checksum: 0,
            completed_sequence: 0,
            flushed_sequence: 0,
            unflushed_files: Vec::new(),
            unflushed_logs: Vec::new(),
            lowest_live: 1,
            last_record_sequence: 0,
            vouched_sequence: 0,
            in_flight: VecDeque::new(),
            changed: Vec::new(),
            is_forced: false,
            buffers: Vec::new(),
            pace: Pace::default(),
            spare_plan: CyclePlan::default(),
            spare_completions: Vec::new(),
        }
    }

    /// Keeps an empty list for a later cycle.
    pub(super) fn keep_list(&mut self, list: Completions) {
        debug_assert!(list.is_empty(), "what is kept has been told");
        if self.spare_completions.len() < SPARE_LISTS_MAX && list.capacity() <= SPARE_LIST_LEN_MAX {
            self.spare_completions.push(list);
        }
    }

    /// The oldest cycle, if it is done, and the logs whose earlier plain cycles it flushed.
    pub(super) fn next_finished(&mut self) -> Option<(InFlight, Vec<Rc<Log>>)> {
        if !self.in_flight.front()?.is_done {
            return None;
        }
        let cycle = self.in_flight.pop_front()?;
        let expected = self.completed_sequence + 1;
        assert_eq!(cycle.sequence, expected, "cycles end in order");
        self.completed_sequence = cycle.sequence;
        self.pace
            .note(cycle.queued_bytes, (cycle.issued_at, io::now()));
        if cycle.is_plain {
            let logs = cycle.completions.iter().map(|(log, _)| Rc::clone(log));
            self.unflushed_logs.extend(logs);
            return Some((cycle, Vec::new()));
        }
        self.flushed_sequence = cycle.sequence;
        let flushed_logs = std::mem::take(&mut self.unflushed_logs);
        Some((cycle, flushed_logs))
    }
}

impl LiveFile {
    /// A file without live records.
    pub(super) fn new(file: RingFile) -> Self {
        Self {
            file,
            first_sequence: 0,
            claims: BTreeMap::new(),
        }
    }
}

impl Journal {
    /// Tells of every cycle at the front that is done, in order.
    pub(super) fn complete_finished(&self) {
        loop {
            let next = self.state.borrow_mut().next_finished();
            let Some((mut cycle, flushed_logs)) = next else {
                return;
            };
            complete(&mut cycle.completions, (cycle.is_plain, cycle.issued_at));
            flushed_logs.iter().for_each(|log| log.raise_stable_end());
            self.state.borrow_mut().keep_list(cycle.completions);
        }
    }

    /// Idle, with durable work for which no durable cycle vouches.
    pub(super) fn needs_closing(&self) -> bool {
        let state = self.state.borrow();
        state.in_flight.is_empty()
            && state.ready.is_empty()
            && state.last_record_sequence > state.vouched_sequence
    }

    /// Queues a note of each changed log's durable end; they make the closing cycle.
    pub(super) fn queue_notes(&self) {
        let changed = {
            let mut state = self.state.borrow_mut();
            if !state.ready.is_empty() {
                return;
            }
            state.is_forced = true;
            std::mem::take(&mut state.changed)
        };
        let notes_max = self.options.sizes.cycle_bytes_max / (2 * BLOCK_BYTES);
        for (place, log) in changed.into_iter().enumerate() {
            log.journal_queue().is_changed.set(false);
            if place < notes_max
                && let Some(note) = log.durable_note()
            {
                self.enqueue(&log, note);
            }
        }
        self.kick();
    }

    /// The seeded fault: tells of a cycle that is not written yet.
    pub(super) fn complete_early(&self, sequence: u64) {
        let mut state = self.state.borrow_mut();
        let cycle = state
            .in_flight
            .iter_mut()
            .find(|cycle| cycle.sequence == sequence);
        let early = cycle.map(|cycle| std::mem::take(&mut cycle.completions));
        drop(state);
        complete(&mut early.unwrap_or_default(), (false, io::now()));
    }
}
