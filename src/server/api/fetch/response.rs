//! From what was read to the response: what the session leaves out, topics grouped in order,
//! current leaders named.

use std::time::Duration;

use crate::base::error_code::ErrorCode;
use crate::base::ids::{Offset, PartitionIndex, TopicId, TopicPartition};
use crate::cluster::image::Image;
use crate::partition::{Isolation, PartitionRead};
use crate::server::api::leaders::NamedLeaders;
use crate::server::context::RequestContext;
use crate::server::fetch_session::{FetchPlan, FetchTarget, PartitionSummary, TopicKey};
use crate::wire::messages::fetch::{
    EpochEndOffset, FetchPartition, FetchRequest, FetchResponse, FetchableTopicResponse,
    LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use crate::wire::primitives::RecordSlices;

use super::targets::{TOPIC_IDS_FROM, Target};

/// First version that names current leaders (KIP-951).
const LEADERS_FROM: i16 = 16;

/// Builds the response and settles the session.
pub fn build(
    context: &RequestContext,
    (plan, version, isolation): (&FetchPlan, i16, Isolation),
    targets: Vec<Target>,
) -> FetchResponse {
    let image = context.image();
    let mut leaders = NamedLeaders::default();
    let mut partitions = Vec::with_capacity(targets.len());
    let mut summaries = Vec::with_capacity(targets.len());
    for (asked, target) in plan.targets.iter().zip(targets) {
        let diverging = matches!(&target, Target::Readable { read: Some(read), .. }
            if read.diverging.is_some());
        let mut data = partition_data(asked, target, isolation);
        if version >= LEADERS_FROM && wants_leader(data.error_code) {
            let id = partition_id(&image, asked);
            let leader = id.and_then(|id| leaders.name(context, &image, id));
            if let Some((leader_id, leader_epoch)) = leader {
                data.current_leader = LeaderIdAndEpoch {
                    leader_id,
                    leader_epoch,
                };
            }
        }
        summaries.push(PartitionSummary {
            error: data.error_code,
            high_watermark: data.high_watermark,
            log_start_offset: data.log_start_offset,
            bytes: data.records.as_ref().map_or(0, RecordSlices::len),
            diverging,
        });
        partitions.push(data);
    }
    let now = crate::io::now();
    let verdict = context.node().sessions().finish(plan, &summaries, now);
    let mut response = FetchResponse {
        error_code: verdict.error,
        session_id: verdict.session_id,
        ..FetchResponse::default()
    };
    if verdict.error.is_none() {
        let answered = plan.targets.iter().zip(partitions).zip(verdict.included);
        for ((asked, data), _) in answered.filter(|(_, included)| *included) {
            add(&mut response.responses, asked, data);
        }
        response.node_endpoints = endpoints(leaders);
    }
    response
}

/// The answer to a client that has to wait before it may have what was found.
pub fn throttled(context: &RequestContext, plan: &FetchPlan, wait: Duration) -> FetchResponse {
    let (error_code, session_id) = context.node().sessions().leave(plan);
    FetchResponse {
        throttle_time_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
        error_code,
        session_id,
        ..FetchResponse::default()
    }
}

/// What fails as a whole. Clients of versions that name topics look for the error at the partitions
/// too (`FetchRequest.getErrorResponse`).
pub fn refused(request: &FetchRequest, version: i16) -> FetchResponse {
    let error_code = ErrorCode::UNKNOWN_SERVER_ERROR;
    let topics = request.topics.iter().filter(|_| version < TOPIC_IDS_FROM);
    let partition = |asked: &FetchPartition| PartitionData {
        error_code,
        ..nothing(asked.partition)
    };
    FetchResponse {
        error_code,
        responses: topics
            .map(|topic| FetchableTopicResponse {
                topic: topic.topic.clone(),
                partitions: topic.partitions.iter().map(partition).collect(),
                ..FetchableTopicResponse::default()
            })
            .collect(),
        ..FetchResponse::default()
    }
}

fn wants_leader(error: ErrorCode) -> bool {
    error == ErrorCode::NOT_LEADER_OR_FOLLOWER || error == ErrorCode::FENCED_LEADER_EPOCH
}

fn partition_id(image: &Image, asked: &FetchTarget) -> Option<TopicPartition> {
    let topic_id = match &asked.topic {
        TopicKey::Id(id) => *id,
        TopicKey::Name(name) => image.topics().by_name(name)?.id,
    };
    Some(TopicPartition {
        topic_id,
        partition: asked.partition,
    })
}

fn endpoints(leaders: NamedLeaders) -> Vec<NodeEndpoint> {
    let endpoints = leaders.into_endpoints();
    endpoints
        .map(|(node_id, host, port, rack)| NodeEndpoint {
            node_id,
            host,
            port,
            rack,
        })
        .collect()
}

/// Puts a partition behind the last one; a topic's neighbours share its entry.
fn add(responses: &mut Vec<FetchableTopicResponse>, asked: &FetchTarget, data: PartitionData) {
    let (name, topic_id) = match &asked.topic {
        TopicKey::Name(name) => (&**name, TopicId::ZERO),
        TopicKey::Id(id) => ("", *id),
    };
    if let Some(last) = responses.last_mut()
        && last.topic == name
        && last.topic_id == topic_id
    {
        last.partitions.push(data);
        return;
    }
    responses.push(FetchableTopicResponse {
        topic: name.to_owned(),
        topic_id,
        partitions: vec![data],
    });
}

/// No record and no offset of a partition.
fn nothing(partition_index: PartitionIndex) -> PartitionData {
    PartitionData {
        partition_index,
        high_watermark: Offset(-1),
        records: Some(RecordSlices::default()),
        ..PartitionData::default()
    }
}

fn partition_data(asked: &FetchTarget, target: Target, isolation: Isolation) -> PartitionData {
    let empty = nothing(asked.partition);
    let read = match target {
        Target::Refused(error_code) => {
            return PartitionData {
                error_code,
                ..empty
            };
        }
        // Never read: the connection is going away.
        Target::Readable { read: None, .. } => {
            return PartitionData {
                error_code: ErrorCode::NOT_LEADER_OR_FOLLOWER,
                ..empty
            };
        }
        Target::Readable {
            read: Some(read), ..
        } => read,
    };
    let PartitionRead {
        records,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        diverging,
        ..
    } = read;
    let mut data = PartitionData {
        high_watermark,
        last_stable_offset,
        log_start_offset,
        aborted_transactions: None,
        ..empty
    };
    match records {
        Ok(slices) => {
            data.records = Some(slices.into());
            if isolation == Isolation::Committed {
                data.aborted_transactions = Some(Vec::new());
            }
        }
        Err(error) => data.error_code = error.error_code(),
    }
    if let Some((epoch, end_offset)) = diverging {
        data.diverging_epoch = EpochEndOffset { epoch, end_offset };
    }
    data
}
