//! Fetch (1), versions 4 to 18: record batches from an offset on, with or without a session.
//!
//! - Version 5 adds the log start offset, 7 sessions (KIP-227), 9 leader epochs (KIP-320), 10
//!   allows zstd, 11 fetches from followers (KIP-392), 12 is flexible and detects divergence
//!   (KIP-595), 13 names topics by id (KIP-516), 15 moves the replica into a tagged field
//!   (KIP-903), 16 names current leaders (KIP-951), 17 adds the replica's directory (KIP-853), 18
//!   its high watermark (KIP-1166).
//! - Record bytes are written by reference: the encoded response is a few small buffers and the
//!   log's own slices.
//!
//! Nothing is converted to older batch formats, in any version (Kafka 4.0).

use crate::base::error_code::ErrorCode;
use crate::base::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, Offset, PartitionIndex, ProducerId, Uuid,
};
use crate::wire::codec::message;
use crate::wire::primitives::RecordSlices;

message! {
    /// What to read, and how long to wait for how much.
    pub struct FetchRequest(api_key 1, versions 4..=18, flexible 12) {
        cluster_id: Option<String> => 12.., nullable 12.., tag 0, ignorable;
        /// The follower that asks; -1 for a consumer. From version 15 in `replica_state`.
        replica_id: BrokerId => 0..=14, default BrokerId(-1);
        replica_state: ReplicaState => 15.., tag 1;
        /// How long the answer may wait for `min_bytes`, in milliseconds.
        max_wait_ms: i32 => 0..;
        min_bytes: i32 => 0..;
        /// Bytes of records in all; the first batch may exceed it (KIP-74).
        max_bytes: i32 => 0.., default i32::MAX;
        /// 0: up to the high watermark; 1: up to the last stable offset.
        isolation_level: i8 => 0..;
        session_id: i32 => 7.., ignorable;
        /// 0 opens a session, -1 closes it or does without; else the next number of the session.
        session_epoch: i32 => 7.., ignorable, default -1;
        topics: Vec<FetchTopic> => 0..;
        /// Partitions to drop from the session.
        forgotten_topics_data: Vec<ForgottenTopic> => 7..;
        rack_id: String => 11.., ignorable;
    }

    /// The follower that asks (KIP-903).
    pub struct ReplicaState {
        replica_id: BrokerId => 15.., default BrokerId(-1);
        replica_epoch: BrokerEpoch => 15.., default BrokerEpoch(-1);
    }

    /// Partitions of one topic: by name before version 13, then by id.
    pub struct FetchTopic {
        topic: String => 0..=12, ignorable;
        topic_id: Uuid => 13.., ignorable;
        partitions: Vec<FetchPartition> => 0..;
    }

    /// Where to read in one partition.
    pub struct FetchPartition {
        partition: PartitionIndex => 0..;
        /// The leader epoch the client knows; -1 when it knows none.
        current_leader_epoch: LeaderEpoch => 9.., ignorable, default LeaderEpoch::NONE;
        fetch_offset: Offset => 0..;
        /// Epoch of the last batch a follower has; -1 when it has none.
        last_fetched_epoch: LeaderEpoch => 12.., default LeaderEpoch::NONE;
        /// The follower's own log start; -1 from a consumer.
        log_start_offset: Offset => 5.., ignorable, default Offset(-1);
        partition_max_bytes: i32 => 0..;
        replica_directory_id: Uuid => 17.., tag 0, ignorable;
        /// The follower's own high watermark; `i64::MAX` when it does not say.
        high_watermark: Offset => 18.., tag 1, ignorable, default Offset(i64::MAX);
    }

    /// Partitions of one topic to drop from the session.
    pub struct ForgottenTopic {
        topic: String => 7..=12, ignorable;
        topic_id: Uuid => 13.., ignorable;
        partitions: Vec<PartitionIndex> => 7..;
    }

    /// Record batches of the partitions that had something to say.
    pub struct FetchResponse(api_key 1, versions 4..=18, flexible 12) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 7.., ignorable;
        session_id: i32 => 7..;
        responses: Vec<FetchableTopicResponse> => 0..;
        node_endpoints: Vec<NodeEndpoint> => 16.., tag 0;
    }

    /// Partitions of one topic: named as in the request.
    pub struct FetchableTopicResponse {
        topic: String => 0..=12, ignorable;
        topic_id: Uuid => 13.., ignorable;
        partitions: Vec<PartitionData> => 0..;
    }

    /// Batches of one partition, and how far it reaches.
    pub struct PartitionData {
        partition_index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
        high_watermark: Offset => 0..;
        last_stable_offset: Offset => 0.., default Offset(-1);
        log_start_offset: Offset => 5.., ignorable, default Offset(-1);
        diverging_epoch: EpochEndOffset => 12.., tag 0;
        current_leader: LeaderIdAndEpoch => 12.., tag 1;
        snapshot_id: SnapshotId => 12.., tag 2;
        /// Aborted transactions among the batches, when committed ones alone were asked for.
        aborted_transactions: Option<Vec<AbortedTransaction>>
            => 0.., nullable 0.., default Some(Vec::new());
        /// The replica the consumer had better read from (KIP-392); -1 for this one.
        preferred_read_replica: BrokerId => 11.., default BrokerId(-1);
        records: Option<RecordSlices> => 0.., nullable 0..;
    }

    /// Where the follower's log parts from the leader's: the largest common epoch and its end.
    pub struct EpochEndOffset {
        epoch: LeaderEpoch => 12.., default LeaderEpoch::NONE;
        end_offset: Offset => 12.., default Offset(-1);
    }

    /// Who leads the partition now; -1 each when unknown.
    pub struct LeaderIdAndEpoch {
        leader_id: BrokerId => 12.., default BrokerId(-1);
        leader_epoch: LeaderEpoch => 12.., default LeaderEpoch::NONE;
    }

    /// The snapshot to fetch in place of records that are gone.
    pub struct SnapshotId {
        end_offset: Offset => 0.., default Offset(-1);
        epoch: LeaderEpoch => 0.., default LeaderEpoch::NONE;
    }

    /// A producer and the first offset of its aborted transaction.
    pub struct AbortedTransaction {
        producer_id: ProducerId => 0..;
        first_offset: Offset => 0..;
    }

    /// Where a leader named in this response can be reached.
    pub struct NodeEndpoint {
        node_id: BrokerId => 16..;
        host: String => 16..;
        port: i32 => 16..;
        rack: Option<String> => 16.., nullable 16..;
    }
}
