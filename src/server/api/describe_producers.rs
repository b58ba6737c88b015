//! DescribeProducers (61), version 0 (KIP-664): the producers that partitions know, asked of the
//! shards that own them. A partition is answered once, however often it is named.

use std::collections::{BTreeMap, HashSet};

use crate::base::error_code::ErrorCode;
use crate::base::ids::{Offset, PartitionIndex, ShardId, TopicPartition};
use crate::base::limits::TOPIC_NAME_LEN_MAX;
use crate::cluster::decide::topic_names;
use crate::io::reply::reply_slot;
use crate::partition::{KnownProducer, PartitionError};
use crate::server::context::RequestContext;
use crate::shard::{KnownProducers, ProducersMessage, ShardMessage};
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState,
    TopicResponse,
};

/// What Kafka says of a topic that is not there.
const NOT_HOSTED: &str = "This server does not host this topic-partition.";

/// Partitions asked of one shard, each with its place in the response.
#[derive(Default)]
struct Outgoing {
    partitions: Vec<TopicPartition>,
    places: Vec<(usize, usize)>,
}

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: DescribeProducersRequest,
) -> DescribeProducersResponse {
    let (mut topics, outgoing) = sort(context, request);
    for (owner, outgoing) in outgoing {
        let (reply, answers) = reply_slot();
        let message = ShardMessage::Producers(ProducersMessage {
            partitions: outgoing.partitions,
            reply,
        });
        context.node().shard().send(owner, message);
        let mut answers = answers.await.unwrap_or_default().into_iter();
        for (topic, place) in outgoing.places {
            let answer = answers.next().unwrap_or(Err(PartitionError::NotLeader));
            let slot = topics
                .get_mut(topic)
                .and_then(|topic| topic.partitions.get_mut(place));
            if let Some(slot) = slot {
                fill(slot, answer);
            }
        }
    }
    DescribeProducersResponse {
        throttle_time_ms: 0,
        topics,
    }
}

/// Every partition once, and whom to ask for those that are known.
fn sort(
    context: &RequestContext,
    request: DescribeProducersRequest,
) -> (Vec<TopicResponse>, BTreeMap<ShardId, Outgoing>) {
    let mut topics: Vec<TopicResponse> = Vec::new();
    let mut outgoing: BTreeMap<ShardId, Outgoing> = BTreeMap::new();
    let mut told: HashSet<(usize, PartitionIndex)> = HashSet::new();
    let mut names = BTreeMap::new();
    for asked in request.topics {
        let place = *names.entry(asked.name.clone()).or_insert(topics.len());
        if place == topics.len() {
            topics.push(TopicResponse {
                name: asked.name,
                partitions: Vec::new(),
            });
        }
        let Some(topic) = topics.get_mut(place) else {
            continue;
        };
        let is_known = (context.node().image_ref().topics())
            .by_name(&topic.name)
            .is_some();
        // The text names the topic, and goes with every partition: not one of any length.
        let fits = topic.name.len() <= 2 * TOPIC_NAME_LEN_MAX;
        let fault = topic_names::check(&topic.name).err();
        let fault = fault.map(|fault| Some(fault).filter(|_| fits));
        for index in asked.partition_indexes {
            if !told.insert((place, index)) {
                continue;
            }
            let found = match &fault {
                Some(_) => Err(ErrorCode::INVALID_TOPIC_EXCEPTION),
                None => context.owner_by_name(&topic.name, index),
            };
            if let Ok((owner, id)) = found {
                let outgoing = outgoing.entry(owner).or_default();
                outgoing.partitions.push(id);
                outgoing.places.push((place, topic.partitions.len()));
            }
            topic.partitions.push(PartitionResponse {
                partition_index: index,
                error_code: found.err().unwrap_or(ErrorCode::NONE),
                error_message: match &fault {
                    Some(fault) => fault.clone(),
                    // Kafka says so of a topic, not of a partition.
                    None => (!is_known).then(|| NOT_HOSTED.to_owned()),
                },
                ..PartitionResponse::default()
            });
        }
    }
    (topics, outgoing)
}

fn fill(slot: &mut PartitionResponse, answer: KnownProducers) {
    match answer {
        Ok(known) => slot.active_producers = known.into_iter().map(state).collect(),
        Err(error) => slot.error_code = error.error_code(),
    }
}

fn state(known: KnownProducer) -> ProducerState {
    ProducerState {
        producer_id: known.producer_id,
        producer_epoch: i32::from(known.producer_epoch.0),
        last_sequence: known.last_sequence,
        last_timestamp: known.last_timestamp,
        coordinator_epoch: known.coordinator_epoch,
        current_txn_start_offset: known.transaction_first_offset.unwrap_or(Offset(-1)),
    }
}
