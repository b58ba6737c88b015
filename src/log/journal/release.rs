//! Freeing the oldest ring file (JOURNAL §5): what its logs still need of it goes to the segments
//! or forward in the ring, a WATERMARK per log says so, and one more durable cycle names the new
//! lowest live sequence before the file is overwritten.

use std::rc::Rc;

use super::queue::Signal;
use super::record::RECORD_HEADER_BYTES;
use super::writer::Journal;
use super::{Claim, Result};
use crate::base::time::MonotonicNs;
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

/// What the next step for a log is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// None: the ring vouches for the log without the file.
    Vouched,
    /// The log is changing, or written and not flushed: that comes first.
    Settle,
    /// Its partial block goes to the segment.
    ToSegment,
    /// The ring has no room even for its WATERMARK: its files are to say all.
    Leave,
}

/// What one release may still write into the ring.
struct Share {
    copied: usize,
    all: usize,
}

/// A WATERMARK in the ring.
const WATERMARK_BYTES: usize = RECORD_HEADER_BYTES + 16;

impl Share {
    /// Queues what the ring is to say of the claim from now on, if there is room. Never waits.
    fn use_for(&mut self, claim: &Claim, signal: &Rc<Signal>) -> Step {
        if claim.log.must_settle(claim) {
            return Step::Settle;
        }
        if self.all < WATERMARK_BYTES {
            return Step::Leave;
        }
        let left = self
            .all
            .saturating_sub(WATERMARK_BYTES + RECORD_HEADER_BYTES);
        let most = self.copied.min(left);
        match claim.log.copy_forward(claim, most, signal) {
            None => return Step::ToSegment,
            Some(Copied::Nothing) => {}
            Some(Copied::Forward(bytes)) => {
                self.copied -= bytes;
                self.all -= RECORD_HEADER_BYTES + bytes;
            }
        }
        self.all -= WATERMARK_BYTES;
        claim.log.queue_watermark(signal);
        Step::Vouched
    }
}

impl Journal {
    /// Bytes of the ring that are in use, and its size.
    pub(crate) fn fill(&self) -> (u64, u64) {
        self.state.borrow().order.fill(&self.options.sizes)
    }

    /// Since when the oldest write that the disk has not answered is under way.
    pub(crate) fn waits_since(&self) -> Option<MonotonicNs> {
        let state = self.state.borrow();
        let waiting = state.in_flight.iter().find(|cycle| !cycle.is_done);
        waiting.map(|cycle| cycle.issued_at)
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
        self.vouch_elsewhere(claims, &signal).await?;
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

    /// Copies forward what logs still need of the file and queues their WATERMARKs, or brings it to
    /// their files. What goes into the ring is queued without waiting in between: one record after
    /// the other, as disk writes end, would take a block each and more than the release frees.
    async fn vouch_elsewhere(&self, mut claims: Vec<Claim>, signal: &Rc<Signal>) -> Result<()> {
        let mut share = Share {
            copied: self.options.sizes.copy_bytes as usize,
            all: self.options.sizes.release_bytes as usize,
        };
        while !claims.is_empty() {
            let mut left = Vec::new();
            for claim in claims {
                match share.use_for(&claim, signal) {
                    Step::Vouched => {}
                    step => left.push((claim, step)),
                }
            }
            let again: Vec<Claim> = left
                .iter()
                .filter(|(_, step)| *step != Step::Leave)
                .map(|(claim, _)| claim.clone())
                .collect();
            for_each_limited(left, OPERATIONS_IN_FLIGHT, |(claim, step)| async move {
                match step {
                    Step::Vouched => Ok(()),
                    Step::Settle => claim.log.flush_if_written(&claim).await.map(drop),
                    Step::ToSegment => claim.log.write_partial_block(&claim).await,
                    Step::Leave => claim.log.leave_ring(&claim).await,
                }
            })
            .await?;
            claims = again;
        }
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
