//! What a peer may send: messages cut short, lengthened, with bytes changed and lengths blown up.
//! Every key, version and direction answers with an error or a message, never with a panic, and
//! allocates no more than the bytes that came justify (`decoded_bytes_max`).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;

use bytes::{BufMut, Bytes, BytesMut};
use coreline::base::ids::PartitionIndex;
use coreline::base::random::Random;
use coreline::wire::any_request::read_any;
use coreline::wire::api::APIS;
use coreline::wire::codec::{DataMessage, Message, RecordMessage};
use coreline::wire::frame::{self, FrameLimits};
use coreline::wire::messages as m;
use coreline::wire::messages::metadata_records as records;
use coreline::wire::primitives::{DecodeError, Reader, RecordSlices, Writer, decoded_bytes_max};
use coreline::wire::sample;

/// Counts what the calling thread allocates; each test runs on a thread of its own.
struct Counting;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    BYTES.with(|total| total.set(total.get() + bytes));
    COUNT.with(|total| total.set(total.get() + 1));
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps this function's own contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps this function's own contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller keeps this function's own contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` gives, and the bytes and pieces that it allocated.
fn counted<T>(work: impl FnOnce() -> T) -> (T, usize, usize) {
    let (bytes, count) = (BYTES.get(), COUNT.get());
    let value = work();
    (value, BYTES.get() - bytes, COUNT.get() - count)
}

/// Bookkeeping of shared buffers, beside what the limit counts.
const SLACK_BYTES: usize = 1024;

/// The parts of `Message`, `RecordMessage` and `DataMessage` that the tests need.
trait Codec: Sized + PartialEq + Debug {
    fn all_versions() -> Vec<i16>;
    fn drawn(random: &mut Random, version: i16) -> Self;
    fn read(bytes: BytesMut, version: i16) -> Result<Self, DecodeError>;
    fn written(&self, version: i16) -> Bytes;
}

macro_rules! codecs {
    ($kind:ident, $sample:path: $($type:ty),* $(,)?) => {$(
        impl Codec for $type {
            fn all_versions() -> Vec<i16> {
                <$type as $kind>::VERSIONS.collect()
            }
            fn drawn(random: &mut Random, version: i16) -> Self {
                $sample(random, version)
            }
            fn read(bytes: BytesMut, version: i16) -> Result<Self, DecodeError> {
                <$type as $kind>::decode(&mut Reader::new(bytes), version)
            }
            fn written(&self, version: i16) -> Bytes {
                let mut writer = Writer::default();
                <$type as $kind>::encode(self, &mut writer, version).expect("fits its version");
                writer.into_bytes()
            }
        }
    )*};
}

