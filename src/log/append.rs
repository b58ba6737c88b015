//! Appending one batch: validate, wait for room, fix its order.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::admission::Admitted;
use super::cache::TAIL_ENTRY_BYTES;
use super::checked_batch::CheckedBatch;
use super::config::{AppendContext, AppendOrigin, Appended};
use super::error::AppendError;
use super::format::producer_state::{BatchMetadata, ProducerCheck};
use super::journal::record::{RecordHeader, RecordKind};
use super::journal::{Done, Entry};
use super::partition_log::Log;
use super::segment::floor_to_block;
use super::tail::TailEntry;
use crate::io::{self, TaskClass};
use crate::metrics::touched;
use crate::wire::record_batch::{BatchHeader, stamp_base_offset, stamp_leader_epoch};

/// A batch smaller than this part of its buffer is copied out of it.
const COPY_OUT_DIVISOR: usize = 4;
/// Between two looks for expired producers (`producer.id.expiration.check.interval.ms`).
const EXPIRY_INTERVAL: Duration = Duration::from_secs(600);

impl Log {
    /// Validates one batch, waits until there is room for it, assigns its offsets and stamps them.
    /// Answers once it is appended; durability is [`Self::wait_durable`]'s.
    ///
    /// # Errors
    /// See [`AppendError`]; in every case nothing of the batch is in the log.
    pub async fn append(
        self: &Rc<Self>,
        batch: BytesMut,
        context: AppendContext,
    ) -> Result<Appended, AppendError> {
        let turn = self.order.take_until(context.deadline).await;
        let _turn = turn.ok_or(AppendError::TimedOut)?;
        self.check_writable()?;
        if context.leader_epoch < self.latest_epoch() && context.origin != AppendOrigin::Replica {
            return Err(AppendError::FencedLeaderEpoch);
        }
        let checked = self.check_batch(batch, &context).await?;
        self.expire_producers();
        let check = self
            .producers
            .borrow()
            .check(&checked.header, context.origin);
        match check.map_err(AppendError::from)? {
            ProducerCheck::Append => {}
            ProducerCheck::Duplicate(original) => return Ok(self.answer_duplicate(&original)),
        }
        let admitted = self.admit(&checked, &context).await;
        if let Err(AppendError::Log(error)) = &admitted {
            self.shard.health.judge(error);
        }
        let admitted = admitted?;
        // From here on nothing waits: the order of the log is the order of these lines.
        self.check_writable()?;
        Ok(self.commit(checked, admitted, &context))
    }

    /// Forgets producers that have not written for `producer.id.expiration.ms`, now and then.
    fn expire_producers(&self) {
        let now = io::now();
        if now >= self.next_expiry.get() {
            self.next_expiry.set(now.after(EXPIRY_INTERVAL));
            let expiration_ms = self.config().producer_id_expiration_ms;
            self.producers
                .borrow_mut()
                .expire(io::wall_clock(), expiration_ms);
        }
    }

    fn answer_duplicate(&self, original: &BatchMetadata) -> Appended {
        self.last_duplicate_end
            .set(Some(original.last_offset.plus(1)));
        Appended {
            base_offset: original.first_offset(),
            last_offset: original.last_offset,
            // Kafka names the original's largest timestamp, whoever set it.
            log_append_time: original.timestamp,
            log_start_offset: self.log_start_offset(),
            duplicate: true,
        }
    }

    fn commit(
        self: &Rc<Self>,
        checked: CheckedBatch,
        admitted: Admitted,
        context: &AppendContext,
    ) -> Appended {
        let CheckedBatch {
            mut batch,
            mut header,
            log_append_time,
            is_copied,
        } = checked;
        let part = if is_copied {
            0
        } else {
            context.buffer_bytes.part
        };
        if context.origin != AppendOrigin::Replica {
            header.base_offset = self.log_end_offset();
            header.leader_epoch = context.leader_epoch;
            stamp_base_offset(&mut batch, header.base_offset);
            stamp_leader_epoch(&mut batch, header.leader_epoch);
        }
        assert!(
            header.base_offset >= self.log_end_offset(),
            "offsets only grow"
        );
        self.queue_prefix();
        let (bytes, charge) = keep(batch, part);
        let charge = charge + context.buffer_bytes.abandoned + TAIL_ENTRY_BYTES;
        self.enter(&header, bytes, charge, admitted);
        Appended {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            log_append_time,
            log_start_offset: self.log_start_offset(),
            duplicate: false,
        }
    }

