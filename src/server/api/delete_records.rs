//! DeleteRecords (21), versions 0 to 2 (KIP-107): moves the starts of partitions, durably, before
//! it answers. Segments that lie before a start go at the next look for old ones.
//!
//! As in Kafka (`KafkaApis.handleDeleteRecordsRequest`, `ReplicaManager.deleteRecords`): a
//! partition is answered once, and of several mentions the last counts; an offset beyond the high
//! watermark is OFFSET_OUT_OF_RANGE, -1 stands for it; a topic that is only compacted is
//! POLICY_VIOLATION, one of the coordinators' INVALID_TOPIC_EXCEPTION. Parked fetches look again.
//!
//! `timeout_ms` is not looked at: it is for followers, which there are none of.

use std::collections::{BTreeMap, HashMap};

use crate::base::error_code::ErrorCode;
use crate::base::ids::{Offset, PartitionIndex, ShardId, TopicPartition};
use crate::cluster::decide::topic_names;
use crate::cluster::image::TopicImage;
use crate::io::reply::reply_slot;
use crate::partition::PartitionError;
use crate::server::context::RequestContext;
use crate::shard::{DeleteRecordsMessage, ShardMessage};
use crate::wire::header::RequestHeader;
use crate::wire::messages::delete_records::{
    DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
    DeleteRecordsTopicResult,
};

/// What is answered for the start of a partition with an error.
const NO_START: Offset = Offset(-1);

/// Deletions on their way to one shard, each with its place in the response.
#[derive(Default)]
struct Outgoing {
    deletions: Vec<(TopicPartition, Offset)>,
    places: Vec<(usize, usize)>,
}

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let mut topics = merged(request.topics);
    let outgoing = sort(context, &mut topics);
    let shard = context.node().shard();
    let mut asked = Vec::with_capacity(outgoing.len());
    for (owner, outgoing) in outgoing {
        let (reply, answers) = reply_slot();
        let message = DeleteRecordsMessage {
            deletions: outgoing.deletions,
            reply,
        };
        shard.send(owner, ShardMessage::DeleteRecords(message));
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
                (slot.low_watermark, slot.error_code) = match answer {
                    Ok(start) => (start, ErrorCode::NONE),
                    Err(error) => (NO_START, error.error_code()),
                };
            }
        }
    }
    DeleteRecordsResponse {
        throttle_time_ms: 0,
        topics,
    }
}

/// Every partition once, in the order of first mentions, with the offset asked for last where its
/// start will stand.
fn merged(asked: Vec<DeleteRecordsTopic>) -> Vec<DeleteRecordsTopicResult> {
    let mut topics: Vec<DeleteRecordsTopicResult> = Vec::new();
    let mut places: HashMap<String, (usize, HashMap<PartitionIndex, usize>)> = HashMap::new();
    for topic in asked {
        if topic.partitions.is_empty() {
            continue;
        }
        let (place, within) = places.entry(topic.name).or_insert_with_key(|name| {
            topics.push(DeleteRecordsTopicResult {
                name: name.clone(),
                partitions: Vec::new(),
            });
            (topics.len() - 1, HashMap::new())
        });
        let Some(merged) = topics.get_mut(*place) else {
            continue;
        };
        for partition in topic.partitions {
            let index = partition.partition_index;
            let at = *within.entry(index).or_insert(merged.partitions.len());
            match merged.partitions.get_mut(at) {
                Some(known) => known.low_watermark = partition.offset,
                None => merged.partitions.push(DeleteRecordsPartitionResult {
                    partition_index: index,
                    low_watermark: partition.offset,
                    error_code: ErrorCode::NONE,
                }),
            }
        }
    }
    topics
}

/// Answers what no shard needs to be asked for; the rest by its owner.
fn sort(
    context: &RequestContext,
    topics: &mut [DeleteRecordsTopicResult],
) -> BTreeMap<ShardId, Outgoing> {
    let mut outgoing: BTreeMap<ShardId, Outgoing> = BTreeMap::new();
    let image = context.node().image_ref();
    for (topic_place, topic) in topics.iter_mut().enumerate() {
        let found = image.topics().by_name(&topic.name);
        for (place, partition) in topic.partitions.iter_mut().enumerate() {
            match owner_of(context, found.map(AsRef::as_ref), partition.partition_index) {
                Ok((owner, id)) => {
                    let outgoing = outgoing.entry(owner).or_default();
                    outgoing.deletions.push((id, partition.low_watermark));
                    outgoing.places.push((topic_place, place));
                }
                Err(code) => partition.error_code = code,
            }
            partition.low_watermark = NO_START;
        }
    }
    outgoing
}

fn owner_of(
    context: &RequestContext,
    topic: Option<&TopicImage>,
    index: PartitionIndex,
) -> Result<(ShardId, TopicPartition), ErrorCode> {
    let known = topic.filter(|topic| topic.partition(index).is_some());
    let topic = known.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if topic_names::is_internal(&topic.name) {
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    let id = TopicPartition {
        topic_id: topic.id,
        partition: index,
    };
    Ok((context.owner(id)?, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::messages::delete_records::DeleteRecordsPartition;

    fn topic(name: &str, partitions: &[(i32, i64)]) -> DeleteRecordsTopic {
        let partition = |(index, offset): &(i32, i64)| DeleteRecordsPartition {
            partition_index: PartitionIndex(*index),
            offset: Offset(*offset),
        };
        DeleteRecordsTopic {
            name: name.to_owned(),
            partitions: partitions.iter().map(partition).collect(),
        }
    }

    #[test]
    fn of_several_mentions_the_last_counts_at_the_place_of_the_first() {
        let merged = merged(vec![
            topic("a", &[(1, 10), (0, 20), (1, 30)]),
            topic("none", &[]),
            topic("b", &[(0, 40)]),
            topic("a", &[(0, 50), (2, 60)]),
        ]);
        let told: Vec<_> = merged
            .iter()
            .map(|topic| {
                let partitions = topic.partitions.iter();
                let partitions = partitions.map(|one| (one.partition_index.0, one.low_watermark.0));
                (topic.name.as_str(), partitions.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(
            told,
            [("a", vec![(1, 30), (0, 50), (2, 60)]), ("b", vec![(0, 40)])]
        );
    }

    #[test]
    fn a_request_that_names_one_partition_a_million_times_asks_for_it_once() {
        let many = vec![(3, 5); 1_000_000];
        let merged = merged(vec![topic("a", &many)]);
        assert_eq!(merged.len(), 1);
        assert_eq!(merged[0].partitions.len(), 1);
    }
}
