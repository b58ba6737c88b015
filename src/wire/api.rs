//! The table of API keys that this broker serves and advertises.

use std::ops::RangeInclusive;

use super::codec::{Message, is_flexible};
use super::messages::alter_client_quotas::AlterClientQuotasRequest;
use super::messages::alter_configs::AlterConfigsRequest;
use super::messages::alter_partition_reassignments::AlterPartitionReassignmentsRequest;
use super::messages::alter_replica_log_dirs::AlterReplicaLogDirsRequest;
use super::messages::api_versions::{ApiVersion, ApiVersionsRequest};
use super::messages::create_partitions::CreatePartitionsRequest;
use super::messages::create_topics::CreateTopicsRequest;
use super::messages::delete_groups::DeleteGroupsRequest;
use super::messages::delete_records::DeleteRecordsRequest;
use super::messages::delete_topics::DeleteTopicsRequest;
use super::messages::describe_client_quotas::DescribeClientQuotasRequest;
use super::messages::describe_cluster::DescribeClusterRequest;
use super::messages::describe_configs::DescribeConfigsRequest;
use super::messages::describe_groups::DescribeGroupsRequest;
use super::messages::describe_log_dirs::DescribeLogDirsRequest;
use super::messages::describe_producers::DescribeProducersRequest;
use super::messages::describe_quorum::DescribeQuorumRequest;
use super::messages::describe_topic_partitions::DescribeTopicPartitionsRequest;
use super::messages::describe_user_scram_credentials::DescribeUserScramCredentialsRequest;
use super::messages::elect_leaders::ElectLeadersRequest;
use super::messages::fetch::FetchRequest;
use super::messages::find_coordinator::FindCoordinatorRequest;
use super::messages::heartbeat::HeartbeatRequest;
use super::messages::incremental_alter_configs::IncrementalAlterConfigsRequest;
use super::messages::init_producer_id::InitProducerIdRequest;
use super::messages::join_group::JoinGroupRequest;
use super::messages::leave_group::LeaveGroupRequest;
use super::messages::list_config_resources::ListConfigResourcesRequest;
use super::messages::list_groups::ListGroupsRequest;
use super::messages::list_offsets::ListOffsetsRequest;
use super::messages::list_partition_reassignments::ListPartitionReassignmentsRequest;
use super::messages::metadata::MetadataRequest;
use super::messages::offset_commit::OffsetCommitRequest;
use super::messages::offset_delete::OffsetDeleteRequest;
use super::messages::offset_fetch::OffsetFetchRequest;
use super::messages::offset_for_leader_epoch::OffsetForLeaderEpochRequest;
use super::messages::produce::ProduceRequest;
use super::messages::sync_group::SyncGroupRequest;
use super::messages::update_features::UpdateFeaturesRequest;
use crate::base::ids::ApiKey;

/// One API key that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    /// The key.
    pub key: ApiKey,
    /// Kafka's name of it.
    pub name: &'static str,
    /// Lowest version that ApiVersions names; below `version_min` only for Produce.
    pub advertised_min: i16,
    /// Lowest version that is served.
    pub version_min: i16,
    /// Highest version that is served and advertised.
    pub version_max: i16,
    /// First version with compact lengths and tagged fields.
    pub flexible_from: Option<i16>,
}

impl Api {
    const fn of<M: Message>(name: &'static str) -> Self {
        let version_min = *M::VERSIONS.start();
        Self {
            key: M::API_KEY,
            name,
            advertised_min: version_min,
            version_min,
            version_max: *M::VERSIONS.end(),
            flexible_from: M::FLEXIBLE_FROM,
        }
    }

    const fn advertised_from(mut self, version: i16) -> Self {
        self.advertised_min = version;
        self
    }

    /// Versions that are served.
    #[must_use]
    pub const fn versions(&self) -> RangeInclusive<i16> {
        self.version_min..=self.version_max
    }

    /// Whether requests and responses of `version` use compact lengths and tagged fields.
    #[must_use]
    pub fn is_flexible(&self, version: i16) -> bool {
        is_flexible(version, self.flexible_from)
    }

    /// Version of the request header that stands before a request of `version`.
    #[must_use]
    pub fn request_header_version(&self, version: i16) -> i16 {
        1 + i16::from(self.is_flexible(version))
    }

