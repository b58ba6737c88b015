//! OffsetDelete (47), version 0 (KIP-496).

use crate::base::error_code::ErrorCode;
use crate::cluster::image::Image;
use crate::coordinator::group::{DeleteOffsets, Operation, Response, TopicCodes, TopicPartitions};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse,
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: OffsetDeleteRequest,
) -> OffsetDeleteResponse {
    let (known, mut unknown) = sort(&context.node().image_ref(), request.topics);
    let answer = match request.group_id.is_empty() {
        true => Err(ErrorCode::INVALID_GROUP_ID),
        false => {
            let operation = Operation::DeleteOffsets(DeleteOffsets {
                group_id: request.group_id.as_str().into(),
                topics: known,
            });
            let answer = groups::ask(context, &request.group_id, operation).await;
            groups::expect(answer, |response| match response {
                Response::DeleteOffsets(result) => Some(result),
                _ => None,
            })
            .and_then(|result| result)
        }
    };
    match answer {
        Err(error_code) => OffsetDeleteResponse {
            error_code,
            ..OffsetDeleteResponse::default()
        },
        Ok(codes) => {
            TopicCodes::merge(&mut unknown, codes);
            let topics = unknown.into_iter().map(response_topic);
            OffsetDeleteResponse {
                topics: topics.collect(),
                ..OffsetDeleteResponse::default()
            }
        }
    }
}

fn response_topic(told: TopicCodes) -> OffsetDeleteResponseTopic {
    let partitions = told.partitions.into_iter();
    OffsetDeleteResponseTopic {
        name: told.name,
        partitions: partitions
            .map(
                |(partition_index, error_code)| OffsetDeleteResponsePartition {
                    partition_index,
                    error_code,
                },
            )
            .collect(),
    }
}

/// The partitions that there are, and the answers for those that there are not.
fn sort(
    image: &Image,
    asked: Vec<OffsetDeleteRequestTopic>,
) -> (Vec<TopicPartitions>, Vec<TopicCodes>) {
    let (mut known, mut missing_of) = (Vec::new(), Vec::new());
    for topic in asked {
        let found = image.topics().by_name(&topic.name);
        let indexes = topic.partitions.into_iter().map(|one| one.partition_index);
        let (there, missing): (Vec<_>, Vec<_>) =
            indexes.partition(|index| found.is_some_and(|found| found.partition(*index).is_some()));
        if !missing.is_empty() {
            let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            missing_of.push(TopicCodes {
                name: topic.name.clone(),
                partitions: missing.into_iter().map(|index| (index, code)).collect(),
            });
        }
        if !there.is_empty() {
            known.push(TopicPartitions {
                name: topic.name,
                partitions: there,
            });
        }
    }
    // All at once: there may be very many.
    let mut unknown = Vec::new();
    TopicCodes::merge(&mut unknown, missing_of);
    (known, unknown)
}
