//! ListOffsets (2), versions 1 to 11 (KIP-79, KIP-320, KIP-734, KIP-405, KIP-1005, KIP-1023).
//!
//! A partition named twice is INVALID_REQUEST for each mention; a special timestamp that the
//! version does not know is UNSUPPORTED_VERSION (`KafkaApis.handleListOffsetRequest`,
//! `ReplicaManager.fetchOffset`). A reader with another replica id than -1 sees to the log's end.
//! An isolation level that there is not is UNKNOWN_SERVER_ERROR for all (`IsolationLevel.forId`).
//!
//! Nothing is tiered: -4 is -2, and -5 and -6 find nothing.

use std::collections::HashSet;

use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, Offset, ShardId, TopicPartition};
use crate::base::time::TimestampMs;
use crate::io::reply::reply_slot;
use crate::log::TimestampedOffset;
use crate::partition::{Isolation, OffsetQuery, PartitionError};
use crate::server::context::RequestContext;
use crate::shard::{OffsetsMessage, ShardMessage};
use crate::wire::header::RequestHeader;
use crate::wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopic, ListOffsetsTopicResponse,
};

/// `ListOffsetsRequest.CONSUMER_REPLICA_ID`.
const CONSUMER: BrokerId = BrokerId(-1);
/// First version with leader epochs.
const EPOCHS_FROM: i16 = 4;
/// First version that knows OFFSET_NOT_AVAILABLE.
const NOT_AVAILABLE_FROM: i16 = 5;

type Query = (TopicPartition, OffsetQuery, LeaderEpoch);

/// Queries on their way to one shard, each with its place in the response.
struct Outgoing {
    owner: ShardId,
    queries: Vec<Query>,
    places: Vec<(usize, usize)>,
}

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: ListOffsetsRequest,
) -> ListOffsetsResponse {
    let version = header.api_version;
    let Some(level) = Isolation::of_consumer(request.isolation_level) else {
        return refused(&request, ErrorCode::UNKNOWN_SERVER_ERROR);
    };
    let isolation = (request.replica_id == CONSUMER).then_some(level);
    let (mut topics, outgoing) = sort(context, version, &request);
    let shard = context.node().shard();
    let mut asked = Vec::with_capacity(outgoing.len());
    for outgoing in outgoing {
        let (reply, answers) = reply_slot();
        let message = OffsetsMessage {
            queries: outgoing.queries,
            isolation,
            reply,
        };
        shard.send(outgoing.owner, ShardMessage::ListOffsets(message));
        asked.push((answers, outgoing.places));
    }
    for (answers, places) in asked {
        let mut answers = answers.await.unwrap_or_default().into_iter();
        for (topic, partition) in places {
            let answer = answers.next().unwrap_or(Err(PartitionError::NotLeader));
            let slot = topics
                .get_mut(topic)
                .and_then(|topic| topic.partitions.get_mut(partition));
            if let Some(slot) = slot {
                fill(slot, answer, version);
            }
        }
    }
    ListOffsetsResponse {
        topics,
        ..ListOffsetsResponse::default()
    }
}

