//! A topic's settings as its logs take them.

use crate::base::config::{BrokerConfig, CompressionType, TopicSettings};
use crate::log;

/// The settings of a topic's logs.
#[must_use]
pub fn log_config(topic: &TopicSettings, broker: &BrokerConfig) -> log::LogConfig {
    let positive = |value: i64| u64::try_from(value).unwrap_or(u64::MAX);
    let (compression, compression_level) = compression(topic);
    log::LogConfig {
        segment_bytes: positive(topic.segment_bytes.into()),
        segment_ms: positive(topic.segment_ms),
        segment_jitter_ms: positive(topic.segment_jitter_ms),
        segment_index_bytes: positive(topic.segment_index_bytes.into()),
        index_interval_bytes: positive(topic.index_interval_bytes.into()),
        max_message_bytes: usize::try_from(topic.max_message_bytes).unwrap_or(0),
        timestamp_type: topic.message_timestamp_type,
        timestamp_before_max_ms: topic.message_timestamp_before_max_ms,
        timestamp_after_max_ms: topic.message_timestamp_after_max_ms,
        compression,
        compression_level,
        compacted: topic.cleanup_compact,
        deletes: topic.cleanup_delete,
        retention_ms: u64::try_from(topic.retention_ms).ok(),
        retention_bytes: u64::try_from(topic.retention_bytes).ok(),
        file_delete_delay_ms: positive(topic.file_delete_delay_ms),
        min_cleanable_millionths: (topic.min_cleanable_dirty_ratio * 1e6).round() as u32,
        min_compaction_lag_ms: positive(topic.min_compaction_lag_ms),
        max_compaction_lag_ms: positive(topic.max_compaction_lag_ms),
        delete_retention_ms: positive(topic.delete_retention_ms),
        write_caching: topic.write_caching,
        flush_messages: positive(topic.flush_messages),
        flush_ms: positive(topic.flush_ms),
        producer_id_expiration_ms: positive(broker.producer_id_expiration_ms),
        validate_compressed: broker.validate_compressed,
    }
}

/// The codec's id in a batch's attributes, and its level where one is set.
fn compression(topic: &TopicSettings) -> (Option<u8>, Option<i32>) {
    match topic.compression_type {
        CompressionType::Producer => (None, None),
        CompressionType::Uncompressed => (Some(0), None),
        CompressionType::Gzip => {
            let level = topic.compression_gzip_level;
            (Some(1), (level >= 0).then_some(level))
        }
        CompressionType::Snappy => (Some(2), None),
        CompressionType::Lz4 => (Some(3), Some(topic.compression_lz4_level)),
        CompressionType::Zstd => (Some(4), Some(topic.compression_zstd_level)),
    }
}
