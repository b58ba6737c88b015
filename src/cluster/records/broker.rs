//! Records about brokers.

use crate::base::ids::{BrokerEpoch, BrokerId, Uuid};
use crate::wire::codec::message;

message! {
    /// A broker registers; fenced until told otherwise.
    pub struct RegisterBrokerRecord(record_type 0, versions 0..=4, flexible 0) {
        broker_id: BrokerId => 0..;
        is_migrating_zk_broker: bool => 2..;
        /// Drawn anew at each start of the process.
        incarnation_id: Uuid => 0..;
        /// Offset of this record.
        broker_epoch: BrokerEpoch => 0..;
        end_points: Vec<BrokerEndpoint> => 0..;
        features: Vec<BrokerFeature> => 0..;
        rack: Option<String> => 0.., nullable 0..;
        fenced: bool => 0.., default true;
        in_controlled_shutdown: bool => 1..;
        log_dirs: Vec<Uuid> => 3.., tag 0;
        /// Log directories that take no new partitions; null until told.
        cordoned_log_dirs: Option<Vec<Uuid>> => 4.., nullable 4.., tag 1;
    }

    /// How a broker is reached through one listener.
    pub struct BrokerEndpoint {
        /// The listener's name.
        name: String => 0..;
        host: String => 0..;
        port: u16 => 0..;
        /// Kafka's `SecurityProtocol` id; 0 is PLAINTEXT.
        security_protocol: i16 => 0..;
    }

    /// The levels of one feature that a broker can run.
    pub struct BrokerFeature {
        name: String => 0..;
        min_supported_version: i16 => 0..;
        max_supported_version: i16 => 0..;
    }

    /// A broker's registration is removed.
    pub struct UnregisterBrokerRecord(record_type 1, versions 0..=0, flexible 0) {
        broker_id: BrokerId => 0..;
        broker_epoch: BrokerEpoch => 0..;
    }

    /// A broker is fenced.
    pub struct FenceBrokerRecord(record_type 7, versions 0..=0, flexible 0) {
        id: BrokerId => 0..;
        epoch: BrokerEpoch => 0..;
    }

    /// A broker is unfenced.
    pub struct UnfenceBrokerRecord(record_type 8, versions 0..=0, flexible 0) {
        id: BrokerId => 0..;
        epoch: BrokerEpoch => 0..;
    }

    /// A registration changes.
    pub struct BrokerRegistrationChangeRecord(record_type 17, versions 0..=3, flexible 0) {
        broker_id: BrokerId => 0..;
        broker_epoch: BrokerEpoch => 0..;
        /// -1: unfenced; 0: no change; 1: fenced.
        fenced: i8 => 0.., tag 0;
        /// 1: shutting down in order; 0: no change.
        in_controlled_shutdown: i8 => 1.., tag 1;
        /// Empty: no change.
        log_dirs: Vec<Uuid> => 2.., tag 2;
        /// Null: no change.
        cordoned_log_dirs: Option<Vec<Uuid>> => 3.., nullable 3.., tag 3;
    }
}
