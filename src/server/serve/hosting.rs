//! What a shard does when metadata changes: opens, creates, changes and gives up partitions.

use std::rc::Rc;
use std::sync::Arc;

use super::log_settings::log_config;
use crate::base::config::{BrokerConfig, TopicSettings};
use crate::base::ids::TopicPartition;
use crate::cluster::image::Image;
use crate::io;
use crate::log::{LogConfig, LogError, LogIdentity};
use crate::partition::{Leadership, Partition, PartitionOptions};
use crate::shard::Shard;

/// A partition that a shard is to host.
#[derive(Clone, Debug)]
pub struct HostOrder {
    /// Which one.
    pub id: TopicPartition,
    /// Its log.
    pub identity: LogIdentity,
    /// Its log's settings.
    pub config: LogConfig,
    /// `min.insync.replicas`.
    pub min_insync_replicas: usize,
    /// Who leads.
    pub leadership: Leadership,
}

/// The order for one partition of an image; `None` when the image does not hold it.
#[must_use]
pub fn order(image: &Image, config: &BrokerConfig, id: TopicPartition) -> Option<HostOrder> {
    let topic = image.topics().by_id(id.topic_id)?;
    let partition = topic.partition(id.partition)?;
    let overrides = image.topic_configs(&topic.name);
    let settings = TopicSettings::derive(&config.texts, &overrides);
    let settings = settings.unwrap_or_else(|fault| {
        // Settings are checked before they are written; only another program's records get here.
        tracing::error!(
            "topic {}: {fault:?}; the broker's defaults apply",
            topic.name
        );
        config.topic_defaults.clone()
    });
    Some(HostOrder {
        id,
        identity: LogIdentity {
            topic: topic.name.to_string(),
            topic_id: topic.id,
            partition: id.partition,
        },
        config: log_config(&settings, config),
        min_insync_replicas: usize::try_from(settings.min_insync_replicas).unwrap_or(1),
        leadership: Leadership {
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr: partition.isr.clone(),
            replicas: partition.replicas.clone(),
        },
    })
}

/// Opens or creates the logs of `orders` and hosts their partitions. A partition whose log does
/// not open is not hosted and answers as one that has no leader; the others are. Answers what
/// failed.
pub async fn host_all(shard: Rc<Shard>, orders: Vec<HostOrder>) -> Vec<(TopicPartition, String)> {
    let mut failed = Vec::new();
    for order in orders {
        let id = order.id;
        if let Some(hosted) = shard.partition(id) {
            hosted.set_min_insync_replicas(order.min_insync_replicas);
            hosted.log().update_config(order.config);
            hosted.set_leadership(order.leadership);
            continue;
        }
        if let Err(error) = host(&shard, order).await {
            failed.push((id, error.to_string()));
        }
    }
    failed
}

async fn host(shard: &Rc<Shard>, order: HostOrder) -> Result<(), LogError> {
    let logs = shard.logs();
    let folder = logs.directory().join(order.identity.folder());
    let log = if io::directory::metadata(&folder).await.is_ok() {
        logs.open_log(order.identity, order.config).await?
    } else {
        logs.create_log(order.identity, order.config).await?
    };
    let options = PartitionOptions {
        id: order.id,
        local: shard.broker_id(),
        log,
        min_insync_replicas: order.min_insync_replicas,
        wake: shard.wake_sink(),
    };
    shard.insert(Partition::new(options, order.leadership));
    Ok(())
}

/// Gives partitions up and deletes their logs.
pub async fn delete_all(shard: Rc<Shard>, ids: Vec<TopicPartition>) {
    for id in ids {
        let Some(partition) = shard.remove(id) else {
            continue;
        };
        if let Err(error) = shard.logs().delete_log(partition.log()).await {
            let folder = partition.log().identity().folder();
            tracing::error!("cannot delete {folder}: {error}");
        }
    }
}

/// Gives every partition up; logs stay.
pub fn release_all(shard: &Rc<Shard>) {
    for partition in shard.partitions() {
        shard.remove(partition.id());
    }
}

/// The partitions of `image` that this broker hosts.
pub fn hosted(image: &Arc<Image>) -> impl Iterator<Item = TopicPartition> + '_ {
    let local = image.node_id();
    image.topics().iter().flat_map(move |topic| {
        let partitions = topic.partitions.iter();
        let here = partitions.filter(move |(_, partition)| partition.replicas.contains(&local));
        here.map(move |(index, _)| TopicPartition {
            topic_id: topic.id,
            partition: *index,
        })
    })
}
