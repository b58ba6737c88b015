//! What a disk without room means to producers and to operators. The answer, KAFKA_STORAGE_ERROR,
//! is one that producers take for passing and try again, so that they look hung: a line in the log
//! says why, one every ten seconds at most, and a counter counts.

use std::cell::Cell;
use std::time::Duration;

use super::admission::Admitted;
use super::config::AppendOrigin;
use super::error::AppendError;
use super::partition_log::Log;
use crate::base::time::MonotonicNs;
use crate::io;
use crate::metrics::Counter;

/// Between two lines; so long without a refusal the disk has room again.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// How much is left on the disk of a log directory, as whoever watches it tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskRoom {
    /// Appends take what they need, ahead too.
    #[default]
    Enough,
    /// Blocks are reserved in the smallest steps.
    Little,
    /// What is left is kept for deletes, offsets and metadata: clients' appends are refused.
    Reserve,
}

/// One a shard and directory.
#[derive(Debug, Default)]
pub(crate) struct FullDisk {
    room: Cell<DiskRoom>,
    /// Refusals since the last line.
    untold: Cell<u64>,
    told_at: Cell<Option<MonotonicNs>>,
    refused_at: Cell<Option<MonotonicNs>>,
}

impl FullDisk {
    pub(crate) fn room(&self) -> DiskRoom {
        self.room.get()
    }

    pub(crate) fn set_room(&self, room: DiskRoom) {
        self.room.set(room);
    }

    /// Takes note of a refusal. When a line is due: how many there were since the last one.
    fn note_refused(&self, now: MonotonicNs) -> Option<u64> {
        self.refused_at.set(Some(now));
        self.untold.set(self.untold.get() + 1);
        let told_at = self.told_at.get();
        if told_at.is_some_and(|told_at| now.since(told_at) < LINE_INTERVAL) {
            return None;
        }
        self.told_at.set(Some(now));
        Some(self.untold.take())
    }

    /// Takes note of an append that was taken. True when that is worth a line.
    fn note_taken(&self, now: MonotonicNs) -> bool {
        let refused_at = self.refused_at.get();
        let is_over = refused_at.is_some_and(|at| now.since(at) >= LINE_INTERVAL);
        if is_over {
            self.refused_at.set(None);
        }
        is_over
    }
}

impl Log {
    /// Refuses whoever is not to take the last of the disk.
    pub(crate) fn check_reserve(&self, origin: AppendOrigin) -> Result<(), AppendError> {
        if origin == AppendOrigin::Client && self.shard.full_disk.room() == DiskRoom::Reserve {
            let what = "less than coreline.disk.reserve.bytes is free on its disk";
            return Err(AppendError::StorageFull(what.to_owned()));
        }
        Ok(())
    }

    /// Counts and tells refusals for want of room, and their end.
    pub(crate) fn note_admission(&self, admitted: &Result<Admitted, AppendError>) {
        let full_disk = &self.shard.full_disk;
        match admitted {
            Err(AppendError::StorageFull(what)) => {
                self.shard.metrics.add(Counter::AppendsWithoutRoom, 1);
                if let Some(count) = full_disk.note_refused(io::now()) {
                    let folder = self.folder.display();
                    tracing::error!(
                        "appends are refused, which producers try again until they give up: \
                         {folder}: {what}; {count} refused on this shard since it was last told"
                    );
                }
            }
            Ok(_) if full_disk.refused_at.get().is_some() && full_disk.note_taken(io::now()) => {
                tracing::info!("the disk has room again: appends are taken");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_once_in_ten_seconds_with_their_number() {
        let full_disk = FullDisk::default();
        let at = |ms: u64| MonotonicNs(ms * 1_000_000);
        assert!(!full_disk.note_taken(at(0)));
        assert_eq!(full_disk.note_refused(at(1)), Some(1));
        for ms in 2..10_001 {
            assert_eq!(full_disk.note_refused(at(ms)), None, "{ms}");
        }
        assert_eq!(full_disk.note_refused(at(10_001)), Some(10_000));
        assert!(!full_disk.note_taken(at(20_000)), "too early to say");
        assert!(full_disk.note_taken(at(20_001)));
        assert!(!full_disk.note_taken(at(20_002)), "told once");
        assert_eq!(full_disk.note_refused(at(20_003)), Some(1));
    }
}
