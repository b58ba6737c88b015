//! How memory and disk are shared out (DESIGN: own settings).

use super::broker::BrokerConfig;
use crate::base::limits::MIB;

/// What the process runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory that the machine or the cgroup allows.
    pub memory_bytes: u64,
    /// Size of the largest disk under the data folders.
    pub disk_bytes: u64,
}

/// Bytes of the whole process; each shard gets its part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Cap of the process.
    pub memory_bytes: u64,
    /// Tail caches, what they pin for write-back and the logs' indexes included.
    pub cache_bytes: u64,
    /// Bodies of requests and answers in flight.
    pub requests_bytes: u64,
    /// Connections, with what each holds while nothing is asked, and fetch sessions.
    pub connections_bytes: u64,
    /// Tables of keys of the cleaner.
    pub cleaner_bytes: u64,
    /// Live journal bytes of each log directory.
    pub journal_bytes: u64,
}

/// Why a cap cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "coreline.memory={given} is too little for {shards} shards with {directories} log \
     directories: set at least {least}, or fewer coreline.cores"
)]
pub struct TooLittleMemory {
    /// What was set.
    pub given: u64,
    /// How many shards share it.
    pub shards: usize,
    /// How many directories each of them has a journal and a tail cache for.
    pub directories: usize,
    /// The least that works.
    pub least: u64,
}

/// Largest journal that is chosen without a setting.
const JOURNAL_BYTES_DEFAULT: u64 = 1 << 30;
/// Largest disk reserve that is chosen without a setting, and the part of the disk that it is at
/// most.
const DISK_RESERVE_BYTES_DEFAULT: u64 = 256 * MIB as u64;
const DISK_RESERVE_DIVISOR: u64 = 50;
/// Without a setting operators are warned of this part of the disk, or twice the reserve.
const DISK_LOW_DIVISOR: u64 = 10;
/// Smallest cap that is chosen without a setting.
const MEMORY_BYTES_MIN: u64 = 64 * MIB as u64;

/// What the process takes whatever it does: its code, the control thread, metadata.
const PROCESS_BYTES: u64 = 20 * MIB as u64;
/// What each shard takes whatever it does: stack, rings, histograms.
const SHARD_BYTES: u64 = 4 * MIB as u64;
/// Least beside that with which a shard can work on one log directory: its journal and its tail
/// cache are its own, so that one that waits for its disk takes nothing from the others.
const DIRECTORY_BYTES_MIN: u64 = 12 * MIB as u64;
/// The part of what is left that no budget gets: what the allocator cannot use.
const SLACK_DIVISOR: u64 = 8;
/// The cleaner's tables get at most this part of what is left.
const CLEANER_DIVISOR: u64 = 16;

impl Budgets {
    /// What no budget holds, with `shards` shards.
    #[must_use]
    pub fn fixed_bytes(shards: usize) -> u64 {
        PROCESS_BYTES + SHARD_BYTES * shards as u64
    }

    /// The least `coreline.memory` for `shards` shards with so many log directories.
    #[must_use]
    pub fn memory_bytes_min(shards: usize, directories: usize) -> u64 {
        Self::fixed_bytes(shards) + DIRECTORY_BYTES_MIN * (shards * directories.max(1)) as u64
    }

    /// The settings, and for what is not set a share of what `shards` shards leave of the cap. All
    /// parts together with what is fixed never exceed it: what is given beyond that gives way.
    ///
    /// # Errors
    /// [`TooLittleMemory`] when the cap is below [`Self::memory_bytes_min`].
    pub fn divide(
        config: &BrokerConfig,
        machine: Machine,
        shards: usize,
    ) -> Result<Self, TooLittleMemory> {
        let directories = config.log_dirs.len();
        let least = Self::memory_bytes_min(shards, directories);
        let chosen = (machine.memory_bytes / 2).max(MEMORY_BYTES_MIN).max(least);
        let memory_bytes = config.memory_bytes.unwrap_or(chosen);
        if memory_bytes < least {
            return Err(TooLittleMemory {
                given: memory_bytes,
                shards,
                directories,
                least,
            });
        }
        let left = memory_bytes - Self::fixed_bytes(shards);
        let left = left - left / SLACK_DIVISOR;
        let cleaner_bytes = match config.cleaner.is_enabled {
            true => (config.cleaner.dedupe_bytes as u64).min(left / CLEANER_DIVISOR),
            false => 0,
        };
        let left = left - cleaner_bytes;
        let connections_bytes = left / 8;
        let left = left - connections_bytes;
        let requests_bytes = config.requests_bytes.unwrap_or(left / 7 * 2);
        let requests_bytes = requests_bytes.min(left / 2);
        let left = left - requests_bytes;
        // With its write buffers, at most a quarter of it.
        let cache_bytes_max = left / 5 * 4;
        let cache_bytes = config.cache_bytes.unwrap_or(cache_bytes_max);
        Ok(Self {
            memory_bytes,
            cache_bytes: cache_bytes.min(cache_bytes_max),
            requests_bytes,
            connections_bytes,
            cleaner_bytes,
            journal_bytes: config
                .journal_bytes
                .unwrap_or_else(|| JOURNAL_BYTES_DEFAULT.min(machine.disk_bytes / 16)),
        })
    }
}

