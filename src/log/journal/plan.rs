//! Which queued records make the next cycle, and the cycle's bytes. No input or output.

use std::rc::Rc;

use bytes::{Bytes, BytesMut};

use super::cycle::{CYCLE_HEADER_BYTES, CycleHeader, append_prefix, checksum_of};
use super::queue::{Done, Entry, Signal};
use super::record::{RECORD_HEADER_BYTES, RecordHeader, RecordKind};
use super::sizes::RingSizes;
use crate::base::ids::{Offset, ShardId, Uuid};
use crate::base::limits::BLOCK_BYTES;
use crate::io::AlignedBuffer;
use crate::log::partition_log::Log;
use crate::metrics::touched;

/// Who learns that a planned record is durable.
#[derive(Clone)]
pub(super) enum Completion {
    Nothing,
    /// Appends of the log, first to last.
    Tickets(u64, u64),
    Signal(Rc<Signal>),
}

/// One record of the cycle.
pub(super) struct PlannedRecord {
    pub(super) log: Rc<Log>,
    pub(super) header: RecordHeader,
    pub(super) completion: Completion,
}

/// Batches that leave the queue for their segment at once.
pub(super) struct DirectRun {
    pub(super) log: Rc<Log>,
    pub(super) segment_base: Offset,
    /// Whole blocks of the segment up to here are to be written.
    pub(super) end_position: u64,
    /// Of its batches.
    pub(super) bytes: usize,
    pub(super) first_ticket: u64,
    pub(super) last_ticket: u64,
}

/// What became of a log's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// All of it is in the plan.
    All,
    /// The cycle is full.
    Full,
    /// The next batch must go direct and no slot is free.
    Blocked,
}

/// A cycle in the making.
#[derive(Default)]
pub(super) struct CyclePlan {
    pub(super) records: Vec<PlannedRecord>,
    pub(super) directs: Vec<DirectRun>,
    pieces: Vec<Bytes>,
    payload_bytes: usize,
    direct_bytes: usize,
    /// What its records were in the queues; those that go direct are there whole.
    pub(super) queued_bytes: usize,
    /// Reservations that the planned entries held.
    pub(super) reserved: u64,
}

/// What bounds a cycle.
#[derive(Clone, Copy)]
pub(super) struct PlanLimits {
    pub(super) cycle_bytes: usize,
    pub(super) sizes: RingSizes,
    pub(super) direct_slots: usize,
    /// Bytes of direct writes from which on no other begins.
    pub(super) direct_bytes: usize,
}

impl CyclePlan {
    /// An empty plan in the memory of this one.
    pub(super) fn emptied(mut self) -> Self {
        self.records.clear();
        self.directs.clear();
        self.pieces.clear();
        Self {
            payload_bytes: 0,
            direct_bytes: 0,
            queued_bytes: 0,
            reserved: 0,
            ..self
        }
    }

    /// Bytes of the cycle without padding.
    pub(super) fn bytes(&self) -> usize {
        CYCLE_HEADER_BYTES + self.records.len() * RECORD_HEADER_BYTES + self.payload_bytes
    }

    fn fits(&self, inline: usize, limits: &PlanLimits) -> bool {
        self.bytes() + RECORD_HEADER_BYTES + inline <= limits.cycle_bytes
    }

    /// Takes what fits of one log's queue, in its order.
    pub(super) fn take_from(&mut self, log: &Rc<Log>, limits: &PlanLimits) -> Taken {
        loop {
            let (run_bytes, run_count) = log.journal_queue().leading_run();
            let must_go_direct = Self::must_go_direct(log, limits);
            if must_go_direct || run_bytes >= limits.sizes.direct_bytes {
                let has_slot = self.directs.len() < limits.direct_slots;
                if has_slot && self.direct_bytes < limits.direct_bytes {
                    if !self.fits(BLOCK_BYTES, limits) {
                        return Taken::Full;
                    }
                    self.take_direct(log, run_count, limits.sizes.run_bytes_max);
                    continue;
                }
                if must_go_direct {
                    return Taken::Blocked;
                }
            }
            let Some(next_bytes) = log.journal_queue().front_bytes() else {
                return Taken::All;
            };
            if !self.fits(next_bytes, limits) {
                return Taken::Full;
            }
            let Some(entry) = log.journal_queue().pop() else {
                return Taken::All;
            };
            self.add(log, entry);
        }
    }

    /// The front batch is larger than a cycle takes, small as it may be.
    fn must_go_direct(log: &Rc<Log>, limits: &PlanLimits) -> bool {
        let bytes = log.journal_queue().front_bytes().unwrap_or_default();
        !limits.sizes.fits_a_cycle(bytes)
    }

    fn add(&mut self, log: &Rc<Log>, entry: Entry) {
        self.reserved += entry.reserved;
        self.payload_bytes += entry.inline.len();
        if !self.merge(log, &entry) {
            let mut header = entry.header;
            header.checksum = if header.is_batches {
                append_prefix(0, &entry.inline)
            } else {
                checksum_of(&entry.inline, false).unwrap_or_default()
            };
            let completion = match entry.done {
                Done::Nothing => Completion::Nothing,
                Done::Ticket(ticket) => Completion::Tickets(ticket, ticket),
                Done::Signal(signal) => Completion::Signal(signal),
            };
            self.records.push(PlannedRecord {
                log: Rc::clone(log),
                header,
                completion,
            });
        }
        if !entry.inline.is_empty() {
            self.pieces.push(entry.inline);
        }
    }

