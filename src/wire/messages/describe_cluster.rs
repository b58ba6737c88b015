//! DescribeCluster (60), versions 0 to 2: the cluster's id and its nodes (KIP-700).
//!
//! - Version 1 tells brokers from controllers (KIP-919), 2 can include fenced brokers (KIP-1073).

use crate::base::error_code::ErrorCode;
use crate::base::ids::BrokerId;
use crate::wire::codec::message;

message! {
    /// What to describe.
    pub struct DescribeClusterRequest(api_key 60, versions 0..=2, flexible 0) {
        include_cluster_authorized_operations: bool => 0..;
        /// 1: brokers; 2: controllers.
        endpoint_type: i8 => 1.., default 1;
        include_fenced_brokers: bool => 2..;
    }

    /// The cluster.
    pub struct DescribeClusterResponse(api_key 60, versions 0..=2, flexible 0) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0..;
        endpoint_type: i8 => 1.., default 1;
        cluster_id: String => 0..;
        /// A broker to send administrative requests to; must be alive.
        controller_id: BrokerId => 0.., default BrokerId(-1);
        brokers: Vec<DescribeClusterBroker> => 0..;
        /// A bit for each operation; `i32::MIN` when not asked for.
        cluster_authorized_operations: i32 => 0.., default i32::MIN;
    }

    /// Where a node can be reached by this listener's clients.
    pub struct DescribeClusterBroker {
        broker_id: BrokerId => 0..;
        host: String => 0..;
        port: i32 => 0..;
        rack: Option<String> => 0.., nullable 0..;
        is_fenced: bool => 2..;
    }
}