/// Free bytes of one disk below which clients' appends are refused, and below which operators are
/// warned.
#[must_use]
pub fn disk_bounds(config: &BrokerConfig, disk_bytes: u64) -> (u64, u64) {
    let reserve = config.disk_reserve_bytes;
    let reserve = reserve
        .unwrap_or_else(|| DISK_RESERVE_BYTES_DEFAULT.min(disk_bytes / DISK_RESERVE_DIVISOR));
    let low = config.disk_low_bytes;
    let low = low.unwrap_or_else(|| (disk_bytes / DISK_LOW_DIVISOR).max(reserve.saturating_mul(2)));
    (reserve, low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits::write_buffer_bytes;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = super::MIB as u64;

    fn folders(count: usize) -> Vec<std::path::PathBuf> {
        (0..count).map(|number| number.to_string().into()).collect()
    }

    fn divide(
        memory_bytes: u64,
        shards: usize,
        directories: usize,
    ) -> Result<Budgets, TooLittleMemory> {
        let config = BrokerConfig {
            memory_bytes: Some(memory_bytes),
            log_dirs: folders(directories),
            ..BrokerConfig::default()
        };
        let machine = Machine {
            memory_bytes: GIB,
            disk_bytes: 100 * GIB,
        };
        Budgets::divide(&config, machine, shards)
    }

    #[test]
    fn shares_follow_the_machine() -> Result<(), TooLittleMemory> {
        let machine = Machine {
            memory_bytes: 24 * GIB,
            disk_bytes: 100 * GIB,
        };
        let budgets = Budgets::divide(&BrokerConfig::default(), machine, 2)?;
        assert_eq!(budgets.memory_bytes, 12 * GIB);
        assert!(budgets.cache_bytes > 5 * GIB && budgets.requests_bytes > 2 * GIB);
        assert_eq!(budgets.journal_bytes, GIB);
        let small = Machine {
            memory_bytes: GIB / 16,
            disk_bytes: GIB,
        };
        let budgets = Budgets::divide(&BrokerConfig::default(), small, 1)?;
        assert_eq!(budgets.memory_bytes, MEMORY_BYTES_MIN);
        assert_eq!(budgets.journal_bytes, GIB / 16);
        Ok(())
    }

    #[test]
    fn what_is_kept_of_a_disk_follows_its_size_or_the_settings() {
        let unset = BrokerConfig::default();
        assert_eq!(disk_bounds(&unset, 100 * GIB), (256 * MIB, 10 * GIB));
        assert_eq!(disk_bounds(&unset, GIB), (GIB / 50, GIB / 10));
        let set = BrokerConfig {
            disk_reserve_bytes: Some(GIB),
            ..BrokerConfig::default()
        };
        assert_eq!(disk_bounds(&set, GIB), (GIB, 2 * GIB), "what is set holds");
    }

    #[test]
    fn the_parts_and_what_is_fixed_never_exceed_the_cap() -> Result<(), TooLittleMemory> {
        for (shards, directories) in [(1, 1), (2, 1), (4, 1), (16, 1), (64, 1), (1, 3), (4, 8)] {
            for memory in [64 * MIB, 96 * MIB, 256 * MIB, GIB, 64 * GIB] {
                for (cache, requests) in [(None, None), (Some(GIB), Some(1)), (None, Some(GIB))] {
                    let config = BrokerConfig {
                        memory_bytes: Some(memory),
                        cache_bytes: cache,
                        requests_bytes: requests,
                        log_dirs: folders(directories),
                        ..BrokerConfig::default()
                    };
                    let machine = Machine {
                        memory_bytes: GIB,
                        disk_bytes: GIB,
                    };
                    if memory < Budgets::memory_bytes_min(shards, directories) {
                        assert!(Budgets::divide(&config, machine, shards).is_err());
                        continue;
                    }
                    let budgets = Budgets::divide(&config, machine, shards)?;
                    let caches = shards * directories;
                    let cache = usize::try_from(budgets.cache_bytes).unwrap_or(0) / caches;
                    let writes = (caches * write_buffer_bytes(cache)) as u64;
                    let parts = budgets.cache_bytes
                        + writes
                        + budgets.requests_bytes
                        + budgets.connections_bytes;
                    let fixed = Budgets::fixed_bytes(shards);
                    assert!(parts + fixed <= memory, "{memory} {shards} {budgets:?}");
                    assert!(budgets.cache_bytes > 0 && budgets.requests_bytes > 0);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn the_least_memory_is_enough_and_a_byte_less_is_refused() {
        for (shards, directories) in [(1, 1), (2, 1), (8, 1), (1, 2), (2, 3)] {
            let least = Budgets::memory_bytes_min(shards, directories);
            assert!(divide(least, shards, directories).is_ok());
            let refused = divide(least - 1, shards, directories);
            assert_eq!(refused.map_err(|refused| refused.least), Err(least));
        }
        assert!(Budgets::memory_bytes_min(2, 1) <= 64 * MIB);
    }
}
