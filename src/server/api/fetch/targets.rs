//! From a request's topics to partitions of this broker.

use std::rc::Rc;

use crate::base::error_code::ErrorCode;
use crate::base::ids::{ShardId, TopicPartition};
use crate::partition::{PartitionRead, ReadSpec};
use crate::server::context::RequestContext;
use crate::server::fetch_session::{FetchTarget, SessionRequest, TopicKey};
use crate::wire::messages::fetch::FetchRequest;

/// First version that names topics by id.
pub const TOPIC_IDS_FROM: i16 = 13;

/// How one partition of a fetch stands.
#[derive(Debug)]
pub enum Target {
    /// It cannot be read here.
    Refused(ErrorCode),
    /// It is read by its owner.
    Readable {
        /// The shard that owns it.
        owner: ShardId,
        /// What is asked.
        spec: ReadSpec,
        /// The last answer.
        read: Option<PartitionRead>,
    },
}

/// The session's part of a request; its topics in their order.
#[must_use]
pub fn session_request(request: FetchRequest, version: i16) -> SessionRequest {
    let uses_topic_ids = version >= TOPIC_IDS_FROM;
    let key = |name: &str, id| {
        if uses_topic_ids {
            TopicKey::Id(id)
        } else {
            TopicKey::Name(Rc::from(name))
        }
    };
    let mut targets = Vec::new();
    for topic in &request.topics {
        let topic_key = key(&topic.topic, topic.topic_id);
        targets.extend(topic.partitions.iter().map(|partition| FetchTarget {
            topic: topic_key.clone(),
            partition: partition.partition,
            fetch_offset: partition.fetch_offset,
            current_leader_epoch: partition.current_leader_epoch,
            last_fetched_epoch: partition.last_fetched_epoch,
            max_bytes: partition.partition_max_bytes,
        }));
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let topic_key = key(&topic.topic, topic.topic_id);
        let partitions = topic.partitions.iter();
        forgotten.extend(partitions.map(|partition| (topic_key.clone(), *partition)));
    }
    SessionRequest {
        session_id: request.session_id,
        session_epoch: request.session_epoch,
        uses_topic_ids,
        targets,
        forgotten,
    }
}

/// Whether the metadata knows one of the partitions.
#[must_use]
pub fn knows_any(context: &RequestContext, targets: &[FetchTarget]) -> bool {
    let image = context.node().image_ref();
    targets.iter().any(|target| {
        let topic = match &target.topic {
            TopicKey::Name(name) => image.topics().by_name(name),
            TopicKey::Id(id) => image.topics().by_id(*id),
        };
        topic.is_some_and(|topic| topic.partition(target.partition).is_some())
    })
}

/// Finds each target's partition and owner.
#[must_use]
pub fn resolve(
    context: &RequestContext,
    targets: &[FetchTarget],
    is_follower: bool,
) -> Vec<Target> {
    let image = context.node().image_ref();
    let targets = targets.iter().enumerate();
    targets
        .map(|(place, target)| {
            let (topic, unknown) = match &target.topic {
                TopicKey::Name(name) => (
                    image.topics().by_name(name),
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ),
                TopicKey::Id(id) => (image.topics().by_id(*id), ErrorCode::UNKNOWN_TOPIC_ID),
            };
            let Some(topic) = topic else {
                return Target::Refused(unknown);
            };
            if topic.partition(target.partition).is_none() {
                return Target::Refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
            }
            let partition = TopicPartition {
                topic_id: topic.id,
                partition: target.partition,
            };
            let owner = match context.owner(partition) {
                Ok(_) if is_follower => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
                owner => owner,
            };
            let owner = match owner {
                Ok(owner) => owner,
                Err(error_code) => return Target::Refused(error_code),
            };
            let spec = ReadSpec {
                partition,
                place: u32::try_from(place).unwrap_or(u32::MAX),
                fetch_offset: target.fetch_offset,
                current_leader_epoch: target.current_leader_epoch,
                last_fetched_epoch: target.last_fetched_epoch,
                max_bytes: usize::try_from(target.max_bytes).unwrap_or(0),
            };
            Target::Readable {
                owner,
                spec,
                read: None,
            }
        })
        .collect()
}
