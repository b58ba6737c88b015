//! Logs that are compacted: what a cleaning may take away and what it may not.
//!
//! A record may go once a later one of its key was durable, or where it is a tombstone, when a
//! cleaning began; every other record that was acknowledged stays, at its offset, with its bytes. Of
//! a key whose last record is gone no older one may be there: a value never comes back. The last
//! batch of every producer stays, without records perhaps. Offsets that stay alone are as good as
//! gone.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use coreline::base::random::Random;
use coreline::io::{TaskClass, spawn};
use coreline::log::{CleanOptions, CleanOutcome, CleanerPace, Log, LogConfig, LogError};
use coreline::wire::record::RecordIter;
use coreline::wire::record_batch::BatchHeader;

use crate::client;
use crate::directories;
use crate::model::{Entry, LogModel, Model};
use crate::payload::{Found, HEADER_BYTES, NO_ATTEMPT, Payload, is_same, put_varint};
use crate::world::World;

/// Batches of compacted logs have times that name their attempts: their records may go, the time
/// of the batch stays. Some hours before the simulated clock's beginning: no producer is forgotten
/// for its age.
const TIMES: std::ops::Range<i64> = CLOCK_START - 36_000_000..CLOCK_START - 3_600_000;
/// `SimDiskOptions::wall_clock_start`.
const CLOCK_START: i64 = 1_800_000_000_000;
/// Few, so that most records are superseded.
const KEYS: u64 = 24;
const VALUE_BYTES_MAX: u64 = 900;

pub fn is_keyed(timestamp: i64) -> bool {
    TIMES.contains(&timestamp)
}

/// The attempt that a batch of this time is of.
pub fn attempt_at(timestamp: i64) -> u64 {
    (timestamp - TIMES.start) as u64
}

/// The time of an attempt's batch.
pub fn time_of(attempt: u64) -> i64 {
    TIMES.start + attempt as i64
}

/// The settings of a log that is compacted.
pub fn config(world: &World, others: LogConfig) -> LogConfig {
    let retention = [0, 50, u64::MAX];
    LogConfig {
        compacted: true,
        deletes: false,
        retention_ms: None,
        segment_bytes: 4_096 << world.below(4),
        min_cleanable_millionths: 0,
        delete_retention_ms: retention[world.below(3) as usize],
        file_delete_delay_ms: 1 + world.below(300),
        ..others
    }
}

/// Makes a payload one of a compacted log.
pub fn keyed(world: &World, payload: Payload) -> Payload {
    Payload {
        value_bytes: world.below(VALUE_BYTES_MAX) as usize,
        timestamp: time_of(payload.attempt),
        ..payload
    }
}

/// Key and value of a record of an attempt; no value is a tombstone.
fn record_of(payload: &Payload, place: i32) -> (u64, Option<Vec<u8>>) {
    let mut random = Random::new(payload.attempt * 8 + place as u64);
    let key = random.below(KEYS);
    let bytes = if place == 0 { payload.value_bytes } else { 0 };
    let value = (!random.chance(1, 4)).then(|| {
        let mut value = payload.attempt.to_be_bytes().to_vec();
        value.resize(bytes.max(8), payload.attempt as u8);
        value
    });
    (key, value)
}

pub fn put_record(out: &mut Vec<u8>, payload: &Payload, place: i32) {
    let (key, value) = record_of(payload, place);
    let mut body = vec![0, 0];
    put_varint(&mut body, place.into());
    put_varint(&mut body, 8);
    body.extend_from_slice(&key.to_be_bytes());
    match value {
        Some(value) => {
            put_varint(&mut body, value.len() as i64);
            body.extend_from_slice(&value);
        }
        None => put_varint(&mut body, -1),
    }
    put_varint(&mut body, 0);
    put_varint(out, body.len() as i64);
    out.extend_from_slice(&body);
}

/// What is known of one record.
struct Known {
    offset: i64,
    key: u64,
    is_tombstone: bool,
}

/// The offsets of the records that a batch holds, each of which must be the attempt's.
pub fn offsets_in(payload: &Payload, found: &Found<'_>) -> Result<Vec<i64>, String> {
    let header = BatchHeader::parse(found.bytes).map_err(|error| error.to_string())?;
    let records = RecordIter::new(&found.bytes[HEADER_BYTES..], header.record_count);
    let mut offsets = Vec::new();
    for record in records {
        let record = record.map_err(|error| error.to_string())?;
        let (key, value) = record_of(payload, record.offset_delta);
        let same = record.key == Some(&key.to_be_bytes()[..]) && record.value == value.as_deref();
        if !same || !(0..payload.records).contains(&record.offset_delta) {
            return Err(format!("record {} was changed", record.offset_delta));
        }
        offsets.push(found.base_offset + i64::from(record.offset_delta));
    }
    Ok(offsets)
}

