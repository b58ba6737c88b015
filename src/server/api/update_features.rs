//! UpdateFeatures (57), versions 0 to 2 (KIP-584, KIP-778).
//!
//! The controller decides ([`crate::cluster::decide::update_features`]). When `timeout_ms` is over
//! before the answer, it is REQUEST_TIMED_OUT and the change goes on.

use crate::cluster::controller::ControlHandle;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::update_features::{UpdateFeaturesRequest, UpdateFeaturesResponse};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: UpdateFeaturesRequest,
) -> UpdateFeaturesResponse {
    let timeout_ms = request.timeout_ms;
    let answer = context
        .control()
        .update_features(request, header.api_version);
    match ControlHandle::within(timeout_ms, answer).await {
        Ok(response) => response,
        Err(fault) => UpdateFeaturesResponse {
            error_code: fault.code(),
            error_message: Some(fault.to_string()),
            ..UpdateFeaturesResponse::default()
        },
    }
}
