//! Heartbeat (12), versions 0 to 4 (KIP-345). While the group is being loaded every heartbeat is
//! good (`GroupCoordinatorService.heartbeat`).

use crate::base::error_code::ErrorCode;
use crate::coordinator::group::{Heartbeat, Operation, Response};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: HeartbeatRequest,
) -> HeartbeatResponse {
    let group_id = request.group_id.clone();
    let code = match group_id.is_empty() {
        true => ErrorCode::INVALID_GROUP_ID,
        false => {
            let operation = Operation::Heartbeat(Heartbeat {
                group_id: request.group_id.into(),
                generation_id: request.generation_id,
                member_id: request.member_id.into(),
                instance_id: request.group_instance_id.map(Into::into),
            });
            match groups::ask(context, &group_id, operation).await {
                Ok(Response::Heartbeat(code)) => code,
                Ok(_) => ErrorCode::UNKNOWN_SERVER_ERROR,
                Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS) => ErrorCode::NONE,
                Err(code) => code,
            }
        }
    };
    HeartbeatResponse {
        throttle_time_ms: 0,
        error_code: code,
    }
}
