//! Values of control records: Kafka's marks in a partition's log (transaction ends) and in the
//! metadata log (leaders, voters, snapshots).
//!
//! The values of the metadata log's marks stand in version 0 without a prefix, and carry that
//! version as their first field (`ControlRecordUtils`). The transaction marker stands behind a
//! version of 2 bytes: [`DataMessage::decode_prefixed`](crate::wire::codec::DataMessage).

use crate::base::ids::{BrokerId, Uuid};
use crate::base::time::TimestampMs;
use crate::wire::codec::message;

message! {
    /// A replica has become leader of the log (KIP-595).
    pub struct LeaderChangeMessage(data, versions 0..=1, flexible 0) {
        version: i16 => 0..;
        leader_id: BrokerId => 0..;
        /// Those who may vote.
        voters: Vec<Voter> => 0..;
        /// Those who voted for the leader.
        granting_voters: Vec<Voter> => 0..;
    }

    /// One who may vote.
    pub struct Voter {
        voter_id: BrokerId => 0..;
        voter_directory_id: Uuid => 1..;
    }

    /// The level of `kraft.version` from here on (KIP-853).
    pub struct KRaftVersionRecord(data, versions 0..=0, flexible 0) {
        version: i16 => 0..;
        kraft_version: i16 => 0..;
    }

    /// The first record of a snapshot (KIP-630).
    pub struct SnapshotHeaderRecord(data, versions 0..=0, flexible 0) {
        version: i16 => 0..;
        /// Time of the last batch the snapshot stands for.
        last_contained_log_timestamp: TimestampMs => 0..;
    }

    /// The last record of a snapshot; without it the snapshot is not whole.
    pub struct SnapshotFooterRecord(data, versions 0..=0, flexible 0) {
        version: i16 => 0..;
    }

    /// The value of a transaction's marker.
    pub struct EndTxnMarker(data, versions 0..=0) {
        coordinator_epoch: i32 => 0..;
    }
}