    /// Lengthens the record before by a batch that follows it.
    fn merge(&mut self, log: &Rc<Log>, entry: &Entry) -> bool {
        let Some(last) = self.records.last_mut() else {
            return false;
        };
        let header = &mut last.header;
        let place = (
            header.segment_base.0,
            header.position + u64::from(header.length),
        );
        let follows = Rc::ptr_eq(&last.log, log)
            && header.kind == RecordKind::Data
            && header.is_batches
            && entry.is_batch()
            && place == (entry.header.segment_base.0, entry.header.position);
        let (Completion::Tickets(_, last_ticket), Done::Ticket(ticket)) =
            (&mut last.completion, &entry.done)
        else {
            return false;
        };
        if !follows {
            return false;
        }
        assert_eq!(
            *last_ticket + 1,
            *ticket,
            "a log's appends are queued in order"
        );
        *last_ticket = *ticket;
        header.length += entry.header.length;
        header.inline_length += entry.header.inline_length;
        header.end_after = entry.header.end_after;
        header.checksum = append_prefix(header.checksum, &entry.inline);
        true
    }

    /// Turns the leading batches of a queue into one EXTENT: their whole blocks go to the segment,
    /// the rest stands in the record.
    fn take_direct(&mut self, log: &Rc<Log>, run_count: usize, run_bytes_max: usize) {
        let queue = log.journal_queue();
        let mut run: Vec<Entry> = Vec::with_capacity(run_count);
        let mut bytes = 0;
        for _ in 0..run_count {
            // One buffer of a bounded size takes the run; a batch larger than that goes alone.
            let next = queue.front_bytes().unwrap_or_default();
            if !run.is_empty() && bytes + next > run_bytes_max {
                break;
            }
            bytes += next;
            run.extend(queue.pop());
        }
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return;
        };
        let (Done::Ticket(first_ticket), Done::Ticket(last_ticket)) = (&first.done, &last.done)
        else {
            unreachable!("every batch of an append has a ticket");
        };
        let (_, end) = last.end();
        let end_position = end - end % BLOCK_BYTES as u64;
        let tail_bytes = usize::try_from(end - end_position.max(first.header.position));
        let tail = tail_of(&run, tail_bytes.unwrap_or_default());
        let mut header = first.header;
        header.kind = RecordKind::Extent;
        header.length = run.iter().map(|entry| entry.header.length).sum();
        header.inline_length = u32::try_from(tail.len()).unwrap_or_default();
        header.end_after = last.header.end_after;
        header.checksum = run
            .iter()
            .fold(0, |sum, entry| append_prefix(sum, &entry.inline));
        self.reserved += run.iter().map(|entry| entry.reserved).sum::<u64>();
        self.payload_bytes += tail.len();
        self.direct_bytes += bytes;
        let completion = Completion::Tickets(*first_ticket, *last_ticket);
        self.records.push(PlannedRecord {
            log: Rc::clone(log),
            header,
            completion,
        });
        self.directs.push(DirectRun {
            log: Rc::clone(log),
            segment_base: header.segment_base,
            end_position,
            bytes,
            first_ticket: *first_ticket,
            last_ticket: *last_ticket,
        });
        if !tail.is_empty() {
            self.pieces.push(tail);
        }
    }

    /// The cycle's bytes, padded to whole blocks, and its checksum. The table is completed with
    /// each log's stable end.
    pub(super) fn encode(&mut self, mut header: CycleHeader, buffer: &mut AlignedBuffer) -> u32 {
        buffer.clear();
        header.length = u32::try_from(self.bytes()).unwrap_or(u32::MAX);
        header.record_count = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        buffer.extend_from_slice(&[0; CYCLE_HEADER_BYTES]);
        for record in &mut self.records {
            record.header.durable_end = record.log.stable_end();
            buffer.extend_from_slice(&record.header.encode());
        }
        let table = buffer.get(CYCLE_HEADER_BYTES..).unwrap_or_default();
        let (head, checksum) = header.encode(table);
        if let Some(place) = buffer.first_chunk_mut::<CYCLE_HEADER_BYTES>() {
            *place = head;
        }
        for piece in self.pieces.drain(..) {
            touched::note_copied(piece.len());
            buffer.extend_from_slice(&piece);
        }
        buffer.pad_to_block();
        checksum
    }
}

/// The last `bytes` of a run of batches.
fn tail_of(run: &[Entry], bytes: usize) -> Bytes {
    let last = run
        .last()
        .map(|entry| entry.inline.clone())
        .unwrap_or_default();
    if bytes <= last.len() {
        return last.slice(last.len() - bytes..);
    }
    let mut pieces = Vec::new();
    let mut missing = bytes;
    for entry in run.iter().rev() {
        let taken = entry.inline.len().min(missing);
        pieces.push(entry.inline.slice(entry.inline.len() - taken..));
        missing -= taken;
        if missing == 0 {
            break;
        }
    }
    touched::note_copied(bytes);
    let mut tail = BytesMut::with_capacity(bytes);
    for piece in pieces.iter().rev() {
        tail.extend_from_slice(piece);
    }
    tail.freeze()
}

/// What stays the same from cycle to cycle.
#[derive(Clone, Copy)]
pub(super) struct ChainIdentity {
    pub(super) incarnation: Uuid,
    pub(super) shard: ShardId,
}
