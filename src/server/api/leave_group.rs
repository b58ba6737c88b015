//! LeaveGroup (13), versions 0 to 5 (KIP-345: many members, static ones by name; KIP-800).

use crate::base::error_code::ErrorCode;
use crate::coordinator::group::{Leave, LeaveResponse, LeavingMember, Operation, Response};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberResponse};

/// First version that names many members.
const MEMBERS_FROM: i16 = 3;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: LeaveGroupRequest,
) -> LeaveGroupResponse {
    let version = header.api_version;
    let group_id = request.group_id.clone();
    let answer = match group_id.is_empty() {
        true => Err(ErrorCode::INVALID_GROUP_ID),
        false => {
            let operation = Operation::Leave(operation(request, version));
            let answer = groups::ask(context, &group_id, operation).await;
            groups::expect(answer, |response| match response {
                Response::Leave(response) => Some(response),
                _ => None,
            })
        }
    };
    let refused = |error_code| LeaveResponse {
        error_code,
        members: Vec::new(),
    };
    response(answer.unwrap_or_else(refused), version)
}

fn operation(request: LeaveGroupRequest, version: i16) -> Leave {
    let members = match version >= MEMBERS_FROM {
        true => (request.members.into_iter())
            .map(|member| LeavingMember {
                member_id: member.member_id.into(),
                instance_id: member.group_instance_id.map(Into::into),
            })
            .collect(),
        false => vec![LeavingMember {
            member_id: request.member_id.into(),
            instance_id: None,
        }],
    };
    Leave {
        group_id: request.group_id.into(),
        members,
    }
}

/// Old clients hear of their one member by the code of the whole.
fn response(told: LeaveResponse, version: i16) -> LeaveGroupResponse {
    if version < MEMBERS_FROM {
        let of_member = told.members.first().map(|member| member.error_code);
        let error_code = match told.error_code {
            ErrorCode::NONE => of_member.unwrap_or(ErrorCode::NONE),
            code => code,
        };
        return LeaveGroupResponse {
            error_code,
            ..LeaveGroupResponse::default()
        };
    }
    let members = told.members.into_iter();
    LeaveGroupResponse {
        throttle_time_ms: 0,
        error_code: told.error_code,
        members: members
            .map(|member| MemberResponse {
                member_id: member.member_id.to_string(),
                group_instance_id: member.instance_id.map(|id| id.to_string()),
                error_code: member.error_code,
            })
            .collect(),
    }
}
