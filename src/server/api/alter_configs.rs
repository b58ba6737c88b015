//! AlterConfigs (33), versions 0 to 2 (KIP-133): the whole of a resource's settings; what is not
//! named goes back to what it inherits.
//!
//! The same rules as IncrementalAlterConfigs, which see; broker loggers have no such request.

use super::config_changes::{self, Altered};
use crate::cluster::decide::alter_configs::{ConfigChange, Operation, ResourceChanges};
use crate::cluster::image::ResourceType;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterConfigsResponse,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse {
    let resources = request.resources.into_iter().map(changes).collect();
    let altered = config_changes::alter(context, resources, request.validate_only).await;
    AlterConfigsResponse {
        throttle_time_ms: 0,
        responses: altered.into_iter().map(response).collect(),
    }
}

fn changes(resource: AlterConfigsResource) -> ResourceChanges {
    let change = |config: crate::wire::messages::alter_configs::AlterableConfig| ConfigChange {
        name: config.name,
        operation: Operation::Set,
        value: config.value,
    };
    ResourceChanges {
        kind: ResourceType(resource.resource_type),
        name: resource.resource_name,
        changes: resource.configs.into_iter().map(change).collect(),
        is_whole: true,
    }
}

fn response(altered: Altered) -> AlterConfigsResourceResponse {
    AlterConfigsResourceResponse {
        error_code: altered.code,
        error_message: altered.message,
        resource_type: altered.kind.0,
        resource_name: altered.name,
    }
}
