//! Settings of groups and of the offsets that they commit (`GroupCoordinatorConfig`).

use std::time::Duration;

/// How groups are coordinated, and what their topic is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// `group.min.session.timeout.ms`
    pub session_timeout_min: Duration,
    /// `group.max.session.timeout.ms`
    pub session_timeout_max: Duration,
    /// `group.initial.rebalance.delay.ms`
    pub initial_rebalance_delay: Duration,
    /// `group.max.size`
    pub members_max: usize,
    /// `offset.metadata.max.bytes`
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`
    pub retention_check_interval: Duration,
    /// `offsets.topic.num.partitions`
    pub topic_partitions: i32,
    /// `offsets.topic.replication.factor`
    pub topic_replication_factor: i16,
    /// `offsets.topic.segment.bytes`
    pub topic_segment_bytes: i64,
    /// `offsets.topic.compression.codec`
    pub topic_codec: u8,
}

impl Default for GroupSettings {
    fn default() -> Self {
        super::BrokerConfig::default().groups
    }
}
