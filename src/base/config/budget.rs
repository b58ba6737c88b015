//! How memory and disk are shared out (DESIGN: own settings).

use super::broker::BrokerConfig;
use crate::base::limits::MIB;

/// What the process runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory that the machine or the cgroup allows.
    pub memory_bytes: u64,
    /// Size of the disk under the data folder.
    pub disk_bytes: u64,
}

/// Bytes of the whole process; each shard gets its part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Cap of the process.
    pub memory_bytes: u64,
    /// Tail caches, what they pin for write-back included.
    pub cache_bytes: u64,
    /// Bodies of requests and answers in flight.
    pub requests_bytes: u64,
    /// Live journal bytes.
    pub journal_bytes: u64,
    /// Disk space that appends leave free.
    pub disk_reserve_bytes: u64,
}

/// Largest journal that is chosen without a setting.
const JOURNAL_BYTES_DEFAULT: u64 = 1 << 30;
/// Largest disk reserve that is chosen without a setting.
const DISK_RESERVE_BYTES_DEFAULT: u64 = 256 * MIB as u64;
/// Smallest cap that is chosen without a setting.
const MEMORY_BYTES_MIN: u64 = 64 * MIB as u64;

impl Budgets {
    /// The settings, and for what is not set a share of the machine. What is given for cache and
    /// requests together never exceeds the cap: the greater of the two gives way.
    #[must_use]
    pub fn divide(config: &BrokerConfig, machine: Machine) -> Self {
        let memory_bytes = config
            .memory_bytes
            .unwrap_or_else(|| (machine.memory_bytes / 2).max(MEMORY_BYTES_MIN));
        let mut cache_bytes = config.cache_bytes.unwrap_or(memory_bytes / 2);
        let mut requests_bytes = config.requests_bytes.unwrap_or(memory_bytes / 4);
        requests_bytes = requests_bytes.min(memory_bytes / 2);
        cache_bytes = cache_bytes.min(memory_bytes - requests_bytes);
        Self {
            memory_bytes,
            cache_bytes,
            requests_bytes,
            journal_bytes: config
                .journal_bytes
                .unwrap_or_else(|| JOURNAL_BYTES_DEFAULT.min(machine.disk_bytes / 16)),
            disk_reserve_bytes: config
                .disk_reserve_bytes
                .unwrap_or_else(|| DISK_RESERVE_BYTES_DEFAULT.min(machine.disk_bytes / 50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn shares_follow_the_machine() {
        let machine = Machine {
            memory_bytes: 24 * GIB,
            disk_bytes: 100 * GIB,
        };
        let budgets = Budgets::divide(&BrokerConfig::default(), machine);
        assert_eq!(budgets.memory_bytes, 12 * GIB);
        assert_eq!(budgets.cache_bytes, 6 * GIB);
        assert_eq!(budgets.requests_bytes, 3 * GIB);
        assert_eq!(budgets.journal_bytes, GIB);
        assert_eq!(budgets.disk_reserve_bytes, 256 * MIB as u64);
        let small = Machine {
            memory_bytes: GIB / 16,
            disk_bytes: GIB,
        };
        let budgets = Budgets::divide(&BrokerConfig::default(), small);
        assert_eq!(budgets.memory_bytes, MEMORY_BYTES_MIN);
        assert_eq!(budgets.journal_bytes, GIB / 16);
        assert_eq!(budgets.disk_reserve_bytes, GIB / 50);
    }

    #[test]
    fn the_parts_never_exceed_the_cap() {
        let config = BrokerConfig {
            memory_bytes: Some(GIB),
            cache_bytes: Some(4 * GIB),
            requests_bytes: Some(4 * GIB),
            ..BrokerConfig::default()
        };
        let machine = Machine {
            memory_bytes: GIB,
            disk_bytes: GIB,
        };
        let budgets = Budgets::divide(&config, machine);
        assert!(budgets.cache_bytes + budgets.requests_bytes <= budgets.memory_bytes);
        assert!(budgets.cache_bytes > 0 && budgets.requests_bytes > 0);
    }
}
