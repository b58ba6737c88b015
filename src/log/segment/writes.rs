//! Writing a segment: whole blocks in order, never two writes on one block (JOURNAL §5).

use std::rc::Rc;

use bytes::Bytes;

use super::{Segment, floor_to_block};
use crate::base::limits::BLOCK_BYTES;
use crate::io::{AlignedBuffer, Durability, File, FlushGroup};
use crate::log::error::LogError;
use crate::log::journal::Result;
use crate::log::seeded::{SeededBug, is_seeded};

impl Segment {
    /// Waits until no partial block is being written, so that the next write may be issued.
    pub(crate) async fn wait_for_partial_block(&self) -> Result<()> {
        if is_seeded(SeededBug::PartialBlockRewrittenInFlight) {
            return Ok(());
        }
        self.health
            .race(&self.waiters, || {
                (!self.is_writing_partial.get()).then_some(())
            })
            .await
    }

    /// Marks whole blocks up to `to` as being written and answers where they begin. The caller
    /// then gives them to [`Self::write_issued`].
    pub(crate) fn issue(&self, to: u64) -> u64 {
        let from = self.issued.get();
        assert!(
            to >= from && to == floor_to_block(to),
            "segment writes are whole blocks in order"
        );
        assert!(
            to <= self.size.get(),
            "nothing past the appended end is written"
        );
        self.issued.set(to);
        self.writes_in_flight.set(self.writes_in_flight.get() + 1);
        from
    }

    /// Writes what [`Self::issue`] marked. A failure takes the directory offline.
    pub(crate) async fn write_issued(
        self: &Rc<Self>,
        from: u64,
        buffer: AlignedBuffer,
        durability: Durability,
    ) -> Result<AlignedBuffer> {
        let to = from + buffer.len() as u64;
        let file = self.writer_in_use().await?;
        let (result, buffer) = file.write_at(from, buffer, durability).await;
        if let Err(error) = result {
            return Err(self.fail("writing", &error));
        }
        self.writes_in_flight.set(self.writes_in_flight.get() - 1);
        self.complete(from, to);
        self.waiters.wake_all();
        Ok(buffer)
    }

    fn complete(&self, from: u64, to: u64) {
        let mut completed = self.completed.borrow_mut();
        completed.push((from, to));
        while let Some(place) = completed
            .iter()
            .position(|(start, _)| *start == self.written.get())
        {
            let (_, end) = completed.swap_remove(place);
            self.written.set(end);
        }
        assert!(
            self.written.get() <= self.issued.get(),
            "written is never past issued"
        );
    }

    /// The writing descriptor of a segment whose bytes are on their way: others wait for them, so
    /// that a file which does not open is a write that failed.
    async fn writer_in_use(&self) -> Result<File> {
        let opened = self.writer(false).await;
        opened.inspect_err(|error| self.health.fail(error.to_string()))
    }

    /// What was written or flushed before this counts no longer.
    pub(crate) fn note_cut(&self) {
        self.cuts.set(self.cuts.get() + 1);
        self.waiters.wake_all();
    }

    /// Takes the directory offline.
    pub(crate) fn fail(&self, what: &str, error: &std::io::Error) -> LogError {
        let reason = format!("{what} {} failed: {error}", self.path().display());
        self.health.fail(reason.clone());
        LogError::Offline(reason)
    }

    /// Waits until nothing is being written.
    pub(crate) async fn wait_for_writes(&self) -> Result<()> {
        let idle = || {
            let is_idle = self.writes_in_flight.get() == 0 && !self.is_writing_partial.get();
            is_idle.then_some(())
        };
        self.health.race(&self.waiters, idle).await
    }

    /// Writes the last, partial block, padded with zeros. The caller has seen to it that all
    /// whole blocks are written and that the journal keeps these bytes.
    pub(crate) async fn write_partial_block(self: &Rc<Self>, bytes: &[u8]) -> Result<()> {
        assert!(
            bytes.len() < BLOCK_BYTES,
            "a partial block is smaller than a block"
        );
        self.wait_for_writes().await?;
        self.is_writing_partial.set(true);
        let mut buffer = AlignedBuffer::with_capacity(BLOCK_BYTES);
        buffer.extend_from_slice(bytes);
        buffer.pad_to_block();
        let file = self.writer_in_use().await?;
        let position = self.issued.get();
        let (result, _) = file.write_at(position, buffer, Durability::Written).await;
        self.is_writing_partial.set(false);
        self.waiters.wake_all();
        result.map_err(|error| self.fail("writing", &error))
    }

    /// Makes durable what is written now.
    pub(crate) async fn flush(&self) -> Result<()> {
        let (written, cuts) = (self.written.get(), self.cuts.get());
        if self.flushed.get() >= written {
            return Ok(());
        }
        let file = self.writer(false).await?;
        file.sync_data()
            .await
            .map_err(|error| self.fail("flushing", &error))?;
        if cuts == self.cuts.get() {
            self.flushed.set(self.flushed.get().max(written));
        }
        Ok(())
    }

    /// Makes a partial block of these bytes that ends at `end` durable, with all before it. The
    /// block's bytes stay in memory for whoever completes it; its batches need not.
    pub(crate) async fn flush_partial_block(&self, end: u64, block: Bytes) -> Result<()> {
        let (written, cuts) = (self.written.get(), self.cuts.get());
        let file = self.writer(false).await?;
        file.sync_data()
            .await
            .map_err(|error| self.fail("flushing", &error))?;
        if cuts == self.cuts.get() {
            self.flushed.set(self.flushed.get().max(written));
            self.partial_end.set(end);
            self.head_start.set(end);
            *self.head_block.borrow_mut() = block;
        }
        Ok(())
    }

    /// Cuts the file to the bytes appended and makes all of it durable. Nothing is in flight. The
    /// cut frees what was reserved: nobody reserves meanwhile.
    pub(crate) async fn cut_and_sync(&self, flushes: &FlushGroup) -> Result<()> {
        let free = || (!self.is_reserving.get()).then_some(());
        self.health.race(&self.waiters, free).await?;
        self.is_reserving.set(true);
        let outcome = self.cut_alone(flushes).await;
        self.is_reserving.set(false);
        self.waiters.wake_all();
        outcome
    }

    async fn cut_alone(&self, flushes: &FlushGroup) -> Result<()> {
        let size = self.size.get();
        let file = self.writer(false).await?;
        file.truncate(size)
            .await
            .map_err(|error| self.fail("cutting", &error))?;
        flushes
            .file(&file)
            .await
            .map_err(|error| self.fail("flushing", &error))?;
        self.reserved.set(floor_to_block(size));
        Ok(())
    }
}
