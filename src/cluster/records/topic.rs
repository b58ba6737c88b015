//! Records about topics, settings, features and producer ids.

use crate::base::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, PartitionIndex, ProducerId, TopicId, Uuid,
};
use crate::wire::codec::message;

message! {
    /// A topic comes to be, without partitions yet.
    pub struct TopicRecord(record_type 2, versions 0..=0, flexible 0) {
        name: String => 0..;
        topic_id: TopicId => 0..;
    }

    /// A partition comes to be.
    pub struct PartitionRecord(record_type 3, versions 0..=2, flexible 0) {
        partition_id: PartitionIndex => 0.., default PartitionIndex(-1);
        topic_id: TopicId => 0..;
        /// In order of preference.
        replicas: Vec<BrokerId> => 0..;
        isr: Vec<BrokerId> => 0..;
        removing_replicas: Vec<BrokerId> => 0..;
        adding_replicas: Vec<BrokerId> => 0..;
        /// -1: none.
        leader: BrokerId => 0.., default BrokerId(-1);
        /// 1 while the leader recovers from an unclean election.
        leader_recovery_state: i8 => 0.., tag 0;
        leader_epoch: LeaderEpoch => 0.., default LeaderEpoch(-1);
        /// Raised by each change of the partition.
        partition_epoch: i32 => 0.., default -1;
        /// The log directory of each replica, in the replicas' order (KIP-858).
        directories: Vec<Uuid> => 1..;
        /// KIP-966.
        eligible_leader_replicas: Option<Vec<BrokerId>> => 2.., nullable 2.., tag 1;
        /// KIP-966.
        last_known_elr: Option<Vec<BrokerId>> => 2.., nullable 2.., tag 2;
    }

    /// A setting is made or, with a null value, removed.
    pub struct ConfigRecord(record_type 4, versions 0..=0, flexible 0) {
        /// Kafka's `ConfigResource.Type`.
        resource_type: i8 => 0..;
        resource_name: String => 0..;
        name: String => 0..;
        value: Option<String> => 0.., nullable 0..;
    }

    /// A partition changes; null leaves a field as it is.
    pub struct PartitionChangeRecord(record_type 5, versions 0..=2, flexible 0) {
        partition_id: PartitionIndex => 0.., default PartitionIndex(-1);
        topic_id: TopicId => 0..;
        isr: Option<Vec<BrokerId>> => 0.., nullable 0.., tag 0;
        /// -1: none; -2: no election; any other, the same one included: an election.
        leader: BrokerId => 0.., tag 1, default BrokerId(-2);
        replicas: Option<Vec<BrokerId>> => 0.., nullable 0.., tag 2;
        removing_replicas: Option<Vec<BrokerId>> => 0.., nullable 0.., tag 3;
        adding_replicas: Option<Vec<BrokerId>> => 0.., nullable 0.., tag 4;
        /// -1: no change.
        leader_recovery_state: i8 => 0.., tag 5, default -1;
        /// KIP-966.
        eligible_leader_replicas: Option<Vec<BrokerId>> => 2.., nullable 2.., tag 6;
        /// KIP-966.
        last_known_elr: Option<Vec<BrokerId>> => 2.., nullable 2.., tag 7;
        /// KIP-858.
        directories: Option<Vec<Uuid>> => 1.., nullable 1.., tag 8;
    }

    /// A topic is removed with its partitions and settings.
    pub struct RemoveTopicRecord(record_type 9, versions 0..=0, flexible 0) {
        topic_id: TopicId => 0..;
    }

    /// A feature's finalized level; 0: off.
    pub struct FeatureLevelRecord(record_type 12, versions 0..=0, flexible 0) {
        name: String => 0..;
        feature_level: i16 => 0..;
    }

    /// A block of producer ids has been handed out.
    pub struct ProducerIdsRecord(record_type 15, versions 0..=0, flexible 0) {
        broker_id: BrokerId => 0..;
        broker_epoch: BrokerEpoch => 0.., default BrokerEpoch(-1);
        /// The first id of the next block.
        next_producer_id: ProducerId => 0..;
    }

    /// Keeps the log moving; means nothing.
    pub struct NoOpRecord(record_type 20, versions 0..=0, flexible 0) {}

    /// What follows counts only once the transaction has ended (KIP-868).
    pub struct BeginTransactionRecord(record_type 23, versions 0..=0, flexible 0) {
        /// For people.
        name: Option<String> => 0.., nullable 0.., tag 0;
    }

    /// The transaction's records count.
    pub struct EndTransactionRecord(record_type 24, versions 0..=0, flexible 0) {}

    /// The transaction's records do not count.
    pub struct AbortTransactionRecord(record_type 25, versions 0..=0, flexible 0) {
        /// For people.
        reason: Option<String> => 0.., nullable 0.., tag 0;
    }
}
