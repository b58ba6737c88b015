//! CreateTopics (19), versions 2 to 7 (KIP-4, KIP-464, KIP-525, KIP-599, KIP-516).
//!
//! The controller decides ([`crate::cluster::decide::create_topics`]); the answer leaves when the
//! topics' partitions can be used. When `timeout_ms` is over before that, the answer is
//! REQUEST_TIMED_OUT and the creation goes on. Absent: policies.

use crate::cluster::controller::ControlHandle;
use crate::cluster::quotas::mutations::Asker;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::create_topics::{
    CreatableTopic, CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse,
};

/// First version in which what is past the limit of mutations is refused.
const REFUSED_FROM: i16 = 6;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let names: Vec<String> = request.topics.iter().map(name).collect();
    let timeout_ms = request.timeout_ms;
    let asker = Asker::of(header, REFUSED_FROM);
    let answer = context.control().create_topics(request, asker);
    match ControlHandle::within(timeout_ms, answer).await {
        Ok(response) => response,
        Err(fault) => CreateTopicsResponse {
            topics: (names.into_iter())
                .map(|name| CreatableTopicResult {
                    name,
                    error_code: fault.code(),
                    error_message: Some(fault.to_string()),
                    ..CreatableTopicResult::default()
                })
                .collect(),
            ..CreateTopicsResponse::default()
        },
    }
}

fn name(topic: &CreatableTopic) -> String {
    topic.name.clone()
}
