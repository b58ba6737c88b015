//! What clients do to the logs, at random.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use coreline::base::ids::{LeaderEpoch, Offset};
use coreline::io::sim::{Fault, FaultEffect, OperationKind};
use coreline::io::{TaskClass, now, sleep, spawn, wall_clock};
use coreline::log::{AppendContext, AppendError, Appended, Log, LogError, ReadLimit};

use crate::changes;
use crate::compaction;
use crate::directories;
use crate::logs;
use crate::model::LogState;
use crate::payload::{Payload, Producer};
use crate::plan::Theme;
use crate::world::World;

/// Appends that must not wait for room for ever.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// One idempotent producer's place in one log.
#[derive(Clone, Copy, Debug)]
struct Session {
    generation: u64,
    /// A cut may take batches of a producer away: then it begins anew.
    changes: u64,
    producer: Producer,
}

/// Arms one failure of the device.
pub fn arm_failure(world: &World) {
    let kinds = [
        OperationKind::Write,
        OperationKind::Write,
        OperationKind::Flush,
        OperationKind::Flush,
        OperationKind::SyncDirectory,
        OperationKind::SyncFilesystem,
        OperationKind::Preallocate,
        OperationKind::Open,
        OperationKind::Names,
        OperationKind::Read,
    ];
    let kind = kinds[world.below(kinds.len() as u64) as usize];
    let effect = match world.below(6) {
        0 => FaultEffect::Short,
        1 => FaultEffect::Stall(Duration::from_secs(5)),
        2 if matches!(kind, OperationKind::Preallocate | OperationKind::Open) => {
            FaultEffect::Enospc
        }
        _ => FaultEffect::Eio,
    };
    world.disk.arm(Fault {
        kind,
        path_part: String::new(),
        skip: world.below(200),
        count: 1 + world.below(3),
        effect,
    });
}

/// A client's whole life.
pub async fn run(world: &Rc<World>, number: usize, running: &Rc<Cell<usize>>) {
    let mut sessions: Vec<Session> = Vec::new();
    for _ in 0..world.plan.operations {
        if world.is_broken() {
            return;
        }
        if number == 0 && world.full_disk.get() {
            let left = world.one_in(2).then(|| world.below(256 << 10));
            world.disk.leave_available(left);
        }
        pause(world).await;
        act(world, &mut sessions, running).await;
    }
    if number == 0 {
        world.disk.leave_available(None);
    }
}

async fn pause(world: &World) {
    match world.below(40) {
        0 => sleep(Duration::from_millis(1 + world.below(400))).await,
        1..20 => sleep(Duration::from_micros(world.below(2_000))).await,
        _ => {}
    }
}

/// A log that takes appends now.
pub fn pick(world: &World) -> Option<(u64, Rc<Log>)> {
    let handles = world.handles.borrow();
    if handles.is_empty() {
        return None;
    }
    let place = world.below(handles.len() as u64) as usize;
    let (generation, log) = handles.iter().nth(place)?;
    let model = world.model.borrow();
    let known = model.log(*generation);
    let usable = known.state == LogState::Open && !known.reserved;
    usable.then(|| (*generation, Rc::clone(log)))
}

async fn act(world: &Rc<World>, sessions: &mut Vec<Session>, running: &Rc<Cell<usize>>) {
    if world.plan.compaction && world.one_in(5) {
        return compaction::clean(world, running);
    }
    let theme = world.plan.theme;
    let dice = world.below(200);
    let deletions = if theme == Theme::Deletions { 20 } else { 2 };
    if dice < deletions {
        if world.handles.borrow().len() < world.plan.logs_max && world.one_in(2) {
            world.check(logs::create_new(world).await);
        } else if let Some((generation, _)) = pick(world) {
            reserve(world, generation).await;
            world.check(logs::delete(world, generation).await);
        }
        return;
    }
    let Some((generation, log)) = pick(world) else {
        return;
    };
    let changes = changes::share(theme);
    if dice >= 200 - changes {
        changes::change(world, generation, &log).await;
    } else if dice < deletions + 23 {
        read(world, generation, &log).await;
    } else {
        append(world, (generation, log), sessions, running).await;
    }
}

