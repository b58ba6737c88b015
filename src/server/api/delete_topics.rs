//! DeleteTopics (20), versions 1 to 6 (KIP-4, KIP-322, KIP-516, KIP-599).
//!
//! The controller decides ([`crate::cluster::decide::delete_topics`]); the answer leaves when no
//! shard serves the topics any more. When `timeout_ms` is over before that, the answer is
//! REQUEST_TIMED_OUT and the deletion goes on.

use crate::base::ids::TopicId;
use crate::cluster::controller::ControlHandle;
use crate::cluster::quotas::mutations::Asker;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};

/// First version in which what is past the limit of mutations is refused.
const REFUSED_FROM: i16 = 5;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: DeleteTopicsRequest,
) -> DeleteTopicsResponse {
    let named = request.topic_names.iter().map(|name| DeleteTopicState {
        name: Some(name.clone()),
        topic_id: TopicId::ZERO,
    });
    let states: Vec<DeleteTopicState> = named.chain(request.topics.iter().cloned()).collect();
    let timeout_ms = request.timeout_ms;
    let asker = Asker::of(header, REFUSED_FROM);
    let answer = (context.control()).delete_topics(request, header.api_version, asker);
    match ControlHandle::within(timeout_ms, answer).await {
        Ok(response) => response,
        Err(fault) => DeleteTopicsResponse {
            responses: (states.into_iter())
                .map(|state| DeletableTopicResult {
                    name: state.name,
                    topic_id: state.topic_id,
                    error_code: fault.code(),
                    error_message: Some(fault.to_string()),
                })
                .collect(),
            ..DeleteTopicsResponse::default()
        },
    }
}
