//! Records about brokers.

use crate::base::ids::{BrokerEpoch, BrokerId, Uuid};
use crate::wire::codec::message;

message! {
    /// A broker registers, anew or again.
    pub struct RegisterBrokerRecord(record_type 0, versions 0..=4, flexible 0) {
        broker_id: BrokerId => 0..;
        is_migrating_zk_broker: bool => 2..;
        /// Drawn anew at each start of the process.
        incarnation_id: Uuid => 0..;
        /// Offset of this record in the metadata log.
        broker_epoch: BrokerEpoch => 0..;
        end_points: Vec<BrokerEndpoint> => 0..;
        features: Vec<BrokerFeature> => 0..;
        rack: Option<String> => 0.., nullable 0.., default Some(String::new());
        fenced: bool => 0.., default true;
        in_controlled_shutdown: bool => 1..;
        log_dirs: Vec<Uuid> => 3.., tag 0;
        /// Directories that take no new partitions; null when never told.
        cordoned_log_dirs: Option<Vec<Uuid>> => 4.., nullable 4.., tag 1;
    }

    /// One listener of a broker.
    pub struct BrokerEndpoint {
        name: String => 0..;
        host: String => 0..;
        port: u16 => 0..;
        /// `SecurityProtocol`'s id: 0 plaintext, 1 TLS, 2 SASL, 3 SASL over TLS.
        security_protocol: i16 => 0..;
    }

    /// The levels of one feature that a broker supports, both ends inclusive.
    pub struct BrokerFeature {
        name: String => 0..;
        min_supported_version: i16 => 0..;
        max_supported_version: i16 => 0..;
    }

    /// A registration is removed.
    pub struct UnregisterBrokerRecord(record_type 1, versions 0..=0, flexible 0) {
        broker_id: BrokerId => 0..;
        broker_epoch: BrokerEpoch => 0..;
    }

    /// A broker is fenced; in logs of metadata versions before 3.3.
    pub struct FenceBrokerRecord(record_type 7, versions 0..=0, flexible 0) {
        id: BrokerId => 0..;
        /// The registration's epoch.
        epoch: BrokerEpoch => 0..;
    }

    /// A broker is unfenced; in logs of metadata versions before 3.3.
    pub struct UnfenceBrokerRecord(record_type 8, versions 0..=0, flexible 0) {
        id: BrokerId => 0..;
        /// The registration's epoch.
        epoch: BrokerEpoch => 0..;
    }

    /// A registration changes in what is given here.
    pub struct BrokerRegistrationChangeRecord(record_type 17, versions 0..=3, flexible 0) {
        broker_id: BrokerId => 0..;
        broker_epoch: BrokerEpoch => 0..;
        /// -1: unfenced; 0: no change; 1: fenced.
        fenced: i8 => 0.., tag 0;
        /// 0: no change; 1: shutting down in order.
        in_controlled_shutdown: i8 => 1.., tag 1;
        /// Empty for no change.
        log_dirs: Vec<Uuid> => 2.., tag 2;
        cordoned_log_dirs: Option<Vec<Uuid>> => 3.., nullable 3.., tag 3;
    }
}