/// Keeps others from appending to the log, and waits until those under way have returned.
async fn reserve(world: &World, generation: u64) {
    world.model.borrow_mut().log_mut(generation).reserved = true;
    while world.model.borrow().log(generation).appending > 0 && !world.is_broken() {
        sleep(Duration::from_millis(1)).await;
    }
}

async fn read(world: &Rc<World>, generation: u64, log: &Rc<Log>) {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    let from = start.0 + world.below((end.0 - start.0).max(1) as u64) as i64;
    let limit = ReadLimit {
        max_bytes: 1 << world.below(21),
        memory_max: usize::MAX,
        first_batch_max: usize::MAX,
        end,
    };
    let changes = changes_of(world, generation);
    let answer = log.read(Offset(from), limit).await;
    let is_changed = {
        let model = world.model.borrow();
        let log = model.log(generation);
        log.changes > changes || log.change.is_some()
    };
    match answer {
        // What was cut off while it was read may be anything.
        _ if is_changed => {}
        Ok(read) => {
            let bytes = read.slices.concat();
            let is_hole = log.config().compacted
                && world
                    .model
                    .borrow()
                    .missing(generation, from, end.0)
                    .is_none();
            if from < end.0 && bytes.is_empty() && !is_hole && is_open(world, generation) {
                world.accuse(format!(
                    "a read of log {generation} at {from} below {end} gave nothing"
                ));
            }
            if is_open(world, generation) {
                world.check(world.model.borrow().check_read(generation, from, &bytes));
            }
            world.stats.borrow_mut().reads += 1;
        }
        Err(_) if directories::may_fail(world, generation) || !is_open(world, generation) => {}
        Err(error) => world.accuse(format!("a read at {from} of {start}..{end}: {error}")),
    }
}

fn changes_of(world: &World, generation: u64) -> u64 {
    world.model.borrow().log(generation).changes
}

pub fn is_open(world: &World, generation: u64) -> bool {
    let model = world.model.borrow();
    let log = model.log(generation);
    log.state == LogState::Open && !log.reserved
}

fn new_payload(world: &World, producer: Option<Producer>) -> Payload {
    let plan = &world.plan;
    let value_bytes = if world.one_in(plan.large_one_in) {
        world.below(plan.large_bytes)
    } else {
        world.below(plan.value_bytes)
    };
    Payload {
        attempt: world.model.borrow().next_attempt(),
        records: 1 + world.below(5) as i32,
        value_bytes: value_bytes as usize,
        timestamp: wall_clock().0,
        producer,
    }
}

/// The session of this client in `generation`, a new one now and then.
fn session(world: &World, sessions: &mut Vec<Session>, generation: u64) -> Option<usize> {
    let (changes, is_changing) = {
        let model = world.model.borrow();
        let log = model.log(generation);
        (log.changes, log.change.is_some())
    };
    if world.one_in(2) || is_changing {
        return None;
    }
    sessions.retain(|session| session.generation != generation || session.changes == changes);
    let known = sessions
        .iter()
        .position(|session| session.generation == generation);
    Some(known.unwrap_or_else(|| {
        let producer = Producer {
            id: 1 + (world.next_u64() >> 2) as i64,
            base_sequence: 0,
        };
        sessions.push(Session {
            generation,
            changes,
            producer,
        });
        sessions.len() - 1
    }))
}

/// Appends what the model is told of, and what came of it.
pub async fn append_known(
    world: &World,
    generation: u64,
    log: &Rc<Log>,
    payload: &Payload,
) -> Result<Appended, AppendError> {
    world.model.borrow_mut().attempt(generation, *payload);
    let answer = send(world, log, payload).await;
    let known = answer.as_ref().ok();
    let noted = world
        .model
        .borrow_mut()
        .appended(generation, payload.attempt, known);
    world.check(noted);
    if let Ok(appended) = &answer {
        world.stats.borrow_mut().appends += 1;
        let end = appended.last_offset.plus(1);
        if log.log_end_offset() < end {
            world.accuse(format!(
                "appended up to {end} beyond {}",
                log.log_end_offset()
            ));
        }
    }
    answer
}

