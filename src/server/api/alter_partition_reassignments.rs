//! AlterPartitionReassignments (45), versions 0 to 1 (KIP-455, KIP-860).
//!
//! The controller decides ([`crate::cluster::decide::alter_reassignments`]). When `timeout_ms` is
//! over before the answer, it is REQUEST_TIMED_OUT and the change goes on.

use crate::cluster::controller::ControlHandle;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse {
    if request.topics.is_empty() {
        // With the defaults of its fields, as in Kafka (`ControllerApis`).
        return AlterPartitionReassignmentsResponse::default();
    }
    let timeout_ms = request.timeout_ms;
    let answer = context.control().alter_reassignments(request);
    match ControlHandle::within(timeout_ms, answer).await {
        Ok(response) => response,
        Err(fault) => AlterPartitionReassignmentsResponse {
            error_code: fault.code(),
            error_message: Some(fault.to_string()),
            ..AlterPartitionReassignmentsResponse::default()
        },
    }
}
