//! Brokers as the clients of one listener see them, and partitions by what is known of their
//! leaders.

use crate::base::error_code::ErrorCode;
use crate::base::ids::BrokerId;
use crate::cluster::image::{BrokerRegistration, Endpoint, Image, PartitionImage};

/// A broker with its endpoint of one listener.
pub type Reachable<'a> = (&'a BrokerRegistration, &'a Endpoint);

/// The brokers that have this listener, fenced ones only when asked for, by id.
pub fn brokers<'a>(
    image: &'a Image,
    listener: &'a str,
    with_fenced: bool,
) -> impl Iterator<Item = Reachable<'a>> {
    let reachable = move |broker: &'a std::sync::Arc<BrokerRegistration>| {
        let endpoint = broker.listeners.get(listener)?;
        (with_fenced || !broker.fenced).then_some((broker.as_ref(), endpoint))
    };
    image.brokers().values().filter_map(reachable)
}

/// Whether a broker is registered and not fenced.
#[must_use]
pub fn is_alive(image: &Image, id: BrokerId) -> bool {
    image.broker(id).is_some_and(|broker| !broker.fenced)
}

/// A partition's leader as a client may use it: the code, and the leader or -1
/// (`KRaftMetadataCache.partitionMetadata`).
#[must_use]
pub fn leader(image: &Image, listener: &str, partition: &PartitionImage) -> (ErrorCode, BrokerId) {
    let none = BrokerId(-1);
    match image.broker(partition.leader) {
        Some(broker) if broker.fenced => (ErrorCode::LEADER_NOT_AVAILABLE, none),
        Some(broker) if !broker.listeners.contains_key(listener) => {
            (ErrorCode::LISTENER_NOT_FOUND, none)
        }
        Some(broker) => (ErrorCode::NONE, broker.id),
        None => (ErrorCode::LEADER_NOT_AVAILABLE, none),
    }
}

/// Replicas on brokers that are not alive, or in log directories that are offline there
/// (`KRaftMetadataCache.isReplicaOffline`).
#[must_use]
pub fn offline_replicas(image: &Image, partition: &PartitionImage) -> Vec<BrokerId> {
    let replicas = partition.replicas.iter().copied();
    let serves = |id: BrokerId| {
        let broker = image.broker(id).filter(|broker| !broker.fenced);
        broker.is_some_and(|broker| broker.is_online(partition.directory(id)))
    };
    replicas.filter(|id| !serves(*id)).collect()
}
