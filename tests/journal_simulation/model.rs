//! What every log must hold. The model knows each append, what became of it, and how much of each
//! log was claimed to be durable; after every crash the recovered logs are compared with it.
//!
//! The rules: a log's contents are the known appends in order, at the same offsets, byte for byte,
//! up to some end. That end lies at or past every durable end that was claimed (under
//! `write.caching`, after a power cut, past the last one that was on storage). An append that had
//! not returned may be there; one that was refused, truncated, deleted or lost may not.

use std::collections::{BTreeMap, BTreeSet};

use coreline::log::{Appended, LogConfig, LogIdentity};

use crate::changes::Change;
use crate::payload::{Found, NO_ATTEMPT, Payload, is_same, take_batch};

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has not returned: it may be in the log or not.
    InFlight,
    /// It is in the log.
    Appended,
    /// It was answered by an error: it is not in the log.
    Refused,
    /// It was lost with a tail, truncated or deleted: it never comes back.
    Gone,
}

#[derive(Clone, Debug)]
pub struct Attempt {
    pub payload: Payload,
    generation: u64,
    pub fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub attempt: u64,
    pub base: i64,
    pub last: i64,
    pub epoch: i32,
}

/// Where a log is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    Creating,
    Open,
    Deleting,
    Deleted,
    /// Reported as damaged: what it still serves must be right, no more is asked of it.
    Damaged,
}

#[derive(Clone, Debug)]
pub struct LogModel {
    pub identity: LogIdentity,
    pub config: LogConfig,
    pub state: LogState,
    pub entries: Vec<Entry>,
    pub log_start: i64,
    /// The highest durable end that was claimed.
    pub claimed: i64,
    /// What a power cut cannot take: the claim, or under `write.caching` the end after recovery.
    pub stable: i64,
    /// A change of its shape that has not returned.
    pub change: Option<Change>,
    /// Changes that took away batches.
    pub changes: u64,
    /// The last durable end that was observed.
    pub observed: i64,
    /// Appends that have not returned.
    pub appending: u32,
    /// Somebody wants the log for himself: no new appends.
    pub reserved: bool,
    /// Offsets of a compacted log whose records a cleaning may have taken.
    pub excused: BTreeSet<i64>,
    /// Where a compacted log was cut last, perhaps in a hole.
    pub cut_at: i64,
    /// Attempts that were there at the last start.
    pub found: BTreeSet<u64>,
}

impl LogModel {
    /// The end as far as is known.
    pub fn end(&self) -> i64 {
        let last = self.entries.last();
        let end = last.map_or(self.log_start, |entry| entry.last + 1);
        match self.config.compacted {
            true => end.max(self.cut_at),
            false => end,
        }
    }

    fn floor(&self, power_lost: bool) -> i64 {
        match self.state {
            LogState::Open | LogState::Creating => {}
            // Nobody asks for what is being deleted, and damage was told.
            LogState::Deleting | LogState::Deleted | LogState::Damaged => return i64::MIN,
        }
        if self.config.write_caching && power_lost {
            self.stable
        } else {
            self.claimed
        }
    }
}

/// All logs of the simulation by generation: a log that is deleted and created again is another.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub logs: BTreeMap<u64, LogModel>,
    attempts: Vec<Attempt>,
    /// The leader epoch of this life.
    pub epoch: i32,
    /// The power was cut since the last recovery that ended.
    pub power_lost: bool,
    /// A journal was damaged since then. What it alone held of a log's start is lost with it: what
    /// was deleted may be back, and nothing else.
    pub journal_damaged: bool,
    pub next_generation: u64,
}

impl Model {
    pub fn log(&self, generation: u64) -> &LogModel {
        &self.logs[&generation]
    }

    pub fn log_mut(&mut self, generation: u64) -> &mut LogModel {
        self.logs.get_mut(&generation).expect("a known generation")
    }

    pub fn add_log(&mut self, identity: LogIdentity, config: LogConfig) -> u64 {
        self.next_generation += 1;
        let log = LogModel {
            identity,
            config,
            state: LogState::Creating,
            entries: Vec::new(),
            log_start: 0,
            claimed: 0,
            stable: 0,
            change: None,
            changes: 0,
            observed: 0,
            appending: 0,
            reserved: false,
            excused: BTreeSet::new(),
            cut_at: 0,
            found: BTreeSet::new(),
        };
        self.logs.insert(self.next_generation, log);
        self.next_generation
    }

