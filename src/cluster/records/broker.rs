//! Records about brokers.

use crate::base::ids::{BrokerEpoch, BrokerId, Uuid};

/// A broker registers (`RegisterBrokerRecord.json`).
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterBrokerRecord {
    /// `node.id`.
    pub broker_id: BrokerId,
    /// Whether it is a ZooKeeper broker in migration.
    pub is_migrating_zk_broker: bool,
    /// Drawn anew at each start.
    pub incarnation_id: Uuid,
    /// Offset of this record.
    pub broker_epoch: BrokerEpoch,
    /// How it is reached.
    pub end_points: Vec<BrokerEndpoint>,
    /// What it supports.
    pub features: Vec<BrokerFeature>,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// Whether it is fenced.
    pub fenced: bool,
    /// Whether it is shutting down in order.
    pub in_controlled_shutdown: bool,
    /// Its log directories.
    pub log_dirs: Vec<Uuid>,
    /// Log directories that take no new partitions; `None` when never told.
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}

impl Default for RegisterBrokerRecord {
    fn default() -> Self {
        Self {
            broker_id: BrokerId(0),
            is_migrating_zk_broker: false,
            incarnation_id: Uuid::ZERO,
            broker_epoch: BrokerEpoch(0),
            end_points: Vec::new(),
            features: Vec::new(),
            rack: None,
            fenced: true,
            in_controlled_shutdown: false,
            log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        }
    }
}

/// One endpoint of a broker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokerEndpoint {
    /// Listener name.
    pub name: String,
    /// Host.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// `SecurityProtocol` id.
    pub security_protocol: i16,
}

/// One feature that a broker supports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokerFeature {
    /// The feature.
    pub name: String,
    /// Lowest level.
    pub min_supported_version: i16,
    /// Highest level.
    pub max_supported_version: i16,
}

/// A registration is removed (`UnregisterBrokerRecord.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnregisterBrokerRecord {
    /// The broker.
    pub broker_id: BrokerId,
    /// The registration's epoch.
    pub broker_epoch: BrokerEpoch,
}

/// A broker is fenced (`FenceBrokerRecord.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FenceBrokerRecord {
    /// The broker.
    pub id: BrokerId,
    /// The registration's epoch.
    pub epoch: BrokerEpoch,
}

/// A broker is unfenced (`UnfenceBrokerRecord.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnfenceBrokerRecord {
    /// The broker.
    pub id: BrokerId,
    /// The registration's epoch.
    pub epoch: BrokerEpoch,
}

/// A registration changes (`BrokerRegistrationChangeRecord.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokerRegistrationChangeRecord {
    /// The broker.
    pub broker_id: BrokerId,
    /// The registration's epoch.
    pub broker_epoch: BrokerEpoch,
    /// -1: unfenced; 0: no change; 1: fenced.
    pub fenced: i8,
    /// 1: shutting down in order; 0: no change.
    pub in_controlled_shutdown: i8,
    /// Its log directories; empty: no change.
    pub log_dirs: Vec<Uuid>,
    /// Cordoned log directories; `None`: no change.
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}
