//! Kafka's metadata records (`metadata/src/main/resources/common/metadata` in Kafka's tree): those
//! that a broker's image is made of. A record of another kind becomes
//! [`MetadataRecord::Foreign`] and changes nothing here, so that a log written by Apache Kafka can
//! be read.

mod broker;
mod topic;

pub use broker::{
    BrokerEndpoint, BrokerFeature, BrokerRegistrationChangeRecord, FenceBrokerRecord,
    RegisterBrokerRecord, UnfenceBrokerRecord, UnregisterBrokerRecord,
};
pub use topic::{
    ConfigRecord, FeatureLevelRecord, PartitionChangeRecord, PartitionRecord, ProducerIdsRecord,
    RemoveTopicRecord, TopicRecord,
};

/// One record of the metadata log.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataRecord {
    /// A broker registers, anew or again.
    RegisterBroker(RegisterBrokerRecord),
    /// A broker's registration is removed.
    UnregisterBroker(UnregisterBrokerRecord),
    /// A topic comes to be, without partitions yet.
    Topic(TopicRecord),
    /// A partition comes to be.
    Partition(PartitionRecord),
    /// A setting is made or removed.
    Config(ConfigRecord),
    /// A partition changes.
    PartitionChange(PartitionChangeRecord),
    /// A broker is fenced (logs of metadata versions before 3.3).
    FenceBroker(FenceBrokerRecord),
    /// A broker is unfenced (logs of metadata versions before 3.3).
    UnfenceBroker(UnfenceBrokerRecord),
    /// A topic is removed with its partitions and settings.
    RemoveTopic(RemoveTopicRecord),
    /// A feature's finalized level.
    FeatureLevel(FeatureLevelRecord),
    /// A block of producer ids has been handed out.
    ProducerIds(ProducerIdsRecord),
    /// A registration changes.
    BrokerRegistrationChange(BrokerRegistrationChangeRecord),
    /// Keeps the log moving; means nothing.
    NoOp,
    /// What follows counts only once the transaction has ended (KIP-868).
    BeginTransaction,
    /// The transaction's records count.
    EndTransaction,
    /// The transaction's records do not count.
    AbortTransaction,
    /// A kind that this node makes no use of.
    Foreign {
        /// Its API key.
        api_key: u64,
    },
}