/// Whether a batch says nothing but its offsets: where a segment ends whose last records went.
pub fn is_bare(batch: &[u8]) -> bool {
    let Ok(header) = BatchHeader::parse(batch) else {
        return false;
    };
    batch.len() == HEADER_BYTES
        && (header.record_count, header.max_timestamp.0) == (0, -1)
        && (header.producer_id.0, header.base_sequence.0) == (-1, -1)
}

/// What a cleaning leaves of a batch's header.
fn has_same_header(payload: &Payload, found: &Found<'_>) -> bool {
    let Ok(header) = BatchHeader::parse(found.bytes) else {
        return false;
    };
    let producer = payload.producer;
    header.producer_id.0 == producer.map_or(-1, |producer| producer.id)
        && header.base_sequence.0 == producer.map_or(-1, |producer| producer.base_sequence)
        && header.last_offset_delta == payload.records - 1
        && header.max_timestamp.0 == payload.timestamp
}

impl LogModel {
    fn may_lose_tombstones(&self) -> bool {
        self.config.delete_retention_ms < u64::MAX
    }
}

impl Model {
    /// The records of these batches, oldest first.
    fn known(&self, entries: &[Entry]) -> Vec<Known> {
        let mut known = Vec::new();
        for entry in entries {
            let payload = self.payload(entry.attempt);
            for place in 0..payload.records {
                let (key, value) = record_of(&payload, place);
                known.push(Known {
                    offset: entry.base + i64::from(place),
                    key,
                    is_tombstone: value.is_none(),
                });
            }
        }
        known
    }

    /// A cleaning begins: it may take what is superseded below `end`.
    pub fn cleaning(&mut self, generation: u64, end: i64) {
        let log = self.log(generation);
        let may_lose_tombstones = log.may_lose_tombstones();
        let mut known = self.known(&log.entries);
        known.retain(|record| record.offset < end);
        let last: BTreeMap<u64, i64> = known
            .iter()
            .map(|record| (record.key, record.offset))
            .collect();
        let may_go = known.iter().filter(|record| {
            record.offset < last[&record.key] || record.is_tombstone && may_lose_tombstones
        });
        let may_go: Vec<i64> = may_go.map(|record| record.offset).collect();
        self.log_mut(generation).excused.extend(may_go);
    }

    /// The first record from `from` up to `to` that must be there and is not, where nothing is.
    pub fn missing(&self, generation: u64, from: i64, to: i64) -> Option<i64> {
        let log = self.log(generation);
        let from = from.max(log.log_start);
        let held = |entry: &&Entry| entry.last >= from && entry.base < to;
        let mut offsets = log.entries.iter().filter(held);
        offsets.find_map(|entry| {
            let mut held = entry.base.max(from)..(entry.last + 1).min(to);
            held.find(|offset| !log.excused.contains(offset))
        })
    }

    /// One found batch of a compacted log against the attempt that it is of.
    pub fn check_cleaned(&self, generation: u64, found: &Found<'_>) -> Result<(), String> {
        let payload = self.payload(found.attempt);
        if is_same(&payload, found.bytes) {
            return Ok(());
        }
        if !has_same_header(&payload, found) {
            return Err("its header was changed".to_owned());
        }
        let there = offsets_in(&payload, found)?;
        let log = self.log(generation);
        let mut all = found.base_offset..=found.last_offset;
        match all
            .find(|at| *at >= log.log_start && !there.contains(at) && !log.excused.contains(at))
        {
            Some(offset) => Err(format!("offset {offset} is missing")),
            None => Ok(()),
        }
    }

