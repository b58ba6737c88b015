//! The journal's loop: one cycle is written while the next gathers; cycles become durable in order.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::plan::{ChainIdentity, CyclePlan, DirectRun, PlanLimits};
use super::queue::Entry;
use super::record::RecordKind;
use super::ring::RingFile;
use super::sizes::{CYCLES_IN_FLIGHT_MAX, RingSizes};
use super::state::{
    InFlight, LiveFile, State, WriteMode, complete, extent_claim, is_note, take_in_turn,
};
use super::{Claim, Result};
use crate::base::limits::{BLOCK_BYTES, DIRECT_WRITES_MAX, KIB, MIB};
use crate::base::time::MonotonicNs;
use crate::io::{self, AlignedBuffer, Durability, FlushGroup, TaskClass};
use crate::log::health::Health;
use crate::log::journal::cycle::CycleHeader;
use crate::log::partition_log::Log;
use crate::log::seeded::{SeededBug, is_seeded};
use crate::log::wait::Waiters;
use crate::metrics::{Counter, ShardMetrics};

/// A second cycle starts beside the first once this much has gathered: below it a disk is busy
/// with one write.
const OVERLAP_BYTES: usize = 512 * KIB;
/// How long a shard is idle before its last cycle gets one that vouches for it.
const CLOSING_DELAY: Duration = Duration::from_millis(10);
/// Cycle buffers kept for the next cycles, and the largest that is kept.
const BUFFERS_KEPT_MAX: usize = CYCLES_IN_FLIGHT_MAX;
const BUFFER_BYTES_KEPT_MAX: usize = MIB;

/// What a journal needs.
pub(crate) struct JournalOptions {
    pub(crate) directory: PathBuf,
    pub(super) identity: ChainIdentity,
    pub(crate) sizes: RingSizes,
    pub(crate) health: Rc<Health>,
    pub(crate) flushes: Rc<FlushGroup>,
    pub(crate) metrics: Rc<ShardMetrics>,
}

impl JournalOptions {
    /// A journal of `shard` in `directory`.
    pub(crate) fn new(
        options: &crate::log::ShardLogsOptions,
        health: Rc<Health>,
        flushes: FlushGroup,
    ) -> Self {
        let (incarnation, shard) = (options.incarnation, options.shard);
        Self {
            directory: options.directory.clone(),
            identity: ChainIdentity { incarnation, shard },
            sizes: RingSizes::for_ring(options.journal_bytes)
                .within_buffers(options.write_buffer_bytes()),
            health,
            flushes: Rc::new(flushes),
            metrics: Rc::clone(&options.metrics),
        }
    }
}

/// One shard's journal.
pub(crate) struct Journal {
    pub(crate) options: JournalOptions,
    pub(super) state: RefCell<State>,
    /// Counts what may let the loop go on.
    kicks: Cell<u64>,
    work: Rc<Waiters>,
    progress: Rc<Waiters>,
    /// Woken when ring room may have come; admission waits there.
    pub(crate) room: Rc<Waiters>,
    directs_in_flight: Cell<usize>,
    direct_bytes_in_flight: Cell<usize>,
    is_closed: Cell<bool>,
    cycles: Cell<u64>,
}

impl Journal {
    /// Opens or creates the ring and starts the loop. Recovery has retired what was found there.
    pub(crate) async fn open(options: JournalOptions) -> Result<Rc<Self>> {
        let files = super::ring::open_ring(&options).await?;
        let health = Rc::clone(&options.health);
        let journal = Rc::new(Self {
            state: RefCell::new(State::new(files)),
            kicks: Cell::new(0),
            work: health.waiters(),
            progress: health.waiters(),
            room: health.waiters(),
            directs_in_flight: Cell::new(0),
            direct_bytes_in_flight: Cell::new(0),
            is_closed: Cell::new(false),
            cycles: Cell::new(0),
            options,
        });
        io::spawn(TaskClass::Produce, Rc::clone(&journal).run());
        io::spawn(TaskClass::Background, Rc::clone(&journal).release_loop());
        io::spawn(TaskClass::Background, Rc::clone(&journal).witness_loop());
        Ok(journal)
    }