    /// No log is known to be damaged.
    pub fn is_sound(&self) -> bool {
        let mut states = self.logs.values().map(|log| log.state);
        states.all(|state| state != LogState::Damaged)
    }

    /// The batches of a log, oldest first.
    pub fn contents(&self, generation: u64) -> Vec<(Payload, Entry)> {
        let payload = |entry: &Entry| self.attempts[entry.attempt as usize].payload;
        let entries = self.log(generation).entries.iter();
        entries.map(|entry| (payload(entry), *entry)).collect()
    }

    /// What an attempt appended.
    pub fn payload(&self, attempt: u64) -> Payload {
        self.attempts[attempt as usize].payload
    }

    /// The number of the next attempt.
    pub fn next_attempt(&self) -> u64 {
        self.attempts.len() as u64
    }

    /// An append starts.
    pub fn attempt(&mut self, generation: u64, payload: Payload) {
        assert_eq!(payload.attempt, self.next_attempt());
        self.attempts.push(Attempt {
            payload,
            generation,
            fate: Fate::InFlight,
        });
        self.log_mut(generation).appending += 1;
    }

    /// An append has returned.
    pub fn appended(
        &mut self,
        generation: u64,
        attempt: u64,
        answer: Option<&Appended>,
    ) -> Result<(), String> {
        let epoch = self.epoch;
        let records = i64::from(self.attempts[attempt as usize].payload.records);
        let log = self.log_mut(generation);
        log.appending -= 1;
        let Some(answer) = answer else {
            self.attempts[attempt as usize].fate = Fate::Refused;
            return Ok(());
        };
        let (base, last) = (answer.base_offset.0, answer.last_offset.0);
        if answer.duplicate {
            return Err(format!("append {attempt} is no duplicate, {answer:?}"));
        }
        if last - base + 1 != records {
            return Err(format!(
                "append {attempt} of {records} records got {answer:?}"
            ));
        }
        let place = log.entries.partition_point(|entry| entry.base < base);
        let before = log.entries[..place].last();
        let after = log.entries.get(place);
        if before.is_some_and(|entry| entry.last >= base)
            || after.is_some_and(|entry| entry.base <= last)
        {
            return Err(format!(
                "append {attempt} got offsets that were given: {answer:?}"
            ));
        }
        let entry = Entry {
            attempt,
            base,
            last,
            epoch,
        };
        log.entries.insert(place, entry);
        self.attempts[attempt as usize].fate = Fate::Appended;
        Ok(())
    }

    pub fn attempt_mut(&mut self, attempt: u64) -> &mut Attempt {
        &mut self.attempts[attempt as usize]
    }

    /// A durable end was claimed.
    pub fn claim(&mut self, generation: u64, end: i64) {
        let log = self.log_mut(generation);
        log.claimed = log.claimed.max(end);
        if !log.config.write_caching {
            log.stable = log.claimed;
        }
    }

    /// One found batch against what is known; `next` is the offset at which it must begin.
    fn check_batch(&self, generation: u64, found: &Found<'_>, next: i64) -> Result<(), String> {
        let log = self.log(generation);
        let name = log.identity.folder();
        let at = format!(
            "{name} at offset {}: attempt {}",
            found.base_offset, found.attempt
        );
        let is_compacted = log.config.compacted;
        let missing = || self.missing(generation, next, found.base_offset);
        if found.base_offset < next || found.base_offset > next && !is_compacted {
            return Err(format!("{at}: offset {next} was expected"));
        }
        if let Some(offset) = missing() {
            return Err(format!("{at}: offset {offset} is missing"));
        }
        if self.journal_damaged && found.last_offset < log.log_start {
            let known = self.attempts.get(found.attempt as usize);
            let is_own = known.is_some_and(|attempt| {
                attempt.generation == generation && is_same(&attempt.payload, found.bytes)
            });
            return is_own
                .then_some(())
                .ok_or_else(|| format!("{at} was never there"));
        }
        let attempt = self.attempts.get(found.attempt as usize);
        let attempt = attempt.ok_or_else(|| format!("{at} was never made"))?;
        if attempt.generation != generation {
            return Err(format!("{at} belongs to another log"));
        }
        if is_compacted {
            let checked = self.check_cleaned(generation, found);
            checked.map_err(|what| format!("{at}: {what}"))?;
        } else if !is_same(&attempt.payload, found.bytes) {
            return Err(format!("{at} was changed"));
        }
        let expected = log
            .entries
            .iter()
            .find(|entry| entry.base == found.base_offset);
        match (attempt.fate, expected) {
            (Fate::InFlight, None) => Ok(()),
            (Fate::Appended, Some(entry)) if entry.attempt == found.attempt => {
                if entry.epoch == found.leader_epoch {
                    return Ok(());
                }
                Err(format!("{at} came back under epoch {}", found.leader_epoch))
            }
            (fate, entry) => Err(format!("{at} is {fate:?}, and known there is {entry:?}")),
        }
    }