    /// Version of the response header that stands before a response of `version`. Always 0 for
    /// ApiVersions, so that a client can read it whatever it asked (KIP-511).
    #[must_use]
    pub fn response_header_version(&self, version: i16) -> i16 {
        let is_api_versions = self.key == <ApiVersionsRequest as Message>::API_KEY;
        i16::from(self.is_flexible(version) && !is_api_versions)
    }
}

/// Every key served, in the order of keys. Nothing else is advertised.
pub const APIS: &[Api] = &[
    // From 0 although 3 is the first served: librdkafka before 2.11.1 looks for version 0 before
    // it compresses (KAFKA-18659).
    Api::of::<ProduceRequest>("Produce").advertised_from(0),
    Api::of::<FetchRequest>("Fetch"),
    Api::of::<ListOffsetsRequest>("ListOffsets"),
    Api::of::<MetadataRequest>("Metadata"),
    Api::of::<OffsetCommitRequest>("OffsetCommit"),
    Api::of::<OffsetFetchRequest>("OffsetFetch"),
    Api::of::<FindCoordinatorRequest>("FindCoordinator"),
    Api::of::<JoinGroupRequest>("JoinGroup"),
    Api::of::<HeartbeatRequest>("Heartbeat"),
    Api::of::<LeaveGroupRequest>("LeaveGroup"),
    Api::of::<SyncGroupRequest>("SyncGroup"),
    Api::of::<DescribeGroupsRequest>("DescribeGroups"),
    Api::of::<ListGroupsRequest>("ListGroups"),
    Api::of::<ApiVersionsRequest>("ApiVersions"),
    Api::of::<CreateTopicsRequest>("CreateTopics"),
    Api::of::<DeleteTopicsRequest>("DeleteTopics"),
    Api::of::<DeleteRecordsRequest>("DeleteRecords"),
    Api::of::<InitProducerIdRequest>("InitProducerId"),
    Api::of::<OffsetForLeaderEpochRequest>("OffsetForLeaderEpoch"),
    Api::of::<DescribeConfigsRequest>("DescribeConfigs"),
    Api::of::<AlterConfigsRequest>("AlterConfigs"),
    Api::of::<AlterReplicaLogDirsRequest>("AlterReplicaLogDirs"),
    Api::of::<DescribeLogDirsRequest>("DescribeLogDirs"),
    Api::of::<CreatePartitionsRequest>("CreatePartitions"),
    Api::of::<DeleteGroupsRequest>("DeleteGroups"),
    Api::of::<ElectLeadersRequest>("ElectLeaders"),
    Api::of::<IncrementalAlterConfigsRequest>("IncrementalAlterConfigs"),
    Api::of::<AlterPartitionReassignmentsRequest>("AlterPartitionReassignments"),
    Api::of::<ListPartitionReassignmentsRequest>("ListPartitionReassignments"),
    Api::of::<OffsetDeleteRequest>("OffsetDelete"),
    Api::of::<DescribeClientQuotasRequest>("DescribeClientQuotas"),
    Api::of::<AlterClientQuotasRequest>("AlterClientQuotas"),
    Api::of::<DescribeUserScramCredentialsRequest>("DescribeUserScramCredentials"),
    Api::of::<DescribeQuorumRequest>("DescribeQuorum"),
    Api::of::<UpdateFeaturesRequest>("UpdateFeatures"),
    Api::of::<DescribeClusterRequest>("DescribeCluster"),
    Api::of::<DescribeProducersRequest>("DescribeProducers"),
    Api::of::<ListConfigResourcesRequest>("ListConfigResources"),
    Api::of::<DescribeTopicPartitionsRequest>("DescribeTopicPartitions"),
];

/// The entry of `key`; `None` when it is not served.
#[must_use]
pub fn find(key: ApiKey) -> Option<&'static Api> {
    APIS.iter().find(|api| api.key == key)
}

/// The table as ApiVersions answers it.
#[must_use]
pub fn advertised() -> Vec<ApiVersion> {
    APIS.iter()
        .map(|api| ApiVersion {
            api_key: api.key,
            min_version: api.advertised_min,
            max_version: api.version_max,
        })
        .collect()
}
