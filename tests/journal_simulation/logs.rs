//! The logs of a life: made, opened and compared with the model, refused where they are damaged,
//! deleted.

use std::path::Path;
use std::rc::Rc;

use coreline::base::ids::{LeaderEpoch, Offset, PartitionIndex, Uuid};
use coreline::base::random::Random;
use coreline::io::directory;
use coreline::log::{Log, LogConfig, LogError, LogEvent, LogIdentity, ReadLimit, ShardLogs};

use crate::compaction;
use crate::directories;
use crate::model::LogState;
use crate::plan::Theme;
use crate::retries;
use crate::world::World;

pub fn uuid(world: &World) -> Uuid {
    Random::new(world.next_u64()).next_uuid()
}

/// The shard that a log lives on in this life.
pub fn shard_of(world: &World, generation: u64) -> Result<Rc<ShardLogs>, LogError> {
    let shards = world.shards.borrow();
    let place = generation as usize / world.plan.directories;
    let directory = directories::id(directories::of(world, generation));
    shards[place % shards.len()].of(directory).cloned()
}

pub async fn folder_exists(world: &World, generation: u64) -> bool {
    let directory = directories::path(world, directories::of(world, generation));
    let folder = world.model.borrow().log(generation).identity.folder();
    let path = format!("{directory}/{folder}");
    directory::metadata(Path::new(&path)).await.is_ok()
}

fn attach(world: &Rc<World>, generation: u64, log: &Rc<Log>) {
    let epoch = world.model.borrow().epoch;
    log.make_leader(LeaderEpoch(epoch));
    let observed = Rc::downgrade(world);
    let watched = Rc::downgrade(log);
    world.model.borrow_mut().log_mut(generation).observed = log.durable_end().0;
    log.observe(move |event| {
        let (Some(world), Some(log)) = (observed.upgrade(), watched.upgrade()) else {
            return;
        };
        match event {
            LogEvent::DurableEnd(end) => {
                let last = world.model.borrow().log(generation).observed;
                if end.0 < last {
                    world.accuse(format!("a durable end went back from {last} to {end}"));
                }
                if end > log.log_end_offset() {
                    world.accuse(format!("durable end {end} above {}", log.log_end_offset()));
                }
                let mut model = world.model.borrow_mut();
                model.log_mut(generation).observed = end.0;
                model.claim(generation, end.0);
            }
            LogEvent::Offline if !directories::may_fail(&world, generation) => {
                world.accuse("a shard went offline though nothing failed");
            }
            LogEvent::Offline => {}
        }
    });
    world
        .handles
        .borrow_mut()
        .insert(generation, Rc::clone(log));
}

/// Everything that a log serves, and where it says that it ends.
pub async fn read_all(log: &Rc<Log>) -> Result<(Vec<u8>, i64), String> {
    let end = log.log_end_offset();
    let (mut next, mut bytes) = (log.log_start_offset(), Vec::new());
    while next < end {
        let limit = ReadLimit {
            max_bytes: 1 << 20,
            memory_max: usize::MAX,
            first_batch_max: usize::MAX,
            end,
        };
        let read = log.read(next, limit).await;
        let read = read.map_err(|error| format!("a read from {next} failed: {error}"))?;
        if read.bytes == 0 {
            break;
        }
        let from = bytes.len();
        for slice in read.slices {
            bytes.extend_from_slice(&slice);
        }
        let mut rest = &bytes[from..];
        while !rest.is_empty() {
            let Ok((found, after)) = crate::payload::take_batch(rest) else {
                // Whoever looks at the bytes finds it.
                return Ok((bytes, end.0));
            };
            next = Offset(found.last_offset + 1);
            rest = after;
        }
    }
    Ok((bytes, end.0))
}

