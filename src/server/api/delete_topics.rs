//! DeleteTopics (20), versions 1 to 6 (KIP-4, KIP-322, KIP-516).
//!
//! The controller decides ([`crate::cluster::decide::delete_topics`]); the answer leaves when no
//! shard serves the topics any more. `timeout_ms` is not looked at.

use crate::base::ids::TopicId;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};

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
    let outcome = context
        .control()
        .delete_topics(request, header.api_version)
        .await;
    match outcome {
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
