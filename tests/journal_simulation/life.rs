//! One process: recovery, comparison with the model, work, and an end in peace when nothing struck.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use coreline::base::ids::{BrokerEpoch, ShardId, Uuid};
use coreline::io::{TaskClass, directory, now, sleep, spawn};
use coreline::log::{
    LogError, RecoveryOptions, RecoveryReport, ShardLogs, ShardLogsOptions, recover, seal_directory,
};
use coreline::shard::{LogDirectories, OfflineDirectory};

use crate::client;
use crate::directories;
use crate::logs::{create, create_new, delete, folder_exists, open, uuid};
use crate::model::LogState;
use crate::plan::Theme;
use crate::world::World;

/// Simulated time after which a life that has not finished its work hangs.
const WORK_LIMIT: Duration = Duration::from_secs(600);

/// The directory of logs; the machine's set-up, not the broker's.
async fn make_directory(world: &World, number: usize) -> Result<(), LogError> {
    let path = directories::path(world, number);
    let made = directory::create_all(Path::new(&path)).await;
    made.map_err(|source| LogError::io("the log directory", source))?;
    let synced = directory::sync(Path::new("/")).await;
    synced.map_err(|source| LogError::io("the root", source))
}

/// Runs one life; true when it ended in peace, with everything closed.
pub async fn run(world: Rc<World>) -> bool {
    match try_run(&world).await {
        Ok(in_peace) => in_peace && !world.is_broken(),
        Err(what) => {
            world.accuse(what);
            false
        }
    }
}

async fn try_run(world: &Rc<World>) -> Result<bool, String> {
    for number in 0..world.plan.directories {
        match make_directory(world, number).await {
            Err(_) if directories::is_in_trouble(world, number) => {}
            made => made.map_err(|error| error.to_string())?,
        }
    }
    let shard_count = 1 + world.below(world.plan.shards_max) as u16;
    if !start(world, shard_count).await? {
        return Ok(false);
    }
    reopen_all(world).await?;
    {
        let mut model = world.model.borrow_mut();
        // What is missing may have lost what a cut takes.
        model.power_lost &= directories::is_any_missing(world);
        model.journal_damaged = false;
    }
    world.damage.take();
    world.notices.borrow_mut().clear();
    if world.is_broken() {
        return Ok(false);
    }
    prepare_trouble(world);
    work(world).await?;
    let has_failed = world.failing.get() && world.disk.fault_hits() > 0;
    if world.is_broken() || has_failed && world.plan.directories == 1 {
        return Ok(false);
    }
    directories::check_failed(world).await;
    check_idle(world).await;
    world.rested.set(!world.failing.get());
    if world.peaceful.get() {
        if world.plan.directories > 1 {
            return directories::close_all(world).await;
        }
        close_all(world).await?;
        return Ok(true);
    }
    Ok(false)
}

/// Recovery, then every shard's journal. False when a full disk forbids the start.
async fn start(world: &Rc<World>, shard_count: u16) -> Result<bool, String> {
    let incarnation = uuid(world);
    if !world.peaceful.get() && world.plan.theme == Theme::FullDisk && world.one_in(2) {
        world.disk.leave_available(Some(world.below(1 << 20)));
        world.full_disk.set(true);
        let disk = world.disk.clone();
        spawn(TaskClass::Background, async move {
            sleep(Duration::from_secs(30)).await;
            disk.leave_available(None);
        });
    } else {
        world.disk.leave_available(None);
    }
    let Some(reports) = recover_all(world, incarnation, shard_count).await? else {
        return Ok(false);
    };
    for shard in 0..shard_count {
        let (mut open, mut unopened) = (Vec::new(), Vec::new());
        for (number, report) in reports.iter().enumerate() {
            let path = directories::path(world, number);
            let offline = |reason: &str| OfflineDirectory {
                path: path.clone().into(),
                reason: reason.to_owned(),
            };
            let Some(report) = report else {
                unopened.push(offline("not recovered"));
                continue;
            };
            let options = ShardLogsOptions {
                directory: path.clone().into(),
                shard: ShardId(shard),
                incarnation,
                journal_bytes: report.journal_bytes_per_shard,
                cache_bytes: world.plan.cache_bytes,
                random_seed: world.next_u64(),
                metrics: Default::default(),
            };
            match ShardLogs::open(options).await {
                Ok(opened) => open.push((directories::id(number), opened)),
                Err(error) if is_full(world, &error) => return Ok(false),
                Err(error) if directories::is_in_trouble(world, number) => {
                    unopened.push(offline(&error.to_string()));
                }
                Err(error) => return Err(format!("shard {shard} does not open: {error}")),
            }
        }
        let shard = Rc::new(LogDirectories::new(open, unopened));
        world.shards.borrow_mut().push(shard);
    }
    directories::tell_all_shards(world);
    world.recovered.set(true);
    Ok(true)
}

