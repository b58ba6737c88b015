//! ElectLeaders (43), versions 0 to 2 (KIP-183, KIP-460).
//!
//! The controller decides ([`crate::cluster::decide::elect_leaders`]); the answer leaves when the
//! leaders lead. When `timeout_ms` is over before that, it is REQUEST_TIMED_OUT. A partition is
//! answered once, however often it is named.

use crate::cluster::controller::ControlHandle;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::elect_leaders::{ElectLeadersRequest, ElectLeadersResponse};

/// First version with an error of its own.
const ERROR_FROM: i16 = 1;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: ElectLeadersRequest,
) -> ElectLeadersResponse {
    let timeout_ms = request.timeout_ms;
    let answer = context.control().elect_leaders(request);
    let mut response = match ControlHandle::within(timeout_ms, answer).await {
        Ok(response) => response,
        Err(fault) => ElectLeadersResponse {
            error_code: fault.code(),
            ..ElectLeadersResponse::default()
        },
    };
    if header.api_version < ERROR_FROM {
        response.error_code = Default::default();
    }
    response
}
