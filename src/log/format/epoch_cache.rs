//! The leader epochs of a log and the offsets at which they began (`LeaderEpochFileCache`), and
//! their file, `leader-epoch-checkpoint`. Followers and consumers truncate by it (KIP-101, KIP-279,
//! KIP-320).

use super::FormatError;
use super::text::{decode_checkpoint, encode_checkpoint};
use crate::base::ids::{LeaderEpoch, Offset};

/// A leader epoch and its first offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEntry {
    /// The epoch.
    pub leader_epoch: LeaderEpoch,
    /// The offset of its first record.
    pub start_offset: Offset,
}

/// Epochs in order. Both epochs and offsets grow strictly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochCache {
    entries: Vec<EpochEntry>,
}

/// The answer where nothing is known (`UNDEFINED_EPOCH`, `UNDEFINED_EPOCH_OFFSET`).
const UNDEFINED: EpochEntry = EpochEntry {
    leader_epoch: LeaderEpoch::NONE,
    start_offset: Offset(-1),
};

impl EpochCache {
    /// Reads the file. Entries that conflict with a later line are dropped, as in Kafka.
    ///
    /// # Errors
    /// [`FormatError`] where it is no such file or holds a negative epoch or offset.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let entries = decode_checkpoint(bytes, |fields| match fields {
            [leader_epoch, offset] => {
                let leader_epoch: i32 = leader_epoch.parse().ok()?;
                let offset: i64 = offset.parse().ok()?;
                (leader_epoch >= 0 && offset >= 0)
                    .then_some((LeaderEpoch(leader_epoch), Offset(offset)))
            }
            _ => None,
        })?;
        let mut cache = Self::default();
        for (leader_epoch, offset) in entries {
            cache.assign(leader_epoch, offset);
        }
        Ok(cache)
    }

    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode_checkpoint(
            self.entries
                .iter()
                .map(|entry| format!("{} {}", entry.leader_epoch, entry.start_offset)),
        )
    }

    /// Notes that `leader_epoch` begins at `start_offset`. Nothing happens when it is the latest
    /// already and began no later; entries that contradict the new one are dropped. True when
    /// anything changed, so that the file must be written.
    pub fn assign(&mut self, leader_epoch: LeaderEpoch, start_offset: Offset) -> bool {
        if leader_epoch < LeaderEpoch(0) || start_offset < Offset(0) {
            return false;
        }
        let is_known = self.latest().is_some_and(|latest| {
            latest.leader_epoch == leader_epoch && latest.start_offset <= start_offset
        });
        if is_known {
            return false;
        }
        while let Some(latest) = self.latest()
            && (latest.leader_epoch >= leader_epoch || latest.start_offset >= start_offset)
        {
            self.entries.pop();
        }
        self.entries.push(EpochEntry {
            leader_epoch,
            start_offset,
        });
        true
    }

    /// Takes in the epoch of a batch that lies in the log, while the log is walked from somewhere
    /// on. What the cache says of that offset already it keeps: the epoch began further ahead, and
    /// entries behind are judged when the walk comes there.
    pub fn take_in(&mut self, leader_epoch: LeaderEpoch, base_offset: Offset) {
        if self.epoch_for_offset(base_offset) != Some(leader_epoch) {
            self.assign(leader_epoch, base_offset);
        }
    }

    /// The latest epoch.
    #[must_use]
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// All epochs in order.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The largest known epoch at or below `leader_epoch` and where it ends (exclusive); for the
    /// latest epoch that is the log's end. Epoch -1 and offset -1 where nothing can be said
    /// (`LeaderEpochFileCache.endOffsetFor`).
    #[must_use]
    pub fn end_offset_for(
        &self,
        leader_epoch: LeaderEpoch,
        log_end_offset: Offset,
    ) -> (LeaderEpoch, Offset) {
        let undefined = (UNDEFINED.leader_epoch, UNDEFINED.start_offset);
        if leader_epoch == LeaderEpoch::NONE {
            return undefined;
        }
        if self
            .latest()
            .is_some_and(|latest| latest.leader_epoch == leader_epoch)
        {
            return (leader_epoch, log_end_offset);
        }
        let after = self
            .entries
            .partition_point(|entry| entry.leader_epoch <= leader_epoch);
        let Some(higher) = self.entries.get(after) else {
            return undefined;
        };
        // Older than all that is known: its data is gone, and the log starts with the next epoch.
        let floor = after
            .checked_sub(1)
            .and_then(|place| self.entries.get(place));
        (
            floor.map_or(leader_epoch, |entry| entry.leader_epoch),
            higher.start_offset,
        )
    }

    /// The epoch under which `offset` was written.
    #[must_use]
    pub fn epoch_for_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self
            .entries
            .partition_point(|entry| entry.start_offset <= offset);
        let found = after
            .checked_sub(1)
            .and_then(|place| self.entries.get(place));
        found.map(|entry| entry.leader_epoch)
    }

    /// Drops the epochs that begin at or past `end_offset`. True when anything changed.
    pub fn truncate_from_end(&mut self, end_offset: Offset) -> bool {
        if end_offset < Offset(0) {
            return false;
        }
        let len = self.entries.len();
        self.entries.truncate(
            self.entries
                .partition_point(|entry| entry.start_offset < end_offset),
        );
        self.entries.len() != len
    }

    /// Drops the epochs that end below `start_offset`; the one that it falls into begins there
    /// from now on. True when anything changed.
    pub fn truncate_from_start(&mut self, start_offset: Offset) -> bool {
        let below = self
            .entries
            .partition_point(|entry| entry.start_offset <= start_offset);
        let Some(last_below) = below.checked_sub(1) else {
            return false;
        };
        let is_same = below == 1
            && self
                .entries
                .first()
                .is_some_and(|entry| entry.start_offset == start_offset);
        if is_same {
            return false;
        }
        self.entries.drain(..last_below);
        if let Some(first) = self.entries.first_mut() {
            first.start_offset = start_offset;
        }
        true
    }
}
