//! DescribeLogDirs (35), versions 1 to 4: the log directories and what lies in them (KIP-113).
//!
//! - Version 2 is flexible, 3 has a code for the whole request, 4 the room of the file systems
//!   (KIP-827). Kafka 4.4's version 5 tells which directories take nothing new.

use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;
use crate::wire::codec::message;

message! {
    /// The partitions asked for.
    pub struct DescribeLogDirsRequest(api_key 35, versions 1..=4, flexible 2) {
        /// Null for all.
        topics: Option<Vec<DescribableLogDirTopic>> => 0.., nullable 0..,
            default Some(Vec::new());
    }

    /// Partitions of one topic.
    pub struct DescribableLogDirTopic {
        topic: String => 0..;
        partitions: Vec<PartitionIndex> => 0..;
    }

    /// The directories.
    pub struct DescribeLogDirsResponse(api_key 35, versions 1..=4, flexible 2) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 3.., ignorable;
        results: Vec<DescribeLogDirsResult> => 0..;
    }

    /// One directory.
    pub struct DescribeLogDirsResult {
        error_code: ErrorCode => 0..;
        /// Its absolute path.
        log_dir: String => 0..;
        topics: Vec<DescribeLogDirsTopic> => 0..;
        /// Size of its file system.
        total_bytes: i64 => 4.., ignorable, default -1;
        /// What may still be written there.
        usable_bytes: i64 => 4.., ignorable, default -1;
    }

    /// Partitions of one topic in it.
    pub struct DescribeLogDirsTopic {
        name: String => 0..;
        partitions: Vec<DescribeLogDirsPartition> => 0..;
    }

    /// One partition's log.
    pub struct DescribeLogDirsPartition {
        partition_index: PartitionIndex => 0..;
        /// Bytes of its segments.
        partition_size: i64 => 0..;
        /// How far its end is behind the high watermark.
        offset_lag: i64 => 0..;
        /// Whether it is a copy that is to replace another directory's.
        is_future_key: bool => 0..;
    }
}
