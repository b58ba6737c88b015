//! DescribeGroups (15), versions 0 to 6 (KIP-345, KIP-430, KIP-1043: a group that is not known has
//! a code of its own).
//!
//! A group that is named again is described once, where Kafka repeats it: clients keep one
//! description of each, and few bytes asked again and again must not make an answer of any size.

use std::collections::HashSet;

use super::operations::{GROUP_OPERATIONS, OPERATIONS_OMITTED};
use crate::base::error_code::ErrorCode;
use crate::coordinator::group::{self, GroupState, Operation, Response};
use crate::server::context::RequestContext;
use crate::server::groups;
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};

/// First version in which a group that is not known is an error.
const UNKNOWN_GROUP_FROM: i16 = 6;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let mut names = request.groups;
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let asked = names.iter().map(String::as_str);
    let homes = groups::by_home(&context.node().image_ref(), asked);
    let mut described = vec![DescribedGroup::default(); names.len()];
    for (home, places) in homes {
        let ids = places.iter().map(|(_, id)| id.as_str().into()).collect();
        let answer = match home {
            Some(home) => {
                let operation = Operation::DescribeGroups(ids);
                let answer = groups::ask_home(context, home, operation).await;
                groups::expect(answer, |response| match response {
                    Response::DescribeGroups(groups) => Some(groups),
                    _ => None,
                })
            }
            None => Err(ErrorCode::NOT_COORDINATOR),
        };
        let mut told = answer.map(Vec::into_iter);
        for (place, id) in places {
            let one = match &mut told {
                Ok(told) => told.next().map(|one| of_group(one, header.api_version)),
                Err(code) => Some(DescribedGroup {
                    error_code: *code,
                    group_id: id,
                    ..DescribedGroup::default()
                }),
            };
            if let (Some(slot), Some(mut one)) = (described.get_mut(place), one) {
                let tells_operations =
                    request.include_authorized_operations && one.error_code.is_none();
                one.authorized_operations = match tells_operations {
                    true => GROUP_OPERATIONS,
                    false => OPERATIONS_OMITTED,
                };
                *slot = one;
            }
        }
    }
    DescribeGroupsResponse {
        throttle_time_ms: 0,
        groups: described,
    }
}

fn of_group(group: group::DescribedGroup, version: i16) -> DescribedGroup {
    let is_unknown = group.state == GroupState::Dead && version >= UNKNOWN_GROUP_FROM;
    let members = group.members.into_iter();
    DescribedGroup {
        error_code: match is_unknown {
            true => ErrorCode::GROUP_ID_NOT_FOUND,
            false => ErrorCode::NONE,
        },
        error_message: is_unknown.then(|| format!("Group {} not found.", group.group_id)),
        group_id: group.group_id.to_string(),
        group_state: group.state.name().to_owned(),
        protocol_type: group.protocol_type,
        protocol_data: group.protocol,
        members: members
            .map(|member| DescribedGroupMember {
                member_id: member.member_id.to_string(),
                group_instance_id: member.instance_id.map(|id| id.to_string()),
                client_id: member.client_id,
                client_host: member.client_host,
                member_metadata: member.metadata,
                member_assignment: member.assignment,
            })
            .collect(),
        authorized_operations: OPERATIONS_OMITTED,
    }
}
