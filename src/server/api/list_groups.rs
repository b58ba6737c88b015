//! ListGroups (16), versions 0 to 5 (KIP-518: states, KIP-848: types). All groups are classic.

use crate::base::error_code::ErrorCode;
use crate::coordinator::group::{self, ListGroups, Operation, Response};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};

/// The type of groups of the classic protocol.
const CLASSIC: &str = "classic";

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: ListGroupsRequest,
) -> ListGroupsResponse {
    let list = ListGroups::filtered(&request.states_filter, &request.types_filter);
    let homes = groups::homes(&context.node().image_ref());
    // All are asked before one is waited for.
    let sent = homes.into_iter().map(|home| {
        let operation = Operation::ListGroups(list);
        groups::send(context, home, operation)
    });
    let sent: Vec<_> = sent.collect();
    let mut listed = Vec::new();
    for answer in sent {
        let answer = match answer {
            Some(answer) => answer.await.unwrap_or(Err(ErrorCode::NOT_COORDINATOR)),
            None => Err(ErrorCode::NOT_COORDINATOR),
        };
        match answer {
            Ok(Response::ListGroups(groups)) => listed.extend(groups.into_iter().map(of_group)),
            // What another coordinator has it tells itself.
            Ok(_) | Err(ErrorCode::NOT_COORDINATOR) => {}
            Err(error_code) => {
                return ListGroupsResponse {
                    error_code,
                    ..ListGroupsResponse::default()
                };
            }
        }
    }
    ListGroupsResponse {
        groups: listed,
        ..ListGroupsResponse::default()
    }
}

fn of_group(group: group::ListedGroup) -> ListedGroup {
    ListedGroup {
        group_id: group.group_id.to_string(),
        protocol_type: group.protocol_type,
        group_state: group.state.name().to_owned(),
        group_type: CLASSIC.to_owned(),
    }
}