async fn append(
    world: &Rc<World>,
    (generation, log): (u64, Rc<Log>),
    sessions: &mut Vec<Session>,
    running: &Rc<Cell<usize>>,
) {
    let place = session(world, sessions, generation);
    let producer = place.map(|place| sessions[place].producer);
    let payload = match log.config().compacted {
        true => compaction::keyed(world, new_payload(world, producer)),
        false => new_payload(world, producer),
    };
    let appended = match append_known(world, generation, &log, &payload).await {
        Ok(appended) => appended,
        Err(error) => {
            sessions.retain(|session| session.generation != generation);
            world.stats.borrow_mut().refused += 1;
            excuse(world, generation, &error);
            return;
        }
    };
    if let Some(place) = place {
        sessions[place].producer.base_sequence += payload.records;
    }
    let end = appended.last_offset.plus(1);
    if world.one_in(2) {
        let changes = changes_of(world, generation);
        confirm(world, (generation, changes), &log, end).await;
    } else {
        running.set(running.get() + 1);
        let (world, running) = (Rc::clone(world), Rc::clone(running));
        let log = Rc::clone(&log);
        let changes = changes_of(&world, generation);
        spawn(TaskClass::Produce, async move {
            confirm(&world, (generation, changes), &log, end).await;
            running.set(running.get() - 1);
        });
    }
    let is_changing = world.model.borrow().log(generation).change.is_some();
    if producer.is_some() && world.one_in(3) && !is_changing {
        let changes = place.map(|place| sessions[place].changes);
        if changes == Some(world.model.borrow().log(generation).changes) {
            repeat(world, (generation, &log), &payload, &appended).await;
        }
    }
}

async fn send(world: &World, log: &Rc<Log>, payload: &Payload) -> Result<Appended, AppendError> {
    let epoch = LeaderEpoch(world.model.borrow().epoch);
    let batch = BytesMut::from(&payload.build()[..]);
    let mut context = AppendContext::client(epoch, now(), PATIENCE);
    if world.plan.buffer_factor > 1 {
        let factor = 1 + world.below(world.plan.buffer_factor) as usize;
        context.buffer_bytes.part = batch.len() * factor;
    }
    log.append(batch, context).await
}

/// Sends an appended batch again: it must be known, and wait as long as the original.
async fn repeat(
    world: &Rc<World>,
    (generation, log): (u64, &Rc<Log>),
    payload: &Payload,
    original: &Appended,
) {
    match send(world, log, payload).await {
        Ok(again) => {
            let same = again.base_offset == original.base_offset
                && again.last_offset == original.last_offset;
            if !again.duplicate || !same {
                world.accuse(format!("a retry of {original:?} was answered {again:?}"));
            }
            world.stats.borrow_mut().duplicates += 1;
            let changes = changes_of(world, generation);
            let end = again.last_offset.plus(1);
            confirm(world, (generation, changes), log, end).await;
        }
        Err(error) => excuse(world, generation, &error),
    }
}

/// Waits until `end` is durable and holds the log to it.
async fn confirm(world: &Rc<World>, (generation, changes): (u64, u64), log: &Rc<Log>, end: Offset) {
    match log.wait_durable(end).await {
        // Cut off while it waited.
        Err(LogError::Closed) if changes_of(world, generation) > changes => {}
        Ok(()) => {
            if log.durable_end() < end {
                world.accuse(format!("{end} confirmed, {} durable", log.durable_end()));
            }
            world.model.borrow_mut().claim(generation, end.0);
        }
        Err(error) => excuse(world, generation, &AppendError::Log(error)),
    }
}

/// Whether a refusal has a reason in this life.
pub fn excuse(world: &World, generation: u64, error: &AppendError) {
    let failing = directories::may_fail(world, generation) && world.disk.fault_hits() > 0;
    let gone = !is_open(world, generation);
    let excused = match error {
        AppendError::StorageFull(_) => failing || world.full_disk.get(),
        // A ring whose release waits for a full disk has no room either.
        AppendError::TimedOut => failing || world.full_disk.get(),
        AppendError::Log(LogError::Offline(_)) => failing,
        AppendError::Log(LogError::Closed) => gone,
        AppendError::Log(LogError::Io { .. }) => failing || gone,
        _ => false,
    };
    if !excused {
        world.accuse(format!(
            "an append was refused without a reason: {error} (log {generation})"
        ));
    }
}