    /// What was found of a compacted log and what cleanings took from it, together the log's batches.
    pub fn with_cleaned(
        &self,
        generation: u64,
        found: Vec<Entry>,
        (bytes, (start, end)): (&[u8], (i64, i64)),
    ) -> Result<Vec<Entry>, String> {
        let log = self.log(generation);
        let bases: BTreeSet<i64> = found.iter().map(|entry| entry.base).collect();
        let is_gone = |entry: &&Entry| {
            !bases.contains(&entry.base) && entry.last >= start && entry.last < end
        };
        let mut all: Vec<Entry> = log.entries.iter().filter(is_gone).copied().collect();
        all.extend(found);
        all.sort_by_key(|entry| entry.base);
        self.check_last_of_producers(generation, &all, &bases)?;
        let mut there = BTreeSet::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (batch, after) = crate::payload::take_batch(rest)?;
            rest = after;
            if batch.attempt != NO_ATTEMPT {
                there.extend(offsets_in(&self.payload(batch.attempt), &batch)?);
            }
        }
        let mut gone = BTreeMap::new();
        for record in self.known(&all).iter().rev() {
            let is_there = there.contains(&record.offset);
            if let Some(later) = gone.get(&record.key).filter(|_| is_there) {
                return Err(format!(
                    "key {} is back with offset {}, though {later} is gone",
                    record.key, record.offset
                ));
            }
            if !is_there && record.offset >= start {
                gone.insert(record.key, record.offset);
            }
        }
        Ok(all)
    }

    fn check_last_of_producers(
        &self,
        generation: u64,
        all: &[Entry],
        found: &BTreeSet<i64>,
    ) -> Result<(), String> {
        if self.log(generation).changes > 0 {
            // What was the last one of a producer may have gone before a cut took those behind it.
            return Ok(());
        }
        let mut last = BTreeMap::new();
        for entry in all {
            if let Some(producer) = self.payload(entry.attempt).producer {
                last.insert(producer.id, *entry);
            }
        }
        match last.values().find(|entry| !found.contains(&entry.base)) {
            Some(entry) => Err(format!("the last batch of a producer is gone: {entry:?}")),
            None => Ok(()),
        }
    }
}

/// Cleans a compacted log beside whatever else happens to it.
pub fn clean(world: &Rc<World>, running: &Rc<Cell<usize>>) {
    // Several tries: few logs are compacted.
    let mut tries = (0..6).filter_map(|_| client::pick(world));
    let Some((generation, log)) = tries.find(|(_, log)| log.config().compacted) else {
        return;
    };
    running.set(running.get() + 1);
    let (world, running) = (Rc::clone(world), Rc::clone(running));
    let rate = [f64::MAX, 200_000.0][world.below(2) as usize];
    let options = CleanOptions {
        last_stable_offset: log.durable_end(),
        table_bytes: 24 * (20 + world.below(400) as usize),
        load_factor: 0.9,
        buffer_bytes: 4_096 << world.below(4),
        rate: Rc::new(move || rate),
        pace: Arc::new(CleanerPace::default()),
    };
    spawn(TaskClass::Background, async move {
        let end = options.last_stable_offset.0;
        world.model.borrow_mut().cleaning(generation, end);
        let outcome = log.clean(&options).await;
        note(&world, (generation, &log), &outcome);
        running.set(running.get() - 1);
    });
}

fn note(world: &World, (generation, log): (u64, &Log), outcome: &Result<CleanOutcome, LogError>) {
    let failing = directories::may_fail(world, generation) && world.disk.fault_hits() > 0;
    let gone = !client::is_open(world, generation);
    match outcome {
        Ok(CleanOutcome::Cleaned(stats)) => {
            let mut sum = world.stats.borrow_mut();
            sum.cleanings += 1;
            sum.replaced_segments += stats.segments.0 as u64;
        }
        Ok(CleanOutcome::Nothing | CleanOutcome::Interrupted) => {}
        Ok(CleanOutcome::Uncleanable(_)) if failing => {}
        Ok(CleanOutcome::Uncleanable(what)) => {
            let folder = log.identity().folder();
            world.accuse(format!("{folder} cannot be cleaned: {what}"));
        }
        Err(_) if failing || gone => {}
        Err(error) if error.is_full_disk() && world.full_disk.get() => {}
        Err(error) => world.accuse(format!("a cleaning of log {generation} failed: {error}")),
    }
}

#[test]
fn what_must_stay_and_what_may_go() {
    let mut case = crate::model_test::Case::compacted();
    let (first, second) = (case.append(), case.append());
    let log = case.log;
    // Before a cleaning nothing may be missing.
    assert_eq!(case.model.missing(log, 0, 2), Some(0));
    case.settle(&[(second, 2)]).expect_err("a batch is missing");
    case.settle(&[(first, 0), (second, 2)]).expect("whole");
    let last: BTreeMap<u64, i64> = case
        .model
        .known(&case.model.log(log).entries)
        .iter()
        .map(|record| (record.key, record.offset))
        .collect();
    case.model.cleaning(log, 4);
    for offset in 0..4 {
        let may_go = case.model.missing(log, offset, offset + 1).is_none();
        assert_eq!(
            may_go,
            !last.values().any(|last| *last == offset),
            "{offset}"
        );
    }
}
