//! Records about the cluster as a whole, and those that only order the log.

use crate::base::ids::{BrokerEpoch, BrokerId, ProducerId};
use crate::wire::codec::message;
use crate::wire::primitives::Float64;

message! {
    /// A setting is made, or removed where its value is null.
    pub struct ConfigRecord(record_type 4, versions 0..=0, flexible 0) {
        /// `ConfigResource.Type`: 2 topic, 4 broker, 16 client metrics, 32 group.
        resource_type: i8 => 0..;
        resource_name: String => 0..;
        name: String => 0..;
        value: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// The cluster settles on a level of a feature; 0 switches it off.
    pub struct FeatureLevelRecord(record_type 12, versions 0..=0, flexible 0) {
        name: String => 0..;
        feature_level: i16 => 0..;
    }

    /// A limit of a user, client or address is set, or removed.
    pub struct ClientQuotaRecord(record_type 14, versions 0..=0, flexible 0) {
        entity: Vec<QuotaEntityData> => 0..;
        key: String => 0..;
        value: Float64 => 0..;
        remove: bool => 0..;
    }

    /// A part of what makes the entity.
    pub struct QuotaEntityData {
        /// "user", "client-id" or "ip".
        entity_type: String => 0..;
        /// Null for the default.
        entity_name: Option<String> => 0.., nullable 0.., default Some(String::new());
    }

    /// A block of producer ids is handed to a broker.
    pub struct ProducerIdsRecord(record_type 15, versions 0..=0, flexible 0) {
        broker_id: BrokerId => 0..;
        broker_epoch: BrokerEpoch => 0.., default BrokerEpoch(-1);
        /// First id of the block that comes after.
        next_producer_id: ProducerId => 0..;
    }

    /// Means nothing: keeps the log's end moving.
    pub struct NoOpRecord(record_type 20, versions 0..=0, flexible 0) {}

    /// What follows counts only once the transaction has ended (KIP-868).
    pub struct BeginTransactionRecord(record_type 23, versions 0..=0, flexible 0) {
        name: Option<String> => 0.., nullable 0.., tag 0;
    }

    /// The records since its begin count.
    pub struct EndTransactionRecord(record_type 24, versions 0..=0, flexible 0) {}

    /// The records since its begin do not count.
    pub struct AbortTransactionRecord(record_type 25, versions 0..=0, flexible 0) {
        reason: Option<String> => 0.., nullable 0.., tag 0;
    }
}
