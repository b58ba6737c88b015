//! AlterReplicaLogDirs (34), versions 1 to 2: moves partitions between log directories (KIP-113).
//!
//! - Version 1 answers before it throttles, 2 is flexible.

use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;
use crate::wire::codec::message;

message! {
    /// Where partitions are to go.
    pub struct AlterReplicaLogDirsRequest(api_key 34, versions 1..=2, flexible 2) {
        dirs: Vec<AlterReplicaLogDir> => 0..;
    }

    /// What is to go into one directory.
    pub struct AlterReplicaLogDir {
        /// Its absolute path.
        path: String => 0..;
        topics: Vec<AlterReplicaLogDirTopic> => 0..;
    }

    /// Partitions of one topic.
    pub struct AlterReplicaLogDirTopic {
        name: String => 0..;
        partitions: Vec<PartitionIndex> => 0..;
    }

    /// What became of each.
    pub struct AlterReplicaLogDirsResponse(api_key 34, versions 1..=2, flexible 2) {
        throttle_time_ms: i32 => 0..;
        results: Vec<AlterReplicaLogDirTopicResult> => 0..;
    }

    /// Partitions of one topic.
    pub struct AlterReplicaLogDirTopicResult {
        topic_name: String => 0..;
        partitions: Vec<AlterReplicaLogDirPartitionResult> => 0..;
    }

    /// One partition.
    pub struct AlterReplicaLogDirPartitionResult {
        partition_index: PartitionIndex => 0..;
        error_code: ErrorCode => 0..;
    }
}
