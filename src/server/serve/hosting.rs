//! What a shard does when metadata changes: opens, creates, changes and gives up partitions.

use std::collections::VecDeque;
use std::rc::Rc;

use super::log_settings::log_config;
use crate::base::config::{BrokerConfig, TopicSettings};
use crate::base::ids::{PartitionIndex, TopicPartition, Uuid};
use crate::cluster::image::{Image, PartitionImage, TopicImage};
use crate::io::task::JoinHandle;
use crate::io::{self, TaskClass};
use crate::log::{LogConfig, LogError, LogIdentity};
use crate::partition::{Departure, Leadership, Partition, PartitionOptions};
use crate::server::groups::OFFSETS_TOPIC;
use crate::server::node::Node;
use crate::shard::Shard;

/// Logs of one shard that open, are created or deleted at a time: enough that one flush serves
/// many.
const OPENING_MAX: usize = 128;

/// A partition that a shard is to host.
#[derive(Clone, Debug)]
pub struct HostOrder {
    /// Which one.
    pub id: TopicPartition,
    /// Whether an earlier life of the broker had it.
    pub is_known: bool,
    /// The id of the log directory that it is in.
    pub directory: Uuid,
    /// Its log.
    pub identity: LogIdentity,
    /// Its log's settings.
    pub config: LogConfig,
    /// `min.insync.replicas`.
    pub min_insync_replicas: usize,
    /// Who leads.
    pub leadership: Leadership,
}

/// A topic's settings as an image holds them.
#[must_use]
pub fn settings(image: &Image, config: &BrokerConfig, topic: &TopicImage) -> TopicSettings {
    let overrides = image.topic_configs(&topic.name);
    let settings = TopicSettings::derive(&config.texts, &overrides);
    settings.unwrap_or_else(|fault| {
        // Settings are checked before they are written; only another program's records get here.
        tracing::error!(
            "topic {}: {fault:?}; the broker's defaults apply",
            topic.name
        );
        config.topic_defaults.clone()
    })
}

/// The order for one partition, in that log directory, of a topic with these settings.
#[must_use]
pub fn order(
    (topic, settings): (&TopicImage, &TopicSettings),
    (index, partition): (PartitionIndex, &PartitionImage),
    directory: Uuid,
    config: &BrokerConfig,
) -> HostOrder {
    HostOrder {
        is_known: false,
        directory,
        id: TopicPartition {
            topic_id: topic.id,
            partition: index,
        },
        identity: LogIdentity {
            topic: topic.name.to_string(),
            topic_id: topic.id,
            partition: index,
        },
        config: log_config(settings, config),
        min_insync_replicas: usize::try_from(settings.min_insync_replicas).unwrap_or(1),
        leadership: Leadership {
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr: partition.isr.clone(),
            replicas: partition.replicas.clone(),
        },
    }
}

/// Opens or creates the logs of `orders` and hosts their partitions, several at a time. A
/// partition whose log does not open is not hosted and is to be offline; the others are. Answers
/// what failed.
pub async fn host_all(shard: Rc<Shard>, orders: Vec<HostOrder>) -> Vec<(TopicPartition, String)> {
    let mut failed = Vec::new();
    let mut opening = VecDeque::new();
    for order in orders {
        if let Some(hosted) = shard.partition(order.id) {
            hosted.set_min_insync_replicas(order.min_insync_replicas);
            hosted.update_config(order.config);
            hosted.set_leadership(order.leadership);
            continue;
        }
        if opening.len() >= OPENING_MAX
            && let Some(first) = opening.pop_front()
        {
            failed.extend(finish(first).await);
        }
        let (id, shard) = (order.id, Rc::clone(&shard));
        let task = async move { host(&shard, order).await };
        opening.push_back((id, io::spawn(TaskClass::Background, task)));
    }
    for last in opening {
        failed.extend(finish(last).await);
    }
    failed
}

type Opening = (TopicPartition, JoinHandle<Result<(), LogError>>);

async fn finish((id, opening): Opening) -> Option<(TopicPartition, String)> {
    let outcome = opening.await;
    outcome.err().map(|error| (id, error.to_string()))
}

async fn host(shard: &Rc<Shard>, order: HostOrder) -> Result<(), LogError> {
    let is_of_groups = order.identity.topic == OFFSETS_TOPIC;
    let logs = shard.logs().of(order.directory)?;
    let log = if logs.has_folder(&order.identity).await? {
        logs.open_log(order.identity, order.config).await?
    } else {
        if order.is_known {
            let name = order.identity.folder();
            tracing::warn!("the folder {name} is missing and is made anew, empty");
        }
        logs.create_log(order.identity, order.config).await?
    };
    let options = PartitionOptions {
        id: order.id,
        local: shard.broker_id(),
        log,
        min_insync_replicas: order.min_insync_replicas,
        wake: shard.wake_sink(),
        metrics: Rc::clone(shard.metrics()),
    };
    shard.insert(Partition::new(options, order.leadership));
    if is_of_groups && let Some(node) = shard.attachment::<Node>() {
        node.groups().host(shard, order.id);
    }
    Ok(())
}

/// Gives partitions up and deletes their logs, several at a time.
pub async fn delete_all(shard: Rc<Shard>, ids: Vec<TopicPartition>) {
    let mut deleting = VecDeque::new();
    let node = shard.attachment::<Node>();
    for id in ids {
        if let Some(node) = &node {
            node.groups().release(id);
        }
        let Some(partition) = shard.remove(id, Departure::Deleted) else {
            continue;
        };
        if deleting.len() >= OPENING_MAX
            && let Some(first) = deleting.pop_front()
        {
            first.await;
        }
        let shard = Rc::clone(&shard);
        deleting.push_back(io::spawn(TaskClass::Background, async move {
            let log = partition.log();
            if let Err(error) = shard.logs().delete_log(&log).await {
                let folder = log.identity().folder();
                tracing::error!("cannot delete {folder}: {error}");
            }
        }));
    }
    for last in deleting {
        last.await;
    }
}

/// Gives every partition up; logs stay.
pub fn release_all(shard: &Rc<Shard>) {
    for partition in shard.partitions() {
        shard.remove(partition.id(), Departure::Released);
    }
}
