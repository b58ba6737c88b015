//! CreatePartitions (37), versions 0 to 3 (KIP-195, KIP-599).
//!
//! The controller decides ([`crate::cluster::decide::create_partitions`]); the answer leaves when
//! the new partitions can be used. When `timeout_ms` is over before that, the answer is
//! REQUEST_TIMED_OUT and the growth goes on.

use crate::cluster::controller::ControlHandle;
use crate::cluster::quotas::mutations::Asker;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopicResult,
};

/// First version in which what is past the limit of mutations is refused.
const REFUSED_FROM: i16 = 3;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let names = request.topics.iter().map(|topic| topic.name.clone());
    let names: Vec<String> = names.collect();
    let timeout_ms = request.timeout_ms;
    let asker = Asker::of(header, REFUSED_FROM);
    let answer = context.control().create_partitions(request, asker);
    match ControlHandle::within(timeout_ms, answer).await {
        Ok(response) => response,
        Err(fault) => CreatePartitionsResponse {
            throttle_time_ms: 0,
            results: (names.into_iter())
                .map(|name| CreatePartitionsTopicResult {
                    name,
                    error_code: fault.code(),
                    error_message: Some(fault.to_string()),
                })
                .collect(),
        },
    }
}
