//! Cuts, resets and moved log starts: what clients ask for, and what the model holds the log to.
//!
//! A change is whole or not there at all, whenever the process ends: a TRUNCATE leaves the log as it
//! was or cut in front of the batch that holds the offset; a RESET leaves it as it was or empty.

use std::rc::Rc;

use coreline::base::ids::Offset;
use coreline::log::{Log, LogError};

use crate::client;
use crate::directories;
use crate::model::{Entry, Fate, LogModel, LogState, Model};
use crate::payload::Payload;
use crate::plan::Theme;
use crate::world::World;

/// A change that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Truncate(i64),
    Reset(i64),
    LogStart(i64),
}

impl LogModel {
    /// Where a truncation to `offset` leaves the end: whole batches stay.
    fn cut_at(&self, offset: i64) -> i64 {
        let offset = offset.max(self.log_start);
        let held = self.entries.iter().find(|entry| entry.last >= offset);
        held.map_or(self.end(), |entry| entry.base.min(offset))
    }

    /// Whether a truncation to `offset` may leave that end: of a compacted log the batches before
    /// it may be gone, and it ends with the last one left.
    fn may_end_at(&self, offset: i64, end: i64) -> bool {
        let cut = self.cut_at(offset);
        let is_gone = |at| at < self.log_start || self.excused.contains(&at);
        end == cut || self.config.compacted && end < cut && (end..cut).all(is_gone)
    }

    /// Whether a log that starts and ends there has gone through `change`.
    fn shows(&self, change: Change, start: i64, end: i64) -> bool {
        match change {
            Change::Truncate(offset) => self.may_end_at(offset, end),
            Change::Reset(offset) => start == offset && end == offset,
            Change::LogStart(offset) => start > self.log_start && start <= offset,
        }
    }
}

impl Model {
    /// What a change that had not returned has left, seen after a crash.
    pub fn settle_change(&mut self, generation: u64, start: i64, end: i64) {
        let log = self.log(generation);
        let Some(change) = log.change else { return };
        if log.shows(change, start, end) {
            match change {
                Change::Truncate(_) => drop(self.truncated(generation, end)),
                Change::Reset(_) => self.reset(generation, end),
                Change::LogStart(_) => self.log_mut(generation).log_start = start,
            }
        }
        self.log_mut(generation).change = None;
    }

    /// A truncation has taken effect: nothing at or past `end` comes back. Answers what went.
    pub fn truncated(&mut self, generation: u64, end: i64) -> Vec<Payload> {
        let log = self.log_mut(generation);
        log.change = None;
        log.changes += 1;
        log.log_start = log.log_start.min(end);
        for known in [&mut log.claimed, &mut log.stable, &mut log.observed] {
            *known = (*known).min(end);
        }
        log.excused.retain(|offset| *offset < end);
        log.cut_at = end;
        let compacted = log.config.compacted;
        let is_kept = |entry: &Entry| entry.base < end && (!compacted || entry.last < end);
        let kept = log.entries.partition_point(is_kept);
        let gone: Vec<u64> = log
            .entries
            .drain(kept..)
            .map(|entry| entry.attempt)
            .collect();
        gone.into_iter()
            .map(|attempt| {
                let attempt = self.attempt_mut(attempt);
                attempt.fate = Fate::Gone;
                attempt.payload
            })
            .collect()
    }

    /// A reset has taken effect: the log is empty and goes on at `offset`.
    pub fn reset(&mut self, generation: u64, offset: i64) {
        self.truncated(generation, i64::MIN);
        let log = self.log_mut(generation);
        (log.log_start, log.cut_at) = (offset, offset);
        for known in [&mut log.claimed, &mut log.stable, &mut log.observed] {
            *known = offset;
        }
    }
}

fn draw(world: &World, log: &Log) -> Change {
    let (start, end) = (log.log_start_offset().0, log.log_end_offset().0);
    let length = (end - start).max(0) as u64;
    let anywhere = || start + world.below(length + 1) as i64;
    let close_to_end = || end - world.below(length.min(12) + 1) as i64;
    match world.below(10) {
        0..3 => Change::Truncate(anywhere()),
        3..6 => Change::Truncate(close_to_end()),
        6..8 => Change::LogStart(anywhere()),
        8 => Change::Reset(anywhere()),
        _ => Change::Reset(world.below(end as u64 * 2 + 10) as i64),
    }
}

