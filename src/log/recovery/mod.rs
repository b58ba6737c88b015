//! Bringing a log directory to rest before the shards start, and sealing it after they stopped
//! (JOURNAL §7).
//!
//! | File | What |
//! |---|---|
//! | `current` | which incarnation's cycles count |
//! | `ring_reader` | finding cycles in ring files, under their locks |
//! | `chain` | which cycles count, tear or damage (pure) |
//! | `replay` | records to a plan per log (pure) |
//! | `apply` | a plan meets a log's files |
//! | `lost` | journals and ring files that are gone |
//! | `kafka_style` | folders at rest that were not cleanly closed |
//! | `rebuild` | indexes, producers, epochs |
//! | `checkpoints` | Kafka's checkpoint files |
//! | `aside` | ring files with damage, kept for whoever repairs |
//! | `seal` | the end of a clean shutdown; ring files between a stop and a start |
//!
//! A crash during recovery repeats it: nothing is written into a journal that was found, and what
//! is written into segments is what the same records say again.

mod apply;
mod aside;
mod chain;
mod checkpoints;
mod current;
mod folders;
mod kafka_style;
mod lost;
mod rebuild;
mod replay;
mod ring_reader;
mod seal;

pub(crate) use checkpoints::read_log_starts;
pub(crate) use checkpoints::read_recovery_points;
pub use checkpoints::{CheckpointFile, write_checkpoint};
pub(crate) use current::read as read_incarnation;
pub(crate) use folders::{Folder, FolderId, find_folders};
pub(crate) use lost::is_retired;
pub(crate) use replay::{LogPlan, PlannedRange};
pub(crate) use ring_reader::{Access, RingContents, open_locked, open_under_lock};
pub use seal::seal_directory;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::error::LogError;
use super::format::file_names::CLEAN_SHUTDOWN;
use super::journal::sizes::ring_bytes;
use super::journal::{JOURNAL_FOLDER, load_flushed};
use super::limited::for_each_limited;
use super::open_flush_group;
use crate::base::ids::{ShardId, Uuid};
use crate::io;
use chain::assemble;
use checkpoints::Checkpoints;
use folders::list_folders;
use replay::{Replay, replay};
use ring_reader::read_ring;

/// Logs recovered at the same time: enough that one flush serves many, few enough that their
/// windows of [`super::scan`] stay within 16 MiB.
const LOGS_AT_ONCE: usize = 64;
/// Between two tries while the disk is full.
const ROOM_DELAY: Duration = Duration::from_secs(2);

/// What `recover` needs.
#[derive(Clone, Debug)]
pub struct RecoveryOptions {
    /// The log directory.
    pub directory: PathBuf,
    /// Random, new at every start; also given to every shard.
    pub incarnation: Uuid,
    /// How many shards will open the directory.
    pub shard_count: u16,
    /// `coreline.journal.bytes`.
    pub journal_bytes: u64,
}

/// What `recover` found and did.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Whether the directory was cleanly closed.
    pub was_clean: bool,
    /// Whether that is because its last owner said so: it may have had no logs at all.
    pub was_sealed: bool,
    /// Size of each shard's ring, for `ShardLogsOptions`.
    pub journal_bytes_per_shard: u64,
    /// Logs that were replayed or scanned.
    pub logs_recovered: usize,
    /// What the operator should read, one line each: cuts, damage, files set aside.
    pub notices: Vec<String>,
    /// Rings with damage, to be set aside.
    damaged_rings: Vec<ShardId>,
}

/// Replays the journals of the last life, cuts tears, marks damage, rebuilds what was derived and
/// retires the journals. Nothing may be appended or read in the directory before it answers.
///
/// # Errors
/// What the file system answers; [`LogError::Refused`] where the disk is too small or the
/// directory is in use.
pub async fn recover(options: RecoveryOptions) -> Result<RecoveryReport, LogError> {
    loop {
        match recover_once(&options).await {
            // The journals are kept; what was done so far is done again with the same result.
            Err(LogError::Io { what, source })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                let directory = options.directory.display();
                let bytes = options.journal_bytes;
                tracing::error!(
                    "{what}: {source}. Recovery waits for room in {directory}: at most {bytes} \
                     bytes, what its journals may hold"
                );
                io::sleep(ROOM_DELAY).await;
            }
            outcome => return outcome,
        }
    }
}

