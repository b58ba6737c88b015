//! DeleteGroups (42), versions 0 to 2 (KIP-229).

use crate::base::error_code::ErrorCode;
use crate::coordinator::group::{Operation, Response};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::delete_groups::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: DeleteGroupsRequest,
) -> DeleteGroupsResponse {
    // Each once: a group cannot go twice.
    let mut names = request.groups_names;
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let asked = names.iter().map(String::as_str);
    let homes = groups::by_home(&context.node().image_ref(), asked);
    let mut results = vec![DeletableGroupResult::default(); names.len()];
    for (home, places) in homes {
        let ids = places.iter().map(|(_, id)| id.as_str().into()).collect();
        let answer = match home {
            Some(home) => {
                let operation = Operation::DeleteGroups(ids);
                let answer = groups::ask_home(context, home, operation).await;
                groups::expect(answer, |response| match response {
                    Response::DeleteGroups(codes) => Some(codes),
                    _ => None,
                })
            }
            None => Err(ErrorCode::NOT_COORDINATOR),
        };
        let mut told = answer.map(Vec::into_iter);
        for (place, group_id) in places {
            let error_code = match &mut told {
                Ok(told) => told
                    .next()
                    .map_or(ErrorCode::UNKNOWN_SERVER_ERROR, |one| one.1),
                Err(code) => *code,
            };
            if let Some(slot) = results.get_mut(place) {
                *slot = DeletableGroupResult {
                    group_id,
                    error_code,
                };
            }
        }
    }
    DeleteGroupsResponse {
        throttle_time_ms: 0,
        results,
    }
}
