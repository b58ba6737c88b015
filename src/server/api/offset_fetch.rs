//! OffsetFetch (9), versions 1 to 9 (KIP-88, KIP-320, KIP-447, KIP-709, KIP-848).
//!
//! An answer has a limit (`GroupService::fetched_bytes_max`): a group whose offsets would pass it
//! is refused.
//!
//! Not served: version 10, which names topics by their ids. Member ids and epochs (version 9)
//! belong to another protocol than the classic one and are not looked at.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{LeaderEpoch, Offset};
use crate::coordinator::group::{
    FetchOffsets, FetchedOffsets, Operation, Response, TopicPartitions,
};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};

/// First version that asks for several groups.
const GROUPS_FROM: i16 = 8;
/// First version that has a code for the whole group.
const GROUP_CODE_FROM: i16 = 2;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: OffsetFetchRequest,
) -> OffsetFetchResponse {
    let require_stable = request.require_stable;
    let shards = context.node().shard().shards().count();
    let bytes_max = context.node().groups().fetched_bytes_max(shards);
    if header.api_version < GROUPS_FROM {
        let wanted = |topics: Vec<_>| -> Vec<TopicPartitions> {
            let topics = topics.into_iter();
            let topics = topics.map(
                |topic: crate::wire::messages::offset_fetch::OffsetFetchRequestTopic| {
                    TopicPartitions {
                        name: topic.name,
                        partitions: topic.partition_indexes,
                    }
                },
            );
            topics.collect()
        };
        let topics = request.topics.map(wanted);
        let fetch = (request.group_id, topics, require_stable);
        let told = fetched(context, fetch, bytes_max).await;
        return single(told, header.api_version);
    }
    let mut told = Vec::with_capacity(request.groups.len());
    let mut left = bytes_max;
    for group in request.groups {
        let topics = group.topics.map(|topics| {
            let topics = topics.into_iter().map(|topic| TopicPartitions {
                name: topic.name,
                partitions: topic.partition_indexes,
            });
            topics.collect()
        });
        let fetch = (group.group_id.clone(), topics, require_stable);
        let of_one = fetched(context, fetch, left).await;
        left = left.saturating_sub(of_one.0.bytes());
        told.push(of_group(group.group_id, of_one));
    }
    OffsetFetchResponse {
        groups: told,
        ..OffsetFetchResponse::default()
    }
}

type Wanted = (String, Option<Vec<TopicPartitions>>, bool);
type Told = (FetchedOffsets, Option<Vec<TopicPartitions>>);

/// The group's offsets; with an error also what was asked for.
async fn fetched(
    context: &RequestContext,
    (group_id, topics, require_stable): Wanted,
    bytes_max: usize,
) -> Told {
    let asked = topics.clone();
    let operation = Operation::FetchOffsets(FetchOffsets {
        group_id: group_id.as_str().into(),
        topics,
        require_stable,
        bytes_max,
    });
    let answer = groups::ask(context, &group_id, operation).await;
    let answer = groups::expect(answer, |response| match response {
        Response::FetchOffsets(response) => Some(response),
        _ => None,
    });
    let refused = |error_code| FetchedOffsets {
        error_code,
        topics: Vec::new(),
    };
    (answer.unwrap_or_else(refused), asked)
}

fn of_group(group_id: String, (told, _): Told) -> OffsetFetchResponseGroup {
    let topics = told.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter();
        let partitions = partitions.map(|one| OffsetFetchResponsePartitions {
            partition_index: one.partition,
            committed_offset: one.offset,
            committed_leader_epoch: one.leader_epoch,
            metadata: Some(one.metadata),
            error_code: ErrorCode::NONE,
        });
        OffsetFetchResponseTopics {
            name: topic.name,
            partitions: partitions.collect(),
        }
    });
    OffsetFetchResponseGroup {
        group_id,
        topics: topics.collect(),
        error_code: told.error_code,
    }
}

/// The oldest version has no place for the group's code but each partition's.
fn single((told, asked): Told, version: i16) -> OffsetFetchResponse {
    let code = told.error_code;
    if !code.is_none() && version < GROUP_CODE_FROM {
        let topics = asked.unwrap_or_default().into_iter().map(|topic| {
            let partitions = topic.partitions.into_iter();
            let partitions = partitions.map(|index| OffsetFetchResponsePartition {
                partition_index: index,
                committed_offset: Offset(-1),
                committed_leader_epoch: LeaderEpoch::NONE,
                metadata: Some(String::new()),
                error_code: code,
            });
            OffsetFetchResponseTopic {
                name: topic.name,
                partitions: partitions.collect(),
            }
        });
        return OffsetFetchResponse {
            topics: topics.collect(),
            ..OffsetFetchResponse::default()
        };
    }
    let topics = told.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter();
        let partitions = partitions.map(|one| OffsetFetchResponsePartition {
            partition_index: one.partition,
            committed_offset: one.offset,
            committed_leader_epoch: one.leader_epoch,
            metadata: Some(one.metadata),
            error_code: ErrorCode::NONE,
        });
        OffsetFetchResponseTopic {
            name: topic.name,
            partitions: partitions.collect(),
        }
    });
    OffsetFetchResponse {
        topics: topics.collect(),
        error_code: code,
        ..OffsetFetchResponse::default()
    }
}
