//! ListConfigResources (74), versions 0 to 1 (KIP-714, KIP-1142): the names of topics, brokers,
//! subscriptions to client metrics and groups that settings can be asked of.

use crate::base::error_code::ErrorCode;
use crate::cluster::image::{Image, ResourceType};
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::list_config_resources::{
    ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse,
};

/// Every kind there is, listed when none is named.
const ALL: [ResourceType; 5] = [
    ResourceType::TOPIC,
    ResourceType::BROKER,
    ResourceType::BROKER_LOGGER,
    ResourceType::CLIENT_METRICS,
    ResourceType::GROUP,
];

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    respond(&context.image(), header.api_version, &request)
}

/// The response to `request`.
#[must_use]
pub fn respond(
    image: &Image,
    version: i16,
    request: &ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    let asked: Vec<ResourceType> = (request.resource_types.iter())
        .map(|kind| ResourceType(*kind))
        .collect();
    let mut kinds = match (version, asked.is_empty()) {
        (0, _) => vec![ResourceType::CLIENT_METRICS],
        (_, true) => ALL.to_vec(),
        (_, false) => asked,
    };
    kinds.sort();
    kinds.dedup();
    if kinds.iter().any(|kind| !ALL.contains(kind)) {
        return ListConfigResourcesResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            ..ListConfigResourcesResponse::default()
        };
    }
    ListConfigResourcesResponse {
        config_resources: (kinds.into_iter())
            .flat_map(|kind| of_kind(image, kind))
            .collect(),
        ..ListConfigResourcesResponse::default()
    }
}

fn of_kind(image: &Image, kind: ResourceType) -> Vec<ConfigResource> {
    let names: Vec<String> = match kind {
        ResourceType::TOPIC => (image.topics().iter())
            .map(|topic| topic.name.to_string())
            .collect(),
        ResourceType::BROKER | ResourceType::BROKER_LOGGER => {
            let ids = image.brokers().keys();
            ids.map(|id| id.0.to_string()).collect()
        }
        _ => image.configured(kind).map(str::to_owned).collect(),
    };
    let resource = |resource_name| ConfigResource {
        resource_name,
        resource_type: kind.0,
    };
    names.into_iter().map(resource).collect()
}