/// Changes the log, whatever is appended, read or written back meanwhile.
pub async fn change(world: &Rc<World>, generation: u64, log: &Rc<Log>) {
    if world.model.borrow().log(generation).change.is_some() {
        return;
    }
    let change = draw(world, log);
    world.model.borrow_mut().log_mut(generation).change = Some(change);
    let answer = match change {
        Change::Truncate(offset) => log.truncate_to(Offset(offset)).await,
        Change::Reset(offset) => log.reset(Offset(offset)).await.map(|()| Offset(offset)),
        Change::LogStart(offset) => log.advance_log_start(Offset(offset)).await,
    };
    match answer {
        Ok(answer) => finished(world, (generation, log), change, answer.0).await,
        Err(error) => failed(world, generation, change, &error),
    }
}

async fn finished(
    world: &Rc<World>,
    (generation, log): (u64, &Rc<Log>),
    change: Change,
    answer: i64,
) {
    let mut gone = Vec::new();
    let expected = {
        let mut model = world.model.borrow_mut();
        let known = model.log(generation);
        let (start, end) = (known.log_start, known.end());
        match change {
            Change::Truncate(offset) => {
                let cut = match known.may_end_at(offset, answer) {
                    true => answer,
                    false => known.cut_at(offset),
                };
                gone = model.truncated(generation, cut);
                (cut, (start.min(cut), cut))
            }
            Change::Reset(offset) => {
                model.reset(generation, offset);
                (offset, (offset, offset))
            }
            // What is not durable yet stays readable.
            Change::LogStart(offset) => {
                let moved = answer.clamp(start, offset.max(start));
                let known = model.log_mut(generation);
                known.log_start = moved;
                known.stable = known.stable.max(moved);
                known.change = None;
                (moved, (moved, end))
            }
        }
    };
    let found = (log.log_start_offset().0, log.log_end_offset().0);
    if log.damage().is_none() && (answer, found) != expected {
        world.accuse(format!(
            "{change:?} of log {generation} answered {answer} and left {found:?}, not {expected:?}"
        ));
    }
    if log.durable_end() > log.log_end_offset() {
        world.accuse(format!(
            "{change:?} left {} durable of {}",
            log.durable_end(),
            log.log_end_offset()
        ));
    }
    world.stats.borrow_mut().changes += 1;
    if !gone.is_empty() {
        world.stats.borrow_mut().cuts += 1;
    }
    // Of a compacted log what came before it may have gone: it would leave a gap in the sequence.
    if !gone.is_empty() && !log.config().compacted {
        send_again(world, generation, log, &gone).await;
    }
}

/// What was cut off is forgotten: the first such batch of a producer is appended like a new one.
async fn send_again(world: &Rc<World>, generation: u64, log: &Rc<Log>, gone: &[Payload]) {
    let first = gone.iter().find(|payload| payload.producer.is_some());
    let Some(first) = first.filter(|_| client::is_open(world, generation)) else {
        return;
    };
    let again = Payload {
        attempt: world.model.borrow().next_attempt(),
        ..*first
    };
    if let Err(error) = client::append_known(world, generation, log, &again).await {
        client::excuse(world, generation, &error);
    }
}

fn failed(world: &World, generation: u64, change: Change, error: &LogError) {
    let failing = directories::may_fail(world, generation) && world.disk.fault_hits() > 0;
    let gone = !client::is_open(world, generation);
    let excused = match error {
        LogError::Closed => gone,
        LogError::Offline(_) => failing,
        error if error.is_full_disk() => world.full_disk.get() || failing,
        LogError::Io { .. } => failing || gone,
        _ => false,
    };
    if !excused {
        world.accuse(format!("{change:?} of log {generation} failed: {error}"));
    }
    let mut model = world.model.borrow_mut();
    let log = model.log_mut(generation);
    if error.is_full_disk() {
        // Refused before anything was done.
        log.change = None;
    } else if log.state == LogState::Open {
        // It may have been done or not: the next start shows it.
        log.reserved = true;
    }
}

/// How many of 200 operations are changes.
pub fn share(theme: Theme) -> u64 {
    match theme {
        Theme::Truncations => 40,
        Theme::Deletions | Theme::Recovery => 8,
        _ => 3,
    }
}
