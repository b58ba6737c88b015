//! The data keys' requests as most tests want them, and what they read of the answers.

use bytes::BytesMut;

use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex};
use coreline::base::time::TimestampMs;
use coreline::wire::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData,
};
use coreline::wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use coreline::wire::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use coreline::wire::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use coreline::wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};

/// One batch for each partition of `batches`.
pub fn produce<B>(topic: &str, acks: i16, batches: B) -> ProduceRequest
where
    B: IntoIterator<Item = (i32, BytesMut)>,
{
    let partition_data = batches
        .into_iter()
        .map(|(index, records)| PartitionProduceData {
            index: PartitionIndex(index),
            records: Some(records),
        });
    ProduceRequest {
        acks,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData {
            name: topic.to_owned(),
            partition_data: partition_data.collect(),
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    }
}

/// From an offset of each partition; waits up to 10 s for the first byte.
pub fn fetch(topic: &str, partitions: &[(i32, i64)]) -> FetchRequest {
    let partitions = partitions.iter().map(|(partition, offset)| FetchPartition {
        partition: PartitionIndex(*partition),
        fetch_offset: Offset(*offset),
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    });
    FetchRequest {
        max_wait_ms: 10_000,
        min_bytes: 1,
        max_bytes: 50 << 20,
        topics: vec![FetchTopic {
            topic: topic.to_owned(),
            partitions: partitions.collect(),
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

/// A time in milliseconds, or -1 for the latest, -2 for the earliest, -3 for the largest time.
pub fn list_offsets(topic: &str, partition: i32, timestamp: i64) -> ListOffsetsRequest {
    ListOffsetsRequest {
        replica_id: BrokerId(-1),
        topics: vec![ListOffsetsTopic {
            name: topic.to_owned(),
            partitions: vec![ListOffsetsPartition {
                partition_index: PartitionIndex(partition),
                timestamp: TimestampMs(timestamp),
                ..ListOffsetsPartition::default()
            }],
        }],
        ..ListOffsetsRequest::default()
    }
}

/// Where leader epoch 0 ends.
pub fn epoch_end(topic: &str, partition: i32) -> OffsetForLeaderEpochRequest {
    OffsetForLeaderEpochRequest {
        topics: vec![OffsetForLeaderTopic {
            topic: topic.to_owned(),
            partitions: vec![OffsetForLeaderPartition {
                partition: PartitionIndex(partition),
                leader_epoch: LeaderEpoch(0),
                ..OffsetForLeaderPartition::default()
            }],
        }],
        ..OffsetForLeaderEpochRequest::default()
    }
}

/// Every offset of these groups.
pub fn fetch_all_offsets<S: AsRef<str>>(groups: &[S]) -> OffsetFetchRequest {
    let all = |group: &S| OffsetFetchRequestGroup {
        group_id: group.as_ref().to_owned(),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    OffsetFetchRequest {
        groups: groups.iter().map(all).collect(),
        ..OffsetFetchRequest::default()
    }
}

/// Each partition's code.
pub fn errors_of(response: &ProduceResponse) -> Vec<ErrorCode> {
    let topics = response.responses.iter();
    topics
        .flat_map(|topic| &topic.partition_responses)
        .map(|data| data.error_code)
        .collect()
}

/// Each partition's part of the answer.
pub fn answers(response: &FetchResponse) -> Vec<&PartitionData> {
    response
        .responses
        .iter()
        .flat_map(|topic| &topic.partitions)
        .collect()
}

/// How many bytes of records a partition's part holds.
pub fn bytes_of(data: &PartitionData) -> usize {
    data.records.as_ref().map_or(0, |records| records.len())
}
