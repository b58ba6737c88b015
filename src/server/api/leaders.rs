//! Who leads, for clients that asked the wrong broker (KIP-951).

use std::collections::BTreeMap;

use crate::base::ids::{BrokerId, LeaderEpoch, TopicPartition};
use crate::cluster::image::Image;
use crate::server::context::RequestContext;

/// The leaders named in one response, each with its endpoint once.
#[derive(Debug, Default)]
pub struct NamedLeaders {
    endpoints: BTreeMap<BrokerId, (String, u16, Option<String>)>,
}

impl NamedLeaders {
    /// The leader of `partition` as the metadata knows it, its endpoint noted.
    pub fn name(
        &mut self,
        context: &RequestContext,
        image: &Image,
        partition: TopicPartition,
    ) -> Option<(BrokerId, LeaderEpoch)> {
        let leadership = image.topics().partition(partition)?;
        let leader = leadership.leader;
        if let Some(broker) = image.broker(leader)
            && let Some(endpoint) = broker.listeners.get(&context.listener().name)
        {
            let told = (endpoint.host.clone(), endpoint.port, broker.rack.clone());
            self.endpoints.insert(leader, told);
        }
        Some((leader, leadership.leader_epoch))
    }

    /// Broker, host, port and rack of every leader named.
    pub fn into_endpoints(self) -> impl Iterator<Item = (BrokerId, String, i32, Option<String>)> {
        let endpoints = self.endpoints.into_iter();
        endpoints.map(|(broker, (host, port, rack))| (broker, host, i32::from(port), rack))
    }
}
