//! Records about topics and partitions.

use crate::base::ids::{BrokerId, LeaderEpoch, PartitionIndex, Uuid};
use crate::wire::codec::message;

message! {
    /// A topic comes to be, without partitions yet.
    pub struct TopicRecord(record_type 2, versions 0..=0, flexible 0) {
        name: String => 0..;
        topic_id: Uuid => 0..;
    }

    /// A topic is removed with its partitions and settings.
    pub struct RemoveTopicRecord(record_type 9, versions 0..=0, flexible 0) {
        topic_id: Uuid => 0..;
    }

    /// A partition comes to be, or stands in a snapshot.
    pub struct PartitionRecord(record_type 3, versions 0..=2, flexible 0) {
        partition_id: PartitionIndex => 0.., default PartitionIndex(-1);
        topic_id: Uuid => 0..;
        /// In order of preference.
        replicas: Vec<BrokerId> => 0..;
        isr: Vec<BrokerId> => 0..;
        removing_replicas: Vec<BrokerId> => 0..;
        adding_replicas: Vec<BrokerId> => 0..;
        leader: BrokerId => 0.., default BrokerId(-1);
        /// 0: recovered; 1: recovering from an unclean election (KIP-704).
        leader_recovery_state: i8 => 0.., tag 0;
        leader_epoch: LeaderEpoch => 0.., default LeaderEpoch::NONE;
        /// Rises with each change of the partition.
        partition_epoch: i32 => 0.., default -1;
        /// The log directory of each replica, in their order (KIP-858).
        directories: Vec<Uuid> => 1..;
        eligible_leader_replicas: Option<Vec<BrokerId>> => 2.., nullable 2.., tag 1;
        last_known_elr: Option<Vec<BrokerId>> => 2.., nullable 2.., tag 2;
    }

    /// A partition changes in what is given here; null leaves a field as it is.
    pub struct PartitionChangeRecord(record_type 5, versions 0..=2, flexible 0) {
        partition_id: PartitionIndex => 0.., default PartitionIndex(-1);
        topic_id: Uuid => 0..;
        isr: Option<Vec<BrokerId>> => 0.., nullable 0.., tag 0;
        /// -1: none; -2: no change.
        leader: BrokerId => 0.., tag 1, default BrokerId(-2);
        replicas: Option<Vec<BrokerId>> => 0.., nullable 0.., tag 2;
        removing_replicas: Option<Vec<BrokerId>> => 0.., nullable 0.., tag 3;
        adding_replicas: Option<Vec<BrokerId>> => 0.., nullable 0.., tag 4;
        /// -1: no change; else as in `PartitionRecord`.
        leader_recovery_state: i8 => 0.., tag 5, default -1;
        eligible_leader_replicas: Option<Vec<BrokerId>> => 2.., nullable 2.., tag 6;
        last_known_elr: Option<Vec<BrokerId>> => 2.., nullable 2.., tag 7;
        directories: Option<Vec<Uuid>> => 1.., nullable 1.., tag 8;
    }

    /// The replicas that may lead outside the ISR are forgotten: a topic's, or all where no name
    /// is given (KIP-966).
    pub struct ClearElrRecord(record_type 28, versions 0..=0, flexible 0) {
        topic_name: String => 0..;
    }
}
