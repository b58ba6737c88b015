//! An offset that a group has committed.

use crate::base::ids::{LeaderEpoch, Offset, PartitionIndex, Uuid};
use crate::base::time::TimestampMs;
use crate::wire::codec::message;

message! {
    /// Whose offset of what.
    pub struct OffsetCommitKey(record_type 1, versions 0..=0) {
        group: String => 0..;
        topic: String => 0..;
        partition: PartitionIndex => 0..;
    }

    /// The offset. Kafka 4.4 writes version 4 (flexible, with the topic's id), or 1 where a client
    /// named an expiry; version 3 added the leader epoch.
    pub struct OffsetCommitValue(data, versions 0..=4, flexible 4) {
        /// The next one to read.
        offset: Offset => 0..;
        /// Epoch of the last record read; -1 when unknown.
        leader_epoch: LeaderEpoch => 3.., ignorable, default LeaderEpoch::NONE;
        /// The client's note.
        metadata: String => 0..;
        commit_timestamp: TimestampMs => 0..;
        /// When it goes whatever the broker's retention; -1 for never.
        expire_timestamp: TimestampMs => 1..=1, ignorable, default TimestampMs::NONE;
        topic_id: Uuid => 4.., tag 0, ignorable;
    }
}