/// The same code for every partition that is asked for.
fn refused(request: &ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse {
    let topics = request.topics.iter();
    let partitions = |topic: &ListOffsetsTopic| {
        let partitions = topic.partitions.iter();
        partitions.map(|asked| unanswered(asked, code)).collect()
    };
    ListOffsetsResponse {
        topics: topics
            .map(|topic| ListOffsetsTopicResponse {
                name: topic.name.clone(),
                partitions: partitions(topic),
            })
            .collect(),
        ..ListOffsetsResponse::default()
    }
}

fn sort(
    context: &RequestContext,
    version: i16,
    request: &ListOffsetsRequest,
) -> (Vec<ListOffsetsTopicResponse>, Vec<Outgoing>) {
    let (mut outgoing, mut topics) = (Vec::<Outgoing>::new(), Vec::new());
    let duplicates = duplicates(request);
    let image = context.node().image_ref();
    for (topic_place, topic) in request.topics.iter().enumerate() {
        let found = image.topics().by_name(&topic.name);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (place, asked) in topic.partitions.iter().enumerate() {
            let known = found.filter(|found| found.partition(asked.partition_index).is_some());
            let query = query_of(asked.timestamp, version);
            let is_duplicate = duplicates.contains(&(&*topic.name, asked.partition_index));
            let sorted = match (known, query) {
                _ if is_duplicate => Err(ErrorCode::INVALID_REQUEST),
                (_, None) => Err(ErrorCode::UNSUPPORTED_VERSION),
                (None, _) => Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
                (Some(found), Some(query)) => {
                    let id = TopicPartition {
                        topic_id: found.id,
                        partition: asked.partition_index,
                    };
                    let owner = context.owner(id);
                    owner.map(|owner| (owner, (id, query, asked.current_leader_epoch)))
                }
            };
            let error_code = sorted.as_ref().err().copied().unwrap_or(ErrorCode::NONE);
            partitions.push(unanswered(asked, error_code));
            if let Ok((owner, query)) = sorted {
                queue(&mut outgoing, owner, (query, (topic_place, place)));
            }
        }
        topics.push(ListOffsetsTopicResponse {
            name: topic.name.clone(),
            partitions,
        });
    }
    (topics, outgoing)
}

fn queue(outgoing: &mut Vec<Outgoing>, owner: ShardId, (query, place): (Query, (usize, usize))) {
    match outgoing.iter_mut().find(|known| known.owner == owner) {
        Some(known) => {
            known.queries.push(query);
            known.places.push(place);
        }
        None => outgoing.push(Outgoing {
            owner,
            queries: vec![query],
            places: vec![place],
        }),
    }
}

fn duplicates(request: &ListOffsetsRequest) -> HashSet<(&str, crate::base::ids::PartitionIndex)> {
    let (mut seen, mut twice) = (HashSet::new(), HashSet::new());
    for topic in &request.topics {
        for partition in &topic.partitions {
            let key = (&*topic.name, partition.partition_index);
            if !seen.insert(key) {
                twice.insert(key);
            }
        }
    }
    twice
}

/// What a timestamp asks for; `None` when the version does not know it.
fn query_of(timestamp: TimestampMs, version: i16) -> Option<OffsetQuery> {
    let (query, first_version) = match timestamp.0 {
        -1 => (OffsetQuery::Latest, 1),
        -2 => (OffsetQuery::Earliest, 1),
        -3 => (OffsetQuery::MaxTimestamp, 7),
        -4 => (OffsetQuery::Earliest, 8),
        -5 => (OffsetQuery::Tiered, 9),
        -6 => (OffsetQuery::Tiered, 11),
        negative if negative < 0 => return None,
        _ => (OffsetQuery::At(timestamp), 1),
    };
    (version >= first_version).then_some(query)
}

fn unanswered(asked: &ListOffsetsPartition, error_code: ErrorCode) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        error_code,
        timestamp: TimestampMs::NONE,
        offset: Offset(-1),
        leader_epoch: LeaderEpoch::NONE,
    }
}

fn fill(
    slot: &mut ListOffsetsPartitionResponse,
    answer: Result<Option<TimestampedOffset>, PartitionError>,
    version: i16,
) {
    match answer {
        Ok(None) => {}
        Ok(Some(found)) => {
            slot.timestamp = found.timestamp;
            slot.offset = found.offset;
            if version >= EPOCHS_FROM {
                slot.leader_epoch = found.leader_epoch;
            }
        }
        Err(PartitionError::OffsetNotAvailable) if version < NOT_AVAILABLE_FROM => {
            slot.error_code = ErrorCode::LEADER_NOT_AVAILABLE;
        }
        Err(error) => slot.error_code = error.error_code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_timestamps_need_their_versions() {
        let known = |timestamp, version| query_of(TimestampMs(timestamp), version).is_some();
        for (timestamp, first) in [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11)] {
            assert!(known(timestamp, first), "{timestamp}");
            assert!(!known(timestamp, first - 1), "{timestamp}");
        }
        assert!(!known(-7, 11));
        assert!(known(0, 1));
    }
}