async fn recover_once(options: &RecoveryOptions) -> Result<RecoveryReport, LogError> {
    let directory: Rc<Path> = options.directory.as_path().into();
    let failed = |error| LogError::io(format!("opening {}", directory.display()), error);
    io::directory::create_all(&directory)
        .await
        .map_err(failed)?;
    if let Some(parent) = directory
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        io::directory::sync(parent).await.map_err(failed)?;
    }
    let space = io::directory::space(&directory).await.map_err(failed)?;
    let shards = options.shard_count;
    let ring = ring_bytes(options.journal_bytes, space.total_bytes, shards)
        .map_err(|error| LogError::Refused(error.to_string()))?;
    let mut report = RecoveryReport {
        journal_bytes_per_shard: ring,
        ..Default::default()
    };
    let checkpoints = Rc::new(RefCell::new(Checkpoints::read(&directory).await?));
    let folders = list_folders(&directory).await?;
    aside::set_aside(&directory, &mut report).await?;
    match current::read(&directory).await? {
        Some(incarnation) => {
            recover_journalled(&directory, incarnation, &folders, &checkpoints, &mut report)
                .await?;
        }
        None => recover_at_rest(&directory, &folders, &checkpoints, &mut report).await?,
    }
    let settled = checkpoints.take();
    settled.write(&directory).await?;
    seal::forget_closed(&directory, report.was_clean).await?;
    remove_clean_shutdown(&directory).await?;
    aside::note(&directory, options.incarnation, &report.damaged_rings).await?;
    current::write(&directory, options.incarnation).await?;
    lost::forget_retirement(&directory).await?;
    aside::set_aside(&directory, &mut report).await?;
    seal::take_back_ring_files(&directory, shards).await?;
    Ok(report)
}

