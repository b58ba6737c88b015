//! OffsetForLeaderEpoch (23), versions 2 to 4 (KIP-101, KIP-279, KIP-320).
//!
//! For each partition the largest epoch at most the one asked for, and where it ended here
//! (`Partition.lastOffsetForLeaderEpoch`). No known epoch is no error: epoch and offset are -1.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{LeaderEpoch, Offset, ShardId, TopicPartition};
use crate::io::reply::reply_slot;
use crate::partition::PartitionError;
use crate::server::context::RequestContext;
use crate::shard::{EpochEnd, EpochEndsMessage, ShardMessage};
use crate::wire::header::RequestHeader;
use crate::wire::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition, OffsetForLeaderTopicResult,
};

type Query = (TopicPartition, LeaderEpoch, LeaderEpoch);
/// Queries for one shard, each with its place in the response.
type Outgoing = (ShardId, Vec<Query>, Vec<(usize, usize)>);

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let mut outgoing: Vec<Outgoing> = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for (topic_place, topic) in request.topics.into_iter().enumerate() {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (place, asked) in topic.partitions.iter().enumerate() {
            let found = find(context, &topic.topic, asked);
            partitions.push(EpochEndOffset {
                error_code: found.as_ref().err().copied().unwrap_or(ErrorCode::NONE),
                partition: asked.partition,
                leader_epoch: LeaderEpoch::NONE,
                end_offset: Offset(-1),
            });
            let Ok((owner, query)) = found else { continue };
            let place = (topic_place, place);
            match outgoing.iter_mut().find(|known| known.0 == owner) {
                Some(known) => {
                    known.1.push(query);
                    known.2.push(place);
                }
                None => outgoing.push((owner, vec![query], vec![place])),
            }
        }
        topics.push(OffsetForLeaderTopicResult {
            topic: topic.topic,
            partitions,
        });
    }
    for (owner, queries, places) in outgoing {
        let (reply, answers) = reply_slot();
        let message = ShardMessage::EpochEnds(EpochEndsMessage { queries, reply });
        context.node().shard().send(owner, message);
        let mut answers = answers.await.unwrap_or_default().into_iter();
        for (topic, partition) in places {
            let answer = answers.next().unwrap_or(Err(PartitionError::NotLeader));
            let slot = topics
                .get_mut(topic)
                .and_then(|topic| topic.partitions.get_mut(partition));
            if let Some(slot) = slot {
                fill(slot, answer);
            }
        }
    }
    OffsetForLeaderEpochResponse {
        topics,
        ..OffsetForLeaderEpochResponse::default()
    }
}

fn find(
    context: &RequestContext,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<(ShardId, Query), ErrorCode> {
    let image = context.node().image_ref();
    let found = image.topics().by_name(topic);
    let found = found.filter(|found| found.partition(asked.partition).is_some());
    let found = found.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let id = TopicPartition {
        topic_id: found.id,
        partition: asked.partition,
    };
    let owner = context.owner(id)?;
    Ok((owner, (id, asked.current_leader_epoch, asked.leader_epoch)))
}

fn fill(slot: &mut EpochEndOffset, answer: EpochEnd) {
    match answer {
        Ok(None) => {}
        Ok(Some((leader_epoch, end_offset))) => {
            slot.leader_epoch = leader_epoch;
            slot.end_offset = end_offset;
        }
        Err(error) => slot.error_code = error.error_code(),
    }
}
