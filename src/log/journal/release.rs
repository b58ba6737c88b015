//! Freeing the oldest ring file (JOURNAL §5): what its logs still need of it goes to the segments
//! or forward in the ring, a WATERMARK per log says so, and one more durable cycle names the new
//! lowest live sequence before the file is overwritten.

use std::rc::Rc;

use super::queue::Signal;
use super::writer::Journal;
use super::{Claim, Result};
use crate::io::flush_group::Flushed;
use crate::io::{self, TaskClass};
use crate::log::limited::for_each_limited;
use crate::log::seeded::{SeededBug, is_seeded};

/// Segment writes and flushes under way for one release.
const OPERATIONS_IN_FLIGHT: usize = 4;
/// From this many dirty logs on, one syncfs takes the place of their flushes.
const FLUSHES_MAX: usize = 32;

/// What a log did about the part of a block that its segment does not hold yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// Nothing is left in the file.
    Nothing,
    /// So many bytes were queued again.
    Forward(usize),
}

impl Journal {
    /// Bytes of the ring that are in use, and its size.
    pub(crate) fn fill(&self) -> (u64, u64) {
        self.state.borrow().order.fill(&self.options.sizes)
    }

    pub(super) async fn release_loop(self: Rc<Self>) {
        let mut is_growing = false;
        while !self.is_stopped() {
            let due = || {
                let is_due = self.state.borrow().order.is_release_due();
                (is_due || self.is_stopped()).then_some(())
            };
            self.room.wait_for(due).await;
            if self.is_stopped() {
                return;
            }
            if !is_growing && self.may_grow() {
                is_growing = true;
                io::spawn(TaskClass::Background, Rc::clone(&self).grow());
            }
            is_growing &= self.may_grow();
            if let Err(error) = self.release_oldest().await {
                self.options
                    .health
                    .fail(format!("releasing a journal file failed: {error}"));
            }
            self.room.wake_all();
        }
    }

    fn may_grow(&self) -> bool {
        self.state.borrow().order.len() < self.options.sizes.files_max
    }

    /// Adds one file. No room for it is no failure: the ring stays as it is.
    async fn grow(self: Rc<Self>) {
        match super::ring::add_file(&self.options).await {
            Ok(file) => self.add_file(file),
            Err(error) => tracing::warn!(%error, "the journal does not grow"),
        }
    }

    async fn release_oldest(&self) -> Result<()> {
        let (file, claims) = {
            let state = self.state.borrow();
            let Some(file) = state.order.oldest() else {
                return Ok(());
            };
            let live = state.files.get(file);
            let claims = live.map(|live| live.claims.values().cloned().collect::<Vec<Claim>>());
            (file, claims.unwrap_or_default())
        };
        self.write_back(&claims).await?;
        self.flush(&claims).await?;
        let signal = Signal::new(&self.options.health);
        let mut copy_left = self.options.sizes.copy_bytes as usize;
        for claim in &claims {
            if claim.log.flush_if_written(claim).await? {
                continue;
            }
            if let Some(copied) = claim.log.copy_forward(claim, copy_left, &signal) {
                if let Copied::Forward(bytes) = copied {
                    copy_left -= bytes;
                }
            } else {
                claim.log.write_partial_block(claim).await?;
                claim.log.wait_until_settled().await?;
            }
            claim.log.queue_watermark(&signal);
        }
        signal.wait(&self.options.health).await?;
        {
            let mut state = self.state.borrow_mut();
            let second = state.order.second_oldest();
            let lowest = second.and_then(|second| state.files.get(second));
            let lowest = lowest.map_or(0, |live| live.first_sequence);
            // A second file without a cycle yet: the next cycle will be its first.
            state.lowest_live = if lowest == 0 {
                state.next_sequence
            } else {
                lowest
            };
        }
        self.confirm().await?;
        {
            let mut state = self.state.borrow_mut();
            state.order.release_oldest(file);
            if let Some(live) = state.files.get_mut(file) {
                live.first_sequence = 0;
                live.claims.clear();
            }
        }
        self.kick();
        Ok(())
    }

    /// Whole blocks named in the file go to their segments.
    async fn write_back(&self, claims: &[Claim]) -> Result<()> {
        for_each_limited(claims.to_vec(), OPERATIONS_IN_FLIGHT, |claim| async move {
            claim.log.write_back_claim(&claim).await
        })
        .await
    }

    /// Makes durable what was written to the segments named in the file.
    async fn flush(&self, claims: &[Claim]) -> Result<()> {
        let dirty: Vec<Claim> = claims
            .iter()
            .filter(|claim| claim.log.needs_flush(claim))
            .cloned()
            .collect();
        let is_forgotten = is_seeded(SeededBug::FileReusedBeforeDirectorySync);
        if dirty.len() > FLUSHES_MAX || is_forgotten {
            let flushed: Vec<_> = dirty
                .iter()
                .map(|claim| claim.log.flush_snapshot(claim))
                .collect();
            let flushed_together = if is_forgotten {
                Flushed::Everything
            } else {
                self.options.flushes.everything().await
            };
            if flushed_together == Flushed::Everything {
                for (claim, snapshot) in dirty.iter().zip(flushed) {
                    claim.log.flushed_by_other(&snapshot);
                }
                return Ok(());
            }
        }
        for_each_limited(dirty, OPERATIONS_IN_FLIGHT, |claim| async move {
            claim.log.flush_claim(&claim).await
        })
        .await
    }
}