    /// Sizes in force.
    pub(crate) fn sizes(&self) -> &RingSizes {
        &self.options.sizes
    }

    /// A new file joins the ring.
    pub(super) fn add_file(&self, file: RingFile) {
        let mut state = self.state.borrow_mut();
        let number = state.files.len();
        state.files.push(LiveFile::new(file));
        state.order.add(number);
        drop(state);
        self.kick();
        self.room.wake_all();
    }

    /// Journal cycles written so far.
    pub(crate) fn cycles(&self) -> u64 {
        self.cycles.get()
    }

    /// Reserves ring bytes, if there are that many.
    pub(crate) fn try_reserve(&self, bytes: u64) -> bool {
        let mut state = self.state.borrow_mut();
        if state.order.room(&self.options.sizes, state.reserved) < bytes {
            return false;
        }
        state.reserved += bytes;
        true
    }

    /// Queues a record behind the log's others.
    pub(crate) fn enqueue(&self, log: &Rc<Log>, entry: Entry) {
        let mut state = self.state.borrow_mut();
        state.queued_bytes += entry.inline.len();
        let queue = log.journal_queue();
        queue.push(entry);
        if !queue.is_listed.replace(true) {
            state.ready.push_back(Rc::clone(log));
        }
        drop(state);
        self.kick();
    }

    /// Lets the loop look again.
    pub(super) fn kick(&self) {
        self.kicks.set(self.kicks.get() + 1);
        self.work.wake_all();
    }

    /// Waits until a cycle that is not built yet is durable; one is written even if empty.
    pub(crate) async fn confirm(&self) -> Result<()> {
        let target = {
            let mut state = self.state.borrow_mut();
            state.is_forced = true;
            state.next_sequence
        };
        self.kick();
        let health = &self.options.health;
        health
            .race(&self.progress, || {
                (self.state.borrow().flushed_sequence >= target).then_some(())
            })
            .await
    }