macro_rules! for_all {
    ($run:ident) => {
        for_all!(@messages $run,
            m::produce::ProduceRequest, m::produce::ProduceResponse,
            m::fetch::FetchRequest, m::fetch::FetchResponse,
            m::list_offsets::ListOffsetsRequest, m::list_offsets::ListOffsetsResponse,
            m::metadata::MetadataRequest, m::metadata::MetadataResponse,
            m::find_coordinator::FindCoordinatorRequest,
            m::find_coordinator::FindCoordinatorResponse,
            m::api_versions::ApiVersionsRequest, m::api_versions::ApiVersionsResponse,
            m::create_topics::CreateTopicsRequest, m::create_topics::CreateTopicsResponse,
            m::delete_topics::DeleteTopicsRequest, m::delete_topics::DeleteTopicsResponse,
            m::delete_records::DeleteRecordsRequest, m::delete_records::DeleteRecordsResponse,
            m::init_producer_id::InitProducerIdRequest,
            m::init_producer_id::InitProducerIdResponse,
            m::offset_for_leader_epoch::OffsetForLeaderEpochRequest,
            m::offset_for_leader_epoch::OffsetForLeaderEpochResponse,
            m::describe_configs::DescribeConfigsRequest,
            m::describe_configs::DescribeConfigsResponse,
            m::alter_configs::AlterConfigsRequest,
            m::alter_configs::AlterConfigsResponse,
            m::alter_replica_log_dirs::AlterReplicaLogDirsRequest,
            m::alter_replica_log_dirs::AlterReplicaLogDirsResponse,
            m::describe_log_dirs::DescribeLogDirsRequest,
            m::describe_log_dirs::DescribeLogDirsResponse,
            m::create_partitions::CreatePartitionsRequest,
            m::create_partitions::CreatePartitionsResponse,
            m::incremental_alter_configs::IncrementalAlterConfigsRequest,
            m::incremental_alter_configs::IncrementalAlterConfigsResponse,
            m::list_config_resources::ListConfigResourcesRequest,
            m::list_config_resources::ListConfigResourcesResponse,
            m::describe_cluster::DescribeClusterRequest,
            m::describe_cluster::DescribeClusterResponse,
            m::describe_topic_partitions::DescribeTopicPartitionsRequest,
            m::describe_topic_partitions::DescribeTopicPartitionsResponse,
            m::join_group::JoinGroupRequest, m::join_group::JoinGroupResponse,
            m::sync_group::SyncGroupRequest, m::sync_group::SyncGroupResponse,
            m::heartbeat::HeartbeatRequest, m::heartbeat::HeartbeatResponse,
            m::leave_group::LeaveGroupRequest, m::leave_group::LeaveGroupResponse,
            m::offset_commit::OffsetCommitRequest, m::offset_commit::OffsetCommitResponse,
            m::offset_fetch::OffsetFetchRequest, m::offset_fetch::OffsetFetchResponse,
            m::offset_delete::OffsetDeleteRequest, m::offset_delete::OffsetDeleteResponse,
            m::describe_groups::DescribeGroupsRequest, m::describe_groups::DescribeGroupsResponse,
            m::list_groups::ListGroupsRequest, m::list_groups::ListGroupsResponse,
            m::delete_groups::DeleteGroupsRequest, m::delete_groups::DeleteGroupsResponse,
            m::elect_leaders::ElectLeadersRequest,
            m::elect_leaders::ElectLeadersResponse,
            m::list_partition_reassignments::ListPartitionReassignmentsRequest,
            m::list_partition_reassignments::ListPartitionReassignmentsResponse,
            m::alter_partition_reassignments::AlterPartitionReassignmentsRequest,
            m::alter_partition_reassignments::AlterPartitionReassignmentsResponse,
            m::describe_producers::DescribeProducersRequest,
            m::describe_producers::DescribeProducersResponse,
            m::describe_quorum::DescribeQuorumRequest,
            m::describe_quorum::DescribeQuorumResponse,
            m::describe_user_scram_credentials::DescribeUserScramCredentialsRequest,
            m::describe_user_scram_credentials::DescribeUserScramCredentialsResponse,
            m::update_features::UpdateFeaturesRequest,
            m::update_features::UpdateFeaturesResponse,
            m::describe_client_quotas::DescribeClientQuotasRequest,
            m::describe_client_quotas::DescribeClientQuotasResponse,
            m::alter_client_quotas::AlterClientQuotasRequest,
            m::alter_client_quotas::AlterClientQuotasResponse);
        for_all!(@records $run,
            records::RegisterBrokerRecord, records::UnregisterBrokerRecord,
            records::FenceBrokerRecord, records::UnfenceBrokerRecord,
            records::BrokerRegistrationChangeRecord, records::TopicRecord,
            records::RemoveTopicRecord, records::PartitionRecord,
            records::PartitionChangeRecord, records::ConfigRecord,
            records::FeatureLevelRecord, records::ProducerIdsRecord, records::NoOpRecord,
            records::BeginTransactionRecord, records::EndTransactionRecord,
            records::AbortTransactionRecord, records::ClientQuotaRecord,
            m::group_records::OffsetCommitKey, m::group_records::GroupMetadataKey);
        for_all!(@data $run,
            m::group_records::OffsetCommitValue, m::group_records::GroupMetadataValue,
            m::consumer_protocol::ConsumerProtocolSubscription,
            m::consumer_protocol::ConsumerProtocolAssignment);
    };
    (@messages codecs, $($type:ty),*) => { codecs!(Message, sample::message: $($type),*); };
    (@records codecs, $($type:ty),*) => { codecs!(RecordMessage, sample::record: $($type),*); };
    (@data codecs, $($type:ty),*) => { codecs!(DataMessage, sample::data: $($type),*); };
    (@$kind:ident $run:ident, $($type:ty),*) => { $($run::<$type>();)* };
}

