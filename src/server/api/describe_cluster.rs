//! DescribeCluster (60), versions 0 to 2 (KIP-700, KIP-919, KIP-1073).
//!
//! Version 1 asks for brokers or controllers; this node answers as a broker only. Version 2 may
//! ask for fenced brokers too.

use super::brokers;
use super::operations::{CLUSTER_OPERATIONS, OPERATIONS_OMITTED};
use crate::base::error_code::ErrorCode;
use crate::cluster::image::Image;
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};

/// `EndpointType.BROKER`.
const BROKERS: i8 = 1;
/// `EndpointType.CONTROLLER`.
const CONTROLLERS: i8 = 2;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: DescribeClusterRequest,
) -> DescribeClusterResponse {
    respond(&context.image(), &request, &context.listener().name)
}

/// The response to `request` for clients of `listener`. Pure.
#[must_use]
pub fn respond(
    image: &Image,
    request: &DescribeClusterRequest,
    listener: &str,
) -> DescribeClusterResponse {
    let refuse = |error_code, message: String| DescribeClusterResponse {
        error_code,
        error_message: Some(message),
        ..DescribeClusterResponse::default()
    };
    match request.endpoint_type {
        BROKERS => {}
        CONTROLLERS => {
            let message = "The request was sent to an endpoint of type BROKER, but we wanted an \
                           endpoint of type CONTROLLER";
            return refuse(ErrorCode::MISMATCHED_ENDPOINT_TYPE, message.to_owned());
        }
        other => {
            let message = format!("Unsupported endpoint type {other}");
            return refuse(ErrorCode::UNSUPPORTED_ENDPOINT_TYPE, message);
        }
    }
    let with_fenced = request.include_fenced_brokers;
    DescribeClusterResponse {
        cluster_id: image.cluster_id().to_owned(),
        controller_id: image.node_id(),
        brokers: (brokers::brokers(image, listener, with_fenced))
            .map(|(broker, endpoint)| DescribeClusterBroker {
                broker_id: broker.id,
                host: endpoint.host.clone(),
                port: i32::from(endpoint.port),
                rack: broker.rack.clone(),
                is_fenced: with_fenced && broker.fenced,
            })
            .collect(),
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            CLUSTER_OPERATIONS
        } else {
            OPERATIONS_OMITTED
        },
        ..DescribeClusterResponse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::api::metadata::metadata_test::image;

    #[test]
    fn brokers_are_described_and_controllers_are_not_here() {
        let mut request = DescribeClusterRequest {
            include_cluster_authorized_operations: true,
            ..DescribeClusterRequest::default()
        };
        let response = respond(&image(), &request, "PLAINTEXT");
        assert_eq!(response.brokers.len(), 1);
        assert_eq!(
            (response.controller_id.0, response.cluster_id.as_str()),
            (1, "cluster")
        );
        assert_eq!(response.cluster_authorized_operations, CLUSTER_OPERATIONS);
        request.include_fenced_brokers = true;
        let with_fenced = respond(&image(), &request, "PLAINTEXT");
        let fenced: Vec<bool> = with_fenced
            .brokers
            .iter()
            .map(|one| one.is_fenced)
            .collect();
        assert_eq!(fenced, [false, true]);
        for (endpoint_type, code) in [(2, 114), (0, 115), (7, 115), (-1, 115)] {
            request.endpoint_type = endpoint_type;
            let refused = respond(&image(), &request, "PLAINTEXT");
            assert_eq!(refused.error_code.0, code);
            assert!(refused.brokers.is_empty() && refused.cluster_id.is_empty());
        }
    }
}