    /// Stops the loops; nothing may be queued any more.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        self.kick();
        self.room.wake_all();
        self.progress.wake_all();
    }

    /// Waits until `ready` says so; it is asked after every cycle and at the end.
    pub(super) async fn wait_for_progress(&self, ready: impl FnMut() -> Option<()>) {
        self.progress.wait_for(ready).await;
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_closed.get() || self.options.health.is_offline()
    }

    async fn run(self: Rc<Self>) {
        while !self.is_stopped() {
            let seen = self.kicks.get();
            if self.has_work() {
                self.gather().await;
                // What other tasks append in this turn joins the cycle.
                io::yield_now().await;
                if self.start_cycle() {
                    continue;
                }
            }
            let moved = || (self.kicks.get() != seen || self.is_stopped()).then_some(());
            if self.needs_closing() {
                let deadline = io::now().after(CLOSING_DELAY);
                if self.work.wait_until(deadline, moved).await.is_none() {
                    self.queue_notes();
                }
            } else {
                self.work.wait_for(moved).await;
            }
        }
    }

    /// Waits for the next batches of the last cycle's clients, see [`super::pace`].
    async fn gather(&self) {
        let deadline = self.gathers_until();
        if let Some(deadline) = deadline {
            let is_enough = || (self.gathers_until().is_none() || self.is_stopped()).then_some(());
            self.work.wait_until(deadline, is_enough).await;
        }
    }

    fn gathers_until(&self) -> Option<MonotonicNs> {
        let state = self.state.borrow();
        if state.is_forced || !state.in_flight.is_empty() {
            return None;
        }
        state.pace.waits_until(state.queued_bytes, io::now())
    }

    fn has_work(&self) -> bool {
        let state = self.state.borrow();
        let overlap_bytes = OVERLAP_BYTES.min(self.options.sizes.cycle_bytes_max);
        let is_free = match state.in_flight.len() {
            0 => true,
            len => len < CYCLES_IN_FLIGHT_MAX && state.queued_bytes >= overlap_bytes,
        };
        is_free && (state.is_forced || !state.ready.is_empty())
    }

    /// Builds and issues one cycle from what is queued. False when nothing can be.
    fn start_cycle(self: &Rc<Self>) -> bool {
        let mut state = self.state.borrow_mut();
        let Some((file, position, room)) = self.head_with_room(&mut state) else {
            return false;
        };
        let limits = PlanLimits {
            cycle_bytes: room.min(self.options.sizes.cycle_bytes_max),
            sizes: self.options.sizes,
            direct_slots: DIRECT_WRITES_MAX - self.directs_in_flight.get(),
            direct_bytes: self.direct_bytes_left(),
        };
        let mut plan = std::mem::take(&mut state.spare_plan);
        let queued_bytes = state.queued_bytes;
        let is_full = take_in_turn(&mut state, &mut plan, &limits);
        plan.queued_bytes = queued_bytes - state.queued_bytes;
        if plan.records.is_empty() && !state.is_forced {
            if is_full && room < self.options.sizes.cycle_bytes_max {
                // The end of this file is too short for the next record.
                let moved = state.order.advance().is_some();
                drop(state);
                if moved {
                    self.room.wake_all();
                }
                return moved;
            }
            return false;
        }
        let mode = state.write_mode(&plan, file);
        state.is_forced = false;
        let mut directs = std::mem::take(&mut plan.directs);
        self.directs_in_flight
            .set(self.directs_in_flight.get() + directs.len());
        let reserved = plan.reserved;
        let (sequence, buffer) = self.encode(&mut state, &mut plan, file);
        state.spare_plan = plan.emptied();
        if let Some(cycle) = state.in_flight.back_mut() {
            cycle.is_plain = matches!(mode, WriteMode::Plain);
        }
        state.order.place(buffer.len() as u64);
        let ring_file = state.files.get(file).map(|live| live.file.clone());
        drop(state);
        if reserved > buffer.len() as u64 {
            // Small records share blocks: what they reserved beyond that is there again.
            self.room.wake_all();
        }
        directs.drain(..).for_each(|run| self.start_direct(run));
        if is_seeded(SeededBug::AckBeforeFlush) {
            self.complete_early(sequence);
        }
        let Some(ring_file) = ring_file else {
            return false;
        };
        let journal = Rc::clone(self);
        io::spawn_detached(TaskClass::Produce, async move {
            let (result, buffer) = journal
                .write_cycle(&ring_file, (sequence, position), buffer, mode)
                .await;
            journal.finish_cycle(sequence, result, buffer);
        });
        true
    }

    fn direct_bytes_left(&self) -> usize {
        let most = self.options.sizes.direct_in_flight_max;
        most.saturating_sub(self.direct_bytes_in_flight.get())
    }

    fn start_direct(self: &Rc<Self>, run: DirectRun) {
        run.log.begin_direct(run.first_ticket, run.last_ticket);
        let bytes = &self.direct_bytes_in_flight;
        bytes.set(bytes.get() + run.bytes);
        let journal = Rc::clone(self);
        io::spawn_detached(TaskClass::Produce, async move {
            let tickets = (run.first_ticket, run.last_ticket);
            run.log
                .write_direct(run.segment_base, run.end_position, tickets)
                .await;
            let (count, bytes) = (&journal.directs_in_flight, &journal.direct_bytes_in_flight);
            count.set(count.get() - 1);
            bytes.set(bytes.get() - run.bytes);
            journal.kick();
        });
    }

    async fn write_cycle(
        &self,
        file: &RingFile,
        (sequence, position): (u64, u64),
        buffer: AlignedBuffer,
        mode: WriteMode,
    ) -> (std::io::Result<()>, AlignedBuffer) {
        if !matches!(mode, WriteMode::Plain) {
            self.options.metrics.add(Counter::Flushes, 1);
        }
        let unflushed = match mode {
            WriteMode::Plain => return file.write_at(position, buffer, Durability::Written).await,
            WriteMode::Stable => return file.write_at(position, buffer, Durability::Stable).await,
            WriteMode::Flush(files) => files,
        };
        let before = || {
            let are_complete = self.state.borrow().completed_sequence + 1 >= sequence;
            are_complete.then_some(())
        };
        if self
            .options
            .health
            .race(&self.progress, before)
            .await
            .is_err()
        {
            let offline = std::io::Error::other("an earlier write has failed");
            return (Err(offline), buffer);
        }
        let (mut result, buffer) = file.write_at(position, buffer, Durability::Written).await;
        for file in unflushed {
            if result.is_ok() {
                result = file.sync_data().await;
            }
        }
        (result, buffer)
    }

    /// The head file, the position in it and the bytes left; goes on to the next file when less
    /// than a block is left.
    fn head_with_room(&self, state: &mut State) -> Option<(usize, u64, usize)> {
        let file_bytes = self.options.sizes.file_bytes;
        let (file, position) = match state.order.head() {
            Some((file, position)) if position + (BLOCK_BYTES as u64) <= file_bytes => {
                (file, position)
            }
            _ => {
                let file = state.order.advance()?;
                // The release looks whether half of the ring is in use now.
                self.room.wake_all();
                (file, 0)
            }
        };
        Some((
            file,
            position,
            usize::try_from(file_bytes - position).unwrap_or(usize::MAX),
        ))
    }

    fn encode(&self, state: &mut State, plan: &mut CyclePlan, file: usize) -> (u64, AlignedBuffer) {
        let bytes = plan.bytes();
        let mut buffer = match state.buffers.pop() {
            Some(buffer) if buffer.capacity() >= bytes => buffer,
            _ => AlignedBuffer::with_capacity(bytes),
        };
        let sequence = state.next_sequence;
        let header = CycleHeader {
            incarnation: self.options.identity.incarnation,
            sequence,
            length: 0,
            record_count: 0,
            flushed_sequence: state.flushed_sequence,
            lowest_live_sequence: state.lowest_live,
            previous_checksum: state.previous_checksum,
            shard: self.options.identity.shard,
        };
        state.previous_checksum = plan.encode(header, &mut buffer);
        state.next_sequence += 1;
        state.vouched_sequence = state.flushed_sequence;
        state.reserved -= plan.reserved;
        self.cycles.set(self.cycles.get() + 1);
        let metrics = &self.options.metrics;
        metrics.record_journal_write(buffer.len() as u64);
        let mut completions = state.spare_completions.pop().unwrap_or_default();
        completions.reserve(plan.records.len());
        let Some(live) = state.files.get_mut(file) else {
            unreachable!("the head is one of the ring's files")
        };
        if live.first_sequence == 0 {
            live.first_sequence = sequence;
        }
        for record in plan.records.drain(..) {
            let header = &record.header;
            if !is_note(header) {
                state.last_record_sequence = sequence;
            }
            let end = header.position + u64::from(header.length);
            let end = if header.kind == RecordKind::Data {
                end
            } else {
                header.position
            };
            let claim = live.claims.entry(header.log_id).or_insert_with(|| Claim {
                log: Rc::clone(&record.log),
                segment_base: header.segment_base.0,
                end_position: 0,
            });
            let end = extent_claim(header).unwrap_or(end);
            claim.extend(header.segment_base.0, end);
            if !record.log.journal_queue().is_changed.replace(true) {
                state.changed.push(Rc::clone(&record.log));
            }
            completions.push((record.log, record.completion));
        }
        state.in_flight.push_back(InFlight {
            sequence,
            queued_bytes: plan.queued_bytes,
            issued_at: io::now(),
            is_done: false,
            is_plain: false,
            completions,
        });
        (sequence, buffer)
    }

    fn finish_cycle(&self, sequence: u64, result: std::io::Result<()>, buffer: AlignedBuffer) {
        if let Err(error) = result {
            let path = self.options.directory.display();
            self.options
                .health
                .fail(format!("a journal write in {path} failed: {error}"));
            return;
        }
        let mut early = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            if state.buffers.len() < BUFFERS_KEPT_MAX && buffer.capacity() <= BUFFER_BYTES_KEPT_MAX
            {
                state.buffers.push(buffer);
            }
            let Some(first) = state.in_flight.front().map(|cycle| cycle.sequence) else {
                return;
            };
            let place = usize::try_from(sequence - first).unwrap_or(usize::MAX);
            if let Some(cycle) = state.in_flight.get_mut(place) {
                cycle.is_done = true;
                if is_seeded(SeededBug::CycleDurableOutOfOrder) {
                    early.append(&mut cycle.completions);
                }
            }
        }
        complete(&mut early, (false, io::now()));
        self.complete_finished();
        self.progress.wake_all();
        self.kick();
    }
}
