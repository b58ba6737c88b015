//! Who leads a partition, and whether a client's idea of it is current (KIP-101, KIP-279, KIP-320).
//!
//! The state is input from the metadata log. A partition never decides it and never raises its
//! epoch by itself.

use crate::base::ids::{BrokerId, LeaderEpoch};

use super::error::PartitionError;

/// What the metadata log says of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The broker that leads, -1 while there is none.
    pub leader: BrokerId,
    /// Generation of the leadership.
    pub leader_epoch: LeaderEpoch,
    /// Version of the partition's record in the metadata log.
    pub partition_epoch: i32,
    /// The in-sync replicas, the leader among them.
    pub isr: Vec<BrokerId>,
    /// All replicas.
    pub replicas: Vec<BrokerId>,
}

/// Whether only the leader may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderOnly {
    /// The answer comes from the leader or not at all.
    Yes,
    /// Any replica may answer.
    No,
}

impl Leadership {
    /// Whether `local` leads.
    #[must_use]
    pub fn is_led_by(&self, local: BrokerId) -> bool {
        self.leader == local && local.0 >= 0
    }

    /// Compares the epoch that a client has seen with the one in force, then the role
    /// (`Partition.checkCurrentLeaderEpoch`, `getLocalLog`: the epoch is judged first). `NONE`
    /// skips the comparison.
    pub fn check(
        &self,
        local: BrokerId,
        seen: LeaderEpoch,
        leader_only: LeaderOnly,
    ) -> Result<(), PartitionError> {
        if seen != LeaderEpoch::NONE && seen.0 >= 0 {
            if seen < self.leader_epoch {
                return Err(PartitionError::FencedLeaderEpoch);
            }
            if seen > self.leader_epoch {
                return Err(PartitionError::UnknownLeaderEpoch);
            }
        }
        if leader_only == LeaderOnly::Yes && !self.is_led_by(local) {
            return Err(PartitionError::NotLeader);
        }
        Ok(())
    }

    /// Whether an append that waits for all replicas may be taken
    /// (`Partition.appendRecordsToLeader`): fewer in-sync replicas than the setting refuse it.
    pub fn check_in_sync(&self, min_insync_replicas: usize) -> Result<(), PartitionError> {
        if self.isr.len() < min_insync_replicas {
            return Err(PartitionError::NotEnoughReplicas);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error_code::ErrorCode;

    fn code(outcome: Result<(), PartitionError>) -> ErrorCode {
        outcome.map_or_else(|error| error.error_code(), |()| ErrorCode::NONE)
    }

    fn led_by(leader: i32, leader_epoch: i32) -> Leadership {
        Leadership {
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(leader_epoch),
            partition_epoch: 0,
            isr: vec![BrokerId(leader)],
            replicas: vec![BrokerId(leader)],
        }
    }

    #[test]
    fn an_older_epoch_is_fenced_and_a_newer_one_unknown() {
        let leadership = led_by(1, 5);
        let check = |seen| code(leadership.check(BrokerId(1), LeaderEpoch(seen), LeaderOnly::Yes));
        assert_eq!(check(-1), ErrorCode::NONE);
        assert_eq!(check(5), ErrorCode::NONE);
        assert_eq!(check(4), ErrorCode::FENCED_LEADER_EPOCH);
        assert_eq!(check(6), ErrorCode::UNKNOWN_LEADER_EPOCH);
    }

    #[test]
    fn the_epoch_is_judged_before_the_role() {
        let leadership = led_by(2, 5);
        let check = |seen, only| code(leadership.check(BrokerId(1), LeaderEpoch(seen), only));
        assert_eq!(check(4, LeaderOnly::Yes), ErrorCode::FENCED_LEADER_EPOCH);
        assert_eq!(check(5, LeaderOnly::Yes), ErrorCode::NOT_LEADER_OR_FOLLOWER);
        assert_eq!(check(5, LeaderOnly::No), ErrorCode::NONE);
        assert_eq!(
            check(-1, LeaderOnly::Yes),
            ErrorCode::NOT_LEADER_OR_FOLLOWER
        );
    }

    #[test]
    fn a_partition_without_a_leader_is_led_by_nobody() {
        assert!(!led_by(-1, 0).is_led_by(BrokerId(-1)));
    }

    #[test]
    fn too_few_in_sync_replicas_are_refused() {
        let check = |min| code(led_by(1, 0).check_in_sync(min));
        assert_eq!(check(1), ErrorCode::NONE);
        assert_eq!(check(2), ErrorCode::NOT_ENOUGH_REPLICAS);
    }
}