pub async fn open(world: &Rc<World>, generation: u64) -> Result<(), String> {
    let (identity, config) = {
        let model = world.model.borrow();
        let log = model.log(generation);
        (log.identity.clone(), log.config.clone())
    };
    let folder = identity.folder();
    let opened = match shard_of(world, generation) {
        Ok(shard) => shard.open_log(identity, config).await,
        Err(error) => Err(error),
    };
    let log = match opened {
        Ok(log) => log,
        Err(_) if directories::may_fail(world, generation) => return Ok(()),
        Err(error) => return refused(world, generation, &format!("does not open: {error}")),
    };
    let (bytes, end) = match read_all(&log).await {
        Ok(found) => found,
        Err(_) if directories::may_fail(world, generation) => return Ok(()),
        Err(what) => return refused(world, generation, &what),
    };
    if let Some(what) = consumer_finds(world, &folder, &bytes) {
        return refused(world, generation, &what);
    }
    note_damage(world, generation);
    note_mark(world, generation, &log);
    if world.model.borrow().log(generation).state == LogState::Damaged {
        // No more is asked of it than that what comes before the damage is right.
        let whole = whole_batches(&bytes);
        let start = log.log_start_offset().0;
        return world.model.borrow().check_read(generation, start, whole);
    }
    let places = (log.log_start_offset().0, end);
    world
        .model
        .borrow_mut()
        .settle(generation, &bytes, places)?;
    if log.durable_end().0 != end {
        return Err(format!(
            "{folder} opens with {} durable of {end}",
            log.durable_end()
        ));
    }
    world.model.borrow_mut().log_mut(generation).state = LogState::Open;
    attach(world, generation, &log);
    match retries::retry_known(world, generation, &log).await {
        Err(_) if directories::may_fail(world, generation) => Ok(()),
        outcome => outcome,
    }
}

/// What lies below the recovery point is not read at start. A read checks each batch's checksum;
/// what that does not cover, the consumer's own check finds.
fn consumer_finds(world: &World, folder: &str, bytes: &[u8]) -> Option<String> {
    let damage = world.damage.borrow();
    let damage = damage.as_ref()?;
    let path = damage
        .log_folder()
        .filter(|hit| *hit == folder)
        .map(|_| &damage.path)?;
    let what = crate::payload::take_batch(bytes.get(whole_batches(bytes).len()..)?).err()?;
    (whole_batches(bytes).len() < bytes.len())
        .then(|| format!("serves {what}, as a consumer of {path} finds"))
}

/// The batches in front of the first one that is damaged.
fn whole_batches(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Ok((_, after)) = crate::payload::take_batch(rest) {
        rest = after;
    }
    &bytes[..bytes.len() - rest.len()]
}

/// Takes a log for damaged when recovery says so, with file and position, and something was.
fn note_damage(world: &World, generation: u64) {
    if world.damage.borrow().is_none() {
        return;
    }
    let mut model = world.model.borrow_mut();
    let log = model.log_mut(generation);
    let folder = format!("/{}/", log.identity.folder());
    let notices = world.notices.borrow();
    let mut named = notices.iter().filter(|notice| notice.contains(&folder));
    if log.state != LogState::Damaged && named.any(|notice| notice.contains("at byte ")) {
        log.state = LogState::Damaged;
        world.stats.borrow_mut().damaged_logs += 1;
    }
}

/// A log that carries a mark of damage is told of at each start, and serves what comes before.
fn note_mark(world: &World, generation: u64, log: &Log) {
    if world.damage.borrow().is_some() && log.damage().is_some() {
        let mut model = world.model.borrow_mut();
        let log = model.log_mut(generation);
        if log.state != LogState::Damaged {
            log.state = LogState::Damaged;
            world.stats.borrow_mut().damaged_logs += 1;
        }
    }
}

