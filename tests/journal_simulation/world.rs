//! One simulation: a disk, a model, and one process after another on them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use coreline::base::random::Random;
use coreline::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use coreline::log::Log;
use coreline::log::seeded::seed_bug;
use coreline::shard::LogDirectories;

use crate::damage::{self, Damage};
use crate::directories::{self, Trouble};
use crate::life;
use crate::model::Model;
use crate::plan::{Plan, Theme};
use crate::verified;

/// The log directory on the simulated disk, where there is only one.
pub const DIRECTORY: &str = "/data";

pub struct World {
    pub plan: Plan,
    pub disk: SimDisk,
    pub model: RefCell<Model>,
    pub random: RefCell<Random>,
    /// Of the process that lives now.
    pub shards: RefCell<Vec<Rc<LogDirectories>>>,
    pub handles: RefCell<BTreeMap<u64, Rc<Log>>>,
    /// The first thing that was wrong.
    violation: RefCell<Option<String>>,
    /// Appends may be refused for want of room in this life.
    pub full_disk: Cell<bool>,
    /// An armed fault may take a shard offline in this life.
    pub failing: Cell<bool>,
    /// What is wrong with one of several directories in this life.
    pub trouble: Cell<Trouble>,
    /// Recovery has answered in this life.
    pub recovered: Cell<bool>,
    /// Everything is durable and vouched for: the last life came to rest.
    pub rested: Cell<bool>,
    /// What was damaged before this life.
    pub damage: RefCell<Option<Damage>>,
    /// What recovery told the operator in this life.
    pub notices: RefCell<Vec<String>>,
    /// This life ends in peace.
    pub peaceful: Cell<bool>,
    pub stats: RefCell<Stats>,
}

/// What happened, to see that a dose reaches what it should.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub lives: u64,
    pub crashes_in_recovery: u64,
    pub crashes_at_work: u64,
    pub clean_ends: u64,
    pub appends: u64,
    pub duplicates: u64,
    pub retries_after_start: u64,
    pub deletions: u64,
    /// Cuts, resets and moved log starts, and those of them that took batches away.
    pub changes: u64,
    pub cuts: u64,
    pub refused: u64,
    pub reads: u64,
    pub fault_hits: u64,
    /// Directories that were verified between two lives.
    pub verified: u64,
    /// Lives in which a directory was missing, and in which one failed while others served.
    pub missing_directories: u64,
    pub failed_directories: u64,
    /// Cleanings that came to their end, and the segments that they replaced.
    pub cleanings: u64,
    pub replaced_segments: u64,
    pub damages: u64,
    pub damaged_logs: u64,
    pub trace_hash: u64,
}

impl Stats {
    /// Adds up what happened in several simulations.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.lives, other.lives),
            (&mut self.crashes_in_recovery, other.crashes_in_recovery),
            (&mut self.crashes_at_work, other.crashes_at_work),
            (&mut self.clean_ends, other.clean_ends),
            (&mut self.appends, other.appends),
            (&mut self.duplicates, other.duplicates),
            (&mut self.retries_after_start, other.retries_after_start),
            (&mut self.deletions, other.deletions),
            (&mut self.changes, other.changes),
            (&mut self.cuts, other.cuts),
            (&mut self.refused, other.refused),
            (&mut self.reads, other.reads),
            (&mut self.fault_hits, other.fault_hits),
            (&mut self.verified, other.verified),
            (&mut self.missing_directories, other.missing_directories),
            (&mut self.failed_directories, other.failed_directories),
            (&mut self.cleanings, other.cleanings),
            (&mut self.replaced_segments, other.replaced_segments),
            (&mut self.damages, other.damages),
            (&mut self.damaged_logs, other.damaged_logs),
        ] {
            *mine += theirs;
        }
    }
}

impl World {
    fn new(plan: &Plan) -> Rc<Self> {
        let options = SimDiskOptions {
            total_bytes: plan.disk_bytes,
            ..SimDiskOptions::default()
        };
        Rc::new(Self {
            plan: plan.clone(),
            disk: SimDisk::new(options, plan.seed),
            model: RefCell::default(),
            random: RefCell::new(Random::new(plan.seed)),
            shards: RefCell::default(),
            handles: RefCell::default(),
            violation: RefCell::default(),
            full_disk: Cell::new(false),
            failing: Cell::new(false),
            trouble: Cell::new(Trouble::None),
            recovered: Cell::new(false),
            rested: Cell::new(false),
            damage: RefCell::default(),
            notices: RefCell::default(),
            peaceful: Cell::new(false),
            stats: RefCell::default(),
        })
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.random.borrow_mut().below(bound)
    }