for_all!(codecs);

/// Reads bytes that may be anything, and checks what it cost and that what was read can be written.
fn read_anything<C: Codec>(bytes: &[u8], version: i16) -> Result<C, DecodeError> {
    let received = BytesMut::from(bytes);
    let (read, allocated, _) = counted(|| C::read(received, version));
    let limit = decoded_bytes_max(bytes.len()) + SLACK_BYTES;
    assert!(
        allocated <= limit,
        "{allocated} > {limit} for {} bytes",
        bytes.len()
    );
    if let Ok(message) = &read {
        let again = C::read(BytesMut::from(message.written(version).as_ref()), version);
        assert_eq!(again.as_ref(), Ok(message));
    }
    read
}

/// A message short enough that all its prefixes can be tried.
fn short<C: Codec>(version: i16) -> (C, Bytes) {
    let drawn = (0..40).map(|seed| C::drawn(&mut Random::new(seed), version));
    let written = drawn.map(|message| {
        let bytes = message.written(version);
        (message, bytes)
    });
    written
        .filter(|(_, bytes)| bytes.len() < 2000)
        .max_by_key(|(_, bytes)| bytes.len())
        .expect("some are short")
}

fn cut_and_lengthen<C: Codec>() {
    for version in C::all_versions() {
        let (message, bytes) = short::<C>(version);
        assert_eq!(read_anything(&bytes, version), Ok(message));
        for end in 0..bytes.len() {
            let cut = read_anything::<C>(&bytes[..end], version);
            assert!(cut.is_err(), "{end} of {} bytes: {cut:?}", bytes.len());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(
            read_anything::<C>(&longer, version),
            Err(DecodeError::TrailingBytes(1))
        );
    }
}

#[test]
fn a_message_cut_or_lengthened_anywhere_is_refused() {
    for_all!(cut_and_lengthen);
}

/// What lengths and counts become in the hands of an enemy.
const LENGTHS: [&[u8]; 8] = [
    &[0x7f, 0xff, 0xff, 0xff],
    &[0x80, 0, 0, 0],
    &[0xff, 0xff, 0xff, 0xfe],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 1],
    &[0, 1, 0xff, 0xff],
    &[0x7f, 0xff],
];

fn mutate<C: Codec>() {
    for version in C::all_versions() {
        let (_, bytes) = short::<C>(version);
        let mut random = Random::new(version as u64);
        for _ in 0..150 {
            let mut changed = bytes.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(changed.len() as u64) as usize;
                if random.chance(1, 2) {
                    if let Some(byte) = changed.get_mut(at) {
                        *byte = random.next_u64() as u8;
                    }
                } else {
                    let length = LENGTHS[random.below(8) as usize];
                    for (byte, new) in changed.iter_mut().skip(at).zip(length) {
                        *byte = *new;
                    }
                }
            }
            // Whether it is refused depends on what was hit; that nothing else happens does not.
            let _ = read_anything::<C>(&changed, version);
        }
        for len in [0, 1, 7, 64, 700] {
            let noise: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
            let _ = read_anything::<C>(&noise, version);
        }
    }
}

#[test]
fn changed_bytes_and_lengths_cause_neither_panic_nor_memory() {
    for_all!(mutate);
}

fn blow_up<C: Codec>() {
    for version in C::all_versions() {
        let (_, bytes) = short::<C>(version);
        for at in 0..bytes.len() {
            for length in LENGTHS {
                let mut changed = bytes.to_vec();
                for (byte, new) in changed.iter_mut().skip(at).zip(length) {
                    *byte = *new;
                }
                let _ = read_anything::<C>(&changed, version);
            }
        }
    }
}