    /// Checks a part of a log that was read while it is in use.
    pub fn check_read(&self, generation: u64, from: i64, bytes: &[u8]) -> Result<(), String> {
        let (mut rest, mut next) = (bytes, None);
        while !rest.is_empty() {
            let (found, after) = take_batch(rest)?;
            let is_compacted = self.log(generation).config.compacted;
            if is_compacted && found.attempt == NO_ATTEMPT {
                rest = after;
                continue;
            }
            let first = if is_compacted {
                from.min(found.base_offset)
            } else {
                found.base_offset
            };
            let expected = next.unwrap_or(first);
            let is_early = found.base_offset <= from || is_compacted;
            if next.is_none() && !(is_early && from <= found.last_offset) {
                return Err(format!("a read from {from} began at {}", found.base_offset));
            }
            self.check_batch(generation, &found, expected)?;
            next = Some(found.last_offset + 1);
            rest = after;
        }
        Ok(())
    }

    /// Compares a recovered log with the model; from then on the model is what was found.
    pub fn settle(
        &mut self,
        generation: u64,
        bytes: &[u8],
        (start, end): (i64, i64),
    ) -> Result<(), String> {
        self.settle_change(generation, start, end);
        let log = self.log(generation);
        let name = log.identity.folder();
        if start > log.log_start || start < log.log_start && !self.journal_damaged {
            return Err(format!(
                "{name} starts at {start}, known is {}",
                log.log_start
            ));
        }
        let (mut rest, mut next, mut entries) = (bytes, start, Vec::new());
        while !rest.is_empty() {
            let (found, after) = take_batch(rest)?;
            if log.config.compacted && found.attempt == NO_ATTEMPT {
                rest = after;
                continue;
            }
            if entries.is_empty() && found.base_offset <= start && start <= found.last_offset {
                // The log's start may lie within a batch.
                next = found.base_offset;
            }
            self.check_batch(generation, &found, next)?;
            entries.push(Entry {
                attempt: found.attempt,
                base: found.base_offset,
                last: found.last_offset,
                epoch: found.leader_epoch,
            });
            next = found.last_offset + 1;
            rest = after;
        }
        let is_compacted = log.config.compacted;
        let is_hole = is_compacted && next < end && self.missing(generation, next, end).is_none();
        if next != end && !is_hole {
            return Err(format!(
                "{name} serves up to {next} but says it ends at {end}"
            ));
        }
        let floor = log.floor(self.power_lost);
        if end < floor {
            return Err(format!(
                "{name} ends at {end}, but {floor} was durable (appended {}, power lost: {})",
                log.end(),
                self.power_lost
            ));
        }
        let found: BTreeSet<u64> = entries.iter().map(|entry| entry.attempt).collect();
        if is_compacted {
            let merged = self.with_cleaned(generation, entries, (bytes, (start, end)));
            entries = merged.map_err(|what| format!("{name}: {what}"))?;
        }
        let there: BTreeSet<u64> = entries.iter().map(|entry| entry.attempt).collect();
        for (attempt, known) in self.attempts.iter_mut().enumerate() {
            if known.generation == generation && known.fate != Fate::Refused {
                let found = there.contains(&(attempt as u64));
                known.fate = if found { Fate::Appended } else { Fate::Gone };
            }
        }
        let log = self.log_mut(generation);
        log.excused.retain(|offset| *offset < end);
        log.found = found;
        log.cut_at = end;
        log.entries = entries;
        log.log_start = start;
        log.claimed = end;
        log.stable = end;
        log.observed = end;
        log.appending = 0;
        log.reserved = false;
        Ok(())
    }

    /// The log is gone for good, with all that was in it.
    pub fn deleted(&mut self, generation: u64) {
        self.log_mut(generation).state = LogState::Deleted;
        for attempt in &mut self.attempts {
            if attempt.generation == generation {
                attempt.fate = Fate::Gone;
            }
        }
    }
}
