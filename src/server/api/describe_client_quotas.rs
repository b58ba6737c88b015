//! DescribeClientQuotas (48), versions 0 to 1 (KIP-546): the limits of users, clients and
//! addresses as the metadata log holds them.

use crate::cluster::decide;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_client_quotas::{
    DescribeClientQuotasRequest, DescribeClientQuotasResponse,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: DescribeClientQuotasRequest,
) -> DescribeClientQuotasResponse {
    decide::describe_quotas(&context.node().image_ref(), &request)
}
