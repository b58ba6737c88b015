//! What fuzzing starts from: requests of every key and version, batches of every codec, files as we
//! write them.

use std::fs;
use std::path::Path;

use bytes::BytesMut;
use coreline::base::ids::{
    ApiKey, BrokerEpoch, BrokerId, CorrelationId, LeaderEpoch, Offset, PartitionIndex,
    ProducerEpoch, ProducerId, Sequence, Uuid,
};
use coreline::base::random::Random;
use coreline::base::time::TimestampMs;
use coreline::log::format::checkpoint_files::{self, PartitionOffsets};
use coreline::log::format::damage_mark::DamageMark;
use coreline::log::format::epoch_cache::EpochCache;
use coreline::log::format::meta_properties::MetaProperties;
use coreline::log::format::offset_index::OffsetIndex;
use coreline::log::format::producer_state::ProducerStates;
use coreline::log::format::time_index::TimeIndex;
use coreline::log::format::transaction_index::{AbortedTransaction, TransactionIndex};
use coreline::log::format::{clean_shutdown, partition_metadata, producer_snapshot};
use coreline::wire::api;
use coreline::wire::codec::Message;
use coreline::wire::compression::{Codec, compress};
use coreline::wire::header::RequestHeader;
use coreline::wire::messages;
use coreline::wire::primitives::Writer;
use coreline::wire::record_batch::{BatchBuilder, BatchHeader, HEADER_BYTES, NewRecord};
use coreline::wire::sample::{self, Sample};

/// Writes the seeds of a target into the folder that `CORELINE_FUZZ_SEEDS` names, if it names one.
pub fn write(seeds: Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os("CORELINE_FUZZ_SEEDS") else {
        return;
    };
    fs::create_dir_all(&folder).expect("the folder can be made");
    for (number, bytes) in seeds.iter().enumerate() {
        let path = Path::new(&folder).join(format!("seed-{number:04}"));
        fs::write(path, bytes).expect("a seed is written");
    }
}

pub fn requests() -> Vec<Vec<u8>> {
    let mut random = Random::new(1);
    let mut seeds = Vec::new();
    macro_rules! of {
        ($($type:ty),* $(,)?) => { $(request::<$type>(&mut random, &mut seeds);)* };
    }
    of!(
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
    seeds
}

fn request<M: Message + Sample>(random: &mut Random, seeds: &mut Vec<Vec<u8>>) {
    // A key that is read already but not yet served has no header.
    let Some(api) = api::find(M::API_KEY) else {
        return;
    };
    for version in api.versions() {
        for _ in 0..3 {
            let message: M = sample::message(random, version);
            let mut writer = Writer::default();
            let header = RequestHeader {
                api_key: ApiKey(M::API_KEY.0),
                api_version: version,
                correlation_id: CorrelationId(7),
                client_id: Some("seed".to_owned()),
            };
            header
                .encode(api, &mut writer)
                .expect("a header is written");
            message
                .encode(&mut writer, version)
                .expect("a sample is written");
            seeds.push(writer.into_bytes().to_vec());
        }
    }
}

fn batch(codec: Codec) -> BytesMut {
    let mut builder = BatchBuilder::default().compressed(codec, None).producer(
        ProducerId(3),
        ProducerEpoch(0),
        Sequence(0),
    );
    for number in 0..3i64 {
        builder.append(NewRecord {
            timestamp: TimestampMs(900 + number),
            key: (number > 0).then_some(&b"key"[..]),
            value: Some(b"value value value"),
            headers: &[(b"h", None), (b"h", Some(b"x"))],
        });
    }
    builder.build().expect("it builds")
}

pub fn record_batches() -> Vec<Vec<u8>> {
    let plain = batch(Codec::None);
    let records = &plain[HEADER_BYTES..];
    let mut seeds = Vec::new();
    for (place, codec) in Codec::ALL.into_iter().enumerate() {
        // Three records, in the choice's own counting.
        let choice = 15 + place as u8;
        let mut compressed = Vec::new();
        compress(codec, None, records, &mut compressed).expect("it compresses");
        for (kind, bytes) in [
            (0, &batch(codec)[..]),
            (1, &batch(codec)[..]),
            (2, &compressed[..]),
            (3, records),
        ] {
            for flags in [0, 0x20, 0x80] {
                seeds.push([&[kind, choice | flags], bytes].concat());
            }
        }
    }
    let raw = [&[2, 17, 20, 76], records].concat();
    seeds.push(raw);
    seeds
}

pub fn disk_files() -> Vec<Vec<u8>> {
    let mut offsets = OffsetIndex::new(Offset(5));
    let mut times = TimeIndex::new(Offset(5));
    let mut transactions = TransactionIndex::default();
    let mut producers = ProducerStates::default();
    let mut epochs = EpochCache::default();
    for number in 1..6i64 {
        offsets.append(Offset(5 + number), number as u32 * 5_000);
        times.maybe_append(TimestampMs(number * 9), Offset(5 + number));
        transactions.append(AbortedTransaction {
            producer_id: ProducerId(number),
            first_offset: Offset(number),
            last_offset: Offset(5 + number),
            last_stable_offset: Offset(number),
        });
        epochs.assign(LeaderEpoch(number as i32), Offset(number * 3));
        let mut header = BatchHeader::parse(&batch(Codec::None)).expect("a header");
        header.producer_id = ProducerId(number);
        producers.apply(&header);
    }
    let mut checkpoint = PartitionOffsets::new();
    checkpoint.insert(("topic".to_owned(), PartitionIndex(0)), Offset(12));
    checkpoint.insert(("topic".to_owned(), PartitionIndex(1)), Offset(0));
    let properties = MetaProperties {
        cluster_id: "aOdVcoWCQUyh8kSbgFKZyQ".to_owned(),
        node_id: BrokerId(1),
        directory_id: Some(Uuid([9; 16])),
    };
    let mark = DamageMark {
        file: "00000000000000000000.log".to_owned(),
        position: 81_920,
        offset: Offset(417),
        durable_end: Offset(650),
        cause: "a wrong checksum".to_owned(),
    };
    let files = [
        offsets.encode(),
        times.encode(),
        transactions.encode(),
        producer_snapshot::encode(&producers),
        epochs.encode(),
        checkpoint_files::encode(&checkpoint),
        properties.encode(),
        partition_metadata::encode(Uuid([9; 16])),
        clean_shutdown::encode(BrokerEpoch(12)),
        mark.encode(),
        b"00000000000000000042.timeindex.deleted".to_vec(),
        b"with-dash.and.dot-12.0f1e2d3c4b5a69788796a5b4c3d2e1f0-delete".to_vec(),
    ];
    let kinds = (0u8..11).chain([10]);
    kinds
        .zip(files)
        .map(|(kind, file)| [&[kind], &file[..]].concat())
        .collect()
}