    /// Puts the bytes of a partial block, which only the segment holds, into the journal before
    /// the block is completed.
    fn queue_prefix(self: &Rc<Self>) {
        if !self.needs_prefix.replace(false) {
            return;
        }
        let segment = self.active_segment();
        let (from, to) = (floor_to_block(segment.size.get()), segment.size.get());
        if from == to || from != segment.issued.get() {
            return;
        }
        let mut buffer = self.shard.take_buffer(crate::base::limits::BLOCK_BYTES);
        self.tail
            .borrow()
            .copy_range(&segment, from, to, &mut buffer);
        touched::note_copied(buffer.len());
        let bytes = Bytes::copy_from_slice(&buffer);
        self.shard.give_buffer(buffer);
        self.queue_raw(&segment, from, bytes, Done::Nothing);
    }

    /// Moves every in-memory position past the batch and queues it for the journal.
    fn enter(
        self: &Rc<Self>,
        header: &BatchHeader,
        bytes: Bytes,
        charge: usize,
        admitted: Admitted,
    ) {
        let segment = self.active_segment();
        let position = segment.size.get();
        let length = bytes.len() as u64;
        let end_offset = header.next_offset();
        if let Some(index) = segment.index.borrow_mut().as_mut() {
            index.append(header, position, self.config().index_interval_bytes);
            index.charge_to(self.shard.cache.indexes());
        }
        if segment.first_timestamp.get().is_none() {
            segment.first_timestamp.set(Some(header.max_timestamp));
        }
        self.epochs
            .borrow_mut()
            .assign(header.leader_epoch, header.base_offset);
        super::producers::apply(&mut self.producers.borrow_mut(), header, &bytes);
        let place = (segment.base_offset.0, position + length);
        let ticket = self.marks.borrow_mut().push(end_offset, place);
        let end_before = self.log_end_offset();
        segment.size.set(position + length);
        self.ends.log_end.set(end_offset);
        let Some(log_id) = self.log_id() else {
            unreachable!("admission gave the log its id")
        };
        let entry = Entry {
            header: RecordHeader {
                is_batches: true,
                length: u32::try_from(length).unwrap_or(u32::MAX),
                inline_length: u32::try_from(length).unwrap_or(u32::MAX),
                end_before,
                end_after: end_offset,
                ..RecordHeader::new(RecordKind::Data, log_id, segment.base_offset, position)
            },
            inline: bytes.clone(),
            done: Done::Ticket(ticket),
            reserved: admitted.ring_bytes,
        };
        self.tail.borrow_mut().push(TailEntry {
            segment: Rc::clone(&segment),
            position,
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            bytes,
            charge,
        });
        self.shard.cache.add(self, charge);
        self.shard.journal.enqueue(self, entry);
        if let Some(late) = self.late_truncate.take() {
            self.shard.journal.enqueue(self, late);
        }
        self.bytes_since_snapshot
            .set(self.bytes_since_snapshot.get() + length);
        self.reserve_ahead();
        self.prepare_next_if_near(header.max_timestamp);
        self.snapshot_if_due();
    }

    /// Reserves the segment's next blocks before they are needed.
    fn reserve_ahead(self: &Rc<Self>) {
        let segment = self.active_segment();
        let at_end = segment.reserved.get() >= self.config().segment_bytes;
        let step_max = self.shard.reserve_step_max();
        let is_enough = at_end || !segment.wants_reservation(step_max);
        if is_enough || self.is_reserving_ahead.replace(true) {
            return;
        }
        let log = Rc::clone(self);
        io::spawn(TaskClass::Background, async move {
            let segment_bytes = log.config().segment_bytes;
            // No room now is no failure: the append that needs it asks again and says so.
            let _ = segment
                .reserve(
                    segment.size.get(),
                    segment_bytes,
                    step_max,
                    &log.shard.flushes,
                )
                .await;
            log.is_reserving_ahead.set(false);
        });
    }
}

/// What the tail keeps of a batch and what is charged for it: the whole buffer, or a copy where the
/// batch is a small part of it.
fn keep(batch: BytesMut, buffer_bytes: usize) -> (Bytes, usize) {
    let length = batch.len();
    if length.saturating_mul(COPY_OUT_DIVISOR) < buffer_bytes {
        touched::note_copied(length);
        (Bytes::copy_from_slice(&batch), length)
    } else {
        (batch.freeze(), buffer_bytes.max(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_below_a_quarter_of_its_buffer_is_copied_out() {
        let (_, charge) = keep(BytesMut::from(&[0; 25][..]), 100);
        assert_eq!(charge, 100);
        let (_, charge) = keep(BytesMut::from(&[0; 24][..]), 100);
        assert_eq!(charge, 24);
    }
}
