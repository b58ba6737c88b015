//! What takes the CPU of a pass, a chunk at a time. Pure; runs off the shard.

use bytes::{Bytes, BytesMut};

use super::chunks::{batches, is_in_order};
use super::filter::{Fate, Rules, control_of, open_batch};
use super::key_map::KeyMap;
use super::pass::LeftOfChunk;
use super::transactions::CleanedTransactions;
use crate::base::ids::Offset;

/// What a pass carries from chunk to chunk.
pub(super) struct Work {
    pub(super) map: KeyMap,
    pub(super) transactions: CleanedTransactions,
    pub(super) rules: Rules,
    /// Decoded records of one batch.
    pub(super) scratch: Vec<u8>,
}

/// Memory of a batch's records that is kept for the next one.
const SCRATCH_BYTES_KEPT_MAX: usize = 4 * 1024 * 1024;

/// How far the keys of a chunk went into the map.
pub(super) enum Mapped {
    All,
    /// The map has no room for the next key.
    Full,
}

impl Work {
    /// Puts the keys of a chunk into the map, from `first_dirty` on.
    ///
    /// # Errors
    /// What is wrong with a batch.
    pub(super) fn map_chunk(
        &mut self,
        chunk: &Bytes,
        first_dirty: Offset,
    ) -> Result<Mapped, String> {
        for (header, bytes) in batches(chunk) {
            if header.attributes.is_control() {
                let control = control_of(&header, bytes);
                self.transactions.on_control(&header, control);
            } else if !self.transactions.on_batch(&header) {
                let limits = self.rules.limits;
                let records = open_batch(&header, bytes, limits, &mut self.scratch)?;
                for record in records {
                    let record = record.map_err(|error| error.to_string())?;
                    let offset = header.base_offset.plus(record.offset_delta.into());
                    let Some(key) = record.key.filter(|_| offset >= first_dirty) else {
                        continue;
                    };
                    if !self.map.put(key, offset) {
                        return Ok(Mapped::Full);
                    }
                }
            }
            if header.last_offset() >= first_dirty {
                self.map.cover(header.last_offset());
            }
        }
        self.trim();
        Ok(Mapped::All)
    }

    /// What stays of a chunk whose batches begin at or past `next`; the last one of its new segment
    /// or not.
    ///
    /// # Errors
    /// What is wrong with a batch.
    pub(super) fn filter_chunk(
        &mut self,
        (chunk, is_last): (&Bytes, bool),
        mut next: Offset,
    ) -> Result<LeftOfChunk, String> {
        let last = batches(chunk).last().filter(|_| is_last);
        self.rules.segment_end = last.map(|(header, _)| header.next_offset());
        let mut out = BytesMut::new();
        let (mut records_read, mut records_kept) = (0, 0);
        for (header, bytes) in batches(chunk) {
            if !is_in_order(&header, next) {
                return Err(format!(
                    "a batch of offsets {} to {} where {next} comes next",
                    header.base_offset,
                    header.last_offset()
                ));
            }
            next = header.next_offset();
            let transactions = &mut self.transactions;
            let batch = (&header, bytes);
            let filtered = self
                .rules
                .filter(batch, &self.map, transactions, &mut self.scratch)?;
            records_read += filtered.records_read;
            records_kept += filtered.records_kept;
            match filtered.fate {
                Fate::Kept => out.extend_from_slice(bytes),
                Fate::Rewritten(batch) => out.extend_from_slice(&batch),
                Fate::Gone => {}
            }
        }
        self.trim();
        Ok(LeftOfChunk {
            bytes: out.freeze(),
            next,
            records_read,
            records_kept,
        })
    }

    fn trim(&mut self) {
        if self.scratch.capacity() > SCRATCH_BYTES_KEPT_MAX {
            self.scratch = Vec::new();
        }
    }
}
