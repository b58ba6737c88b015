//! SyncGroup (14), versions 0 to 5 (KIP-345, KIP-559). The answer waits for the leader's
//! assignment, and that until it is durable.

use crate::base::error_code::ErrorCode;
use crate::coordinator::group::{Assignment, Operation, Response, Sync, SyncResponse};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};

/// From here on protocol type and name have to be named (KIP-559).
const PROTOCOL_FROM: i16 = 5;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: SyncGroupRequest,
) -> SyncGroupResponse {
    let names_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    let answer = if request.group_id.is_empty() && names_protocol {
        Err(ErrorCode::INVALID_GROUP_ID)
    } else if header.api_version >= PROTOCOL_FROM && !names_protocol {
        Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
    } else {
        let group_id = request.group_id.clone();
        let operation = Operation::Sync(Box::new(operation(request)));
        let answer = groups::ask(context, &group_id, operation).await;
        groups::expect(answer, |response| match response {
            Response::Sync(response) => Some(response),
            _ => None,
        })
    };
    let told = answer.unwrap_or_else(SyncResponse::refused);
    SyncGroupResponse {
        throttle_time_ms: 0,
        error_code: told.error_code,
        protocol_type: told.protocol_type,
        protocol_name: told.protocol_name,
        assignment: told.assignment,
    }
}

fn operation(request: SyncGroupRequest) -> Sync {
    let assignments = request.assignments.into_iter().map(|one| Assignment {
        member_id: one.member_id.into(),
        assignment: bytes::Bytes::copy_from_slice(&one.assignment),
    });
    Sync {
        group_id: request.group_id.into(),
        generation_id: request.generation_id,
        member_id: request.member_id.into(),
        instance_id: request.group_instance_id.map(Into::into),
        protocol_type: request.protocol_type,
        protocol_name: request.protocol_name,
        assignments: assignments.collect(),
    }
}
