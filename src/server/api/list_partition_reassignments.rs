//! ListPartitionReassignments (46), version 0 (KIP-455): from the metadata at hand. A topic or
//! partition that is not known, or does not change, is left out.

use crate::cluster::decide;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    decide::list_reassignments(&context.node().image_ref(), &request)
}