    pub fn one_in(&self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn next_u64(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// Notes what is wrong; the life ends with it.
    pub fn accuse(&self, what: impl Into<String>) {
        self.violation.borrow_mut().get_or_insert(what.into());
    }

    pub fn check(&self, result: Result<(), String>) {
        if let Err(what) = result {
            self.accuse(what);
        }
    }

    pub fn is_broken(&self) -> bool {
        self.violation.borrow().is_some()
    }

    /// One process from its start to its end; the last one ends in peace.
    fn live(self: &Rc<Self>, is_last: bool) -> Result<(), String> {
        let mut runtime = SimRuntime::new(&self.disk, self.next_u64());
        let in_peace = is_last || self.one_in(5);
        self.peaceful.set(in_peace);
        self.full_disk.set(false);
        self.failing.set(false);
        self.rested.set(false);
        self.recovered.set(false);
        self.disk.clear_faults();
        self.check_verified()?;
        directories::prepare(self, is_last);
        let early = self.plan.theme == Theme::Recovery && self.one_in(2) || self.one_in(6);
        if !in_peace && early {
            let steps = 1 << self.below(13);
            self.disk.crash_after(1 + self.below(steps));
        }
        self.stats.borrow_mut().lives += 1;
        let ended = runtime.block_on(life::run(Rc::clone(self)));
        self.handles.borrow_mut().clear();
        let shards = self.shards.take();
        let all = shards.iter().flat_map(|shard| shard.iter());
        all.for_each(|logs| logs.forget());
        drop(shards);
        drop(runtime);
        if let Some(what) = self.violation.take() {
            let damage = self.damage.borrow();
            let notices = self.notices.borrow();
            let context = damage
                .as_ref()
                .map(|damage| format!("; {damage:?}, {notices:?}"));
            return Err(format!("{what}{}", context.unwrap_or_default()));
        }
        let recovered = self.recovered.get();
        {
            let mut stats = self.stats.borrow_mut();
            stats.clean_ends += u64::from(ended == Ok(true));
            stats.crashes_in_recovery += u64::from(ended.is_err() && !recovered);
            stats.crashes_at_work += u64::from(ended.is_err() && recovered);
        }
        if ended != Ok(true) {
            self.end_badly();
        }
        Ok(())
    }

    /// Between some lives, while nothing was damaged yet.
    fn check_verified(&self) -> Result<(), String> {
        let (lives, damages) = {
            let stats = self.stats.borrow();
            (stats.lives, stats.damages)
        };
        let is_turn = (self.plan.seed + lives).is_multiple_of(2);
        if lives == 0 || damages > 0 || !is_turn {
            return Ok(());
        }
        self.disk.never_crash();
        self.stats.borrow_mut().verified += 1;
        (0..self.plan.directories).try_for_each(|number| verified::check(self, number))
    }

    fn end_badly(&self) {
        let seed = self.next_u64();
        let may_damage = self.rested.get() && self.plan.directories == 1;
        if may_damage && (self.plan.theme == Theme::Damage || self.one_in(8)) {
            self.disk.kill(seed);
            self.disk.pass_time(Duration::from_secs(1));
            let damage = damage::strike(self);
            let in_journal = damage.as_ref().is_some_and(Damage::is_in_journal);
            self.model.borrow_mut().journal_damaged |= in_journal;
            *self.damage.borrow_mut() = damage;
            self.stats.borrow_mut().damages += u64::from(self.damage.borrow().is_some());
            return;
        }
        // Faults of the device do not outlive the process, or recovery could not be judged.
        if self.one_in(2) {
            self.disk.power_cut(seed);
            self.model.borrow_mut().power_lost = true;
        } else {
            self.disk.kill(seed);
            if self.one_in(8) {
                self.disk.power_cut(seed);
                self.model.borrow_mut().power_lost = true;
            }
        }
    }
}

fn run_lives(world: &Rc<World>) -> Result<(), String> {
    for life in 0..world.plan.lives {
        world
            .live(false)
            .map_err(|what| format!("life {life}: {what}"))?;
    }
    for life in ["the last life", "the life after a clean end"] {
        world.live(true).map_err(|what| format!("{life}: {what}"))?;
    }
    Ok(())
}

/// Each file and its length: shows what fills a disk.
fn print_files(disk: &SimDisk, folder: &str) {
    for (name, is_directory) in disk.list(folder).unwrap_or_default() {
        let path = format!("{folder}/{name}");
        if is_directory {
            print_files(disk, &path);
        } else {
            println!(
                "{path} {}",
                disk.contents(&path).map_or(0, |bytes| bytes.len())
            );
        }
    }
}

/// Runs a whole simulation. The error says what was wrong.
pub fn simulate(plan: &Plan) -> Result<Stats, String> {
    seed_bug(plan.bug);
    let world = World::new(plan);
    let is_traced = std::env::var_os("CORELINE_SIM_TRACE").is_some();
    if is_traced {
        world.disk.keep_trace();
    }
    let ran = catch_unwind(AssertUnwindSafe(|| run_lives(&world)));
    seed_bug(None);
    let result = ran.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| {
            payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
        });
        Err(format!("panicked: {}", text.unwrap_or_default()))
    });
    for line in world.disk.trace_lines() {
        println!("{line}");
    }
    if result.is_err() && is_traced {
        let all = (0..plan.directories).map(|number| directories::path(&world, number));
        all.for_each(|path| print_files(&world.disk, &path));
    }
    let mut stats = world.stats.borrow().clone();
    stats.trace_hash = world.disk.trace_hash();
    stats.fault_hits = world.disk.fault_hits();
    // The code under test may keep itself alive in a circle; the disk's memory must not stay.
    world.disk.forget_everything();
    result.map(|()| stats)
}
