//! DescribeUserScramCredentials (50), version 0 (KIP-554): nobody can authenticate by SCRAM yet, so
//! that no user has credentials (`ScramImage.describe`).

use std::collections::BTreeMap;

use crate::base::error_code::ErrorCode;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_user_scram_credentials::{
    DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
};

/// Users of one request that are answered for, so that many small names do not become many long
/// messages.
pub const USERS_MAX: usize = 10_000;

/// Answers a request.
pub async fn handle(
    _context: &RequestContext,
    _header: &RequestHeader,
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for user in request.users.into_iter().flatten() {
        *counts.entry(user.name).or_default() += 1;
    }
    let mut response = DescribeUserScramCredentialsResponse::default();
    if counts.len() > USERS_MAX {
        response.error_code = ErrorCode::INVALID_REQUEST;
        response.error_message = Some(format!("More than {USERS_MAX} users are named."));
        return response;
    }
    response.results = counts.into_iter().map(result).collect();
    response
}

fn result((user, count): (String, usize)) -> DescribeUserScramCredentialsResult {
    let (error_code, told) = match count {
        1 => (
            ErrorCode::RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist",
        ),
        _ => (
            ErrorCode::DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request",
        ),
    };
    // A name may be as long as a message.
    let message = format!("{told}: {user}");
    let fits = message.len() <= crate::base::limits::REFUSAL_MESSAGE_BYTES_MAX;
    DescribeUserScramCredentialsResult {
        error_code,
        error_message: Some(if fits { message } else { told.to_owned() }),
        user,
        credential_infos: Vec::new(),
    }
}