#[test]
fn a_huge_length_at_any_place_causes_neither_panic_nor_memory() {
    blow_up::<m::fetch::FetchRequest>();
    blow_up::<m::metadata::MetadataRequest>();
    blow_up::<m::create_topics::CreateTopicsRequest>();
    blow_up::<m::produce::ProduceRequest>();
    blow_up::<records::PartitionChangeRecord>();
    blow_up::<m::join_group::JoinGroupRequest>();
    blow_up::<m::offset_commit::OffsetCommitRequest>();
    blow_up::<m::group_records::GroupMetadataValue>();
}

/// A frame of some key, with a header that mostly holds and a body of noise: small numbers, so
/// that lengths and counts often fit what follows.
fn noise(random: &mut Random) -> BytesMut {
    let api = APIS[random.below(APIS.len() as u64) as usize];
    let is_known = random.chance(7, 8);
    let mut buffer = BytesMut::new();
    buffer.put_i32(random.below(200) as i32 - 5);
    buffer.put_i16(if is_known {
        api.key.0
    } else {
        random.next_u64() as i16
    });
    buffer.put_i16(random.below(20) as i16 - 2);
    buffer.put_i32(1);
    buffer.put_i16(-1);
    let len = random.below(300);
    buffer.extend((0..len).map(|_| match random.below(4) {
        0 => random.next_u64() as u8,
        1 => random.below(4) as u8,
        _ => 0,
    }));
    buffer
}

/// A whole connection's worth of noise: frames, headers, and the bodies that they announce.
#[test]
fn noise_on_a_connection_causes_neither_panic_nor_memory() {
    let limits = FrameLimits::authenticated(1 << 20);
    let (mut refused, mut accepted) = (0, 0);
    for seed in 0..20_000 {
        let mut buffer = noise(&mut Random::new(seed));
        while let Ok(Some(body)) = frame::split(&mut buffer, &limits) {
            let limit = 2 * (decoded_bytes_max(body.len()) + SLACK_BYTES);
            let (read, allocated, _) = counted(|| read_any(body));
            assert!(allocated <= limit, "{allocated} > {limit}, seed {seed}");
            match read {
                Ok(request) => {
                    accepted += 1;
                    let body = request.body.transpose();
                    assert!(body.is_ok(), "what was read can be written: seed {seed}");
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(
        refused > 1000 && accepted > 100,
        "{refused} refused, {accepted} accepted"
    );
}

/// A Produce request of one partition whose batch has `len` bytes.
fn produce_of(len: usize, version: i16) -> BytesMut {
    let request = m::produce::ProduceRequest {
        topic_data: vec![m::produce::TopicProduceData {
            partition_data: vec![m::produce::PartitionProduceData {
                index: PartitionIndex(1),
                records: Some(BytesMut::from(&vec![1; len][..])),
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    BytesMut::from(request.written(version).as_ref())
}

#[test]
fn what_a_produce_request_allocates_does_not_depend_on_its_records() {
    for version in <m::produce::ProduceRequest as Message>::VERSIONS {
        let costs = [100, 1 << 20].map(|len| {
            let received = produce_of(len, version);
            let (request, bytes, count) =
                counted(|| m::produce::ProduceRequest::read(received, version));
            assert!(request.is_ok());
            (bytes, count)
        });
        assert_eq!(costs[0], costs[1], "version {version}");
        assert!(costs[0].1 <= 4, "{} allocations", costs[0].1);
    }
}

#[test]
fn what_a_fetch_response_allocates_does_not_depend_on_its_records() {
    for version in <m::fetch::FetchResponse as Message>::VERSIONS {
        let costs = [1 << 10, 1 << 20].map(|len| {
            let response = m::fetch::FetchResponse {
                responses: vec![m::fetch::FetchableTopicResponse {
                    partitions: vec![m::fetch::PartitionData {
                        records: Some(RecordSlices::from(Bytes::from(vec![1; len]))),
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            };
            let correlation_id = coreline::base::ids::CorrelationId(1);
            let (pieces, bytes, count) =
                counted(|| frame::encode_response(&response, version, correlation_id));
            assert!(pieces.expect("it can be written").len() <= 3);
            (bytes, count)
        });
        assert_eq!(costs[0], costs[1], "version {version}");
        assert!(costs[0].0 < 2048, "{} bytes", costs[0].0);
    }
}