/// Recovers every directory that is there; none of one in trouble. `None` when a full disk forbids
/// the start.
async fn recover_all(
    world: &Rc<World>,
    incarnation: Uuid,
    shard_count: u16,
) -> Result<Option<Vec<Option<RecoveryReport>>>, String> {
    let mut reports = Vec::new();
    for number in 0..world.plan.directories {
        if directories::is_missing(world, number) {
            reports.push(None);
            continue;
        }
        let report = recover(RecoveryOptions {
            directory: directories::path(world, number).into(),
            incarnation,
            shard_count,
            journal_bytes: world.plan.journal_bytes,
        })
        .await;
        let mut report = match report {
            Ok(report) => report,
            Err(error) if is_full(world, &error) => return Ok(None),
            Err(_) if directories::is_in_trouble(world, number) => {
                reports.push(None);
                continue;
            }
            Err(error) => return Err(format!("recovery failed: {error}")),
        };
        if world.damage.borrow().is_none() && world.model.borrow().is_sound() {
            let damage = |notice: &&String| notice.contains("damage");
            if report.notices.iter().any(|notice| damage(&notice)) {
                return Err(format!(
                    "recovery reports damage where there is none: {:?}",
                    report.notices
                ));
            }
        }
        // A crash before all logs were looked at leaves the rest to the next life.
        let notices = std::mem::take(&mut report.notices);
        world.notices.borrow_mut().extend(notices);
        reports.push(Some(report));
    }
    Ok(Some(reports))
}

fn is_full(world: &World, error: &LogError) -> bool {
    let full = matches!(error, LogError::Io { source, .. }
        if source.kind() == std::io::ErrorKind::StorageFull);
    full && world.full_disk.get()
}

/// What a controller does at start: opens what metadata knows, removes what it does not.
async fn reopen_all(world: &Rc<World>) -> Result<(), String> {
    world.model.borrow_mut().epoch += 1;
    let generations: Vec<u64> = world.model.borrow().logs.keys().copied().collect();
    for generation in generations {
        let state = world.model.borrow().log(generation).state;
        if !directories::is_there(world, generation) {
            continue;
        }
        match state {
            LogState::Creating if folder_exists(world, generation).await => {
                open(world, generation).await?;
            }
            LogState::Creating => create(world, generation).await?,
            LogState::Open => open(world, generation).await?,
            LogState::Deleting | LogState::Deleted => {
                if folder_exists(world, generation).await && !name_is_taken(world, generation) {
                    open(world, generation).await?;
                    delete(world, generation).await?;
                } else {
                    world.model.borrow_mut().deleted(generation);
                }
            }
            // It must go on refusing, or serve only what is right.
            LogState::Damaged => open(world, generation).await?,
        }
    }
    Ok(())
}

/// Whether a later log has the name of a deleted one.
fn name_is_taken(world: &World, generation: u64) -> bool {
    let model = world.model.borrow();
    let topic = &model.log(generation).identity.topic;
    let place = directories::of(world, generation);
    let mut later = model.logs.range(generation + 1..);
    later.any(|(later, log)| {
        log.identity.topic == *topic
            && log.state != LogState::Deleted
            && directories::of(world, *later) == place
    })
}

/// What goes wrong in this life beside the crash.
fn prepare_trouble(world: &World) {
    directories::arm_late(world);
    if world.peaceful.get() {
        return;
    }
    let steps = 1 << (6 + world.below(7));
    if world.plan.theme != Theme::Damage || world.one_in(2) {
        world.disk.crash_after(1 + world.below(steps));
    }
    if world.plan.directories > 1 {
        return;
    }
    if world.plan.theme == Theme::Failures || world.one_in(12) {
        world.failing.set(true);
        client::arm_failure(world);
    }
    if world.plan.theme == Theme::FullDisk || world.one_in(12) {
        world.full_disk.set(true);
    }
}

/// All clients, until they are done.
async fn work(world: &Rc<World>) -> Result<(), String> {
    let wanted = (world.plan.logs_max / 2).max(1);
    let last = world.model.borrow().next_generation + 8 * world.plan.logs_max as u64;
    while world.handles.borrow().len() < wanted {
        let before = world.model.borrow().next_generation;
        create_new(world).await?;
        let after = world.model.borrow().next_generation;
        if before == after || world.is_broken() || after > last {
            break;
        }
        if world.full_disk.get() || world.failing.get() {
            break;
        }
    }
    let limit = now().after(WORK_LIMIT);
    let running = Rc::new(std::cell::Cell::new(0usize));
    for number in 0..world.plan.clients {
        running.set(running.get() + 1);
        let (world, running) = (Rc::clone(world), Rc::clone(&running));
        spawn(TaskClass::Produce, async move {
            client::run(&world, number, &running).await;
            running.set(running.get() - 1);
        });
    }
    while running.get() > 0 && !world.is_broken() {
        if now() > limit {
            return Err(format!("{} tasks hang", running.get()));
        }
        sleep(Duration::from_millis(5)).await;
        directories::tell_all_shards(world);
    }
    Ok(())
}

/// After a quiet while everything that was appended is durable.
async fn check_idle(world: &Rc<World>) {
    sleep(Duration::from_millis(200)).await;
    if world.failing.get() && world.plan.directories == 1 || world.full_disk.get() {
        return;
    }
    for (generation, log) in world.handles.borrow().iter() {
        if directories::may_fail(world, *generation) {
            continue;
        }
        if log.durable_end() != log.log_end_offset() {
            let (durable, end) = (log.durable_end(), log.log_end_offset());
            world.accuse(format!(
                "log {generation} rests with {durable} durable of {end}"
            ));
        }
    }
}

async fn close_all(world: &Rc<World>) -> Result<(), String> {
    let shards = world.shards.borrow().clone();
    let mut closed = Vec::new();
    for shard in shards {
        for logs in shard.iter() {
            let part = logs.close().await;
            closed.extend(part.map_err(|error| format!("a shard does not close: {error}"))?);
        }
    }
    let path = directories::path(world, 0);
    let sealed = seal_directory(Path::new(&path), &closed, BrokerEpoch(1)).await;
    sealed.map_err(|error| format!("the directory cannot be sealed: {error}"))
}