/// A log that does not serve: allowed only where it was damaged and that was reported.
fn refused(world: &World, generation: u64, what: &str) -> Result<(), String> {
    note_damage(world, generation);
    let mut model = world.model.borrow_mut();
    let log = model.log_mut(generation);
    let folder = log.identity.folder();
    if log.state == LogState::Damaged {
        return Ok(());
    }
    let damage = world.damage.borrow();
    let Some(damage) = &*damage else {
        return Err(format!("{folder} {what}"));
    };
    let place = format!("damage in {} at {}", damage.path, damage.position);
    if damage.log_folder().is_some_and(|hit| hit != folder) {
        return Err(format!("{folder} {what}, but the {place}"));
    }
    let notices = world.notices.borrow();
    let mut told = notices.iter().map(String::as_str).chain([what]);
    if !told.any(|notice| damage.is_named_in(notice)) {
        return Err(format!(
            "{folder} {what}, {place} is not reported: {notices:?}"
        ));
    }
    let cut = damage.log_folder().is_some()
        && world.disk.contents(&damage.path).unwrap_or_default().len() as u64 <= damage.position;
    if cut {
        return Err(format!("{folder} was cut at the {place}"));
    }
    log.state = LogState::Damaged;
    world.stats.borrow_mut().damaged_logs += 1;
    Ok(())
}

pub async fn create(world: &Rc<World>, generation: u64) -> Result<(), String> {
    let (identity, config) = {
        let model = world.model.borrow();
        let log = model.log(generation);
        (log.identity.clone(), log.config.clone())
    };
    let folder = identity.folder();
    let created = match shard_of(world, generation) {
        Ok(shard) => shard.create_log(identity, config).await,
        Err(error) => Err(error),
    };
    match created {
        Ok(log) => {
            world.model.borrow_mut().log_mut(generation).state = LogState::Open;
            attach(world, generation, &log);
            Ok(())
        }
        Err(_) if world.full_disk.get() || directories::may_fail(world, generation) => Ok(()),
        Err(error) => Err(format!("{folder} cannot be created: {error}")),
    }
}

/// A new log, under a new or a formerly used name.
pub async fn create_new(world: &Rc<World>) -> Result<(), String> {
    let generation = {
        let mut model = world.model.borrow_mut();
        let name = model.next_generation % (world.plan.logs_max as u64 * 2);
        let identity = LogIdentity {
            topic: format!("topic{name}"),
            topic_id: uuid(world),
            partition: PartitionIndex(0),
        };
        let taken = |state| !matches!(state, LogState::Deleted);
        let mut others = model.logs.values();
        if others.any(|log| log.identity.topic == identity.topic && taken(log.state)) {
            model.next_generation += 1;
            return Ok(());
        }
        if !directories::is_there(world, model.next_generation + 1) {
            model.next_generation += 1;
            return Ok(());
        }
        let caching = match world.plan.theme {
            Theme::WriteCaching => world.one_in(2),
            _ => world.one_in(8),
        };
        let config = LogConfig {
            segment_bytes: world.plan.segment_bytes,
            index_interval_bytes: 1024 << world.below(4),
            segment_index_bytes: 4096,
            write_caching: caching,
            ..LogConfig::default()
        };
        let config = match world.plan.compaction && world.below(3) > 0 {
            true => compaction::config(world, config),
            false => config,
        };
        model.add_log(identity, config)
    };
    create(world, generation).await
}

/// Deletes a log that nobody else uses.
pub async fn delete(world: &Rc<World>, generation: u64) -> Result<(), String> {
    let log = world.handles.borrow_mut().remove(&generation);
    let Some(log) = log else { return Ok(()) };
    world.model.borrow_mut().log_mut(generation).state = LogState::Deleting;
    let deleted = match shard_of(world, generation) {
        Ok(shard) => shard.delete_log(&log).await,
        Err(error) => Err(error),
    };
    match deleted {
        Ok(()) => {
            world.model.borrow_mut().deleted(generation);
            world.stats.borrow_mut().deletions += 1;
            Ok(())
        }
        Err(_) if world.full_disk.get() || directories::may_fail(world, generation) => Ok(()),
        Err(error) => Err(format!("a log cannot be deleted: {error}")),
    }
}
