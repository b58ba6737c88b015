//! JoinGroup (11), versions 0 to 9 (KIP-62, KIP-345, KIP-394, KIP-559, KIP-800, KIP-814). The
//! answer waits for the rebalance; meanwhile the connection's next request waits, as in Kafka.

use crate::base::error_code::ErrorCode;
use crate::coordinator::group::{Join, JoinResponse, Operation, Protocol, Response};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::join_group::{
    JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember,
};

/// First version that names a rebalance timeout of its own.
const REBALANCE_TIMEOUT_FROM: i16 = 1;
/// First version whose clients can come back with an id that they are given (KIP-394).
const MEMBER_ID_REQUIRED_FROM: i16 = 4;
/// First version that may be told of no protocol.
const NULL_PROTOCOL_FROM: i16 = 7;
/// First version whose leader may be told not to assign (KIP-814).
const SKIP_ASSIGNMENT_FROM: i16 = 9;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: JoinGroupRequest,
) -> JoinGroupResponse {
    let version = header.api_version;
    let (group_id, member_id) = (request.group_id.clone(), request.member_id.clone());
    let join = operation(context, header, request);
    // Refused before there is a coordinator, as in Kafka.
    let answer = match group_id.is_empty() {
        true => Err(ErrorCode::INVALID_GROUP_ID),
        false => {
            let operation = Operation::Join(Box::new(join));
            let answer = groups::ask(context, &group_id, operation).await;
            groups::expect(answer, |response| match response {
                Response::Join(response) => Some(response),
                _ => None,
            })
        }
    };
    let told = answer.unwrap_or_else(|code| JoinResponse::refused(&member_id, code));
    response(told, version)
}

fn operation(context: &RequestContext, header: &RequestHeader, request: JoinGroupRequest) -> Join {
    let version = header.api_version;
    // Copied: the request's buffer is not to live as long as the member.
    let protocols = request.protocols.into_iter().map(|one| Protocol {
        name: one.name,
        metadata: bytes::Bytes::copy_from_slice(&one.metadata),
    });
    Join {
        rebalance_timeout_ms: match version >= REBALANCE_TIMEOUT_FROM {
            true => request.rebalance_timeout_ms,
            false => request.session_timeout_ms,
        },
        group_id: request.group_id.into(),
        member_id: request.member_id.into(),
        instance_id: request.group_instance_id.map(Into::into),
        session_timeout_ms: request.session_timeout_ms,
        protocol_type: request.protocol_type,
        protocols: protocols.collect(),
        client_id: header.client_id.clone().unwrap_or_default(),
        client_host: groups::java_address(context),
        requires_known_member_id: version >= MEMBER_ID_REQUIRED_FROM,
        supports_skipping_assignment: version >= SKIP_ASSIGNMENT_FROM,
        fresh_id: context.node().fresh_id(),
    }
}

fn response(told: JoinResponse, version: i16) -> JoinGroupResponse {
    let protocol_name = match version >= NULL_PROTOCOL_FROM {
        true => told.protocol_name,
        false => Some(told.protocol_name.unwrap_or_default()),
    };
    let members = told.members.into_iter();
    JoinGroupResponse {
        throttle_time_ms: 0,
        error_code: told.error_code,
        generation_id: told.generation_id,
        protocol_type: told.protocol_type,
        protocol_name,
        leader: told.leader,
        skip_assignment: told.skip_assignment && version >= SKIP_ASSIGNMENT_FROM,
        member_id: told.member_id,
        members: members
            .map(|member| JoinGroupResponseMember {
                member_id: member.member_id.to_string(),
                group_instance_id: member.instance_id.map(|id| id.to_string()),
                metadata: member.metadata,
            })
            .collect(),
    }
}
