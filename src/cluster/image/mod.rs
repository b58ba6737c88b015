//! The cluster's state as the metadata log tells it (`org.apache.kafka.image.MetadataImage`).
//!
//! An image is changed by [`Image::apply`] alone, record by record, on the controller's own copy;
//! shards get it as `Arc<Image>` and never see it change. Copies are cheap: topics, brokers and
//! configs are shared until a record touches them. [`Image::records`] is the way back: what a
//! snapshot of the log holds.
//!
//! Invariants: `by_name` and `by_id` hold the same topics; a partition belongs to a topic; the
//! leader epoch and partition epoch of a partition never go down; configs of a removed topic are
//! gone with it.

mod apply;
mod brokers;
mod quotas;
mod records;
mod topics;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::records::ForeignRecord;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, ProducerId};

pub use apply::ImageError;
pub use brokers::{
    BrokerRegistration, DIRECTORY_LOST, DIRECTORY_UNASSIGNED, Endpoint, SupportedVersions,
};
pub use quotas::{QuotaEntity, QuotaValues};
pub use topics::{PartitionImage, TopicImage, Topics};

/// What a configuration belongs to; the value is Kafka's `ConfigResource.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ResourceType(pub i8);

impl ResourceType {
    /// A topic, by its name.
    pub const TOPIC: Self = Self(2);
    /// A broker, by its id as text; the empty name is the default of all brokers.
    pub const BROKER: Self = Self(4);
    /// The log levels of one broker.
    pub const BROKER_LOGGER: Self = Self(8);
    /// Subscriptions to client metrics (KIP-714).
    pub const CLIENT_METRICS: Self = Self(16);
    /// A group's own settings.
    pub const GROUP: Self = Self(32);
}

/// Settings by name.
pub type ConfigMap = BTreeMap<String, String>;

/// The name of the feature that says which records and versions the log may hold.
pub const METADATA_VERSION: &str = "metadata.version";

/// All that the metadata log has told up to [`Image::end_offset`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    cluster_id: Arc<str>,
    node_id: BrokerId,
    end_offset: Offset,
    log_epoch: LeaderEpoch,
    topics: Topics,
    brokers: BTreeMap<BrokerId, Arc<BrokerRegistration>>,
    configs: BTreeMap<(ResourceType, String), Arc<ConfigMap>>,
    features: BTreeMap<String, i16>,
    client_quotas: Arc<BTreeMap<QuotaEntity, QuotaValues>>,
    next_producer_id: ProducerId,
    /// Records of kinds that this node makes no use of, in their order.
    foreign: Arc<Vec<ForeignRecord>>,
}

impl Image {
    /// The image before the first record, as `node_id` of `cluster_id` sees it.
    #[must_use]
    pub fn new(cluster_id: &str, node_id: BrokerId) -> Self {
        Self {
            cluster_id: Arc::from(cluster_id),
            node_id,
            next_producer_id: ProducerId(0),
            ..Self::default()
        }
    }

    /// `cluster.id`; stable for the life of the cluster.
    #[must_use]
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// `node.id` of the node that holds this image.
    #[must_use]
    pub fn node_id(&self) -> BrokerId {
        self.node_id
    }

    /// Offset after the last record applied.
    #[must_use]
    pub fn end_offset(&self) -> Offset {
        self.end_offset
    }

    /// The controller epoch in which the last record was written.
    #[must_use]
    pub fn log_epoch(&self) -> LeaderEpoch {
        self.log_epoch
    }

    /// Notes how far the log has been applied.
    pub fn advance_to(&mut self, end_offset: Offset, log_epoch: LeaderEpoch) {
        self.end_offset = end_offset;
        self.log_epoch = log_epoch;
    }

    /// The topics.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Every registered broker, fenced ones included, by id.
    #[must_use]
    pub fn brokers(&self) -> &BTreeMap<BrokerId, Arc<BrokerRegistration>> {
        &self.brokers
    }

    /// One broker's registration.
    #[must_use]
    pub fn broker(&self, id: BrokerId) -> Option<&BrokerRegistration> {
        self.brokers.get(&id).map(Arc::as_ref)
    }

    /// The settings made for one resource, nothing inherited.
    #[must_use]
    pub fn configs(&self, resource: ResourceType, name: &str) -> Arc<ConfigMap> {
        let key = (resource, name.to_owned());
        self.configs.get(&key).cloned().unwrap_or_default()
    }

    /// Whether both images have the very same settings, for they share them.
    #[must_use]
    pub fn has_configs_of(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.configs.iter(), other.configs.iter());
        self.configs.len() == other.configs.len()
            && mine
                .zip(theirs)
                .all(|(one, other)| one.0 == other.0 && Arc::ptr_eq(one.1, other.1))
    }

    /// Names and values of all settings, in bytes.
    #[must_use]
    pub fn settings_bytes(&self) -> usize {
        let of = |((_, name), configs): (&(ResourceType, String), &Arc<ConfigMap>)| {
            name.len() + config_bytes(configs)
        };
        self.configs.iter().map(of).sum()
    }

    /// Every resource of a kind that settings were made for, by name.
    pub fn configured(&self, resource: ResourceType) -> impl Iterator<Item = &str> {
        (self.configs.keys())
            .filter(move |(kind, _)| *kind == resource)
            .map(|(_, name)| name.as_str())
    }

    /// A topic's own settings.
    #[must_use]
    pub fn topic_configs(&self, name: &str) -> Arc<ConfigMap> {
        self.configs(ResourceType::TOPIC, name)
    }

    /// Finalized feature levels by name; a level of 0 is not kept.
    #[must_use]
    pub fn features(&self) -> &BTreeMap<String, i16> {
        &self.features
    }

    /// The first producer id that no block holds yet.
    #[must_use]
    pub fn next_producer_id(&self) -> ProducerId {
        self.next_producer_id
    }
}

/// Names and values of one resource's settings, in bytes.
#[must_use]
pub fn config_bytes(configs: &ConfigMap) -> usize {
    let of = |(name, value): (&String, &String)| name.len() + value.len();
    configs.iter().map(of).sum()
}

#[cfg(test)]
mod image_test;
#[cfg(test)]
pub(crate) mod random_test;