/// `.kafka_cleanshutdown` goes, durably, before anything of this life is written.
async fn remove_clean_shutdown(directory: &Path) -> Result<(), LogError> {
    let path = directory.join(CLEAN_SHUTDOWN);
    let failed = |error| LogError::io(format!("removing {}", path.display()), error);
    match io::directory::remove_file(&path).await {
        Ok(()) => io::directory::sync(directory).await.map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// No journal: the last owner stopped cleanly, was Apache Kafka, or never began.
async fn recover_at_rest(
    directory: &Rc<Path>,
    folders: &[Folder],
    checkpoints: &Rc<RefCell<Checkpoints>>,
    report: &mut RecoveryReport,
) -> Result<(), LogError> {
    let clean = io::directory::metadata(&directory.join(CLEAN_SHUTDOWN)).await;
    report.was_sealed = clean.is_ok();
    report.was_clean = report.was_sealed || folders.is_empty();
    if report.was_clean {
        return Ok(());
    }
    report.logs_recovered = folders.len();
    let is_retired = lost::is_retired(directory).await?;
    let notices = Rc::new(RefCell::new(Vec::new()));
    let (shared, known) = (Rc::clone(&notices), Rc::clone(checkpoints));
    let flushes = Rc::new(open_flush_group(directory).await?);
    for_each_limited(folders.to_vec(), LOGS_AT_ONCE, move |folder| {
        let (notices, checkpoints) = (Rc::clone(&shared), Rc::clone(&known));
        let flushes = Rc::clone(&flushes);
        async move {
            let recovery_point = checkpoints.borrow().recovery_point(&folder);
            if !is_retired && folder.has_id() {
                let notice = lost::mark_lost_journal(&folder).await?;
                notices.borrow_mut().push(notice);
                return Ok(());
            }
            match kafka_style::recover_folder(&folder.path, recovery_point, &flushes).await {
                Ok(recovered) => {
                    checkpoints
                        .borrow_mut()
                        .set_recovery_point(&folder, recovered.log_end);
                    notices.borrow_mut().extend(recovered.notice);
                    Ok(())
                }
                Err(LogError::Damaged(what)) => {
                    notices.borrow_mut().push(what);
                    Ok(())
                }
                Err(error) => Err(error),
            }
        }
    })
    .await?;
    report.notices.append(&mut notices.borrow_mut());
    Ok(())
}

/// A journal is in force: it alone says where the logs that have an id of its incarnation end.
async fn recover_journalled(
    directory: &Rc<Path>,
    incarnation: Uuid,
    folders: &[Folder],
    checkpoints: &Rc<RefCell<Checkpoints>>,
    report: &mut RecoveryReport,
) -> Result<(), LogError> {
    let (rings, mut all) = replay_rings(directory, incarnation, folders, Access::Recover).await?;
    if all.replay.damaged > 0 {
        let count = all.replay.damaged;
        report
            .notices
            .push(format!("{count} journal cycles are damaged"));
    }
    report.notices.append(&mut all.lost_ends);
    for stranger in &all.replay.strangers {
        let id = Uuid(*stranger);
        report.notices.push(format!(
            "the journal names a log, {id}, that no directory carries"
        ));
    }
    report.notices.append(&mut all.losses.notices);
    report.damaged_rings = std::mem::take(&mut all.damaged_rings);
    let mut jobs = Vec::new();
    for folder in folders {
        match folder.id_of(incarnation) {
            folders::FolderId::Current(id) => {
                let (plan, ring) = all.take(&id);
                jobs.push(folders::Job {
                    folder: folder.clone(),
                    plan,
                    ring,
                });
            }
            folders::FolderId::Unreadable => {
                report
                    .notices
                    .push(folders::mark_unreadable_id(folder).await?);
            }
            folders::FolderId::AtRest => {}
        }
    }
    report.logs_recovered = jobs.len();
    let shared = Rc::new(folders::Shared {
        rings,
        checkpoints: Rc::clone(checkpoints),
        notices: RefCell::default(),
        flushes: open_flush_group(directory).await?,
    });
    let known = Rc::clone(&shared);
    for_each_limited(jobs, LOGS_AT_ONCE, move |job| {
        let shared = Rc::clone(&known);
        async move { folders::recover_job(job, &shared).await }
    })
    .await?;
    report.notices.append(&mut shared.notices.borrow_mut());
    let synced = io::directory::sync(directory).await;
    synced.map_err(|error| LogError::io(format!("syncing {}", directory.display()), error))
}

/// The plans of all journals.
pub(crate) struct AllPlans {
    replay: Replay,
    /// The file and position of each damaged cycle, and what is wrong; of one that was not found
    /// the folder of its ring.
    pub(crate) damages: Vec<(PathBuf, Option<u64>, String)>,
    /// Which ring a log's records lie in.
    ring_of: std::collections::BTreeMap<super::journal::record::LogId, usize>,
    /// Rings that end too early, one line each.
    lost_ends: Vec<String>,
    /// A damaged cycle could not be read: logs that nothing names may have lost all they had.
    concerns_unnamed: bool,
    /// Ring files that are gone.
    losses: lost::Losses,
    /// Rings with damaged cycles or with records of unknown logs.
    damaged_rings: Vec<ShardId>,
}

impl AllPlans {
    /// Ids that records name and no folder carries.
    pub(crate) fn strangers(&self) -> &[super::journal::record::LogId] {
        &self.replay.strangers
    }

    /// What is told of ring files that are gone.
    pub(crate) fn losses(&self) -> &[String] {
        &self.losses.notices
    }

    /// A log's plan, and in which ring its records lie.
    pub(crate) fn take(&mut self, id: &super::log_id_file::LogIdFile) -> (LogPlan, usize) {
        let ring = self.ring_of.get(&id.log_id).copied().unwrap_or_default();
        let mut plan = self.replay.plans.remove(&id.log_id).unwrap_or_else(|| {
            let mut plan = LogPlan::begin(id);
            if self.concerns_unnamed {
                plan.suspect = Some(plan.end);
            }
            plan
        });
        if let Some(cause) = self.losses.of_shard(id.shard) {
            plan.suspect_from(plan.end);
            plan.suspect_cause.get_or_insert(cause);
        }
        (plan, ring)
    }
}

impl AllPlans {
    /// A ring whose end is gone: where it ends, and what it must have had.
    fn note_lost_end(&mut self, chain: &chain::Chain, paths: &[PathBuf], ring: &Path) {
        let Some(chain::ChainStep::Damage(lost)) = chain.steps.last() else {
            return;
        };
        let Some((file, at)) = lost.place.filter(|_| chain.is_end_lost) else {
            return;
        };
        let path = paths.get(file).map_or(ring, PathBuf::as_path).display();
        let (first, last) = (lost.sequence, chain.last_sequence);
        self.lost_ends.push(format!(
            "{path} at byte {at}: cycles {first} to {last} were on the disk and are gone: journal \
             damage; what they held is lost"
        ));
    }

    fn note_damages(&mut self, chain: &chain::Chain, paths: &[PathBuf], ring: &Path) {
        for step in &chain.steps {
            let chain::ChainStep::Damage(cycle) = step else {
                continue;
            };
            let found = cycle
                .place
                .and_then(|(file, at)| paths.get(file).map(|path| (path.clone(), Some(at))));
            let (path, position) = found.unwrap_or_else(|| (ring.to_path_buf(), None));
            let what = format!("cycle {} is not what was written", cycle.sequence);
            self.damages.push((path, position, what));
        }
    }
}

/// Whose ring a folder holds.
fn shard_of(folder: &str) -> Option<ShardId> {
    let digits = folder.strip_prefix("shard-")?;
    digits.parse().ok().map(ShardId)
}

/// Reads all journals of a directory; no file is changed.
pub(crate) async fn replay_rings(
    directory: &Path,
    incarnation: Uuid,
    folders: &[Folder],
    access: Access,
) -> Result<(Vec<RingContents>, AllPlans), LogError> {
    let ids = folders
        .iter()
        .filter_map(|folder| match folder.id_of(incarnation) {
            folders::FolderId::Current(id) => Some((id.log_id, id)),
            _ => None,
        })
        .collect::<std::collections::BTreeMap<_, super::log_id_file::LogIdFile>>();
    let journal = directory.join(JOURNAL_FOLDER);
    let failed = |error| LogError::io(format!("listing {}", journal.display()), error);
    let mut rings = Vec::new();
    let mut all = AllPlans {
        replay: Replay::default(),
        damages: Vec::new(),
        ring_of: Default::default(),
        lost_ends: Vec::new(),
        concerns_unnamed: false,
        losses: lost::Losses::find(directory, incarnation, ids.values()).await?,
        damaged_rings: Vec::new(),
    };
    for entry in io::directory::list(&journal).await.map_err(failed)? {
        if !entry.is_directory || shard_of(&entry.name).is_none() {
            continue;
        }
        let mut contents = read_ring(&journal.join(&entry.name), incarnation, access).await?;
        let folder = journal.join(&entry.name);
        let witnessed = load_flushed(&folder, incarnation).await;
        let chain = assemble(std::mem::take(&mut contents.cycles), witnessed);
        for log_id in chain.named_logs() {
            all.ring_of.insert(log_id, rings.len());
        }
        all.concerns_unnamed |= chain
            .steps
            .iter()
            .any(|step| matches!(step, chain::ChainStep::Damage(cycle) if cycle.concerns_all));
        all.note_damages(&chain, &contents.paths, &folder);
        all.note_lost_end(&chain, &contents.paths, &folder);
        let before = (all.replay.damaged, all.replay.strangers.len());
        replay(&chain, &ids, &mut all.replay);
        if before != (all.replay.damaged, all.replay.strangers.len()) {
            all.damaged_rings.extend(shard_of(&entry.name));
        }
        rings.push(contents);
    }
    Ok((rings, all))
}
