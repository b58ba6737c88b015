//! OffsetCommit (8), versions 2 to 9 (KIP-211, KIP-320, KIP-345, KIP-848). The answer waits until
//! the offsets are durable.
//!
//! Not served: version 10, which names topics by their ids (KIP-848).

use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;
use crate::cluster::image::Image;
use crate::coordinator::group::{
    CommitPartition, CommitTopic, OffsetCommit, Operation, Response, TopicCodes,
};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

/// First version that tells a group that is not known by its own code.
const UNKNOWN_GROUP_FROM: i16 = 9;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: OffsetCommitRequest,
) -> OffsetCommitResponse {
    let (known, mut refused) = sort(&context.node().image_ref(), request.topics);
    if !known.is_empty() {
        let asked: Vec<(String, Vec<PartitionIndex>)> = known.iter().map(indexes).collect();
        let operation = Operation::CommitOffsets(OffsetCommit {
            group_id: request.group_id.as_str().into(),
            generation_id: request.generation_id_or_member_epoch,
            member_id: request.member_id.into(),
            instance_id: request.group_instance_id.map(Into::into),
            retention_ms: request.retention_time_ms,
            tells_unknown_group: header.api_version >= UNKNOWN_GROUP_FROM,
            topics: known,
        });
        let answer = groups::ask(context, &request.group_id, operation).await;
        let answer = groups::expect(answer, |response| match response {
            Response::CommitOffsets(result) => Some(result),
            _ => None,
        });
        let codes = match answer {
            Ok(Ok(codes)) => codes,
            Ok(Err(code)) | Err(code) => (asked.into_iter())
                .map(|(name, indexes)| TopicCodes {
                    name,
                    partitions: indexes.into_iter().map(|index| (index, code)).collect(),
                })
                .collect(),
        };
        // Each topic once, where some of it was refused (`OffsetCommitResponse.Builder`).
        match refused.is_empty() {
            true => refused = codes,
            false => TopicCodes::merge(&mut refused, codes),
        }
    }
    OffsetCommitResponse {
        throttle_time_ms: 0,
        topics: refused.into_iter().map(response_topic).collect(),
    }
}

fn indexes(topic: &CommitTopic) -> (String, Vec<PartitionIndex>) {
    let partitions = topic.partitions.iter();
    (
        topic.name.clone(),
        partitions.map(|one| one.partition).collect(),
    )
}

/// The commits for partitions that there are, and the answers for those that there are not.
fn sort(
    image: &Image,
    asked: Vec<OffsetCommitRequestTopic>,
) -> (Vec<CommitTopic>, Vec<TopicCodes>) {
    let (mut known, mut missing_of) = (Vec::new(), Vec::new());
    for topic in asked {
        let found = image.topics().by_name(&topic.name);
        let (there, missing): (Vec<_>, Vec<_>) = topic.partitions.into_iter().partition(|one| {
            found.is_some_and(|found| found.partition(one.partition_index).is_some())
        });
        // Kafka answers for a topic that it does not know even where it is asked for no partition.
        if found.is_none() || !missing.is_empty() {
            let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            let unknown = missing.into_iter().map(|one| (one.partition_index, code));
            missing_of.push(TopicCodes {
                name: topic.name.clone(),
                partitions: unknown.collect(),
            });
        }
        if let Some(found) = found.filter(|_| !there.is_empty()) {
            let partitions = there.into_iter().map(|one| CommitPartition {
                partition: one.partition_index,
                offset: one.committed_offset,
                leader_epoch: one.committed_leader_epoch,
                metadata: one.committed_metadata,
            });
            known.push(CommitTopic {
                name: topic.name,
                topic_id: found.id,
                partitions: partitions.collect(),
            });
        }
    }
    // All at once: there may be very many.
    let mut refused = Vec::new();
    TopicCodes::merge(&mut refused, missing_of);
    (known, refused)
}

fn response_topic(told: TopicCodes) -> OffsetCommitResponseTopic {
    let partitions = told.partitions.into_iter();
    OffsetCommitResponseTopic {
        name: told.name,
        partitions: partitions
            .map(
                |(partition_index, error_code)| OffsetCommitResponsePartition {
                    partition_index,
                    error_code,
                },
            )
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::base::ids::BrokerId;
    use crate::wire::messages::offset_commit::OffsetCommitRequestPartition;

    /// Far more than it takes, and far less than if each topic were looked for among all others.
    const SORTED_WITHIN: Duration = Duration::from_secs(10);

    #[test]
    fn very_many_unknown_topics_are_sorted_at_once() {
        let image = Image::new("cluster", BrokerId(1));
        let topic = |number: usize| OffsetCommitRequestTopic {
            name: (number % 100_000).to_string(),
            partitions: vec![OffsetCommitRequestPartition::default()],
        };
        let began = Instant::now();
        let (known, refused) = sort(&image, (0..130_000).map(topic).collect());
        assert!(began.elapsed() < SORTED_WITHIN, "{:?}", began.elapsed());
        assert_eq!((known.len(), refused.len()), (0, 100_000));
        let partitions = |place: usize| refused[place].partitions.len();
        assert_eq!((partitions(0), partitions(99_999)), (2, 1));
    }

    /// As Kafka answers it.
    #[test]
    fn an_unknown_topic_without_partitions_is_told_all_the_same() {
        let image = Image::new("cluster", BrokerId(1));
        let topic = OffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: Vec::new(),
        };
        let (known, refused) = sort(&image, vec![topic]);
        assert!(known.is_empty());
        assert_eq!((refused.len(), refused[0].partitions.len()), (1, 0));
    }
}
