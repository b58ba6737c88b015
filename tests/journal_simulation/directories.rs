//! Several log directories, each on a disk of its own: one fails or is missing, the others serve on
//! and lose nothing, and it is whole again when it returns.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use coreline::base::ids::{BrokerEpoch, Uuid};
use coreline::io::sim::{Fault, FaultEffect, OperationKind};
use coreline::io::sleep;
use coreline::log::{AppendError, LogError, seal_directory};

use crate::client;
use crate::payload::Payload;
use crate::world::{DIRECTORY, World};

/// What is wrong with one directory in a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// It is not there from the start on.
    Missing(usize),
    /// Its disk fails from some operation on, perhaps during the start.
    Early(usize),
    /// The same, once the broker serves.
    Late(usize),
}

impl Trouble {
    fn directory(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Missing(number) | Self::Early(number) | Self::Late(number) => Some(number),
        }
    }
}

pub fn path(world: &World, number: usize) -> String {
    match world.plan.directories {
        1 => DIRECTORY.to_owned(),
        _ => format!("/disk{number}"),
    }
}

pub fn id(number: usize) -> Uuid {
    Uuid([number as u8 + 1; 16])
}

/// The directory of a log, for ever.
pub fn of(world: &World, generation: u64) -> usize {
    generation as usize % world.plan.directories
}

/// Whether an operation on this log may fail in this life.
pub fn may_fail(world: &World, generation: u64) -> bool {
    let of_trouble = world.trouble.get().directory();
    world.failing.get() && of_trouble.is_none_or(|number| number == of(world, generation))
}

pub fn is_in_trouble(world: &World, number: usize) -> bool {
    world.trouble.get().directory() == Some(number)
}

pub fn is_missing(world: &World, number: usize) -> bool {
    world.trouble.get() == Trouble::Missing(number)
}

/// Whether some directory has not been recovered in this life.
pub fn is_any_missing(world: &World) -> bool {
    let shards = world.shards.borrow();
    world.plan.directories > 1 && shards.iter().any(|shard| shard.offline().next().is_some())
}

/// Whether the directory of this log was there at the start.
pub fn is_there(world: &World, generation: u64) -> bool {
    !is_missing(world, of(world, generation))
}

/// Before a life: what will be wrong in it. Nothing in the last ones.
pub fn prepare(world: &World, is_last: bool) {
    world.trouble.set(Trouble::None);
    if world.plan.directories == 1 || is_last {
        return;
    }
    let number = world.below(world.plan.directories as u64) as usize;
    let trouble = match world.below(6) {
        0 => Trouble::None,
        1 | 2 => Trouble::Missing(number),
        3 => Trouble::Early(number),
        _ => Trouble::Late(number),
    };
    world.trouble.set(trouble);
    world.failing.set(trouble != Trouble::None);
    match trouble {
        Trouble::Early(number) => arm(world, number),
        Trouble::Missing(_) => world.stats.borrow_mut().missing_directories += 1,
        Trouble::None | Trouble::Late(_) => {}
    }
}

/// The disk of a directory that begins to fail while the broker serves.
pub fn arm_late(world: &World) {
    if let Trouble::Late(number) = world.trouble.get() {
        arm(world, number);
    }
}

/// From some write or flush on, or some operation of any kind, every one fails.
fn arm(world: &World, number: usize) {
    let kinds: &[OperationKind] = match world.below(3) {
        0 => &[OperationKind::Write],
        1 => &[OperationKind::Flush],
        _ => &[
            OperationKind::Open,
            OperationKind::Read,
            OperationKind::Write,
            OperationKind::Flush,
            OperationKind::Preallocate,
            OperationKind::Names,
            OperationKind::SyncDirectory,
            OperationKind::SyncFilesystem,
            OperationKind::Look,
        ],
    };
    let skip = world.below(120);
    for kind in kinds {
        world.disk.arm(Fault {
            kind: *kind,
            path_part: path(world, number),
            skip,
            count: u64::MAX,
            effect: FaultEffect::Eio,
        });
    }
}

/// A directory that fails on one shard is offline on all.
pub fn tell_all_shards(world: &World) {
    if world.plan.directories == 1 {
        return;
    }
    let shards = world.shards.borrow();
    for failed in shards.iter().flat_map(|shard| shard.offline()) {
        shards.iter().for_each(|shard| shard.take_offline(&failed));
        let number = (0..world.plan.directories)
            .find(|number| Path::new(&path(world, *number)) == failed.path);
        if !number.is_some_and(|number| is_in_trouble(world, number)) {
            world.accuse(format!("{} though nothing failed there", failed.told()));
        }
    }
}

/// The logs of a failed directory refuse appends at once, and say why.
pub async fn check_failed(world: &Rc<World>) {
    if world.plan.directories == 1 || world.is_broken() {
        return;
    }
    tell_all_shards(world);
    let is_offline = |generation: &u64| {
        let number = of(world, *generation);
        let path = path(world, number);
        let shards = world.shards.borrow();
        shards
            .iter()
            .all(|shard| !shard.is_online(Path::new(&path)))
    };
    let all = world.handles.borrow().clone();
    let failed = all.iter().filter(|(generation, _)| is_offline(generation));
    let mut count = 0;
    for (generation, log) in failed {
        count += 1;
        let payload = Payload {
            attempt: world.model.borrow().next_attempt(),
            records: 1,
            value_bytes: 10,
            timestamp: 0,
            producer: None,
        };
        match client::append_known(world, *generation, log, &payload).await {
            Err(AppendError::Log(LogError::Offline(_))) => {}
            Err(AppendError::Log(LogError::Closed)) if !client::is_open(world, *generation) => {}
            other => world.accuse(format!(
                "log {generation} of a failed disk answers {other:?}"
            )),
        }
    }
    let is_served = all.len() > count;
    if count > 0 && is_served {
        world.stats.borrow_mut().failed_directories += 1;
    }
}

/// Closes all directories; one that failed does not keep the others from a clean end. True when
/// all of them had one.
pub async fn close_all(world: &Rc<World>) -> Result<bool, String> {
    let shards = world.shards.borrow().clone();
    let mut outcomes = Vec::new();
    for shard in shards {
        outcomes.extend(shard.close().await);
    }
    for number in 0..world.plan.directories {
        let path = path(world, number);
        let mut closed = Vec::new();
        let mut is_whole = true;
        for (_, outcome) in outcomes.iter().filter(|(of, _)| *of == Path::new(&path)) {
            match outcome {
                Ok(logs) => closed.extend(logs.iter().cloned()),
                Err(_) if is_in_trouble(world, number) => is_whole = false,
                Err(error) => return Err(format!("{path} does not close: {error}")),
            }
        }
        if is_in_trouble(world, number) {
            continue;
        }
        if is_whole {
            let sealed = seal_directory(Path::new(&path), &closed, BrokerEpoch(1)).await;
            sealed.map_err(|error| format!("{path} cannot be sealed: {error}"))?;
        }
    }
    // What the failed one has under way still lands.
    sleep(Duration::from_millis(1)).await;
    Ok(world.trouble.get() == Trouble::None)
}
