//! IncrementalAlterConfigs (44), versions 0 to 1 (KIP-339, KIP-412, KIP-226): single changes of the
//! settings of topics, brokers, groups and subscriptions to client metrics, and of log levels.
//!
//! The controller decides ([`crate::cluster::decide::alter_configs`]); the answer leaves when the
//! changes are durable and in force on every shard. Log levels change at once and are not kept, as
//! in Kafka. Absent: policies, and what groups' and client metrics' settings are for.

use super::config_changes::{self, Altered};
use crate::cluster::decide::alter_configs::{ConfigChange, Operation, ResourceChanges};
use crate::cluster::image::ResourceType;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let resources = request.resources.into_iter().map(changes).collect();
    let altered = config_changes::alter(context, resources, request.validate_only).await;
    IncrementalAlterConfigsResponse {
        throttle_time_ms: 0,
        responses: altered.into_iter().map(response).collect(),
    }
}

fn changes(resource: AlterConfigsResource) -> ResourceChanges {
    let change = |config: AlterableConfig| ConfigChange {
        name: config.name,
        operation: Operation::from(config.config_operation),
        value: config.value,
    };
    ResourceChanges {
        kind: ResourceType(resource.resource_type),
        name: resource.resource_name,
        changes: resource.configs.into_iter().map(change).collect(),
        is_whole: false,
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
