//! Brokers as they registered themselves.

use std::collections::BTreeMap;

use crate::base::ids::{BrokerEpoch, BrokerId, Uuid};
use crate::cluster::records::{
    BrokerEndpoint, BrokerFeature, BrokerRegistrationChangeRecord, RegisterBrokerRecord,
};

/// Stands for a directory that is not chosen yet (`DirectoryId.UNASSIGNED`).
pub const DIRECTORY_UNASSIGNED: Uuid = Uuid(1_u128.to_be_bytes());
/// Stands for a directory that has failed, whichever it was (`DirectoryId.LOST`).
pub const DIRECTORY_LOST: Uuid = Uuid(2_u128.to_be_bytes());

/// Where a broker is reached through one listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address that clients are told.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Kafka's `SecurityProtocol` id; 0 is PLAINTEXT.
    pub security_protocol: i16,
}

/// The levels of a feature that a broker can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupportedVersions {
    /// The lowest level.
    pub min: i16,
    /// The highest level.
    pub max: i16,
}

/// One broker (`org.apache.kafka.metadata.BrokerRegistration`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerRegistration {
    /// `node.id`.
    pub id: BrokerId,
    /// Epoch of this registration: the offset of its record in the metadata log.
    pub epoch: BrokerEpoch,
    /// Drawn anew at each start of the process.
    pub incarnation_id: Uuid,
    /// Endpoints by listener name.
    pub listeners: BTreeMap<String, Endpoint>,
    /// What it supports, by feature name.
    pub features: BTreeMap<String, SupportedVersions>,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// Whether it is fenced: registered, but not (yet) fit to lead.
    pub fenced: bool,
    /// Whether it is shutting down in order.
    pub in_controlled_shutdown: bool,
    /// The ids of its log directories.
    pub directories: Vec<Uuid>,
    /// Those of them that take no new partitions; `None` when never told.
    pub cordoned_directories: Option<Vec<Uuid>>,
    /// Whether it was still a broker of ZooKeeper's when it registered.
    pub is_migrating_zk_broker: bool,
}

impl BrokerRegistration {
    /// The registration that a record tells of.
    #[must_use]
    pub fn from_record(record: &RegisterBrokerRecord) -> Self {
        let endpoint = |end_point: &BrokerEndpoint| Endpoint {
            host: end_point.host.clone(),
            port: end_point.port,
            security_protocol: end_point.security_protocol,
        };
        let versions = |feature: &BrokerFeature| SupportedVersions {
            min: feature.min_supported_version,
            max: feature.max_supported_version,
        };
        Self {
            id: record.broker_id,
            epoch: record.broker_epoch,
            incarnation_id: record.incarnation_id,
            listeners: (record.end_points.iter())
                .map(|end_point| (end_point.name.clone(), endpoint(end_point)))
                .collect(),
            features: (record.features.iter())
                .map(|feature| (feature.name.clone(), versions(feature)))
                .collect(),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            directories: record.log_dirs.clone(),
            cordoned_directories: record.cordoned_log_dirs.clone(),
            is_migrating_zk_broker: record.is_migrating_zk_broker,
        }
    }

    /// The record that registers the broker as it is now.
    #[must_use]
    pub fn to_record(&self) -> RegisterBrokerRecord {
        let end_point = |(name, endpoint): (&String, &Endpoint)| BrokerEndpoint {
            name: name.clone(),
            host: endpoint.host.clone(),
            port: endpoint.port,
            security_protocol: endpoint.security_protocol,
        };
        let feature = |(name, versions): (&String, &SupportedVersions)| BrokerFeature {
            name: name.clone(),
            min_supported_version: versions.min,
            max_supported_version: versions.max,
        };
        RegisterBrokerRecord {
            broker_id: self.id,
            is_migrating_zk_broker: self.is_migrating_zk_broker,
            incarnation_id: self.incarnation_id,
            broker_epoch: self.epoch,
            end_points: self.listeners.iter().map(end_point).collect(),
            features: self.features.iter().map(feature).collect(),
            rack: self.rack.clone(),
            fenced: self.fenced,
            in_controlled_shutdown: self.in_controlled_shutdown,
            log_dirs: self.directories.clone(),
            cordoned_log_dirs: self.cordoned_directories.clone(),
        }
    }

    /// Whether a replica in this directory can be served (`DirectoryId.isOnline`). One of which
    /// nothing is known is taken to be.
    #[must_use]
    pub fn is_online(&self, directory: Option<Uuid>) -> bool {
        match directory {
            None | Some(Uuid::ZERO | DIRECTORY_UNASSIGNED) => true,
            Some(DIRECTORY_LOST) => false,
            Some(id) => self.directories.is_empty() || self.directories.contains(&id),
        }
    }

    /// Applies a change to this registration.
    pub fn change(&mut self, record: &BrokerRegistrationChangeRecord) {
        match record.fenced {
            1 => self.fenced = true,
            -1 => self.fenced = false,
            _ => {}
        }
        if record.in_controlled_shutdown == 1 {
            self.in_controlled_shutdown = true;
        }
        if !record.log_dirs.is_empty() {
            self.directories.clone_from(&record.log_dirs);
        }
        if record.cordoned_log_dirs.is_some() {
            self.cordoned_directories
                .clone_from(&record.cordoned_log_dirs);
        }
    }
}
