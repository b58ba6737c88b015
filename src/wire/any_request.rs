//! Reads a request whatever its key, for fuzzing and tests (feature `sim`): what a server does with
//! a frame before it acts on it.

use bytes::BytesMut;

use super::codec::Message;
use super::header::{HeaderError, RequestHeader};
use super::messages;
use super::primitives::{EncodeError, Reader, Writer};

/// A request that was read and written again.
#[derive(Debug)]
pub struct AnyRequest {
    /// Its header.
    pub header: RequestHeader,
    /// Its body as we write it; `None` for an ApiVersions request in a version not served.
    pub body: Option<Result<BytesMut, EncodeError>>,
}

macro_rules! read_by_key {
    ($header:ident, $reader:ident, $($type:ty),* $(,)?) => {
        match $header.api_key {
            $(<$type as Message>::API_KEY => {
                let version = $header.api_version;
                let request = <$type as Message>::decode_request(&mut $reader, version)?;
                let mut writer = Writer::default();
                let written = request.encode(&mut writer, version);
                Some(written.map(|()| BytesMut::from(writer.into_bytes().as_ref())))
            })*
            key => return Err(HeaderError::UnsupportedApiKey(key)),
        }
    };
}

/// Reads the header and the body of one frame (without its length), and writes the body again.
pub fn read_any(frame: BytesMut) -> Result<AnyRequest, HeaderError> {
    let mut reader = Reader::new(frame);
    let header = RequestHeader::decode(&mut reader)?;
    if !header.is_version_served() {
        return Ok(AnyRequest { header, body: None });
    }
    let body = read_by_key!(
        header,
        reader,
        messages::produce::ProduceRequest,
        messages::fetch::FetchRequest,
        messages::list_offsets::ListOffsetsRequest,
        messages::metadata::MetadataRequest,
        messages::find_coordinator::FindCoordinatorRequest,
        messages::api_versions::ApiVersionsRequest,
        messages::create_topics::CreateTopicsRequest,
        messages::delete_topics::DeleteTopicsRequest,
        messages::delete_records::DeleteRecordsRequest,
        messages::init_producer_id::InitProducerIdRequest,
        messages::offset_for_leader_epoch::OffsetForLeaderEpochRequest,
        messages::describe_configs::DescribeConfigsRequest,
        messages::alter_configs::AlterConfigsRequest,
        messages::alter_replica_log_dirs::AlterReplicaLogDirsRequest,
        messages::describe_log_dirs::DescribeLogDirsRequest,
        messages::create_partitions::CreatePartitionsRequest,
        messages::incremental_alter_configs::IncrementalAlterConfigsRequest,
        messages::list_config_resources::ListConfigResourcesRequest,
        messages::describe_cluster::DescribeClusterRequest,
        messages::describe_topic_partitions::DescribeTopicPartitionsRequest,
        messages::join_group::JoinGroupRequest,
        messages::sync_group::SyncGroupRequest,
        messages::heartbeat::HeartbeatRequest,
        messages::leave_group::LeaveGroupRequest,
        messages::offset_commit::OffsetCommitRequest,
        messages::offset_fetch::OffsetFetchRequest,
        messages::offset_delete::OffsetDeleteRequest,
        messages::describe_groups::DescribeGroupsRequest,
        messages::list_groups::ListGroupsRequest,
        messages::delete_groups::DeleteGroupsRequest,
        messages::elect_leaders::ElectLeadersRequest,
        messages::list_partition_reassignments::ListPartitionReassignmentsRequest,
        messages::alter_partition_reassignments::AlterPartitionReassignmentsRequest,
        messages::describe_producers::DescribeProducersRequest,
        messages::describe_quorum::DescribeQuorumRequest,
        messages::describe_user_scram_credentials::DescribeUserScramCredentialsRequest,
        messages::update_features::UpdateFeaturesRequest,
        messages::describe_client_quotas::DescribeClientQuotasRequest,
        messages::alter_client_quotas::AlterClientQuotasRequest,
    );
    Ok(AnyRequest { header, body })
}
