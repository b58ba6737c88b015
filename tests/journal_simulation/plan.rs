//! What a seed stands for: the disk, the settings, how many lives, and what goes wrong in them.

use coreline::base::limits::{KIB, MIB};
use coreline::base::random::Random;
use coreline::log::seeded::SeededBug;

/// What a simulation dwells on; everything else happens too, but less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A bit of everything.
    Mixed,
    /// Many logs that get little: their bytes are copied forward in the ring.
    Quiet,
    /// More than the ring takes: appends wait.
    FullRing,
    /// Another tenant fills the disk.
    FullDisk,
    /// `write.caching` logs beside durable ones.
    WriteCaching,
    /// Writes and flushes that fail.
    Failures,
    /// Topics come and go.
    Deletions,
    /// Logs of small segments are cut, emptied, and lose their beginning.
    Truncations,
    /// Crashes during recovery, several times in a row.
    Recovery,
    /// Bit flips and zeroed blocks.
    Damage,
    /// Several log directories, one of which fails or is missing at a start. Not of [`THEMES`]:
    /// its seeds are [`Plan::with_directories`]'s.
    Directories,
}

/// Seed n has the theme n modulo their number.
pub const THEMES: [Theme; 10] = [
    Theme::Mixed,
    Theme::Quiet,
    Theme::FullRing,
    Theme::FullDisk,
    Theme::WriteCaching,
    Theme::Failures,
    Theme::Deletions,
    Theme::Truncations,
    Theme::Recovery,
    Theme::Damage,
];

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub theme: Theme,
    /// Log directories, at most one of which does not serve.
    pub directories: usize,
    pub disk_bytes: u64,
    pub journal_bytes: u64,
    pub cache_bytes: usize,
    /// Appends come in buffers of up to so many times their length.
    pub buffer_factor: u64,
    pub segment_bytes: u64,
    pub logs_max: usize,
    pub clients: usize,
    /// Operations of each client in each life.
    pub operations: usize,
    pub lives: u32,
    /// Most shards of a life.
    pub shards_max: u64,
    /// Largest of the ordinary values; one in `large_one_in` is up to `large_bytes`.
    pub value_bytes: u64,
    pub large_bytes: u64,
    pub large_one_in: u64,
    /// Some logs are compacted. Not of [`Plan::new`]: its seeds are [`Plan::with_compaction`]'s.
    pub compaction: bool,
    pub bug: Option<SeededBug>,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let theme = THEMES[(seed % THEMES.len() as u64) as usize];
        let mut random = Random::new(seed ^ 0x706c_616e);
        let rings = 2 + random.below(3);
        let mut plan = Self {
            seed,
            theme,
            directories: 1,
            disk_bytes: (128 + random.below(4) * 64) * MIB as u64,
            journal_bytes: rings * 3 * MIB as u64,
            cache_bytes: (32 + random.below(8) as usize) * MIB,
            buffer_factor: 1,
            segment_bytes: (256 << random.below(4)) * KIB as u64,
            logs_max: 2 + random.below(12) as usize,
            clients: 2 + random.below(8) as usize,
            operations: 15 + random.below(25) as usize,
            lives: 3 + random.below(3) as u32,
            shards_max: 3,
            value_bytes: 1 << (6 + random.below(9)),
            large_bytes: 600 * KIB as u64,
            large_one_in: 25,
            compaction: false,
            bug: None,
        };
        // A batch larger than a segment is refused.
        plan.large_bytes = plan.large_bytes.min(plan.segment_bytes - KIB as u64);
        match theme {
            Theme::Quiet => {
                plan.logs_max = 40 + random.below(40) as usize;
                plan.value_bytes = 600;
                plan.operations = 60;
                plan.large_one_in = 12;
                if random.chance(1, 2) {
                    // More partial blocks than may be copied forward.
                    plan.shards_max = 1;
                    plan.journal_bytes = 2 * MIB as u64;
                    plan.logs_max = 90;
                    plan.value_bytes = 4_000;
                }
            }
            Theme::FullRing => {
                plan.large_one_in = 4;
                plan.operations = 30;
                plan.journal_bytes = 6 * MIB as u64;
                plan.segment_bytes = 4 * MIB as u64;
            }
            Theme::FullDisk => plan.disk_bytes = 96 * MIB as u64,
            Theme::Recovery => plan.lives = 8,
            Theme::Truncations => {
                plan.segment_bytes = 64 * KIB as u64;
                plan.large_bytes = 60 * KIB as u64;
                plan.large_one_in = 6;
            }
            _ => {}
        }
        plan.limit_memory();
        plan
    }

    /// The plan of `seed` with two or three directories.
    pub fn with_directories(seed: u64) -> Self {
        let plan = Self::new(seed);
        Self {
            theme: Theme::Directories,
            directories: 2 + (seed / THEMES.len() as u64 % 2) as usize,
            disk_bytes: 640 * MIB as u64,
            logs_max: plan.logs_max.max(6),
            ..plan
        }
    }

    /// The plan of `seed` with compacted logs, few so that each gets much.
    pub fn with_compaction(seed: u64) -> Self {
        let plan = Self::new(seed);
        Self {
            compaction: true,
            logs_max: 2 + (seed / THEMES.len() as u64 % 3) as usize,
            operations: 60 + plan.operations,
            large_one_in: plan.large_one_in * 4,
            ..plan
        }
    }

    /// Every third plan has so little memory that batches are evicted all the time, write-back is
    /// forced and appends wait.
    fn limit_memory(&mut self) {
        let mut random = Random::new(self.seed ^ 0x6d65_6d6f);
        if random.chance(1, 3) {
            self.cache_bytes = (32 << random.below(7)) * KIB;
            self.buffer_factor = 1 + random.below(6);
        }
    }
}
