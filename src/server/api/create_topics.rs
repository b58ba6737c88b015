//! CreateTopics (19), versions 2 to 7 (KIP-4, KIP-464, KIP-525, KIP-599, KIP-516).
//!
//! The controller decides ([`crate::cluster::decide::create_topics`]); the answer leaves when the
//! topics' partitions can be used. `timeout_ms` is not looked at: a creation takes no longer than
//! a flush. Absent: quotas (KIP-599) and policies.

use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::create_topics::{
    CreatableTopic, CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let names: Vec<String> = request.topics.iter().map(name).collect();
    match context.control().create_topics(request).await {
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
