//! How much room the disk of a log directory has: looked at by the control thread, shown by the
//! admin thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::config::{BrokerConfig, disk_bounds};
use crate::io::directory::Space;
use crate::log::DiskRoom;

/// Below so many reserves blocks are reserved in small steps, and the disk is looked at more often.
const LITTLE_FACTOR: u64 = 4;
/// Nobody has looked yet.
const UNKNOWN: u64 = u64::MAX;

/// Free bytes of a disk that mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskBounds {
    /// `coreline.disk.reserve.bytes`
    pub reserve_bytes: u64,
    /// `coreline.disk.low.bytes`
    pub low_bytes: u64,
}

impl DiskBounds {
    /// What so many free bytes mean to the shards. Pure.
    #[must_use]
    pub const fn room(&self, free_bytes: u64) -> DiskRoom {
        if free_bytes < self.reserve_bytes {
            DiskRoom::Reserve
        } else if free_bytes < self.reserve_bytes.saturating_mul(LITTLE_FACTOR) {
            DiskRoom::Little
        } else {
            DiskRoom::Enough
        }
    }

    /// Whether an operator should know. Pure.
    #[must_use]
    pub const fn is_low(&self, free_bytes: u64) -> bool {
        free_bytes < self.low_bytes || free_bytes < self.reserve_bytes
    }
}

/// One a log directory.
#[derive(Debug)]
pub struct DiskGauge {
    directory: PathBuf,
    config: Arc<BrokerConfig>,
    free_bytes: AtomicU64,
    total_bytes: AtomicU64,
}

impl DiskGauge {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(directory: PathBuf, config: &Arc<BrokerConfig>) -> Self {
        Self {
            directory,
            config: Arc::clone(config),
            free_bytes: AtomicU64::new(UNKNOWN),
            total_bytes: AtomicU64::new(UNKNOWN),
        }
    }

    /// The log directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What its free bytes are held against.
    #[must_use]
    pub fn bounds(&self, space: Space) -> DiskBounds {
        let (reserve_bytes, low_bytes) = disk_bounds(&self.config, space.total_bytes);
        DiskBounds {
            reserve_bytes,
            low_bytes,
        }
    }

    /// Takes in what the file system says.
    pub fn set(&self, space: Space) {
        self.total_bytes.store(space.total_bytes, Ordering::Relaxed);
        self.free_bytes
            .store(space.available_bytes, Ordering::Relaxed);
    }

    /// What it said last; `None` before that.
    #[must_use]
    pub fn space(&self) -> Option<Space> {
        let free_bytes = self.free_bytes.load(Ordering::Relaxed);
        (free_bytes != UNKNOWN).then(|| Space {
            total_bytes: self.total_bytes.load(Ordering::Relaxed),
            available_bytes: free_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_judged_at_each_bound_and_one_byte_past_it() {
        let bounds = DiskBounds {
            reserve_bytes: 100,
            low_bytes: 1_000,
        };
        assert_eq!(bounds.room(99), DiskRoom::Reserve);
        assert_eq!(bounds.room(100), DiskRoom::Little);
        assert_eq!(bounds.room(399), DiskRoom::Little);
        assert_eq!(bounds.room(400), DiskRoom::Enough);
        assert!(bounds.is_low(999) && !bounds.is_low(1_000));
        let without = DiskBounds {
            reserve_bytes: 0,
            low_bytes: 0,
        };
        assert_eq!(without.room(0), DiskRoom::Enough);
        assert!(!without.is_low(0));
        let all = DiskBounds {
            reserve_bytes: u64::MAX,
            low_bytes: 0,
        };
        assert_eq!(all.room(u64::MAX - 1), DiskRoom::Reserve);
        assert!(all.is_low(u64::MAX - 1), "refusing without a warning");
    }
}
