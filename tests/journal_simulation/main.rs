//! The log and its journal on the simulated disk (JOURNAL §8): every log compared with a model
//! after power cuts and kills at any step, crashes during recovery, changed shard counts, a full
//! ring, a full disk, failing writes and flushes, damage; and several directories, one of which
//! fails or is missing; and compacted logs that are cleaned beside all that.
//!
//! `CORELINE_SIM_SEEDS=2000` sets the dose (100 by default); seed n belongs to theme n modulo 10. A
//! tenth of the dose, all themes in it, runs a second time and must leave the same trace.
//! A seed that fails prints itself: `CORELINE_SIM_SEED=n cargo test --features sim --test
//! journal_simulation one_seed -- --nocapture` replays it, `CORELINE_SIM_TRACE=1` adds its last
//! operations.
#![cfg(feature = "sim")]

mod changes;
mod client;
mod compaction;
mod damage;
mod directories;
mod life;
mod logs;
mod model;
mod model_test;
mod payload;
mod plan;
mod retries;
mod seeded_test;
mod verified;
mod world;

use plan::{Plan, THEMES, Theme};
use world::{Stats, simulate};

/// Simulations of one run of these tests, all themes together.
const SEEDS: u64 = 100;
/// Failures that are printed in full.
const TOLD_MAX: usize = 5;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The dose.
fn seeds() -> u64 {
    number("CORELINE_SIM_SEEDS").unwrap_or(SEEDS)
}

/// Runs the part of the dose that belongs to `theme`.
fn run_theme(theme: Theme) -> Stats {
    let (mut failed, mut sum, mut count) = (Vec::new(), Stats::default(), 0);
    let first = THEMES.iter().position(|other| *other == theme);
    let first = first.expect("a theme of the list") as u64;
    for seed in (first..seeds()).step_by(THEMES.len()) {
        count += 1;
        match simulate(&Plan::new(seed)) {
            Ok(stats) => sum.add(&stats),
            Err(what) => {
                if failed.len() < TOLD_MAX {
                    println!("CORELINE_SIM_SEED={seed} ({theme:?}): {what}");
                }
                failed.push(seed);
            }
        }
    }
    println!("{count} seeds of {theme:?}: {sum:?}");
    assert!(
        failed.is_empty(),
        "{} of {count} seeds of {theme:?} failed: {failed:?}",
        failed.len()
    );
    sum
}

#[test]
fn model_every_seed() {
    let stats = run_theme(Theme::Mixed);
    assert!(stats.appends > 0 && stats.crashes_at_work > 0 && stats.duplicates > 0);
    assert!(stats.retries_after_start > 0);
}

#[test]
fn quiet_logs_are_copied_forward() {
    run_theme(Theme::Quiet);
}

#[test]
fn full_ring() {
    run_theme(Theme::FullRing);
}

#[test]
fn full_disk() {
    let stats = run_theme(Theme::FullDisk);
    assert!(stats.refused > 0, "the disk was never full");
}

#[test]
fn write_caching_leaves_a_tear() {
    run_theme(Theme::WriteCaching);
}

#[test]
fn failed_writes_and_flushes() {
    let stats = run_theme(Theme::Failures);
    assert!(stats.fault_hits > 0, "nothing failed");
}

#[test]
fn topic_deletions() {
    let stats = run_theme(Theme::Deletions);
    assert!(stats.deletions > 0);
}

#[test]
fn truncations() {
    let stats = run_theme(Theme::Truncations);
    assert!(stats.cuts > 0 && stats.changes > stats.cuts);
}

#[test]
fn crash_during_recovery() {
    let stats = run_theme(Theme::Recovery);
    assert!(stats.crashes_in_recovery > 0);
}

#[test]
fn flips_and_zeroed_blocks() {
    let stats = run_theme(Theme::Damage);
    assert!(stats.damages > 0);
}

#[test]
fn a_directory_fails_or_is_missing_and_the_others_lose_nothing() {
    let run = |seed| simulate(&Plan::with_directories(seed)).map_err(|what| (seed, what));
    let mut sum = Stats::default();
    let seeds = number("CORELINE_SIM_SEED").map_or(0..seeds() / 12, |seed| seed..seed + 1);
    let alone = seeds.end - seeds.start == 1;
    for outcome in seeds.map(run) {
        match outcome {
            Ok(stats) => sum.add(&stats),
            Err((seed, what)) => panic!("CORELINE_SIM_SEED={seed} (directories): {what}"),
        }
    }
    println!("{sum:?}");
    assert!(alone || sum.missing_directories > 0 && sum.failed_directories > 0);
}

#[test]
fn compacted_logs_keep_the_last_of_each_key() {
    let run = |seed| simulate(&Plan::with_compaction(seed)).map_err(|what| (seed, what));
    let (mut sum, mut failed) = (Stats::default(), Vec::new());
    let seeds = number("CORELINE_SIM_SEED").map_or(0..seeds() / 25, |seed| seed..seed + 1);
    let count = seeds.end - seeds.start;
    for outcome in seeds.map(run) {
        match outcome {
            Ok(stats) => sum.add(&stats),
            Err((seed, what)) => {
                if failed.len() < TOLD_MAX {
                    println!("CORELINE_SIM_SEED={seed} (compaction): {what}");
                }
                failed.push(seed);
            }
        }
    }
    println!("{sum:?}");
    assert!(failed.is_empty(), "{failed:?}");
    let is_dose = count >= SEEDS / 25;
    assert!(!is_dose || sum.replaced_segments > 4 * count && sum.cleanings > 2 * count);
}

#[test]
fn a_seed_replays_bit_identically() {
    let replayed = (seeds() / 10).max(THEMES.len() as u64);
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 0..replayed {
        let plan = Plan::new(seed);
        let first = simulate(&plan);
        assert_eq!(first, simulate(&plan), "seed {seed}");
        hashes.insert(first.map_or(0, |stats| stats.trace_hash));
    }
    let compaction = Plan::with_compaction(replayed);
    assert_eq!(simulate(&compaction), simulate(&compaction), "compaction");
    assert_eq!(
        hashes.len() as u64,
        replayed,
        "different seeds, different histories"
    );
}

/// Replays the seed that `CORELINE_SIM_SEED` names; seed 0 without it.
#[test]
fn one_seed() {
    let plan = Plan::new(number("CORELINE_SIM_SEED").unwrap_or(0));
    match simulate(&plan) {
        Ok(stats) => println!("seed {}, {:?}: {stats:?}", plan.seed, plan.theme),
        Err(what) => panic!("seed {}, {:?}: {what}", plan.seed, plan.theme),
    }
}

/// Seeds past the small dose that told a fault of the log or of what judges it.
#[test]
fn seeds_that_told_a_fault() {
    for seed in [357, 439, 598, 806, 849] {
        let outcome = simulate(&Plan::new(seed));
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}
